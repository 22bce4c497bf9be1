"""Another number of pods by the scale subresource: judged as the same change of the workload."""

import pytest

from muster.gangs.intent import Defaults
from muster.model.findings import Severity, Validation
from muster.workloads import KINDS, Kind, kind_of
from tests.support.cases import cases
from tests.support.manifests.families import FAMILIES
from tests.support.manifests.observed import DEFAULTS, JSON, as_json, pytorch_job, queue
from tests.support.webhook.admission_reviews import Reader, answered, knowing, review
from webhook.reviews.codec import decode_review
from webhook.reviews.workloads import review_scale


def _asked(replicas: int, plural: str = "pytorchjobs", group: str = "kubeflow.org") -> JSON:
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "train"},
        "spec": {"replicas": replicas},
    }
    asked = review(scale, operation="UPDATE")
    asked["request"]["name"] = "train"
    asked["request"]["resource"] = {"group": group, "version": "v1", "resource": plural}
    return asked


async def _answer(job: JSON | None, asked: JSON, *, cpu: str = "4", defaults: Defaults = DEFAULTS) -> JSON:
    plural = asked["request"]["resource"]["resource"]
    reader = Reader({f"{plural}/train": job} if job else {})
    knowledge = knowing(reader, queues=[queue(cpu=cpu)], defaults=defaults)
    return answered(await review_scale(decode_review(as_json(asked).encode()), knowledge))


JOB = pytorch_job(policy={"queue": "q"})
DELETED = {**JOB["metadata"], "deletionTimestamp": "2026-11-21T10:00:00Z"}


@pytest.mark.parametrize(("replicas", "allowed"), [(3, True), (4, False)])
async def test_it_is_refused_beyond_what_the_queue_may_hold_with_numbers(replicas: int, *, allowed: bool) -> None:
    answer = await _answer(JOB, _asked(replicas))
    assert answer["allowed"] is allowed
    if not allowed:
        assert 'gang "train" needs cpu 5, queue "q" has capability cpu 4' in answer["status"]["message"]


async def test_what_was_too_much_before_may_become_less() -> None:
    answer = await _answer(JOB, _asked(1), cpu="1")
    assert (answer["allowed"], len(answer["warnings"])) == (True, 1)


@cases(
    "job, plural",
    ("it is gone", None, "pytorchjobs"),
    ("not muster's", pytorch_job(policy={}), "pytorchjobs"),
    ("being deleted", {**JOB, "metadata": DELETED}, "pytorchjobs"),
    ("a kind of others", JOB, "deployments"),
    ("a kind without the subresource", JOB, "tfjobs"),
)
async def test_what_is_not_judged_is_scaled_as_anybody_likes(job: JSON | None, plural: str) -> None:
    assert await _answer(job, _asked(99, plural)) == {"uid": "u", "allowed": True}


async def test_without_validation_nobody_looks() -> None:
    defaults = Defaults(validation=Validation(Severity.OFF))
    assert await _answer(JOB, _asked(99), defaults=defaults) == {"uid": "u", "allowed": True}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.scaled], ids=lambda kind: str(kind.kind))
async def test_every_kind_that_has_a_scale_is_judged(kind: Kind) -> None:
    """Whether it is refused by the queue, or because so many make no gang: not seen, it would be allowed."""
    (family,) = [one for one in FAMILIES if kind_of(one.api_version, one.kind) is kind]
    assert not (await _answer(family.manifest(name="train"), _asked(1000, kind.plural, kind.group)))["allowed"]
