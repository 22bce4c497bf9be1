"""Two versions of the webhook beside each other: a rollout that stands still, and what each replica answers."""

import base64
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hack.testbed import wait_for
from muster.model.names import GANG, GANG_SIZE, QUEUE_LABEL
from tests.support.cluster.helm_release import NAMESPACE, Release
from tests.support.manifests import applied
from tests.support.webhook.admission_reviews import review

_DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/muster-webhook"
_VERSION = re.compile(r'^muster_build_info\{.*version="([^"]*)"', re.MULTILINE)

Answers = dict[str, list[Any]]


@contextmanager
def halfway(release: Release) -> Iterator[Answers]:
    """Stop the rollout that has begun when its first new webhook serves; gives each version's answers to reviews.

    It goes on when the block ends. What does not answer as the others of its version fails.
    """
    api = release.testbed.api()
    wait_for("a webhook of another image", lambda: len(set(map(_image, release.pods("webhook")))) > 1)
    api.merge(_DEPLOYMENT, {"spec": {"paused": True}})
    images = {pod["metadata"]["name"]: _image(pod) for pod in release.pods("webhook")}
    wait_for(
        "webhooks of both images to serve",
        lambda: {images[name] for name in release.ready("webhook") if name in images} == set(images.values()),
    )
    answers: Answers = {}
    for name in release.ready("webhook"):
        (version,) = _VERSION.findall(release.metrics(name))
        told = [_told(release, name, *question) for question in _questions()]
        assert answers.setdefault(version, told) == told, f"{name} answers otherwise than another one of {version}"
    try:
        yield answers
    finally:
        api.merge(_DEPLOYMENT, {"spec": {"paused": None}})


def _questions() -> Iterator[tuple[str, dict[str, Any]]]:
    member = applied.pod("member")
    member["metadata"].update(labels={GANG: "asked"}, annotations={GANG_SIZE: "1"})
    yield "/mutate/pods", review(member)
    yield "/validate/workloads", review(applied.ray_cluster("asked").label(QUEUE_LABEL, "nowhere").manifest())


def _told(release: Release, name: str, path: str, question: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """What this replica answers, asked by the apiserver's proxy."""
    answer = release.testbed.api().create(f"{release.path_of(name, 9443, 'https:')}{path}", question)["response"]
    assert "status" in answer or "patch" in answer, f"{name} says nothing of {path}"
    return json.loads(base64.b64decode(answer["patch"])) if "patch" in answer else answer["status"]


def _image(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["containers"][0]["image"])
