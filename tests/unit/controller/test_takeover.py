"""A leader takes office: all is in the ledger before the first decision, and the loop is never kept meanwhile."""

from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from muster.model.names import PATIENCE, REQUEUE_AFTER, STATE
from muster.model.objects import PriorityClass
from muster.queueing.ledger import GangKey
from tests.support.calls import Calls, most_calls
from tests.support.controller.bypass_queue import LARGE, SMALL, gang, harness, running
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import (
    NAMESPACE,
    made,
    pod_group,
    priority_class,
    queue,
    ray_cluster,
    ray_owner,
    ray_pod,
    workers,
)

_GANGS = 1_000
# Calls, of 2,027 in Python 3.11, some 0.5 ms; all gangs take a thousand for each.
_LONGEST = 3_000


def many(count: int) -> Harness:
    """So many gangs in 20 queues, half of them admitted; no leader has taken office since they are there."""
    names = [f"g{number:04}" for number in range(count)]
    pods = [
        ray_pod(f"{name}-{role}", role, cluster=name, owner_uid=f"uid-{name}", held=bool(number % 2))
        for number, name in enumerate(names)
        for role in ("headgroup", "workers")
    ]
    groups = [
        pod_group(
            f"ray-{name}-pg",
            owner=ray_owner(name),
            admitted="" if number % 2 else f"uid-{name}",
            minMember=2,
            minResources={"cpu": "2", "memory": "2Gi"},
        )
        for number, name in enumerate(names)
    ]
    clusters = [
        ray_cluster(
            workers(replicas=1), name=name, uid=f"uid-{name}", labels={"volcano.sh/queue-name": f"q{number % 20}"}
        )
        for number, name in enumerate(names)
    ]
    return Harness(
        workloads=clusters, pods=pods, groups=groups, queues=[queue(f"q{number}", cpu="10") for number in range(20)]
    )


async def test_a_thousand_gangs_never_keep_the_loop() -> None:
    """Else a leader of tens of thousands could not renew its lease, nor could any after it."""
    world = many(_GANGS)
    assert most_calls(world.takes_office()) < _LONGEST
    assert world.queue.statistics().ready == _GANGS


async def test_a_gang_of_thousands_of_pods_is_read_in_steps() -> None:
    """The longest step is a small part of what all its pods take."""

    def office() -> Iterator[None]:
        pods = [ray_pod("head", "headgroup"), *(ray_pod(f"w-{number:04}") for number in range(3999))]
        return Harness(workloads=[ray_cluster(workers(replicas=3999))], pods=pods, queues=[queue()]).takes_office()

    whole, steps = office(), office()
    with Calls() as all_calls:
        list(whole)
    assert most_calls(steps) < all_calls.count / 2


def another_runs(world: Harness) -> None:
    """The watch shows a gang of 2 cpu that the leader before has admitted."""
    (cluster, pods), group = running("large", 2)
    world.client.groups[LARGE] = group
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in pods}
    world.set_workload(cluster)
    world.watch()


def less_room(world: Harness) -> None:
    world.set_queue(queue(cpu="3"))


def more_urgent(world: Harness) -> None:
    """The class of a gang that waits comes, by which it is before the small one; nothing of the gang itself changes."""
    world.cluster.priority_classes.apply("added", made(PriorityClass, priority_class("high", 10)))


@pytest.mark.parametrize("after", range(10))
async def test_a_class_that_changes_meanwhile_is_known_of_every_gang_before_the_first_decision(after: int) -> None:
    other, pods = gang("large", 2, created="2026-11-21T12:00:00Z")
    for template in (other["spec"]["headGroupSpec"], other["spec"]["workerGroupSpecs"][0]):
        template["template"]["spec"]["priorityClassName"] = "high"
    for one in pods:
        one["spec"]["priorityClassName"] = "high"
    world = harness((other, pods), gang("small", 2, created="2026-11-21T11:00:00Z"), cpu="2")
    steps = world.takes_office()
    for _ in zip(range(after), steps, strict=False):
        pass
    more_urgent(world)
    for _ in steps:
        pass
    await world.reconciler.reconcile(GangKey(NAMESPACE, SMALL))
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"


@pytest.mark.parametrize("change", [another_runs, less_room])
@pytest.mark.parametrize("after", range(11))
async def test_what_changes_meanwhile_is_known_before_the_first_decision(
    change: Callable[[Harness], None], after: int
) -> None:
    """Of a queue of 4 cpu one gang has 2, so that another of 2 would start beside it."""
    runs, group = running("runs", 2)
    world = harness(runs, gang("small", 2, created="2026-11-21T11:00:00Z"), groups=[group])
    steps = world.takes_office()
    for _ in zip(range(after), steps, strict=False):
        pass
    change(world)
    for _ in steps:
        pass
    await world.reconciler.reconcile(GangKey(NAMESPACE, SMALL))
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"


async def test_a_step_is_one_gang() -> None:
    """How long it takes does not depend on how many there are."""
    world = many(10)
    entered = [world.queue.statistics().ready for _ in world.takes_office()]
    assert {after - before for before, after in pairwise(entered)} == {0, 1}
    assert entered[-1] == 10


@pytest.mark.parametrize("digits", [400, 5000])
async def test_a_duration_that_no_number_holds_stops_no_leader(digits: int) -> None:
    """Whoever may write an annotation would otherwise keep every leader from its office."""
    endless = f"{'9' * digits}s"
    head = ray_pod("demo-head", "headgroup", held=False)
    world = await Harness(
        queues=[queue(annotations={PATIENCE: endless})],
        workloads=[ray_cluster(workers(replicas=0), annotations={REQUEUE_AFTER: endless})],
        pods=[head],
        groups=[pod_group("ray-demo-pg", owner=ray_owner("demo"), admitted="uid-demo")],
    ).settled()
    assert world.annotations("ray-demo-pg")[STATE] == "Admitted"


NEW, SECOND = "uid-demo", "uid-second"


def behind_by_a_life(*listed: str) -> Harness:
    """Two whole gangs of 3 cpu in a queue of 3; the watch shows the first one's PodGroup of a former life.

    The list has the PodGroup of its present life (`NEW`), marked by the leader before, that of the former, or both.
    """
    second = ray_cluster(name="second", uid=SECOND, meta={"creationTimestamp": "2026-11-21T11:00:00Z"})
    pods = [
        ray_pod(f"{name}-{number}", role, cluster=name, owner_uid=f"uid-{name}")
        for name in ("demo", "second")
        for number, role in enumerate(("headgroup", "workers", "workers"))
    ]
    world = Harness(workloads=[ray_cluster(), second], pods=pods, queues=[queue(cpu="3")])
    groups = {
        uid: pod_group(owner_uid=uid, admitted=uid, meta={"uid": f"of-{uid}", "creationTimestamp": made_at})
        for uid, made_at in (("uid-former", "2026-11-21T09:00:00Z"), (NEW, "2026-11-21T10:00:01Z"))
    }
    world.client.groups = {"ray-demo-pg": groups["uid-former"]}
    world.watch_groups()
    # Two of one gang have other names where a scheduler has the UID in them: for muster it is one gang all the same.
    world.client.groups = {uid: groups[uid] for uid in listed}
    world.restart()
    world.client.groups = {"ray-demo-pg": groups[listed[-1]]}
    return world


@pytest.mark.parametrize("listed", [(NEW,), ("uid-former", NEW), (NEW, "uid-former")])
async def test_a_mark_that_was_listed_counts_while_the_watch_still_shows_a_former_life(listed: tuple[str, ...]) -> None:
    """Otherwise its room would be given to the next gang, and its gates opened as soon as the watch has caught up."""
    world = behind_by_a_life(*listed)
    await world.reconciler.reconcile(GangKey(NAMESPACE, "ray-second-pg"))
    assert world.open_pods() == []
    assert world.annotations("ray-second-pg")[STATE] == "WaitingForQuota"


async def test_a_listed_mark_that_the_watch_does_not_show_is_believed_for_five_seconds() -> None:
    """Somebody may have deleted that PodGroup since."""
    world = behind_by_a_life(NEW)
    demo = GangKey(NAMESPACE, "ray-demo-pg")
    for seconds, believed in ((0, True), (4, True), (1, False)):
        world.now += seconds
        await world.reconciler.reconcile(demo)
        assert (world.term.expectations.seen(demo).written is not None) is believed
