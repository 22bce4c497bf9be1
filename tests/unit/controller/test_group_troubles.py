"""PodGroups that a former workload or somebody else left in the way, that are lost, changed or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from muster.kube.errors import ApiError
from muster.ledger import GangKey
from muster.names import ADMITTED, MESSAGE, STATE
from muster.workloads.ray import RAY_CLUSTER, RayCluster
from tests.support.controller.two_gangs import SMALL, demo, members, two, until_refused
from tests.support.manifests.objects import (
    GROUP,
    JSON,
    as_json,
    made,
    old_pod,
    pod_group,
    queue,
    ray_cluster,
    workers,
    workload_store,
)

if TYPE_CHECKING:
    from muster.kube.resource import Resource


async def test_the_group_of_a_former_workload_is_deleted_by_uid_and_made_anew() -> None:
    scene = demo(groups=[pod_group(owner_uid="uid-old", admitted="uid-old")])
    assert await scene.work() == [f"delete {GROUP}"]
    assert scene.client.writes[0].uid == f"uid-{GROUP}"
    scene.watch()
    assert (await scene.settle())[:2] == [f"muster {GROUP}", f"mark {GROUP}"]


async def test_a_group_that_is_being_deleted_is_not_deleted_again() -> None:
    stale = pod_group(owner_uid="uid-old", meta={"deletionTimestamp": "2026-11-21T10:00:00Z"})
    assert await demo(groups=[stale]).work() == []


async def test_the_mark_of_a_former_life_lets_nobody_through() -> None:
    """Also when the group was adopted by hand."""
    scene = demo(groups=[pod_group(admitted="uid-old")], queues=[queue(cpu="1")])
    await scene.settle()
    assert scene.open_pods() == []
    assert ADMITTED not in scene.annotations(GROUP)


async def test_a_lost_mark_is_written_again_before_anything_else_is_opened() -> None:
    pods = members()
    pods[0]["spec"]["schedulingGates"] = []
    scene = demo(pods=pods, groups=[pod_group()], queues=[])
    assert [write for write in await scene.work() if write != "create Event"] == [
        f"mark {GROUP}",
        "patch demo-w-0",
        "patch demo-w-1",
    ]


async def test_a_somebody_elses_group_is_left_alone_and_said() -> None:
    scene = demo(groups=[pod_group(ours=False)])
    assert await scene.settle() == ["create Event"]
    assert scene.events() == [
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
    scene = demo(pods=[old_pod("demo-head", "headgroup")], groups=[pod_group(ours=False)])
    await scene.settle()
    assert [reason for _, reason, _ in scene.events()] == ["NotManaged"]


async def test_a_foreign_group_is_no_business_of_a_workload_that_asks_for_nothing() -> None:
    pods = [old_pod("demo-head", "headgroup")]
    assert await demo(workloads=[ray_cluster(labels={})], pods=pods, groups=[pod_group(ours=False)]).settle() == []


async def test_a_scaled_up_workload_keeps_the_numbers_of_its_group() -> None:
    """Volcano blocks the replacement of a crashed member when minMember rises above what runs."""
    scene = demo()
    await scene.settle()
    workload_store(scene.cluster, RAY_CLUSTER).apply("modified", made(RayCluster, ray_cluster(workers(replicas=5))))
    await scene.settle()
    assert scene.client.groups[GROUP]["spec"]["minMember"] == 3
    words = 'cpu 3 and memory 3Gi of queue "q"; from its next admission on: minMember 6'
    assert scene.annotations(GROUP)[MESSAGE] == words


async def test_an_invalid_edit_is_said_and_changes_nothing_else() -> None:
    scene = two()
    await scene.settle()
    broken = made(RayCluster, ray_cluster(workers(minReplicas=3, maxReplicas=1)))
    workload_store(scene.cluster, RAY_CLUSTER).apply("modified", broken)
    await scene.settle()
    assert (scene.annotations(GROUP)[STATE], scene.annotations(GROUP)[ADMITTED]) == ("Invalid", "uid-demo")
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_what_drifted_is_put_right() -> None:
    scene = demo()
    await scene.settle()
    scene.client.groups[GROUP]["spec"]["queue"] = "q"
    scene.client.groups[GROUP]["spec"]["minResources"] = {"cpu": "1"}
    scene.client.groups[GROUP]["spec"]["minMember"] = 9
    scene.watch()
    await scene.settle()
    assert scene.client.groups[GROUP]["spec"]["minMember"] == 3


async def test_a_deleted_group_of_a_running_gang_comes_back_with_its_mark() -> None:
    scene = demo()
    await scene.settle()
    scene.client.groups.clear()
    scene.client.applied.clear()
    scene.watch()
    written = await scene.settle()
    assert written[:2] == [f"muster {GROUP}", f"mark {GROUP}"]


async def test_a_refused_pod_group_is_said_and_takes_no_room() -> None:
    """By a quota, say: the next gang must not wait for one that can never start."""
    scene = two()
    scene.client.fails = {f"muster {GROUP}": [ApiError(403, "Forbidden", "exceeded quota: podgroups")] * 9}
    for _ in range(3):
        try:
            await scene.settle()
        except ApiError:
            scene.queue.add(GangKey("team", GROUP))
    assert scene.open_pods() == ["other-head", "other-w-0", "other-w-1"]
    assert ("Warning", "Invalid", "the PodGroup was refused: exceeded quota: podgroups") in scene.events()


async def test_a_pod_group_refused_for_its_queue_says_so_and_starts_when_the_queue_is_open() -> None:
    """As Volcano's own webhook refuses it: it keeps its place in line, and needs no further attempt of its own."""
    scene = demo(queues=[queue(cpu="4", memory="4Gi", state="Closing")])
    scene.client.fails = {f"muster {GROUP}": [ApiError(400, "", "can only submit PodGroup to open queues")]}
    await scene.work()
    assert scene.events() == [("Warning", "QueueClosed", 'queue "q" is Closing and takes no new work')]
    scene.set_queue(SMALL)
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_no_pod_group_is_made_in_a_queue_with_others_below_it() -> None:
    """Where that is only warned of: one PodGroup there stops the whole cluster under Volcano's capacity plugin."""
    below = {"metadata": {"name": "below"}, "spec": {"parent": "q"}, "status": {"state": "Open"}}
    scene = demo(queues=[SMALL, below])
    await scene.settle()
    assert scene.client.groups == {}
    assert scene.events() == [("Warning", "QueueNotLeaf", 'queue "q" has queues below it and takes no gangs itself')]
    scene.drop_queue(below)
    await scene.settle()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]


async def test_the_pod_group_of_a_running_gang_that_is_refused_is_said_and_its_place_kept() -> None:
    """Somebody deleted it, and the queue has been closed since."""
    scene = two()
    await scene.settle()
    del scene.client.groups[GROUP]
    scene.set_queue(queue(cpu="4", state="Closing"))
    scene.client.fails = {f"muster {GROUP}": [ApiError(400, "", "can only submit PodGroup to open queues")] * 9}
    scene.watch()
    await until_refused(scene)
    assert ("Warning", "QueueClosed", 'queue "q" is Closing and takes no new work') in scene.events()
    scene.set_queue(SMALL)
    await scene.work()
    assert scene.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"], "its place is another's"


async def test_a_new_pod_group_that_another_webhook_sends_elsewhere_is_put_right_before_anything_is_decided() -> None:
    """Volcano's own sends those of queue "default" to the queue of the namespace, when they are made."""
    scene = demo()
    apply = scene.client.apply

    async def elsewhere(resource: Resource, name: str, body: JSON, *args: Any, **rest: Any) -> bytes:  # noqa: ANN401
        made_new = name not in scene.client.groups
        answer = await apply(resource, name, body, *args, **rest)
        if not made_new:
            return answer
        scene.client.groups[name]["spec"]["queue"] = "elsewhere"
        return as_json(scene.client.versioned(scene.client.groups[name])).encode()

    scene.client.apply = elsewhere  # type: ignore[method-assign]
    written = await scene.work()
    assert written[:3] == [f"muster {GROUP}", f"muster {GROUP}", f"mark {GROUP}"]
    assert scene.client.groups[GROUP]["spec"]["queue"] == "q"
