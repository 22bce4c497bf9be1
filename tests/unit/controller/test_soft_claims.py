"""What a gang keeps of its queue's room, and of Volcano's, while it is nowhere, at rest, or short of pods."""

import asyncio

import pytest

from muster.model.names import ADMITTED, ADMITTED_AT, GATE, MESSAGE, QUEUE_LABEL, REQUEUE_AFTER, STATE
from muster.model.objects import Node
from muster.model.times import text_of
from muster.queueing.ledger import GangKey
from muster.workloads.ray import RAY_CLUSTER, RayCluster
from tests.support.cases import cases
from tests.support.controller.bypass_queue import LARGE, RUNS, SMALL, gang, harness, running
from tests.support.controller.harness import Harness
from tests.support.controller.stores import workload_store
from tests.support.manifests.observed import JSON, KEY, made, queue, ray_cluster, ray_pod, workers


async def test_a_gang_unplaced_after_five_minutes_is_in_nobodys_way() -> None:
    """Its gates stay open, and the scheduler stays all-or-nothing."""
    world = await harness(
        gang("large", 4, created="2026-11-21T10:00:00Z"), gang("small", 1, created="2026-11-21T11:00:00Z")
    ).settled()
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"
    assert world.annotations(LARGE)[ADMITTED_AT] == text_of(world.now)
    condition = {"type": "Unschedulable", "status": "True", "message": "3/4 tasks in gang unschedulable"}
    world.client.groups[LARGE]["status"] = {"phase": "Inqueue", "conditions": [condition]}
    world.now += 301
    await world.catch_up()
    assert world.annotations(LARGE)[STATE] == "Unschedulable"
    assert world.annotations(LARGE)[MESSAGE].endswith("the scheduler finds no place: 3/4 tasks in gang unschedulable")
    assert world.annotations(SMALL)[STATE] == "Admitted"


@cases("said", ("missing", {}), ("unreadable", {ADMITTED_AT: "long ago"}))
async def test_a_gang_of_which_nobody_knows_when_it_was_admitted_has_its_time_from_now(said: JSON) -> None:
    """Marked by hand, or by another version; the time is written once."""
    nowhere, group = running("runs", 4)
    group["metadata"]["annotations"] |= said
    world = await harness(nowhere, gang("small", 1), groups=[group]).settled()
    assert [world.annotations(name)[STATE] for name in (RUNS, SMALL)] == ["Admitted", "WaitingForQuota"]
    assert world.annotations(RUNS)[ADMITTED_AT] == text_of(world.now)
    marks = [write for write in world.client.writes if write.says == f"mark {RUNS}"]
    assert len(marks) == 1
    world.now += 301
    world.queue.add(GangKey("team", RUNS))
    await world.settle()
    assert [world.annotations(name)[STATE] for name in (RUNS, SMALL)] == ["Unschedulable", "Admitted"]


async def test_a_claim_is_hard_again_when_the_gang_gets_a_node() -> None:
    world = await harness(
        gang("large", 4, created="2026-11-21T10:00:00Z"), gang("small", 1, created="2026-11-21T11:00:00Z")
    ).settled()
    world.client.pods["large-0"]["spec"]["nodeName"] = "n"
    world.now += 301
    await world.catch_up()
    assert world.annotations(LARGE)[STATE] == "Admitted"
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"


async def test_a_soft_claim_keeps_no_room_with_volcano_until_the_gang_gets_a_node() -> None:
    """Volcano reserves minResources for a group in its queue, and would let nobody past whom muster admits past it."""
    world = await harness(
        gang("large", 4, created="2026-11-21T10:00:00Z"), gang("small", 1, created="2026-11-21T11:00:00Z")
    ).settled()
    reserved = world.client.groups[LARGE]["spec"]["minResources"]
    assert reserved == {"cpu": "4", "memory": "4Gi"}
    world.now += 301
    await world.settle()
    world.restart()
    await world.settle()
    assert world.client.groups[LARGE]["spec"]["minResources"] == {"cpu": "0", "memory": "0"}
    world.client.pods["large-0"]["spec"]["nodeName"] = "n"
    await world.catch_up()
    assert world.client.groups[LARGE]["spec"]["minResources"] == reserved


async def test_a_gang_all_of_whose_pods_crash_at_once_keeps_their_places_for_five_minutes() -> None:
    """However long ago it was admitted: in the moment before its operator makes them anew nobody takes its room."""
    crashing, group = running("runs", 4)
    for pod in crashing[1]:
        pod["spec"]["nodeName"] = "node-1"
    group["metadata"]["annotations"][ADMITTED_AT] = text_of(0.0)
    world = await harness(crashing, gang("large", 3, created="2026-11-21T10:00:00Z"), groups=[group]).settled()
    world.now += 500.0
    for pod in crashing[1]:
        del world.client.pods[pod["metadata"]["name"]]
    await world.catch_up()
    assert [world.annotations(name)[STATE] for name in (RUNS, LARGE)] == ["Admitted", "WaitingForQuota"]
    world.now += 300.0
    world.queue.add(GangKey("team", RUNS))
    await world.settle()
    assert [world.annotations(name)[STATE] for name in (RUNS, LARGE)] == ["Unschedulable", "Admitted"]


@pytest.mark.parametrize("new", ["none yet", "held", "open"])
async def test_a_gang_whose_pods_crash_while_the_leader_changes_keeps_their_places_as_long(new: str) -> None:
    """A reboot of all nodes, muster's own among them: the new leader has not seen that the gang ever had a node.

    Also one that asks to queue again then: its new pods would be deleted in the moment in which they are there.
    """
    (workload, pods), group = running("runs", 4)
    workload["metadata"]["annotations"][REQUEUE_AFTER] = "4m"
    group["spec"]["minResources"]["memory"] = "4Gi"
    group["metadata"]["annotations"][ADMITTED_AT] = text_of(0.0)
    made_again = [
        {**pod, "metadata": {**pod["metadata"], "uid": f"{pod['metadata']['uid']}-new"}, "spec": dict(pod["spec"])}
        for pod in (pods if new != "none yet" else [])
    ]
    for pod in made_again:
        pod["metadata"]["creationTimestamp"] = text_of(990.0)
        pod["spec"]["schedulingGates"] = [{"name": GATE}] if new == "held" else []
    world = harness((workload, made_again), gang("large", 3, created="2026-11-21T10:00:00Z"), groups=[group])
    await later(world, 0)
    await later(world, 220)
    assert [world.annotations(name)[STATE] for name in (RUNS, LARGE)] == ["Admitted", "WaitingForQuota"]
    assert len([name for name in world.open_pods() if name.startswith("runs")]) == len(made_again)
    await later(world, 20)
    assert [world.annotations(name)[STATE] for name in (RUNS, LARGE)] == ["Requeued", "Admitted"]


async def test_a_workload_at_rest_keeps_no_room_with_volcano_until_it_waits_again() -> None:
    """Volcano takes the PodGroup of a suspended workload, which has no pods, into its queue, and keeps room for it."""
    workload, pods = gang("runs", 2)
    world = await harness((workload, pods)).settled()
    reserved = world.client.groups[RUNS]["spec"]["minResources"]
    assert reserved == {"cpu": "2", "memory": "2Gi"}
    at_rest = {**workload, "spec": {**workload["spec"], "suspend": True}}
    world.set_workload(at_rest)
    await world.settle()
    assert world.client.groups[RUNS]["spec"]["minResources"] == reserved, "Volcano keeps nothing for it yet"
    world.client.pods.clear()
    world.client.groups[RUNS]["status"] = {"phase": "Inqueue"}
    await world.catch_up()
    assert world.client.groups[RUNS]["spec"]["minResources"] == {"cpu": "0", "memory": "0"}
    world.restart()
    await world.settle()
    assert world.client.groups[RUNS]["spec"]["minResources"] == {"cpu": "0", "memory": "0"}
    world.set_workload(workload)
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in gang("runs", 2)[1]}
    await world.catch_up()
    assert world.client.groups[RUNS]["spec"]["minResources"] == reserved
    assert world.annotations(RUNS)[STATE] == "Admitted"


async def test_a_gang_that_lacks_pods_keeps_no_room_with_volcano_until_it_has_them() -> None:
    """Volcano leaves out what held pods ask for, but not those that are still to come, which may never be made."""
    workload, pods = gang("large", 3)
    world = await harness((workload, pods[:2])).settled()
    reserved = world.client.groups[LARGE]["spec"]["minResources"]
    world.now += 6
    world.queue.add(GangKey("team", LARGE))
    await world.settle()
    assert world.client.groups[LARGE]["spec"]["minResources"] == {"cpu": "0", "memory": "0"}
    world.client.pods[pods[2]["metadata"]["name"]] = pods[2]
    await world.catch_up()
    assert world.client.groups[LARGE]["spec"]["minResources"] == reserved
    assert world.annotations(LARGE)[STATE] == "Admitted"


async def later(world: Harness, seconds: float) -> None:
    """Time passes, and every gang is looked at."""
    world.now += seconds
    for key in world.cluster.gangs():
        world.queue.add(key)
    await world.settle()


def admitted(world: Harness, *gangs: str) -> list[str]:
    return [name for name in gangs if world.annotations(f"ray-{name}-pg").get(ADMITTED)]


async def test_a_queue_says_how_long_its_gangs_may_be_unplaced() -> None:
    world = await harness(
        gang("large", 4, created="2026-11-21T10:00:00Z"),
        gang("small", 1, created="2026-11-21T11:00:00Z"),
        annotations={"unplaced-after": "30s"},
    ).settled()
    await later(world, 29)
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"
    await later(world, 1)
    assert (world.annotations(LARGE)[STATE], world.annotations(SMALL)[STATE]) == ("Unschedulable", "Admitted")


async def test_a_queue_that_says_another_time_says_it_to_those_who_are_admitted_already() -> None:
    """Nothing else happens to them: they would be looked at when the time is over that held before."""
    world = await harness(
        gang("large", 4, created="2026-11-21T10:00:00Z"),
        gang("small", 1, created="2026-11-21T11:00:00Z"),
        annotations={"unplaced-after": "1h"},
    ).settled()
    await later(world, 60)
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"
    world.set_queue(queue(annotations={"muster.dev/unplaced-after": "30s"}, cpu="4"))
    await world.settle()
    assert (world.annotations(LARGE)[STATE], world.annotations(SMALL)[STATE]) == ("Unschedulable", "Admitted")


async def test_however_long_nodes_take_to_come_one_more_queue_full_is_opened_and_no_third() -> None:
    """Nodes that an autoscaler buys for a quarter of an hour, or a scheduler that is down."""
    names = [f"g{number}" for number in range(6)]
    world = await harness(*(gang(name, 4, created=f"2026-11-21T10:00:0{name[1]}Z") for name in names)).settled()
    for _ in range(15):
        await later(world, 60)
    assert admitted(world, *names) == ["g0", "g1"]
    assert world.annotations("ray-g1-pg")[STATE] == "Unschedulable"
    world.restart()
    await later(world, 60)
    assert admitted(world, *names) == ["g0", "g1"]
    for pod in [pod for pod in world.client.pods if pod.startswith("g0-")]:
        del world.client.pods[pod]
    world.drop_workload(gang("g0", 4)[0])
    world.watch()
    await later(world, 60)
    assert admitted(world, *names[1:]) == ["g1", "g2"]


async def test_surplus_that_finds_no_node_stands_in_nobodys_way() -> None:
    """An autoscaler asked for nine workers; the head runs, and no node comes for them."""
    scaled = ray_cluster(workers(replicas=9, minReplicas=0, maxReplicas=9), enableInTreeAutoscaling=True)
    pods = [ray_pod("h", "headgroup"), *(ray_pod(f"w{number}") for number in range(9))]
    large = gang("large", 5, created="2026-11-21T11:00:00Z")
    world = await harness((scaled, pods), cpu="11").settled()
    assert len(world.open_pods()) == 10
    world.set_workload(large[0])
    world.client.pods |= {pod["metadata"]["name"]: pod for pod in large[1]}
    world.client.pods["h"]["spec"]["nodeName"] = world.client.pods["w0"]["spec"]["nodeName"] = "n"
    world.watch()
    await later(world, 299)
    assert world.annotations(LARGE)[STATE] == "WaitingForQuota"
    await later(world, 1)
    assert world.annotations(LARGE)[STATE] == "Admitted"
    said = world.annotations(KEY.name)[MESSAGE]
    assert "the scheduler finds no place for cpu 8 and memory 8Gi of it, which others may use" in said
    for number in range(1, 9):
        world.client.pods[f"w{number}"]["spec"]["nodeName"] = "n"
    await world.catch_up()
    assert world.term.ledger.used("q")["cpu"].nano == 15 * 10**9, "with a node it counts again"


async def test_above_its_own_queue_a_claim_stays_hard() -> None:
    """That limit the scheduler may not know: were the nodes to come for all, more would run than it has."""
    world = harness(gang("large", 4, created="2026-11-21T10:00:00Z"), gang("small", 1, created="2026-11-21T11:00:00Z"))
    of_queue = queue(cpu="4")
    of_queue["spec"]["parent"] = "org"
    world.set_queue(of_queue)
    world.set_queue(queue("org", cpu="4"))
    await world.settle()
    await later(world, 301)
    assert (world.annotations(LARGE)[STATE], world.annotations(SMALL)[STATE]) == ("Unschedulable", "WaitingForQuota")


async def test_a_gang_that_has_lost_all_its_pods_keeps_its_room_above_its_own_queue() -> None:
    """They come again and are opened at once: whoever had the room by then would run beside them."""
    runs, group = running("runs", 4)
    other, pods = gang("other", 4, labels={QUEUE_LABEL: "r"})
    world = harness(runs, (other, pods), groups=[group])
    for name in ("q", "r"):
        of_queue = queue(name, cpu="4")
        of_queue["spec"]["parent"] = "org"
        world.set_queue(of_queue)
    world.set_queue(queue("org", cpu="4"))
    for pod in runs[1]:
        pod["spec"]["nodeName"] = "node-1"
    await world.settle()
    for pod in runs[1]:
        del world.client.pods[pod["metadata"]["name"]]
    await world.catch_up()
    await later(world, 301)
    assert admitted(world, "other") == []
    again = {f"new-{pod['metadata']['name']}": pod for pod in gang("runs", 4)[1]}
    for name, pod in again.items():
        pod["metadata"] |= {"name": name, "uid": name}
    world.client.pods |= again
    await world.catch_up()
    assert world.open_pods() == sorted(again)


def deleting(world: Harness, *pods: str, on: str = "node-1") -> None:
    """These pods run on that node, and are being deleted."""
    for name in pods:
        world.client.pods[name]["spec"]["nodeName"] = on
        world.client.pods[name]["metadata"]["deletionTimestamp"] = text_of(world.now + 300.0)
    world.watch()


@pytest.mark.parametrize("group_goes", [False, True])
async def test_pods_that_are_being_deleted_keep_their_room_until_they_are_gone(*, group_goes: bool) -> None:
    """They write a checkpoint, say, on the nodes that they have; their PodGroup may go before."""
    runs, group = running("runs", 4)
    world = await harness(runs, gang("large", 4, created="2026-11-21T10:00:00Z"), groups=[group]).settled()
    world.drop_workload(runs[0])
    if group_goes:
        del world.client.groups[RUNS]
        await world.catch_up()
    pods = [pod["metadata"]["name"] for pod in runs[1]]
    deleting(world, *pods)
    await later(world, 0)
    assert admitted(world, "large") == []
    await later(world, 3600)
    assert admitted(world, "large") == []
    for name in pods:
        del world.client.pods[name]
    await world.catch_up()
    assert admitted(world, "large") == ["large"]


async def test_on_a_node_that_is_gone_they_keep_nothing() -> None:
    runs, group = running("runs", 4)
    world = harness(runs, gang("large", 4, created="2026-11-21T10:00:00Z"), groups=[group])
    world.cluster.nodes.replace_all([])
    await world.settle()
    world.drop_workload(runs[0])
    deleting(world, *(pod["metadata"]["name"] for pod in runs[1]))
    await later(world, 0)
    assert admitted(world, "large") == ["large"]


async def test_on_a_node_that_is_not_ready_they_keep_it_for_as_long_as_they_were_given() -> None:
    runs, group = running("runs", 4)
    world = harness(runs, gang("large", 4, created="2026-11-21T10:00:00Z"), groups=[group])
    ready = {"metadata": {"name": "node-1"}, "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}
    world.cluster.nodes.replace_all([made(Node, ready)])
    await world.settle()
    world.drop_workload(runs[0])
    deleting(world, *(pod["metadata"]["name"] for pod in runs[1]))
    await later(world, 299)
    assert admitted(world, "large") == []
    due = world.queue._core._due[GangKey("team", RUNS)] - asyncio.get_running_loop().time()
    assert due <= 15, "nothing else would have it looked at again"
    await later(world, 1)
    assert admitted(world, "large") == ["large"]


async def test_a_replacement_does_not_wait_for_the_end_of_its_own_predecessor() -> None:
    """Neither of one of the minimum, nor of one beyond it."""
    scaled = ray_cluster(workers(replicas=2, minReplicas=1, maxReplicas=2), enableInTreeAutoscaling=True)
    pods = [ray_pod("h", "headgroup"), ray_pod("w0"), ray_pod("w1")]
    world = await harness((scaled, pods), gang("small", 1, created="2026-11-21T11:00:00Z"), cpu="3").settled()
    assert world.open_pods() == ["h", "w0", "w1"]
    for name in ("h", "w0", "w1"):
        world.client.pods[name]["spec"]["nodeName"] = "node-1"
    deleting(world, "w0", "w1")
    await world.settle()
    assert admitted(world, "small") == [], "they are there yet"
    world.client.pods |= {"x0": ray_pod("x0"), "x1": ray_pod("x1")}
    await world.catch_up()
    assert {"x0", "x1"} <= set(world.open_pods())
    for name in ("w0", "w1"):
        del world.client.pods[name]
    await world.catch_up()
    assert admitted(world, "small") == [], "its new members have its place"


async def test_what_runs_on_of_a_former_workload_keeps_its_room_from_the_next_one_of_its_name() -> None:
    runs, group = running("runs", 4)
    world = await harness(runs, groups=[group]).settled()
    deleting(world, *(pod["metadata"]["name"] for pod in runs[1]))
    again, pods = gang("runs", 4)
    again["metadata"]["uid"] = "uid-again"
    world.drop_workload(runs[0])
    workload_store(world.cluster, RAY_CLUSTER).apply("added", made(RayCluster, again))
    new = {f"new-{pod['metadata']['name']}": pod for pod in pods}
    for name, pod in new.items():
        pod["metadata"] |= {"name": name, "uid": name}
        pod["metadata"]["ownerReferences"][0]["uid"] = "uid-again"
    world.client.pods |= new
    world.watch()
    await later(world, 0)
    assert not any(name.startswith("new") for name in world.open_pods())
    for pod in runs[1]:
        del world.client.pods[pod["metadata"]["name"]]
    world.watch()
    await later(world, 0)
    assert sum(name.startswith("new") for name in world.open_pods()) == 4


async def test_what_runs_on_of_a_former_workload_keeps_the_room_of_its_own_queue() -> None:
    """The next one of its name is in another queue, where it finds all of the room."""
    runs, group = running("runs", 4)
    world = harness(runs, gang("large", 4, created="2026-11-21T10:00:00Z"), groups=[group])
    world.set_queue(queue("other", cpu="4"))
    await world.settle()
    again, pods = gang("runs", 4, labels={QUEUE_LABEL: "other"})
    again["metadata"]["uid"] = "uid-again"
    world.drop_workload(runs[0])
    del world.client.groups[RUNS]
    deleting(world, *(pod["metadata"]["name"] for pod in runs[1]))
    workload_store(world.cluster, RAY_CLUSTER).apply("added", made(RayCluster, again))
    new = {f"new-{pod['metadata']['name']}": pod for pod in pods}
    for name, pod in new.items():
        pod["metadata"] |= {"name": name, "uid": name}
        pod["metadata"]["labels"][QUEUE_LABEL] = "other"
        pod["metadata"]["ownerReferences"][0]["uid"] = "uid-again"
    world.client.pods |= new
    world.watch()
    await later(world, 0)
    assert sum(name.startswith("new") for name in world.open_pods()) == 4
    assert admitted(world, "large") == []
    for pod in runs[1]:
        del world.client.pods[pod["metadata"]["name"]]
    world.watch()
    await later(world, 0)
    assert admitted(world, "large") == ["large"]
