"""Gangs that give back a place which they cannot use."""

from __future__ import annotations

import asyncio

import pytest

from muster.kube.errors import ApiError
from muster.ledger import GangKey
from muster.names import ADMITTED, ADMITTED_AT, REQUEUE_AFTER, REQUEUED_AT, STATE
from muster.times import text_of
from tests.support.controller.recording_client import Scene
from tests.support.manifests.objects import JSON, KEY, NAMESPACE, QUEUE_LABELS, queue, ray_cluster, ray_pod

GROUP, OTHER = "ray-demo-pg", "ray-other-pg"
PODS = ("head", "w-0", "w-1")
YOUNGER = "2026-11-21T11:00:00Z"
START = 1_800_000_000.0  # long after both were made


def pods(prefix: str, cluster: str = "demo", **rest: object) -> list[JSON]:
    names = ((f"{prefix}head", "headgroup"), (f"{prefix}w-0", "workers"), (f"{prefix}w-1", "workers"))
    return [
        ray_pod(name, role, cluster=cluster, owner_uid=f"uid-{cluster}", **rest)  # type: ignore[arg-type] # a pod's fields
        for name, role in names
    ]


async def stuck(after: str = "5m", *, neighbour: bool = False) -> Scene:
    """A gang that was admitted at START and of which nothing has a node; perhaps a younger one waits for its place."""
    said = {REQUEUE_AFTER: after} if after else {}
    other = ray_cluster(name="other", uid="uid-other", labels=QUEUE_LABELS, meta={"creationTimestamp": YOUNGER})
    scene = Scene(
        workloads=[ray_cluster(annotations=said), *([other] if neighbour else [])],
        pods=[*pods(""), *(pods("o-", "other") if neighbour else [])],
        queues=[queue(cpu="3", memory="9Gi")],
    )
    scene.now = START
    await scene.settle()
    assert scene.open_pods() == list(PODS)
    return scene


async def after(scene: Scene, seconds: float) -> list[str]:
    """What is written so many seconds after START."""
    scene.now = START + seconds
    scene.queue.add(KEY)
    return await scene.settle()


async def test_the_mark_goes_first_and_then_every_pod_that_has_no_node() -> None:
    scene = await stuck()
    # Five minutes at once: meanwhile the claim has turned soft.
    written = [one for one in await after(scene, 300) if not one.startswith(("create", f"muster {GROUP}"))]
    assert written[:4] == [f"muster-ledger {GROUP}", *(f"delete {name}" for name in PODS)]
    said = scene.annotations(GROUP)
    assert (ADMITTED in said, ADMITTED_AT in said, said[REQUEUED_AT]) == (False, False, text_of(START + 300))
    deleted = [write for write in scene.client.writes if write.verb == "delete"]
    assert [write.uid for write in deleted] == [f"uid-{name}" for name in PODS]
    warning = ("Warning", "Requeued", "no pod found a node within 5m, so that the place is given back")
    assert [(kind, reason, note.partition(";")[0]) for kind, reason, note in scene.events()].count(warning) == 1


@pytest.mark.parametrize("said", ["", "soon", "0s"])
async def test_nothing_is_deleted_unless_it_is_asked_for(said: str) -> None:
    scene = await stuck(said)
    assert not [one for one in await after(scene, 9999) if one.startswith("delete")]


async def test_nothing_is_deleted_before_its_time() -> None:
    scene = await stuck()
    assert not [one for one in await after(scene, 299) if one.startswith("delete")]


async def test_the_gang_is_looked_at_again_when_its_time_is_over() -> None:
    """Nothing happens in the cluster at that moment: nobody else would wake it."""
    scene = await stuck()
    due = scene.queue._core._due[KEY] - asyncio.get_running_loop().time()
    assert 60 - 30 < due <= 60, "first its claim turns soft"
    await after(scene, 250)
    due = scene.queue._core._due[KEY] - asyncio.get_running_loop().time()
    assert 50 - 30 < due <= 50


async def test_a_gang_of_which_one_pod_has_a_node_keeps_its_place() -> None:
    scene = await stuck()
    scene.client.pods["w-0"]["spec"]["nodeName"] = "n"
    scene.watch()
    assert not [one for one in await after(scene, 9999) if one.startswith("delete")]


async def test_its_place_goes_to_who_waited_meanwhile() -> None:
    scene = await stuck(neighbour=True)
    await after(scene, 300)
    scene.client.pods |= {pod["metadata"]["name"]: pod for pod in pods("new-")}
    scene.watch()
    await scene.settle()
    assert scene.open_pods() == ["o-head", "o-w-0", "o-w-1"]
    assert scene.annotations(GROUP)[STATE] == "WaitingForQuota"
    assert scene.annotations(GROUP)[REQUEUED_AT] == text_of(START + 300)
    assert scene.annotations(OTHER)[ADMITTED] == "uid-other"


async def test_it_queues_again_behind_those_who_waited_meanwhile() -> None:
    """It is the older one and would be first; both are whole when the queue, closed for a while, opens again."""
    scene = await stuck(neighbour=True)
    scene.set_queue(queue(state="Closed", cpu="3", memory="9Gi"))
    await after(scene, 300)
    scene.client.pods |= {pod["metadata"]["name"]: pod for pod in pods("new-")}
    scene.watch()
    await scene.settle()
    assert scene.open_pods() == []
    scene.set_queue(queue(cpu="3", memory="9Gi"))
    await scene.settle()
    assert scene.open_pods() == ["o-head", "o-w-0", "o-w-1"]


async def test_made_anew_where_nobody_waits_it_is_admitted_again() -> None:
    scene = await stuck()
    await after(scene, 300)
    scene.client.pods |= {pod["metadata"]["name"]: pod for pod in pods("new-")}
    scene.watch()
    await scene.settle()
    assert scene.open_pods() == ["new-head", "new-w-0", "new-w-1"]
    assert scene.annotations(GROUP)[ADMITTED_AT] == text_of(START + 300)
    assert REQUEUED_AT not in scene.annotations(GROUP)


async def test_the_next_leader_goes_on_where_the_last_one_died() -> None:
    """The mark is gone and the pods are there, open: they are deleted, and not taken for a lost mark."""
    scene = await stuck()
    scene.client.fails = {"delete": [ApiError(500, "", "broken") for _ in PODS]}
    scene.now = START + 300
    scene.queue.add(KEY)
    with pytest.raises(ApiError):
        await scene.work()
    assert scene.open_pods() == list(PODS)
    scene.watch()
    scene.restart()
    await scene.settle()
    assert scene.client.pods == {}
    assert ADMITTED not in scene.annotations(GROUP)


async def test_a_pod_that_was_placed_at_the_last_moment_stays_and_the_gang_with_it() -> None:
    """Its deletion is refused, for it is not what was seen any more; then the gang is admitted as before."""
    scene = await stuck()
    scene.client.pods["w-1"]["spec"]["nodeName"] = "n"  # the watch has not shown it yet
    await after(scene, 300)
    assert list(scene.client.pods) == ["w-1"]
    assert scene.annotations(GROUP)[ADMITTED] == "uid-demo"
    assert REQUEUED_AT not in scene.annotations(GROUP)


async def test_pods_that_somebody_opened_since_are_not_deleted() -> None:
    """`muster release` for a gang that gave its place back and waits."""
    scene = await stuck(neighbour=True)
    await after(scene, 300)
    made = {"creationTimestamp": text_of(START + 400)}
    for pod in pods("new-", held=False):
        pod["metadata"] |= made
        scene.client.pods[pod["metadata"]["name"]] = pod
    scene.watch()
    await scene.settle()
    assert not [write for write in scene.client.writes if write.verb == "delete" and write.name.startswith("new-")]
    assert scene.annotations(GROUP)[ADMITTED] == "uid-demo"


async def test_a_mark_that_could_not_be_taken_off_keeps_the_pods() -> None:
    scene = await stuck()
    scene.client.fails = {"muster-ledger": [ApiError(500, "", "broken")]}
    scene.now = START + 300
    scene.queue.add(GangKey(NAMESPACE, GROUP))
    with pytest.raises(ApiError, match="broken"):
        await scene.work()
    assert scene.open_pods() == list(PODS)
