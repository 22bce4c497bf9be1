"""Who waits in a full queue is listed for a warning, and for nothing else, and seldom."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from muster.kube.errors import ApiError
from muster.kube.resource import POD_GROUPS, Resource
from tests.support.faults.apiserver import eventually
from tests.support.faults.loop_clock import LoopClock
from tests.support.manifests.observed import DEFAULTS, JSON, as_client, as_json, pod_group, queue, ray_cluster
from tests.support.webhook.admission_reviews import Reader, answered, knowing, request
from webhook.waiting import Waiting
from webhook.workloads import review_workload

WAITS = {"muster.dev/state": "WaitingForQuota"}
FULL = {**queue(cpu="4"), "status": {"state": "Open", "allocated": {"cpu": "3"}}}


@dataclass
class Lister:
    """Lists PodGroups, or fails, or takes for ever; and counts."""

    items: list[JSON] = field(default_factory=list)
    error: Exception | None = None
    going_on: asyncio.Event | None = None
    lists: int = 0
    deadline: float = 200.0

    async def list_page(self, resource: Resource, *, label_selector: str, deadline: float, **_: object) -> bytes:
        """One page, of muster's own PodGroups."""
        assert (resource, label_selector) == (POD_GROUPS, "app.kubernetes.io/managed-by=muster")
        assert deadline == self.deadline
        self.lists += 1
        if self.going_on is not None:
            await self.going_on.wait()
        if self.error is not None:
            raise self.error
        return as_json({"items": self.items}).encode()


@dataclass
class Clock:
    """Seconds that pass when a test says so."""

    now: float = 0.0

    def __call__(self) -> float:
        """What time it is."""
        return self.now


def waiting_at(lister: Lister, read_seconds: float = 200.0) -> tuple[Waiting, Clock]:
    clock = Clock()
    return Waiting(as_client(lister), read_seconds, clock), clock


def group(name: str, queue_: str, class_: str = "", state: str = "WaitingForQuota") -> JSON:
    return pod_group(name, queue=queue_, annotations={"muster.dev/state": state}, priorityClassName=class_)


async def test_those_that_wait_are_found_by_their_queue() -> None:
    lister = Lister([group("a", "q", "high"), group("b", "q"), group("c", "other"), group("d", "q", state="Admitted")])
    waiting, _ = waiting_at(lister)
    assert [await waiting.in_queue(name) for name in ("q", "other", "empty")] == [("high", ""), ("",), ()]


async def test_one_list_serves_all_that_come_within_seconds() -> None:
    lister = Lister([group("a", "q")])
    waiting, clock = waiting_at(lister)
    assert await asyncio.gather(*(waiting.in_queue("q") for _ in range(1000))) == [("",)] * 1000
    clock.now = 4.9
    await waiting.in_queue("q")
    assert lister.lists == 1
    lister.items = []
    clock.now = 5.0
    assert await waiting.in_queue("q") == ()
    assert lister.lists == 2


async def test_a_list_that_fails_is_not_asked_for_again_at_once() -> None:
    lister = Lister(error=ApiError(503, "", "busy"))
    waiting, clock = waiting_at(lister)
    assert [await waiting.in_queue("q") for _ in range(3)] == [None] * 3
    assert lister.lists == 1
    lister.error, clock.now = None, 5.0
    assert await waiting.in_queue("q") == ()


async def test_a_slow_list_keeps_nobody_waiting_and_serves_the_next() -> None:
    clock, going_on = LoopClock(), asyncio.Event()
    lister = Lister([group("a", "q")], going_on=going_on, deadline=200.0)
    waiting, _ = waiting_at(lister)
    asking = asyncio.create_task(waiting.in_queue("q"))
    await eventually(lambda: lister.lists)
    # A quarter of it is over, and not all.
    clock.forward(100)
    assert await asking is None
    going_on.set()
    assert await waiting.in_queue("q") == ("",)
    assert lister.lists == 1


async def told(reader: Reader, manifest: JSON) -> list[str]:
    """The warnings of a review where there is a queue of 4 cpu that holds 3."""
    knowledge = knowing(reader, queues=[FULL])
    warnings: list[str] = answered(await review_workload(request(manifest), knowledge, DEFAULTS))["warnings"]
    return warnings


async def test_a_workload_that_comes_to_a_full_queue_is_told_who_waits_there() -> None:
    groups = [pod_group(f"g{number}", queue="q", annotations=WAITS) for number in range(7)]
    (line,) = await told(Reader(pod_groups=groups), ray_cluster())
    assert line == (
        'metadata.labels[volcano.sh/queue-name]: gang "ray-demo-pg" needs cpu 3, and queue "q" holds cpu 3 of 4 '
        '(75 %); 7 gangs wait in queue "q", 7 before it by priority and age; it waits until there is room, and its '
        "event WaitingForQuota says its position"
    )


async def test_where_that_cannot_be_read_the_rest_is_said() -> None:
    (line,) = await told(Reader(pod_groups=None), ray_cluster())
    assert "(75 %); it waits until there is room" in line
