"""Reviews of what names a queue by itself: PodGroups that others make, and pods."""

from typing import Any

import pytest

from muster.gangs.intent import Defaults
from muster.kube.errors import ApiError
from muster.model.findings import Severity, Validation
from muster.model.names import NAMESPACE_SELECTOR, QUEUE_ANNOTATION, QUEUE_LABEL
from tests.support.manifests.observed import ASK, DEFAULTS, JSON, NO_QUEUE, namespace, pod, pod_group, queue
from tests.support.webhook.admission_reviews import Reader, answered, knowing, request
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.queues import review_named_queue, review_pod_group

_LEAF = queue("leaf")
_LEAF["spec"]["parent"] = "org"
TREE = [
    queue("org", cpu="8", memory="8Gi"),
    _LEAF,
    queue("shut", state="Closed"),
    queue("kept", annotations={NAMESPACE_SELECTOR: "team=ml"}),
]


def world(defaults: Defaults = DEFAULTS) -> ClusterReader:
    return knowing(queues=TREE, namespaces=[namespace(labels={"team": "web"})], defaults=defaults)


def naming(name: str) -> list[tuple[Any, JSON, str]]:
    """Everything that can name a queue, with the review that sees it and the field."""
    group = pod_group("theirs", ours=False, queue=name)
    labelled = pod("p", labels={QUEUE_LABEL: name}, schedulerName="volcano")
    annotated = pod("p", annotations={QUEUE_ANNOTATION: name}, schedulerName="volcano")
    return [
        (review_pod_group, group, "spec.queue"),
        (review_named_queue, labelled, f"metadata.labels[{QUEUE_LABEL}]"),
        (review_named_queue, annotated, f"metadata.annotations[{QUEUE_ANNOTATION}]"),
    ]


@pytest.mark.parametrize("way", range(3), ids=["PodGroup", "label of a pod", "annotation of a pod"])
@pytest.mark.parametrize(
    ("name", "reason", "words"),
    [
        ("leaf", "", ""),
        ("shut", "QueueClosed", 'queue "shut" is Closed and takes no new work'),
        ("org", "QueueNotLeaf", 'queue "org" has queues below it and takes no gangs itself; name one of those'),
        (
            "none",
            "QueueNotFound",
            NO_QUEUE.replace('"q"', '"none"') + ASK,
        ),
        (
            "kept",
            "QueueNotFound",
            NO_QUEUE.replace('"q"', '"kept"') + ASK,
        ),
    ],
)
async def test_what_names_a_queue_by_itself_names_one_that_takes_it(
    way: int, name: str, reason: str, words: str
) -> None:
    review, manifest, field = naming(name)[way]
    response = answered(await review(request(manifest), world()))
    assert response["allowed"] is not bool(reason)
    if reason:
        assert response["status"]["reason"] == reason
        assert response["status"]["message"].startswith(f"{field}: {words}")


@pytest.mark.parametrize("mode", [Severity.WARN, Severity.OFF])
async def test_whose_a_queue_is_no_mode_of_validation_decides(mode: Severity) -> None:
    """Volcano would start it; a workload's pods are held until the queue is theirs."""
    defaults = Defaults(validation=Validation(mode))
    for review, manifest, _ in (*naming("kept"), *naming("none")):
        assert not answered(await review(request(manifest), world(defaults)))["allowed"]
    for review, manifest, _ in naming("org"):
        response = answered(await review(request(manifest), world(defaults)))
        assert (response["allowed"], "warnings" in response) == (True, mode is Severity.WARN)


async def test_a_group_without_a_queue_stands_in_volcanos_default() -> None:
    answer = answered(await review_pod_group(request(pod_group(ours=False, queue="")), world()))
    assert 'spec.queue: queue "default" does not exist' in answer["status"]["message"]


async def test_where_the_queue_cannot_be_read_nobody_decides() -> None:
    """The failure policy does."""
    knowledge = knowing(Reader({"queues/q": ApiError(503, "", "busy")}))
    with pytest.raises(ApiError):
        await review_pod_group(request(pod_group(ours=False)), knowledge)
