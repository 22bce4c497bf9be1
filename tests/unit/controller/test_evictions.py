"""Who comes in the place of an evicted pod leaves the room to those for whom it was made."""

from __future__ import annotations

import pytest

from controller.evictions import Evictions
from muster.kube.store import Change
from muster.model.names import STATE
from muster.model.objects import Pod
from muster.queueing.ledger import GangKey
from tests.support.controller.recording_client import Harness
from tests.support.manifests.observed import GROUP, JSON, KEY, made, pod_group, queue, ray_cluster, ray_pod, workers

LEAVES = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


class Watch:
    """Evictions as the watch of pods tells of them, and a clock in hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.evictions = Evictions(lambda: self.now)

    def sees(self, name: str = "w", *, deleted: bool = False, gone: bool = False, **condition: str) -> None:
        """A pod as it is now."""
        seen = ray_pod(name, held=False)
        seen["status"] = {"phase": "Running", "conditions": [LEAVES | condition]}
        if deleted:
            seen["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
        pod = made(Pod, seen)
        self.evictions.note(Change("deleted", pod, None) if gone else Change("modified", pod, pod))

    def evicts(self, name: str = "w") -> None:
        """All that happens to a pod."""
        self.sees(name)
        self.sees(name, deleted=True)
        self.sees(name, deleted=True, gone=True)

    @property
    def wait(self) -> float:
        """For how long new ones wait."""
        return self.evictions.wait(KEY)


def test_new_ones_wait_from_the_mark_until_five_seconds_after_the_last_has_gone() -> None:
    watch = Watch()
    assert watch.wait == 0
    watch.sees("a")
    watch.sees("b", deleted=True)
    # A pod may take half a minute to end.
    watch.now += 30
    assert watch.wait > 0
    watch.sees("b", deleted=True, gone=True)
    watch.now += 4
    assert watch.wait == 1
    watch.now += 1
    assert watch.wait == 0


def test_new_ones_wait_for_gangs_that_have_no_node_yet_but_not_for_ever() -> None:
    """However slow the scheduler is: the room is for those, and not for the gang that was evicted."""
    watch, other = Watch(), GangKey(KEY.namespace, "other")
    watch.evictions.unplaced(KEY, waits=True)
    watch.evictions.unplaced(other, waits=True)
    assert watch.wait == 0
    watch.evicts()
    watch.now += 5
    assert watch.wait == 1
    watch.evictions.unplaced(other, waits=False)
    assert watch.wait == 0
    watch.evictions.unplaced(other, waits=True)
    watch.now += 59
    assert watch.wait == 1
    watch.now += 1
    assert watch.wait == 0
    watch.evicts()
    watch.now += 10
    watch.evictions.forget(other)
    assert watch.wait == 0


@pytest.mark.parametrize(
    "condition",
    [
        pytest.param({"reason": "EvictionByEvictionAPI"}, id="a drained node"),
        pytest.param({"status": "False"}, id="not any more"),
        pytest.param({"type": "Ready"}, id="another condition"),
    ],
)
def test_others_reasons_to_go_keep_nobody_waiting(condition: dict[str, str]) -> None:
    """A crashed member's replacement must come at once."""
    watch = Watch()
    watch.sees(deleted=True, gone=True, **condition)
    assert watch.wait == 0


def test_repeated_evictions_wait_longer_and_longer_and_start_over_after_a_calm() -> None:
    watch = Watch()
    waits = []
    for _ in range(9):
        watch.evicts()
        waits.append(watch.wait)
        watch.now += watch.wait
    assert waits == [5, 10, 20, 40, 80, 160, 320, 320, 320]
    watch.now += 600
    watch.evicts()
    assert watch.wait == 5


def test_several_pods_that_go_together_are_one_eviction() -> None:
    watch = Watch()
    for name in ("a", "b", "c"):
        watch.evicts(name)
        watch.now += 1
    assert watch.wait == 4


def test_a_gang_that_is_gone_is_forgotten() -> None:
    watch = Watch()
    watch.evicts()
    watch.evictions.forget(KEY)
    assert watch.wait == 0


def members(*names: str, held: bool = False) -> list[JSON]:
    return [ray_pod(name, "headgroup" if name == "h" else "workers", held=held) for name in names]


async def test_the_place_of_an_evicted_member_is_open_again_after_five_seconds_and_that_of_another_at_once() -> None:
    world = Harness(
        workloads=[ray_cluster()],
        pods=members("h", "w-0", "w-1"),
        groups=[pod_group(admitted="uid-demo")],
        queues=[queue(cpu="4")],
    )
    await world.settle()
    world.client.pods["w-1"]["status"] = {"phase": "Running", "conditions": [LEAVES]}
    world.watch()
    del world.client.pods["w-1"]
    world.watch()
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in members("w-2", held=True)}
    world.watch()
    await world.settle()
    assert world.open_pods() == ["h", "w-0"]
    assert world.annotations(GROUP)[STATE] == "Admitted"
    world.now += 5
    world.queue.add(KEY)
    await world.settle()
    assert world.open_pods() == ["h", "w-0", "w-2"]
    del world.client.pods["w-2"]
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in members("w-3", held=True)}
    world.watch()
    await world.settle()
    assert world.open_pods() == ["h", "w-0", "w-3"]


def test_a_pod_that_does_not_end_keeps_new_ones_waiting_for_a_minute_and_five_seconds() -> None:
    """Its grace period may be an hour, or its node lost; what else happens to it meanwhile prolongs nothing."""
    watch = Watch()
    watch.sees(deleted=True)
    watch.now += 30
    watch.sees(deleted=True, message="still ending")
    watch.now += 29
    assert watch.wait > 0
    watch.now += 1
    assert watch.wait == 0


async def test_a_member_that_must_run_is_open_long_before_an_evicted_one_has_ended() -> None:
    world = Harness(
        workloads=[ray_cluster(workers(replicas=2, minReplicas=1, maxReplicas=2), enableInTreeAutoscaling=True)],
        pods=members("h", "w-0", "w-1"),
        groups=[pod_group(admitted="uid-demo")],
        queues=[queue(cpu="9")],
    )
    await world.settle()
    world.client.pods["w-1"]["status"] = {"phase": "Running", "conditions": [LEAVES]}
    world.client.pods["w-1"]["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    world.watch()
    del world.client.pods["h"]
    world.client.pods |= {"h-2": ray_pod("h-2", "headgroup")}
    world.watch()
    await world.settle()
    assert "h-2" not in world.open_pods()
    world.now += 66
    world.queue.add(KEY)
    await world.settle()
    assert "h-2" in world.open_pods()
