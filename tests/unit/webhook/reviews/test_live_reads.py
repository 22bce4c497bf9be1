"""Direct reads: a large object is read once a second, whoever asks, and nobody passes by what was read too early."""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus

import pytest

from hack.testbed.waiting import PATIENCE as SOON
from muster.kube.errors import ApiError
from muster.model.findings import Reason
from muster.model.pods import Pod
from muster.model.resource import PODS, Resource
from tests.support.faults.loop_clock import LoopClock
from tests.support.manifests.observed import (
    JSON,
    NAMESPACE,
    as_client,
    as_json,
    pod,
    ray_cluster,
    ray_owner,
    workers,
)
from tests.support.webhook.admission_reviews import Reader, knowing, request
from webhook.reviews.cluster_cache import LiveReads
from webhook.reviews.pods import review_pod
from webhook.server.limits import ActiveReview, Limits, Refused, ReviewClass

# Nothing that muster reads, and a third of a megabyte.
BULK = {"a": "x" * 2**18}


@dataclass
class Counted(Reader):
    """Answers when it may, and says how often it was asked."""

    may: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.may.set()

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, deadline: float = 10.0
    ) -> bytes:
        """Read, when it may."""
        found = await super().get(resource, name, namespace, deadline=deadline)
        await self.may.wait()
        return found


def _review() -> ActiveReview:
    """A review that has all time."""
    return ReviewClass(Limits()).slot(large=False, seconds=SOON)


def _member(role: str = "workers") -> JSON:
    labels = {"ray.io/cluster": "demo", "ray.io/group": role}
    return pod("", owner=ray_owner(controller=True), labels=labels, schedulerName="default-scheduler")


async def _forward(clock: LoopClock) -> None:
    """A second and a half later, when all that was due has been done."""
    clock.forward(1.5)
    for _ in range(2):
        await asyncio.sleep(0)


async def test_pods_of_a_role_that_a_large_workload_has_not_cause_one_read_a_second() -> None:
    """Each of their reviews is small, and each read would be as large as the workload."""
    cluster, clock = ray_cluster(annotations=BULK), LoopClock()
    reader = Counted({"rayclusters/demo": cluster})
    knowledge = knowing(reader, workloads=[cluster])
    first = await review_pod(request(_member("bogus")), knowledge)
    assert (first.allowed, first.patch, len(reader.reads)) == (True, [], 1)
    for number in range(20):
        with pytest.raises(Refused) as refused:
            await review_pod(request(_member(f"bogus-{number}")), knowledge)
        assert (refused.value.status, refused.value.retry) == (HTTPStatus.TOO_MANY_REQUESTS, True)
    assert len(reader.reads) == 1
    await _forward(clock)
    assert (await review_pod(request(_member("bogus")), knowledge)).patch == []
    assert len(reader.reads) == 2


async def test_what_is_read_once_serves_all_pods_that_are_quicker_than_the_watch() -> None:
    cluster = ray_cluster(annotations=BULK)
    reader = Counted({"rayclusters/demo": cluster})
    knowledge = knowing(reader)
    for _ in range(5):
        assert (await review_pod(request(_member()), knowledge)).patch
    assert len(reader.reads) == 1


async def test_a_new_role_is_found_by_the_read_that_comes_after_it() -> None:
    """A pod that came just when something else was read is told to come again, and not let pass without its gang."""
    old, clock = ray_cluster(annotations=BULK), LoopClock()
    reader = Counted({"rayclusters/demo": old})
    knowledge = knowing(reader, workloads=[old])
    await review_pod(request(_member("bogus")), knowledge)
    reader.objects["rayclusters/demo"] = ray_cluster(workers("new"), annotations=BULK, meta={"resourceVersion": "2"})
    with pytest.raises(Refused):
        await review_pod(request(_member("new")), knowledge)
    await _forward(clock)
    assert (await review_pod(request(_member("new")), knowledge)).patch


async def test_a_small_workload_is_read_as_often_as_it_is_asked_about() -> None:
    reader = Counted({"rayclusters/demo": ray_cluster()})
    knowledge = knowing(reader, workloads=[ray_cluster()])
    for _ in range(3):
        assert (await review_pod(request(_member("bogus")), knowledge)).allowed
    assert len(reader.reads) == 3


async def test_those_who_ask_while_it_is_read_wait_for_that_read() -> None:
    reader = Counted({"pods/p": pod("p", annotations=BULK)})
    reads, clock = LiveReads(as_client(reader), 2.0), LoopClock()
    assert (await reads.read(_review(), PODS, "p", Pod, NAMESPACE)).from_cache is False
    await _forward(clock)
    reader.may.clear()
    asked = [asyncio.create_task(reads.read(_review(), PODS, "p", Pod, NAMESPACE)) for _ in range(3)]
    await asyncio.sleep(0)
    reader.may.set()
    assert [(await one).from_cache for one in asked] == [False, True, True]
    assert len(reader.reads) == 2


@pytest.mark.parametrize("error", [ApiError(503, "", "busy"), ApiError(404, "NotFound", "gone")])
async def test_a_read_that_fails_fails_for_one_and_the_others_come_again(error: ApiError) -> None:
    reader = Counted({"pods/p": pod("p", annotations=BULK)})
    reads, clock = LiveReads(as_client(reader), 2.0), LoopClock()
    await reads.read(_review(), PODS, "p", Pod, NAMESPACE)
    await _forward(clock)
    reader.objects["pods/p"] = error
    reader.may.clear()

    async def read() -> object:
        try:
            return (await reads.read(_review(), PODS, "p", Pod, NAMESPACE)).object
        except (ApiError, Refused) as failed:
            return failed

    first, second = asyncio.create_task(read()), asyncio.create_task(read())
    await asyncio.sleep(0)
    reader.may.set()
    assert await first in (error, None)
    assert isinstance(await second, Refused | None)


async def test_a_review_that_meets_something_large_needs_a_place_for_it() -> None:
    """Or the few places would bound what is sent, and not what is done."""
    reader = Counted({"pods/p": pod("p", annotations=BULK)})
    slots = ReviewClass(Limits(large_reviews=1))
    reads = LiveReads(as_client(reader), 2.0)

    async def review() -> bool:
        with slots.slot(large=False, seconds=SOON) as active:
            return (await reads.read(active, PODS, "p", Pod, NAMESPACE)).object is not None

    assert await review()
    with slots.slot(large=True, seconds=SOON):
        other = LiveReads(as_client(reader), 2.0)
        with (
            slots.slot(large=False, seconds=SOON) as active,
            pytest.raises(Refused, match="too many reviews at once"),
        ):
            await other.read(active, PODS, "p", Pod, NAMESPACE)
    assert await review()
    assert (slots.reviews, slots.large) == (0, 0)


async def test_a_workload_that_holds_too_much_is_read_by_nobody() -> None:
    """Its pods are refused for what it is, whatever role they say they have."""
    giant = ray_cluster(workers(template={"spec": {"containers": [{"name": f"c{n}"} for n in range(20_000)]}}))
    reader = Counted({"rayclusters/demo": giant})
    knowledge = knowing(reader, workloads=[giant])
    for role in ("workers", "bogus"):
        answer = await review_pod(request(_member(role)), knowledge)
        assert (answer.allowed, answer.reasons) == (False, [Reason.INVALID])
    assert reader.reads == []
    assert len(as_json(giant)) > 2**18
