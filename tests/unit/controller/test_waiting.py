"""How gangs wait for each other: patience, strict order, growth, preemption, the nodes as a bound, and their words."""

import pytest

from muster.kube.errors import ApiError, Unreachable
from muster.model.names import ADMITTED_AT, MESSAGE, PASSED_IN, PASSED_SINCE, RUNS_AT_MOST, STATE
from muster.model.times import text_of
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.bypass_queue import LARGE, RUNS, SMALL, gang, harness, passed, running, small_behind_large
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, amounts, pod_group, priority_class, queue, ray_pod


async def test_a_bypassed_gang_says_since_when_and_is_bypassed_until_its_patience_is_over() -> None:
    world = await small_behind_large(annotations={"patience": "10m"}).settled()
    assert world.annotations(SMALL)[STATE] == "Admitted"
    assert world.annotations(LARGE)[STATE] == "WaitingForQuota"
    assert world.annotations(LARGE)[PASSED_SINCE] == text_of(world.now)


async def test_nobody_bypasses_a_gang_whose_patience_is_over_not_even_after_a_restart() -> None:
    world = await small_behind_large(passed()).settled()
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"
    assert (
        'there is room, but queue "q" reserves cpu for gang "ray-large-pg"; position 2 of 2'
        in (world.annotations(SMALL)[MESSAGE])
    )
    assert world.annotations(LARGE)[PASSED_SINCE] == text_of(0.0)


async def test_a_gang_hears_when_it_starts_until_another_runs_longer_than_it_said() -> None:
    """Nothing but time passes: what is reserved then has no time, and a small gang may pass."""
    runs, group = running("runs", 2)
    runs[0]["metadata"]["annotations"] = {RUNS_AT_MOST: "10m"}
    group["metadata"]["annotations"][ADMITTED_AT] = text_of(1000.0)
    large = gang("large", 4, created="2026-11-21T10:00:00Z")
    small = gang("small", 1, created="2026-11-21T11:00:00Z")
    settings = {"reserves": "estimates", "drain-after": "72h"}
    world = await harness(runs, large, small, groups=[group, passed()], annotations=settings).settled()
    assert "; planned for 1970-01-01 00:27 UTC, if what runs ends as it says; " in world.annotations(LARGE)[MESSAGE]
    assert "from 1970-01-01 00:27 UTC; a gang that says with" in world.annotations(SMALL)[MESSAGE]
    for seconds, passes in ((599, False), (1, True), (1, True)):
        world.now += seconds
        await world.settle()
        assert (world.annotations(SMALL)[STATE] == "Admitted") is passes
    assert "planned for" not in world.annotations(LARGE)[MESSAGE]


async def test_a_gang_that_others_pass_for_ever_is_told_so_when_its_patience_is_over() -> None:
    """Also where nothing else happens in its queue, in which services leave it no room."""
    (service, pods), group = running("runs", 2)
    del service["metadata"]["ownerReferences"]
    small, of_small = gang("small", 1, created="2026-11-21T11:00:00Z")
    for pod in (*pods, *of_small):
        pod["spec"]["nodeName"] = "n"
    large = gang("large", 3, created="2026-11-21T10:00:00Z")
    world = await harness((service, pods), large, (small, of_small), groups=[group]).settled()
    key = GangKey("team", LARGE)
    assert world.queue.statistics().delayed == 1, "nothing but its patience is waited for"
    for seconds, told in ((599, False), (1, True), (1, True)):
        world.now += seconds
        world.queue.add(key)
        await world.settle()
        assert ("smaller gangs may go first, for what does not end" in world.annotations(LARGE)[MESSAGE]) is told


async def test_in_another_queue_the_patience_of_a_gang_begins_again() -> None:
    """Also for a leader who comes when the PodGroup has moved, and its mark still stands as it was."""
    world = await small_behind_large(passed("before")).settled()
    assert world.annotations(SMALL)[STATE] == "Admitted"
    assert (world.annotations(LARGE)[PASSED_SINCE], world.annotations(LARGE)[PASSED_IN]) == (text_of(world.now), "q")


async def test_a_gang_that_moves_to_another_queue_and_back_has_not_been_bypassed() -> None:
    first, group = running("runs", 2)
    large, pods = gang("large", 3, created="2026-11-21T10:00:00Z")
    world = harness(first, (large, pods), gang("small", 1, created="2026-11-21T11:00:00Z"), groups=[group])
    world.set_queue(queue("other", cpu="0.5"))
    await world.settle()
    assert PASSED_SINCE in world.annotations(LARGE)
    for name in ("other", "q"):
        world.set_workload({**large, "metadata": {**large["metadata"], "labels": {"volcano.sh/queue-name": name}}})
        await world.settle()
        assert PASSED_SINCE not in world.annotations(LARGE)


@cases(
    "error, counts",
    ("refused", ApiError(422, "Invalid", "refused by a policy"), False),
    ("perhaps written", Unreachable("silent"), True),
)
async def test_a_start_that_is_refused_is_no_bypass(error: ApiError, counts: bool) -> None:
    world = small_behind_large()
    world.client.fails[f"mark {SMALL}"] = [error]
    with pytest.raises(ApiError):
        await world.settle()
    await world.reconciler.reconcile(GangKey("team", LARGE))
    assert (PASSED_SINCE in world.annotations(LARGE)) is counts


async def test_without_patience_a_gang_is_bypassed_once_however_many_may_start() -> None:
    """All of them are woken by the same change, before the gang that they pass is looked at again."""
    runs, group = running("runs", 5)
    small = [gang(f"s{number}", 1, created=f"2026-11-21T11:00:0{number}Z") for number in range(5)]
    large = gang("large", 6, created="2026-11-21T10:00:00Z")
    waits = await harness(runs, large, *small, groups=[group], annotations={"patience": "0s"}, cpu="10").settled()
    assert [name for name in waits.open_pods() if name.startswith("s")] == ["s0-0"]
    assert "has cpu 4 free of cpu 10" in waits.annotations(LARGE)[MESSAGE]


async def test_in_a_strict_queue_there_is_no_bypass() -> None:
    world = await small_behind_large(annotations={"queueing": "strict"}).settled()
    assert [world.annotations(name)[STATE] for name in (LARGE, SMALL)] == ["WaitingForQuota", "WaitingForQuota"]
    assert PASSED_SINCE not in world.annotations(LARGE)


@cases("since", ("first", "08:00"), ("younger than the one that grows", "10:00"))
async def test_growth_waits_behind_a_gang_that_nobody_may_bypass(since: str) -> None:
    """The surplus of a running gang is like a small gang: it passes until the other's patience is over."""
    first, group = running("runs", 2)
    more = ray_pod("runs-2", "workers", cluster="runs", owner_uid="uid-runs")
    urgent = gang("large", 3, created=f"2026-11-21T{since}:00Z")
    world = await harness((first[0], [*first[1], more]), urgent, groups=[group, passed()]).settled()
    assert "runs-2" not in world.open_pods()
    assert "no room yet for cpu 1" in world.annotations(RUNS)[MESSAGE]


@cases("since", ("first", "08:00"), ("younger than the one that grows", "10:00"))
async def test_growth_that_bypasses_a_waiting_gang_says_so_on_it(since: str) -> None:
    first, group = running("runs", 2)
    more = ray_pod("runs-2", "workers", cluster="runs", owner_uid="uid-runs")
    world = await harness(
        (first[0], [*first[1], more]), gang("large", 3, created=f"2026-11-21T{since}:00Z"), groups=[group]
    ).settled()
    assert "runs-2" in world.open_pods()
    assert world.annotations(LARGE)[PASSED_SINCE] == text_of(world.now)


async def test_no_more_starts_than_the_nodes_can_hold() -> None:
    """Also in a queue without a capability; and where nodes come, those who waited for them start."""
    world = harness(
        gang("large", 3, created="2026-11-21T10:00:00Z"), gang("small", 2, created="2026-11-21T11:00:00Z"), cpu="0"
    )
    world.reconciler.bound(amounts(cpu="4", memory="64Gi"))
    await world.settle()
    assert world.annotations(LARGE)[STATE] == "Admitted"
    assert world.annotations(SMALL)[MESSAGE] == (
        "needs cpu 2 and memory 2Gi; the cluster has cpu 1 and memory 61Gi free of cpu 4 and memory 64Gi; "
        "position 1 of 1 waiting"
    )
    world.reconciler.bound(amounts(cpu="5", memory="64Gi"))
    await world.settle()
    assert world.annotations(SMALL)[STATE] == "Admitted"


def waits_for_room(cpus: int = 3) -> tuple[Harness, JSON]:
    """A gang that waits for one that runs, and its workload."""
    first, group = running("runs", 2)
    large = gang("large", cpus, created="2026-11-21T10:00:00Z")
    return harness(first, large, groups=[group]), large[0]


async def test_other_numbers_are_written_in_a_gangs_turn_whatever_brings_it_up_before() -> None:
    """Its own last words come back by the watch, and it would be written at every change of its queue for ever."""
    world, _ = waits_for_room()
    await world.settle()
    before = world.annotations(LARGE)[MESSAGE]
    second, pods = gang("second", 3, created="2026-11-21T11:00:00Z")
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in pods}
    world.set_workload(second)
    world.watch()
    world.queue.add(GangKey("team", LARGE))
    await world.work()
    world.queue.add(GangKey("team", LARGE))
    await world.work()
    assert world.annotations("ray-second-pg")[MESSAGE].endswith("position 2 of 2 waiting")
    assert world.annotations(LARGE)[MESSAGE] == before
    world.reconciler.refresh_messages()
    await world.work()
    assert world.annotations(LARGE)[MESSAGE].endswith("position 1 of 2 waiting")


@pytest.mark.parametrize("took_effect", [False, True])
async def test_numbers_whose_write_failed_are_written_all_the_same(*, took_effect: bool) -> None:
    """The gang has had its turn, and nothing may happen in its queue any more."""
    world, _ = waits_for_room()
    second, pods = gang("second", 3, created="2026-11-21T11:00:00Z")
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in pods}
    world.set_workload(second)
    await world.catch_up()
    assert world.annotations(LARGE)[MESSAGE].endswith("position 1 of 2 waiting")
    world.drop_workload(second)
    for pod in pods:
        del world.client.pods[pod["metadata"]["name"]]
    world.watch()
    await world.work()
    world.client.fails = {f"muster-ledger {LARGE}": [Unreachable("silent")]}
    world.client.took_effect = took_effect
    world.reconciler.refresh_messages()
    with pytest.raises(Unreachable):
        await world.work()
    for _ in range(2):
        world.watch()
        world.queue.add(GangKey("team", LARGE))
        await world.work()
    assert world.annotations(LARGE)[MESSAGE].endswith("position 1 of 1 waiting")


async def test_a_new_leader_too_writes_other_numbers_in_a_gangs_turn() -> None:
    """Else it would begin with a write for each of thousands that wait, before any of them starts."""
    runs, group = running("runs", 4)
    waiting = [gang(f"waits-{number:02}", 2, created="2026-11-21T10:00:00Z") for number in range(12)]
    world = await harness(runs, *waiting, groups=[group]).settled()
    names = [f"ray-waits-{number:02}-pg" for number in range(12)]
    before = {name: world.annotations(name)[MESSAGE] for name in names}
    world.drop_workload(waiting[0][0])
    for pod in waiting[0][1]:
        del world.client.pods[pod["metadata"]["name"]]
    del world.client.groups[names[0]]
    world.watch()
    world.restart()
    assert await world.work() == []
    told = []
    for _ in range(4):
        world.reconciler.refresh_messages()
        told.append(len(await world.work()))
        world.watch()
    assert told == [5, 5, 1, 0]
    for number, name in enumerate(names[1:], start=1):
        assert before[name].endswith(f"position {number + 1} of 12 waiting")
        assert world.annotations(name)[MESSAGE].endswith(f"position {number} of 11 waiting")


async def test_what_somebody_writes_over_a_waiting_gangs_words_is_put_right_at_once() -> None:
    world, _ = waits_for_room()
    await world.settle()
    before = world.annotations(LARGE)[MESSAGE]
    world.client.groups[LARGE]["metadata"]["annotations"][MESSAGE] = "theirs"
    world.watch()
    await world.work()
    assert world.annotations(LARGE)[MESSAGE] == before


async def test_whoever_fights_over_a_waiting_gangs_words_is_not_answered_with_every_other_number() -> None:
    """In a queue where something happens every second: each time other words would always be a first answer."""
    world, _ = waits_for_room()
    await world.settle()
    answers = 0
    for number in range(60):
        second, pods = gang(f"second-{number}", 3, created="2026-11-21T11:00:00Z")
        world.client.pods |= {pod["metadata"]["name"]: pod for pod in pods}
        world.set_workload(second)
        world.client.groups[LARGE]["metadata"]["annotations"][MESSAGE] = "theirs"
        world.watch()
        answers += len([write for write in await world.work() if write == f"muster-ledger {LARGE}"])
        world.now += 1
    assert 1 < answers <= 10


async def test_what_a_waiting_gang_needs_by_now_is_said_at_once() -> None:
    world, large = waits_for_room(4)
    await world.settle()
    assert world.annotations(LARGE)[MESSAGE].startswith("needs cpu 4")
    world.set_workload({**large, "spec": gang("large", 3)[0]["spec"]})
    await world.work()
    assert world.annotations(LARGE)[MESSAGE].startswith("needs cpu 3")


async def test_gangs_of_two_queues_share_what_the_queue_above_has() -> None:
    org, left, right = (queue(name, cpu=cpu) for name, cpu in (("org", "4"), ("left", "0"), ("right", "0")))
    for below in (left, right):
        below["spec"]["parent"] = "org"
    gangs = [
        gang("large", 3, created="2026-11-21T10:00:00Z", labels={"volcano.sh/queue-name": "left"}),
        gang("small", 2, created="2026-11-21T11:00:00Z", labels={"volcano.sh/queue-name": "right"}),
    ]
    world = await Harness(
        workloads=[workload for workload, _ in gangs],
        pods=[one for _, pods in gangs for one in pods],
        queues=[org, left, right],
    ).settled()
    assert world.annotations(LARGE)[STATE] == "Admitted"
    assert world.annotations(SMALL)[MESSAGE] == (
        'needs cpu 2 and memory 2Gi; queue "org" above "right" has cpu 1 free of cpu 4; position 1 of 1 waiting'
    )


async def test_where_a_queue_moves_to_more_room_its_gangs_start() -> None:
    org, below = queue("org", cpu="1"), queue("q", cpu="0")
    below["spec"]["parent"] = "org"
    large, pods = gang("large", 2)
    world = await Harness(workloads=[large], pods=pods, queues=[org, below]).settled()
    assert world.annotations(LARGE)[STATE] == "ExceedsCapability"
    world.set_queue({**below, "spec": {**below["spec"], "parent": ""}})
    await world.settle()
    assert world.annotations(LARGE)[STATE] == "Admitted"


async def test_a_new_workload_of_a_name_has_not_been_bypassed_as_the_former_was() -> None:
    """As after a restart, which remembers nothing of the former one either."""
    first, group = running("runs", 2)
    large, pods = gang("large", 3, created="2026-11-21T10:00:00Z")
    world = await harness(
        first, (large, pods), gang("small", 1, created="2026-11-21T11:00:00Z"), groups=[group]
    ).settled()
    assert PASSED_SINCE in world.annotations(LARGE)
    large["metadata"]["uid"] = "uid-new"
    for pod in pods:
        pod["metadata"]["uid"] += "-new"
        pod["metadata"]["ownerReferences"][0]["uid"] = "uid-new"
    world.set_workload(large)
    await world.catch_up()
    assert world.annotations(LARGE)[STATE] == "WaitingForQuota"
    assert PASSED_SINCE not in world.annotations(LARGE)


@pytest.mark.parametrize(
    ("theirs", "policy", "state"),
    [("high", "", "WaitingForQuota"), ("low", "", "Admitted"), ("low", "Never", "WaitingForQuota")],
)
async def test_of_others_gangs_only_those_that_volcano_evicts_are_left_out(
    theirs: str, policy: str, state: str
) -> None:
    other = pod_group("theirs", minResources={"cpu": "4"}, priorityClassName=theirs)
    other["metadata"] |= {"labels": {}, "ownerReferences": []}
    other["status"] = {"phase": "Running"}
    cluster, pods = gang("large", 3, labels={"ray.io/priority-class-name": "middle"})
    for pod in pods:
        pod["spec"]["preemptionPolicy"] = policy
    world = await harness(
        (cluster, pods),
        groups=[other],
        classes=[priority_class("high", 100), priority_class("middle", 10), priority_class("low", 1)],
        annotations={"preemption": "lower-priority"},
    ).settled()
    assert world.annotations(LARGE)[STATE] == state
