"""A gang is as large as its workload says: what comes for a member that was lost takes no more than its place.

Each gang is a head and a worker of 1 cpu in a queue of 4.
"""

import pytest

from muster.model.names import MESSAGE
from muster.model.times import text_of
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.bypass_queue import RUNS, gang, harness
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, NAMESPACE, pod, queue, ray_owner, ray_pod, template, workers
from tests.support.manifests.observed import ray_cluster as cluster_of

ROLES = ("headgroup", "workers")


def place(world: Harness) -> None:
    """What is open runs."""
    for one in world.client.pods.values():
        if not one["spec"]["schedulingGates"]:
            one["spec"]["nodeName"] = "n"
            one["status"]["phase"] = "Running"
    world.watch()


async def running(cpus: int = 2, *, cpu: str = "4") -> Harness:
    world = await harness(gang("runs", cpus), cpu=cpu).settled()
    place(world)
    await world.settle()
    assert len(world.open_pods()) == cpus
    return world


async def comes(world: Harness, name: str, role: str = "workers", cpu: str = "1", **requests: str) -> bool:
    """A pod of the gang is made, by whoever may write pods; True if its gate is opened."""
    made = ray_pod(name, role, cluster="runs", owner_uid="uid-runs")
    made["spec"]["containers"][0]["resources"]["requests"] |= {"cpu": cpu, **requests}
    world.client.pods[name] = made
    await world.catch_up()
    place(world)
    await world.settle()
    return name in world.open_pods()


def used(world: Harness) -> str:
    return str(world.term.ledger.used("q").get("cpu", "0"))


@pytest.mark.parametrize("restarted", [False, True])
async def test_an_oversized_replacement_waits_for_room(*, restarted: bool) -> None:
    world = await running()
    del world.client.pods["runs-1"]
    world.watch()
    if restarted:
        world.restart()
    assert not await comes(world, "runs-00", cpu="1000")
    assert world.annotations(RUNS)[MESSAGE].endswith("no room yet for cpu 1k and memory 1Gi more (runs-00)")
    assert used(world) == "2"
    assert await comes(world, "runs-2"), "the place is kept for what fits it"
    assert used(world) == "2"


@pytest.mark.parametrize("cpu", ["3", "4"])
async def test_an_oversized_replacement_grows_the_claim_where_there_is_room(cpu: str) -> None:
    """Its own place is a part of that: 1 and 3 are the queue's 4."""
    world = await running()
    del world.client.pods["runs-1"]
    assert await comes(world, "large", cpu=cpu) is (cpu == "3")
    assert used(world) == ("4" if cpu == "3" else "2")


async def test_a_replacement_brings_no_resource_that_its_role_had_not() -> None:
    world = await running()
    limited = queue(cpu="4")
    limited["spec"]["capability"]["nvidia.com/gpu"] = "1"
    world.set_queue(limited)
    await world.settle()
    del world.client.pods["runs-1"]
    assert not await comes(world, "gpus", **{"nvidia.com/gpu": "2"})


async def test_as_many_are_replaced_as_were_lost() -> None:
    world = await running(4)
    del world.client.pods["runs-1"]
    opened = [await comes(world, f"again-{number}") for number in range(3)]
    assert (opened, used(world)) == ([True, False, False], "4")


async def test_a_workload_that_moves_its_requests_between_its_roles_gets_no_more() -> None:
    """A head of 3 runs; the template then gives what it has to the workers, which are lost and come again."""
    world = await Harness(
        workloads=[cluster_of(workers(replicas=1), name="runs", uid="uid-runs", head=template("3"))],
        pods=[
            ray_pod("h", "headgroup", cluster="runs", owner_uid="uid-runs", **template("3")["spec"]),
            ray_pod("w", cluster="runs", owner_uid="uid-runs"),
        ],
        queues=[queue(cpu="4")],
    ).settled()
    place(world)
    await world.settle()
    moved = workers(replicas=1, template=template("3"))
    world.set_workload(cluster_of(moved, name="runs", uid="uid-runs", head=template("1")))
    del world.client.pods["w"]
    assert not await comes(world, "w-2", cpu="3")


def strip(one: JSON, how: str) -> None:
    """The pod leaves its gang and runs on."""
    other = ray_owner("gone", "uid-gone", controller=True)
    one["metadata"]["ownerReferences"] = [other] if how == "other owner" else []


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("how", ["no owner", "other owner"])
async def test_pods_that_left_their_gang_keep_its_place(*, how: str, restarted: bool) -> None:
    world = await running()
    for cycle in range(5):
        for name in world.open_pods():
            strip(world.client.pods[name], how)
        world.watch()
        if restarted:
            world.restart()
        for role in ROLES:
            await comes(world, f"runs-{cycle}-{role}", role)
    assert (len(world.open_pods()), used(world)) == (4, "4")


async def test_a_place_is_free_again_when_what_left_the_gang_is_gone() -> None:
    world = await running(cpu="2")
    strip(world.client.pods["runs-1"], "no owner")
    assert not await comes(world, "again")
    why = "pods that left it, or take long to end, still hold cpu 1 and memory 1Gi"
    assert world.annotations(RUNS)[MESSAGE].endswith(f"no room yet for cpu 1 and memory 1Gi more (again); {why}")
    del world.client.pods["runs-1"]
    await world.catch_up()
    assert "again" in world.open_pods()
    assert used(world) == "2"


async def test_a_gang_that_loses_a_pod_to_nobody_holds_no_more_for_it() -> None:
    """A pod that is taken out of its gang to be looked at runs in its place: the queue's room is as before."""
    world = await running()
    strip(world.client.pods["runs-1"], "no owner")
    await world.catch_up()
    assert used(world) == "2"


@pytest.mark.parametrize(("cpus", "starts"), [(2, True), (3, False)])
async def test_what_left_a_gang_is_not_given_to_others_while_its_replacements_find_no_node(
    *, cpus: int, starts: bool
) -> None:
    world = await running()
    for number, role in enumerate(ROLES):
        strip(world.client.pods[f"runs-{number}"], "no owner")
        world.client.pods[f"again-{number}"] = ray_pod(f"again-{number}", role, cluster="runs", owner_uid="uid-runs")
    await world.catch_up()
    assert len(world.open_pods()) == 4
    large, pods = gang("large", cpus, created="2026-11-21T11:00:00Z")
    world.set_workload(large)
    world.client.pods |= {one["metadata"]["name"]: one for one in pods}
    await world.catch_up()
    world.now += 301.0
    for key in world.cluster.gangs():
        world.queue.add(key)
    await world.settle()
    assert any("large" in name for name in world.open_pods()) is starts


def end(world: Harness, name: str, seconds: float, grace: int | None = None) -> None:
    """The pod is being deleted, and is to be gone after so many seconds."""
    said = {"deletionTimestamp": text_of(world.now + seconds)}
    world.client.pods[name]["metadata"] |= said if grace is None else {**said, "deletionGracePeriodSeconds": grace}


async def test_terminating_pods_are_replaced_once() -> None:
    """Each pod that is opened is deleted as well, and takes its time."""
    world = await running(4)
    for cycle in range(5):
        for name in world.open_pods():
            if "deletionTimestamp" not in world.client.pods[name]["metadata"]:
                end(world, name, 300.0)
        for number, role in enumerate(("headgroup", *["workers"] * 3)):
            await comes(world, f"runs-{cycle}-{number}", role)
    assert len(world.open_pods()) == 8, "four, and four in their stead"


@cases(
    "seconds, grace, later, opened",
    ("ends soon", 30.0, 30, 0.0, True),
    ("may take ten years", 3e8, 300_000_000, 0.0, False),
    ("should be gone for an hour", 30.0, 30, 3600.0, False),
)
async def test_what_takes_long_to_end_is_not_replaced_beside_itself(
    *, seconds: float, grace: int, later: float, opened: bool
) -> None:
    world = await running(4)
    end(world, "runs-1", seconds, grace)
    await world.catch_up()
    world.now += later
    assert await comes(world, "again") is opened


async def test_a_replacement_that_waits_for_one_that_takes_long_starts_minutes_before_its_end() -> None:
    world = await running(4)
    end(world, "runs-1", 1200.0, 1200)
    assert not await comes(world, "again")
    world.now += 601.0
    world.queue.add(GangKey(NAMESPACE, RUNS))
    await world.settle()
    assert "again" in world.open_pods()


async def test_pods_that_were_taken_out_of_a_suspended_gang_do_not_keep_it_from_starting_whole() -> None:
    """They are counted when it queues again, and its own places are its own."""
    world = await running(cpu="3")
    strip(world.client.pods["runs-1"], "no owner")
    suspended = gang("runs", 2)[0]
    suspended["spec"]["suspend"] = True
    world.set_workload(suspended)
    del world.client.pods["runs-0"]
    await world.catch_up()
    assert used(world) == "1"
    world.set_workload(gang("runs", 2)[0])
    assert not await comes(world, "h", "headgroup")
    assert await comes(world, "w")
    assert {"h", "w"} <= set(world.open_pods())
    assert used(world) == "3"


def bound(name: str) -> JSON:
    """A pod that somebody binds to the gang's PodGroup, and that was never a member."""
    return pod(
        name, schedulingGates=[], annotations={"scheduling.k8s.io/group-name": RUNS}, nodeName="n", phase="Running"
    )


async def test_what_others_bind_to_a_gang_takes_none_of_its_places() -> None:
    world = await running(2)
    world.client.pods["bound"] = bound("bound")
    await world.catch_up()
    assert used(world) == "3"
    del world.client.pods["runs-1"]
    assert await comes(world, "again")


def plain(name: str, cpu: str = "1", **meta: object) -> JSON:
    """A pod of a gang of two that is made by hand."""
    return pod(
        name,
        labels={"muster.dev/gang": "pair", "volcano.sh/queue-name": "q"},
        annotations={"muster.dev/gang-size": "2", "scheduling.k8s.io/group-name": "pair"},
        schedulingGates=[{"name": "muster.dev/gang"}],
        meta={"creationTimestamp": "2026-11-21T10:00:00Z", **meta},
        **template(cpu)["spec"],
    )


async def plain_gang(*cpus: str) -> Harness:
    world = await Harness(
        pods=[plain(f"p-{number}", cpu) for number, cpu in enumerate(cpus)], queues=[queue(cpu="4")]
    ).settled()
    place(world)
    await world.settle()
    assert len(world.open_pods()) == len(cpus)
    return world


async def joins(world: Harness, *pods: JSON) -> list[str]:
    world.client.pods |= {one["metadata"]["name"]: one for one in pods}
    await world.catch_up()
    return world.open_pods()


async def test_plain_pods_are_replaced_by_no_larger_ones() -> None:
    world = await plain_gang("1", "1")
    del world.client.pods["p-1"]
    late = "2026-11-21T10:05:00Z"
    assert "large" not in await joins(world, plain("large", "1000", creationTimestamp=late))
    assert "small" in await joins(world, plain("small", creationTimestamp=late))
    assert used(world) == "2"


async def test_plain_pods_need_not_be_alike_to_come_again() -> None:
    world = await plain_gang("3", "1")
    world.client.pods.clear()
    again = [plain("q-0", "3", creationTimestamp="2026-11-21T10:05:00Z"), plain("q-1")]
    assert await joins(world, *again) == ["q-0", "q-1"]
    assert used(world) == "4"


async def test_a_plain_pod_that_leaves_its_gang_keeps_its_place() -> None:
    world = await plain_gang("1", "1")
    world.set_queue(queue(cpu="2"))
    del world.client.pods["p-1"]["metadata"]["annotations"]["muster.dev/gang-size"]
    assert await joins(world, plain("again", creationTimestamp="2026-11-21T10:05:00Z")) == ["p-0", "p-1"]
    assert used(world) == "2"
