"""PodGroups that a former workload or somebody else left in the way, that are lost, changed or refused."""

from typing import Any

from muster.kube.errors import ApiError
from muster.model.names import ADMITTED, MESSAGE, STATE
from muster.model.resource import Resource
from muster.queueing.ledger import GangKey
from muster.workloads.ray import RAY_CLUSTER, RayCluster
from tests.support.controller.stores import workload_store
from tests.support.controller.two_gangs import SMALL, demo, members, two, until_refused
from tests.support.manifests.observed import GROUP, JSON, as_json, made, old_pod, pod_group, queue, ray_cluster, workers


async def test_the_group_of_a_former_workload_is_deleted_by_uid_and_recreated() -> None:
    harness = demo(groups=[pod_group(owner_uid="uid-old", admitted="uid-old")])
    assert await harness.work() == [f"delete {GROUP}"]
    assert harness.client.writes[0].uid == f"uid-{GROUP}"
    assert (await harness.catch_up())[:2] == [f"muster {GROUP}", f"mark {GROUP}"]


async def test_a_group_that_is_being_deleted_is_not_deleted_again() -> None:
    stale = pod_group(owner_uid="uid-old", meta={"deletionTimestamp": "2026-11-21T10:00:00Z"})
    assert await demo(groups=[stale]).work() == []


async def test_the_mark_of_a_former_life_lets_nobody_through() -> None:
    """Also when the group was adopted by hand."""
    harness = await demo(groups=[pod_group(admitted="uid-old")], queues=[queue(cpu="1")]).settled()
    assert harness.open_pods() == []
    assert ADMITTED not in harness.annotations(GROUP)


async def test_a_lost_mark_is_written_again_before_anything_else_is_opened() -> None:
    pods = members()
    pods[0]["spec"]["schedulingGates"] = []
    harness = demo(pods=pods, groups=[pod_group()])
    assert [write for write in await harness.work() if write != "create Event"][:4] == [
        f"muster {GROUP}",
        f"mark {GROUP}",
        "patch demo-w-0",
        "patch demo-w-1",
    ]


async def test_a_somebody_elses_group_is_left_alone_and_said() -> None:
    harness = demo(groups=[pod_group(ours=False)])
    assert await harness.settle() == ["create Event"]
    assert harness.events() == [
        (
            "Warning",
            "ForeignPodGroup",
            'a PodGroup "ray-demo-pg" that muster did not make is in the way; delete or rename it',
        ),
    ]


async def test_a_foreign_group_without_our_pods_is_nobodys_business() -> None:
    """The operator's own gang flag is on."""
    assert await demo(pods=[], groups=[pod_group(ours=False)]).settle() == []


async def test_beside_a_foreign_group_a_gang_whose_pods_came_without_muster_is_told_so() -> None:
    harness = await demo(pods=[old_pod("demo-head", "headgroup")], groups=[pod_group(ours=False)]).settled()
    assert [reason for _, reason, _ in harness.events()] == ["NotManaged"]


async def test_a_foreign_group_is_no_business_of_a_workload_that_asks_for_nothing() -> None:
    pods = [old_pod("demo-head", "headgroup")]
    assert await demo(workloads=[ray_cluster(labels={})], pods=pods, groups=[pod_group(ours=False)]).settle() == []


async def test_a_scaled_up_workload_keeps_the_numbers_of_its_group() -> None:
    """Volcano blocks the replacement of a crashed member when minMember rises above what runs."""
    harness = await demo().settled()
    workload_store(harness.cluster, RAY_CLUSTER).apply("modified", made(RayCluster, ray_cluster(workers(replicas=5))))
    await harness.settle()
    assert harness.client.groups[GROUP]["spec"]["minMember"] == 3
    words = 'cpu 3 and memory 3Gi of queue "q"; from its next admission on: minMember 6'
    assert harness.annotations(GROUP)[MESSAGE] == words


async def test_an_invalid_edit_is_said_and_changes_nothing_else() -> None:
    harness = await two().settled()
    broken = made(RayCluster, ray_cluster(workers(minReplicas=3, maxReplicas=1)))
    workload_store(harness.cluster, RAY_CLUSTER).apply("modified", broken)
    await harness.settle()
    assert (harness.annotations(GROUP)[STATE], harness.annotations(GROUP)[ADMITTED]) == ("Invalid", "uid-demo")
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_what_drifted_is_put_right() -> None:
    harness = await demo().settled()
    harness.client.groups[GROUP]["spec"]["queue"] = "q"
    harness.client.groups[GROUP]["spec"]["minResources"] = {"cpu": "1"}
    harness.client.groups[GROUP]["spec"]["minMember"] = 9
    await harness.catch_up()
    assert harness.client.groups[GROUP]["spec"]["minMember"] == 3


async def test_a_deleted_group_of_a_running_gang_comes_back_with_its_mark() -> None:
    harness = await demo().settled()
    harness.client.groups.clear()
    harness.client.applied.clear()
    written = await harness.catch_up()
    assert written[:2] == [f"muster {GROUP}", f"mark {GROUP}"]


async def test_a_refused_pod_group_is_said_and_takes_no_room() -> None:
    """By a quota, say: the next gang must not wait for one that can never start."""
    harness = two()
    harness.client.fails = {f"muster {GROUP}": [ApiError(403, "Forbidden", "exceeded quota: podgroups")] * 9}
    for _ in range(3):
        try:
            await harness.settle()
        except ApiError:
            harness.queue.add(GangKey("team", GROUP))
    assert harness.open_pods() == ["other-head", "other-w-0", "other-w-1"]
    words = f'PodGroup "{GROUP}" was refused: exceeded quota: podgroups; others start before it'
    assert ("Warning", "Invalid", words) in harness.events()


async def test_a_pod_group_refused_for_its_queue_says_so_and_starts_when_the_queue_is_open() -> None:
    """As Volcano's own webhook refuses it: it keeps its place in line, and needs no further attempt of its own."""
    harness = demo(queues=[queue(cpu="4", memory="4Gi", state="Closing")])
    harness.client.fails = {f"muster {GROUP}": [ApiError(400, "", "can only submit PodGroup to open queues")]}
    await harness.work()
    assert harness.events() == [("Warning", "QueueClosed", 'queue "q" is Closing and takes no new work')]
    harness.set_queue(SMALL)
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_no_pod_group_is_made_in_a_queue_with_others_below_it() -> None:
    """Where that is only warned of: one PodGroup there stops the whole cluster under Volcano's capacity plugin."""
    below = {"metadata": {"name": "below"}, "spec": {"parent": "q"}, "status": {"state": "Open"}}
    harness = await demo(queues=[SMALL, below]).settled()
    assert harness.client.groups == {}
    assert harness.events() == [("Warning", "QueueNotLeaf", 'queue "q" has queues below it and takes no gangs itself')]
    harness.drop_queue(below)
    await harness.settle()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_the_pod_group_of_a_running_gang_that_is_refused_is_said_and_its_place_kept() -> None:
    """Somebody deleted it, and the queue has been closed since."""
    harness = await two().settled()
    del harness.client.groups[GROUP]
    harness.set_queue(queue(cpu="4", state="Closing"))
    harness.client.fails = {f"muster {GROUP}": [ApiError(400, "", "can only submit PodGroup to open queues")] * 9}
    harness.watch()
    await until_refused(harness)
    assert ("Warning", "QueueClosed", 'queue "q" is Closing and takes no new work') in harness.events()
    harness.set_queue(SMALL)
    await harness.work()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"], "its place is another's"


async def test_a_new_pod_group_that_another_webhook_sends_elsewhere_is_put_right_before_anything_is_decided() -> None:
    """Volcano's own sends those of queue "default" to the queue of the namespace, when they are made."""
    harness = demo()
    apply = harness.client.apply

    async def elsewhere(resource: Resource, name: str, body: JSON, *args: Any, **rest: Any) -> bytes:  # noqa: ANN401
        made_new = name not in harness.client.groups
        answer = await apply(resource, name, body, *args, **rest)
        if not made_new:
            return answer
        harness.client.groups[name]["spec"]["queue"] = "elsewhere"
        return as_json(harness.client.versioned(harness.client.groups[name])).encode()

    harness.client.apply = elsewhere  # type: ignore[method-assign]
    written = await harness.work()
    assert written[:3] == [f"muster {GROUP}", f"muster {GROUP}", f"mark {GROUP}"]
    assert harness.client.groups[GROUP]["spec"]["queue"] == "q"
