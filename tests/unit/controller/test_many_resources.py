"""Gangs that name more resources than muster reads: they are Invalid, say so briefly, and cost little."""

import pytest

from muster.model.names import GANG, GANG_SIZE, GATE, GROUP_NAME, MESSAGE, QUEUE_LABEL
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, pod, queue, ray_cluster
from tests.support.webhook.admission_reviews import answered, knowing, request
from webhook.reviews.pods import review_pod
from webhook.reviews.workloads import review_workload


def _pods(names: int, *, gated: bool = True) -> list[JSON]:
    """Three plain pods of one gang, each with as many resources that no other has."""
    pods = []
    for number in range(3):
        said = {GANG_SIZE: "3", GROUP_NAME: "x"}
        gates = [{"name": GATE}] if gated else []
        one = pod(f"x-{number}", labels={GANG: "x", QUEUE_LABEL: "q"}, annotations=said, schedulingGates=gates)
        amounts = {f"example.com/{number}-{name}": "1" for name in range(names)}
        one["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
        pods.append(one)
    return pods


async def _settled(names: int) -> Harness:
    return await Harness(pods=_pods(names), queues=[queue("q", cpu="4")]).settled()


@cases(
    "names, message",
    ("together", 22, "its pods: names 66 resources, and muster reads 64 at most; use fewer"),
    ("each", 65, "spec: names 65 resources, and muster reads 64 at most; use fewer"),
)
async def test_a_gang_of_too_many_resources_is_invalid(names: int, message: str) -> None:
    harness = await _settled(names)
    assert harness.open_pods() == []
    (event,) = harness.events_on("Pod")
    assert (event["reason"], event["note"].endswith(message)) == ("Invalid", True)


async def test_messages_name_the_first_resources_and_a_count() -> None:
    """21 of each of three pods; a message stands in each event, and on the PodGroup."""
    message = (await _settled(21)).annotations("x")[MESSAGE]
    assert "and 55 more" in message
    assert len(message) < 1_000


def _template(names: int) -> JSON:
    amounts = {f"example.com/{name}": "1" for name in range(names)}
    return {"spec": {"containers": [{"name": "ray", "resources": {"requests": amounts}}]}}


@pytest.mark.parametrize(("names", "allowed"), [(62, True), (63, False)])
async def test_admission_says_how_many_resources_a_gang_may_name(names: int, *, allowed: bool) -> None:
    """The workers name cpu and memory."""
    manifest, knowledge = ray_cluster(head=_template(names)), knowing(queues=[queue("q")])
    answer = answered(await review_workload(request(manifest), knowledge))
    assert answer["allowed"] is allowed
    if not allowed:
        assert "names 65 resources, and muster reads 64 at most; use fewer" in answer["status"]["message"]


async def test_a_plain_pod_of_too_many_resources_is_refused() -> None:
    (one, *_) = _pods(65, gated=False)
    answer = answered(await review_pod(request(one), knowing()))
    assert not answer["allowed"]
    assert "names 65 resources" in answer["status"]["message"]
