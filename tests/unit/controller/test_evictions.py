"""Who comes in the place of an evicted pod leaves the room to those for whom it was made."""

import pytest

from controller.delays import Evictions
from muster.kube.store import Change
from muster.model.names import GROUP_NAME, STATE
from muster.model.pods import Pod
from muster.queueing.entries import Claim
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import (
    GROUP,
    JSON,
    KEY,
    amounts,
    made,
    pod_group,
    queue,
    ray_cluster,
    ray_pod,
    workers,
)

LEAVES = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}


class Watch:
    """Evictions as the watch of pods tells of them, and a clock in hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.evictions = Evictions()

    def sees(self, name: str = "w", *, deleted: bool = False, gone: bool = False, **condition: str) -> None:
        """A pod as it is now."""
        seen = ray_pod(name, held=False)
        seen["status"] = {"phase": "Running", "conditions": [LEAVES | condition]}
        if deleted:
            seen["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
        pod = made(Pod, seen)
        self.evictions.note(Change("deleted", pod, None) if gone else Change("modified", pod, pod), self.now)

    def evicts(self, name: str = "w") -> None:
        """All that happens to a pod."""
        self.sees(name)
        self.sees(name, deleted=True)
        self.sees(name, deleted=True, gone=True)

    @property
    def wait(self) -> float:
        """For how long new ones wait."""
        return self.evictions.wait(KEY, self.now)


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


@cases(
    "condition",
    ("a drained node", {"reason": "EvictionByEvictionAPI"}),
    ("not any more", {"status": "False"}),
    ("another condition", {"type": "Ready"}),
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


@cases("status", ("evicted", "True"), ("crashed", "False"))
def test_of_replacements_that_are_gone_nothing_is_kept(status: str) -> None:
    """A gang may be evicted every few minutes for months, and is never calm."""
    watch = Watch()
    for life in range(5):
        watch.evicts()
        watch.evictions.opened(KEY, [f"uid-next-{life}"], watch.now)
        watch.sees(f"next-{life}", gone=True, status=status)
        watch.now += 330
    assert watch.evictions._gangs[KEY].hurried == set()


def test_a_gang_that_is_gone_is_forgotten() -> None:
    watch = Watch()
    watch.evicts()
    watch.evictions.forget(KEY)
    assert watch.wait == 0


def members(*names: str, held: bool = False) -> list[JSON]:
    return [ray_pod(name, "headgroup" if name == "h" else "workers", held=held) for name in names]


def elastic(created: int) -> JSON:
    """A cluster of so many workers, of which it needs one."""
    return ray_cluster(workers(replicas=created, minReplicas=1, maxReplicas=created), enableInTreeAutoscaling=True)


async def replaced() -> Harness:
    """A gang of which the scheduler has evicted a worker, with the replacement that its operator made."""
    world = await Harness(
        workloads=[elastic(2)],
        pods=members("h", "w-0", "w-1"),
        groups=[pod_group(admitted="uid-demo")],
        queues=[queue(cpu="4")],
    ).settled()
    world.client.pods["w-1"]["status"] = {"phase": "Running", "conditions": [LEAVES]}
    world.watch()
    del world.client.pods["w-1"]
    world.watch()
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in members("w-2", held=True)}
    await world.catch_up()
    return world


async def test_the_place_of_an_evicted_member_is_open_again_after_five_seconds_and_that_of_another_at_once() -> None:
    world = await replaced()
    assert world.open_pods() == ["h", "w-0"]
    assert world.annotations(GROUP)[STATE] == "Admitted"
    world.now += 5
    world.queue.add(KEY)
    await world.settle()
    assert world.open_pods() == ["h", "w-0", "w-2"]
    del world.client.pods["w-2"]
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in members("w-3", held=True)}
    await world.catch_up()
    assert world.open_pods() == ["h", "w-0", "w-3"]


async def test_a_pause_that_ends_while_the_gang_is_looked_at_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The plan goes by the pause as it was observed; no event comes when it ends."""
    world = await replaced()
    assert world.open_pods() == ["h", "w-0"], "the pause is on"
    waits = iter([0.001])
    monkeypatch.setattr(world.term.evictions, "wait", lambda *_: next(waits, 0.0))
    world.queue.add(KEY)
    await world.settle()
    assert world.open_pods() == ["h", "w-0", "w-2"]


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


@cases(
    "action, namespace, said",
    ("Volcano reclaims", "reclaim", "team", "reclaimed 1 of its pods (w-1; cpu 1 and memory 1Gi) for"),
    ("Volcano preempts", "gangpreempt", "team", "preempted 1 of its pods"),
    ("Volcano moves", "shuffle", "team", "evicted 1 of its pods"),
    ("kube-scheduler", "", "team", "preempted 1 of its pods"),
    ("a stranger", "", "elsewhere", 'for another gang of queue "q"'),
)
async def test_its_workload_has_an_event_with_what_was_lost_and_for_whom(
    action: str, namespace: str, said: str
) -> None:
    world = Harness(
        workloads=[elastic(2)],
        pods=members("h", "w-0", "w-1"),
        groups=[pod_group(admitted="uid-demo")],
        queues=[queue(cpu="4")],
    )
    for there in world.client.pods.values():
        there["spec"]["nodeName"] = "n"
    await world.settled()
    words = f"Pod is evicted, because of {action}"
    ready = {"type": "Ready", "status": "False", "reason": "Evict" if action else "", "message": words}
    world.client.pods["w-1"]["status"] = {"phase": "Running", "conditions": [ready, LEAVES]}
    world.watch()
    claimant = ray_pod("c", held=False)
    claimant["status"] = {"nominatedNodeName": "n"}
    claimant["metadata"]["annotations"][GROUP_NAME] = "claimant"
    claimant["metadata"]["namespace"] = namespace
    world.term.evictions.note(Change("modified", None, made(Pod, claimant)), world.now)
    world.term.ledger.hold(Claim(GangKey(namespace, "claimant"), "q", amounts(cpu="1")))
    del world.client.pods["w-1"]
    await world.catch_up()
    world.now += 2
    world.queue.add(KEY)
    await world.settle()
    told = [note for _, reason, note in world.events() if reason == "Evicted"]
    assert len(told) == 1
    assert said in told[0]
    assert ('for gang "claimant" of queue "q"' in told[0]) is (namespace == KEY.namespace)
    assert "beyond its minimum wait at least 3s, until" in told[0]


async def ending(pod: str, *, cpu: str = "9") -> Harness:
    """A gang of a head, one worker that it needs and one more, of which the scheduler takes this pod back."""
    world = Harness(
        workloads=[elastic(2)],
        pods=members("h", "w-0", "w-1"),
        groups=[pod_group(admitted="uid-demo")],
        queues=[queue(cpu=cpu)],
    )
    for there in world.client.pods.values():
        there["spec"]["nodeName"] = "n"
    await world.catch_up()
    evict(world, pod)
    await world.settle()
    return world


def evict(world: Harness, pod: str) -> None:
    """The pod has a long time to end."""
    world.client.pods[pod]["status"] = {"phase": "Running", "conditions": [LEAVES]}
    world.client.pods[pod]["metadata"]["deletionTimestamp"] = "2026-11-21T12:00:00Z"
    world.watch()


async def comes(world: Harness, name: str, role: str = "headgroup") -> None:
    """The operator makes another pod."""
    world.client.pods[name] = ray_pod(name, role)
    await world.catch_up()


@cases("cpu", ("there is room", "9"), ("its room alone", "3"))
async def test_a_head_that_crashes_is_open_at_once_while_an_evicted_worker_ends(cpu: str) -> None:
    world = await ending("w-1", cpu=cpu)
    del world.client.pods["h"]
    await comes(world, "h-2")
    await comes(world, "w-2", "workers")
    assert "h-2" in world.open_pods()
    assert "w-2" not in world.open_pods()


@cases("cpu", ("there is room", "9"), ("its room alone", "3"))
async def test_what_comes_for_an_evicted_head_is_open_before_that_has_ended(cpu: str) -> None:
    """As its replacement it may take its room, which counts against everybody else until it has gone."""
    world = await ending("h", cpu=cpu)
    await comes(world, "h-2")
    assert "h-2" in world.open_pods()


async def test_who_is_evicted_although_it_must_run_waits_when_that_happens_again() -> None:
    """Else the scheduler gives the room to and fro for ever."""
    world = await ending("h")
    await comes(world, "h-2")
    evict(world, "h-2")
    for gone in ("h", "h-2"):
        del world.client.pods[gone]
    await comes(world, "h-3")
    assert "h-3" not in world.open_pods()
    world.now += 5
    world.queue.add(KEY)
    await world.settle()
    assert "h-3" in world.open_pods()
