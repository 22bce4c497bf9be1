"""Gangs that give back a place which they cannot use."""

import asyncio

import pytest

from muster.kube.errors import ApiError
from muster.model.names import ADMITTED, ADMITTED_AT, REQUEUE_AFTER, REQUEUED_AT, STATE
from muster.model.times import text_of
from muster.queueing.ledger import GangKey
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, KEY, NAMESPACE, QUEUE_LABELS, queue, ray_cluster, ray_pod

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


async def stuck(after: str = "5m", *, neighbour: bool = False) -> Harness:
    """A gang that was admitted at START and of which nothing has a node; perhaps a younger one waits for its place."""
    said = {REQUEUE_AFTER: after} if after else {}
    other = ray_cluster(name="other", uid="uid-other", labels=QUEUE_LABELS, meta={"creationTimestamp": YOUNGER})
    harness = Harness(
        workloads=[ray_cluster(annotations=said), *([other] if neighbour else [])],
        pods=[*pods(""), *(pods("o-", "other") if neighbour else [])],
        queues=[queue(cpu="3", memory="9Gi")],
    )
    harness.now = START
    await harness.settle()
    assert harness.open_pods() == list(PODS)
    return harness


async def after(harness: Harness, seconds: float) -> list[str]:
    """What is written so many seconds after START."""
    harness.now = START + seconds
    harness.queue.add(KEY)
    return await harness.settle()


async def test_the_mark_goes_first_and_then_every_pod_that_has_no_node() -> None:
    harness = await stuck()
    # Five minutes at once: meanwhile the claim has turned soft.
    written = [one for one in await after(harness, 300) if not one.startswith(("create", f"muster {GROUP}"))]
    assert written[:4] == [f"muster-ledger {GROUP}", *(f"delete {name}" for name in PODS)]
    said = harness.annotations(GROUP)
    assert (ADMITTED in said, ADMITTED_AT in said, said[REQUEUED_AT]) == (False, False, text_of(START + 300))
    deleted = [write for write in harness.client.writes if write.verb == "delete"]
    assert [write.uid for write in deleted] == [f"uid-{name}" for name in PODS]
    warning = ("Warning", "Requeued", "no pod found a node within 5m, so that the place is given back")
    assert [(kind, reason, note.partition(";")[0]) for kind, reason, note in harness.events()].count(warning) == 1


@pytest.mark.parametrize("said", ["", "soon", "0s"])
async def test_nothing_is_deleted_unless_it_is_asked_for(said: str) -> None:
    harness = await stuck(said)
    assert not [one for one in await after(harness, 9999) if one.startswith("delete")]


async def test_nothing_is_deleted_before_its_time() -> None:
    harness = await stuck()
    assert not [one for one in await after(harness, 299) if one.startswith("delete")]


async def test_the_gang_is_looked_at_again_when_its_time_is_over() -> None:
    """Nothing happens in the cluster at that moment: nobody else would wake it."""
    harness = await stuck()
    due = harness.queue._core._due[KEY] - asyncio.get_running_loop().time()
    assert 300 - 30 < due <= 300, "then its claim turns soft as well"
    await after(harness, 250)
    due = harness.queue._core._due[KEY] - asyncio.get_running_loop().time()
    assert 50 - 30 < due <= 50


async def test_a_gang_of_which_one_pod_has_a_node_keeps_its_place() -> None:
    harness = await stuck()
    harness.client.pods["w-0"]["spec"]["nodeName"] = "n"
    harness.watch()
    assert not [one for one in await after(harness, 9999) if one.startswith("delete")]


async def test_its_place_goes_to_who_waited_meanwhile() -> None:
    harness = await stuck(neighbour=True)
    await after(harness, 300)
    harness.client.pods |= {pod["metadata"]["name"]: pod for pod in pods("new-")}
    await harness.catch_up()
    assert harness.open_pods() == ["o-head", "o-w-0", "o-w-1"]
    assert harness.annotations(GROUP)[STATE] == "WaitingForQuota"
    assert harness.annotations(GROUP)[REQUEUED_AT] == text_of(START + 300)
    assert harness.annotations(OTHER)[ADMITTED] == "uid-other"


async def test_it_queues_again_behind_those_who_waited_meanwhile() -> None:
    """It is the older one and would be first; both are whole when the queue, closed for a while, opens again."""
    harness = await stuck(neighbour=True)
    harness.set_queue(queue(state="Closed", cpu="3", memory="9Gi"))
    await after(harness, 300)
    harness.client.pods |= {pod["metadata"]["name"]: pod for pod in pods("new-")}
    await harness.catch_up()
    assert harness.open_pods() == []
    harness.set_queue(queue(cpu="3", memory="9Gi"))
    await harness.settle()
    assert harness.open_pods() == ["o-head", "o-w-0", "o-w-1"]


async def test_recreated_where_nobody_waits_it_is_admitted_again() -> None:
    harness = await stuck()
    await after(harness, 300)
    harness.client.pods |= {pod["metadata"]["name"]: pod for pod in pods("new-")}
    await harness.catch_up()
    assert harness.open_pods() == ["new-head", "new-w-0", "new-w-1"]
    assert harness.annotations(GROUP)[ADMITTED_AT] == text_of(START + 300)
    assert REQUEUED_AT not in harness.annotations(GROUP)


async def test_the_next_leader_goes_on_where_the_last_one_died() -> None:
    """The mark is gone and the pods are there, open: they are deleted, and not taken for a lost mark."""
    harness = await stuck()
    harness.client.fails = {"delete": [ApiError(500, "", "broken") for _ in PODS]}
    harness.now = START + 300
    harness.queue.add(KEY)
    with pytest.raises(ApiError):
        await harness.work()
    assert harness.open_pods() == list(PODS)
    harness.watch()
    harness.restart()
    await harness.settle()
    assert harness.client.pods == {}
    assert ADMITTED not in harness.annotations(GROUP)


async def test_a_pod_that_was_placed_at_the_last_moment_stays_and_the_gang_with_it() -> None:
    """Its deletion is refused, for it is not what was seen any more; then the gang is admitted as before."""
    harness = await stuck()
    harness.client.pods["w-1"]["spec"]["nodeName"] = "n"  # the watch has not shown it yet
    await after(harness, 300)
    assert list(harness.client.pods) == ["w-1"]
    assert harness.annotations(GROUP)[ADMITTED] == "uid-demo"
    assert REQUEUED_AT not in harness.annotations(GROUP)


async def test_pods_that_somebody_opened_since_are_not_deleted() -> None:
    """`muster release` for a gang that gave its place back and waits."""
    harness = await stuck(neighbour=True)
    await after(harness, 300)
    made = {"creationTimestamp": text_of(START + 400)}
    for pod in pods("new-", held=False):
        pod["metadata"] |= made
        harness.client.pods[pod["metadata"]["name"]] = pod
    await harness.catch_up()
    assert not [write for write in harness.client.writes if write.verb == "delete" and write.name.startswith("new-")]
    assert harness.annotations(GROUP)[ADMITTED] == "uid-demo"


async def test_a_mark_that_could_not_be_taken_off_keeps_the_pods() -> None:
    harness = await stuck()
    harness.client.fails = {"muster-ledger": [ApiError(500, "", "broken")]}
    harness.now = START + 300
    harness.queue.add(GangKey(NAMESPACE, GROUP))
    with pytest.raises(ApiError, match="broken"):
        await harness.work()
    assert harness.open_pods() == list(PODS)


async def test_the_time_doubles_while_the_gang_finds_no_node() -> None:
    """Its pods would otherwise be deleted and made without end; with nodes it begins anew."""
    harness, taken = await stuck(), []
    for _ in range(4):
        since = harness.now
        for seconds in range(0, 20_000, 60):
            harness.now = since + seconds
            harness.queue.add(KEY)
            if any(one.startswith("delete") for one in await harness.settle()):
                break
        taken.append(harness.now - since)
        harness.client.pods = {pod["metadata"]["name"]: pod for pod in pods(f"{len(taken)}-")}
        await harness.catch_up()
    assert taken == [300, 600, 1200, 2400]


@pytest.mark.parametrize(("said", "seconds"), [("1s", 5), ("5s", 5), ("6s", 6)])
async def test_a_gang_has_some_seconds_at_least_to_find_nodes(said: str, seconds: float) -> None:
    harness = await stuck(said)
    assert not [one for one in await after(harness, seconds - 0.5) if one.startswith("delete")]
    assert [one for one in await after(harness, seconds) if one.startswith("delete")]
