"""What the nodes can give."""

import asyncio
import random
from collections.abc import Mapping

import pytest
from msgspec import structs

from hack.testbed.waiting import PATIENCE
from muster.cluster.cluster import Cluster
from muster.cluster.nodes import NodeRoom, NodeWatch
from muster.kube.store import ChangeKind
from muster.model.objects import Node, NodeSpec
from muster.model.pods import Pod
from muster.queueing.entries import Claim
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import QueueView
from muster.resources.amounts import as_text
from tests.support.cases import cases
from tests.support.faults.apiserver import FaultyApiserver, hang, listing, reply, stream
from tests.support.manifests.observed import amounts, made, pod


def node(name: str = "n", *, ready: str = "True", unschedulable: bool = False, **allocatable: str) -> Node:
    manifest = {
        "metadata": {"name": name, "uid": name},
        "spec": {"unschedulable": unschedulable},
        "status": {
            "allocatable": allocatable or {"cpu": "4", "memory": "8Gi"},
            "conditions": [{"type": "Ready", "status": ready}],
        },
    }
    return made(Node, manifest)


def other(name: str, cpu: str, *, on: str = "n", phase: str = "Running") -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return made(Pod, pod(name, phase=phase, containers=[container], nodeName=on, schedulerName="default-scheduler"))


def room(*nodes: Node, others: tuple[Pod, ...] = (), ours: tuple[Pod, ...] = ()) -> NodeRoom:
    cluster = Cluster()
    cluster.pods.of("volcano").replace_all(ours)
    kept = NodeRoom(cluster)
    kept.nodes.replace_all(nodes)
    kept.others.replace_all(others)
    return kept


def free(kept: NodeRoom) -> Mapping[str, str]:
    return as_text(kept.free())


@cases(
    "nodes, expected",
    ("the sum of all", [node(), node("m", cpu="2")], {"cpu": "6", "memory": "8Gi"}),
    ("without what is not Ready", [node(), node("m", ready="False")], {"cpu": "4", "memory": "8Gi"}),
    ("nor heard of", [node(), node("m", ready="Unknown")], {"cpu": "4", "memory": "8Gi"}),
    ("nor cordoned", [node(), node("m", unschedulable=True)], {"cpu": "4", "memory": "8Gi"}),
    ("nor readable", [node(), node("m", cpu="many")], {"cpu": "4", "memory": "8Gi"}),
    ("no nodes", [], {}),
)
def test_what_nodes_can_give(nodes: list[Node], expected: dict[str, str]) -> None:
    assert free(room(*nodes)) == expected


@pytest.mark.parametrize("kind", ["cordoned", "not Ready"])
def test_what_only_nodes_have_that_take_no_pods_is_not_unlimited(kind: str) -> None:
    """A moment in which no node is Ready, or the one with GPUs is repaired, must not start whatever waits."""
    away = node(
        "m", cpu="8", gpu="8", unschedulable=kind == "cordoned", ready="True" if kind == "cordoned" else "Unknown"
    )
    assert free(room(away)) == {"cpu": "0", "gpu": "0"}
    kept = room(node(cpu="4"), away)
    assert free(kept) == {"cpu": "4", "gpu": "0"}
    kept.nodes.apply("modified", node("m", cpu="8", gpu="8"))
    assert free(kept) == {"cpu": "12", "gpu": "8"}
    kept.nodes.apply("deleted", node("m"))
    assert free(kept) == {"cpu": "4"}


@cases(
    "key, effect, cpu",
    ("under pressure", "node.kubernetes.io/disk-pressure", "NoSchedule", "7"),
    ("out of service", "node.kubernetes.io/out-of-service", "NoExecute", "7"),
    ("not set up yet", "node.cloudprovider.kubernetes.io/uninitialized", "NoSchedule", "7"),
    ("about to be deleted", "ToBeDeletedByClusterAutoscaler", "NoSchedule", "7"),
    ("about to be replaced", "karpenter.sh/disrupted", "NoSchedule", "7"),
    ("for those who tolerate it", "nvidia.com/gpu", "NoSchedule", "12"),
    ("a wish alone", "node.kubernetes.io/disk-pressure", "PreferNoSchedule", "12"),
)
def test_a_ready_node_with_a_taint_of_kubernetes_takes_no_new_pods(key: str, effect: str, cpu: str) -> None:
    ill = structs.replace(node("m", cpu="8"), spec=made(NodeSpec, {"taints": [{"key": key, "effect": effect}]}))
    assert free(room(node(cpu="4"), ill, ours=(ours("b", "3", on="m"),)))["cpu"] == cpu


def test_pods_of_others_take_room_from_their_node_until_they_end() -> None:
    kept = room(node(), others=(other("a", "1"), other("b", "500m"), other("done", "2", phase="Succeeded")))
    assert free(kept)["cpu"] == "2500m"
    kept.others.apply("modified", other("a", "1", phase="Failed"))
    assert free(kept)["cpu"] == "3500m"
    kept.others.apply("deleted", other("b", "500m"))
    assert free(kept)["cpu"] == "4"


def dying(pod_: Pod) -> Pod:
    return structs.replace(pod_, metadata=structs.replace(pod_.metadata, deletion_timestamp="2030-01-01T00:00:00Z"))


def test_pods_that_are_being_deleted_occupy_their_node_until_they_are_gone() -> None:
    kept = room(node(), others=(dying(other("a", "3")),))
    assert free(kept)["cpu"] == "1"
    kept.others.apply("deleted", other("a", "3"))
    assert free(kept)["cpu"] == "4"


def test_a_crowded_node_takes_nothing_from_another() -> None:
    """What is used beyond a node's allocatable is not missing elsewhere."""
    assert free(room(node(), node("m"), others=(other("a", "9"),)))["cpu"] == "4"


@pytest.mark.parametrize("seed", range(20))
def test_the_sum_follows_whatever_changes(seed: int) -> None:
    """After any changes it is what somebody counts who sees nodes and pods for the first time."""
    chance = random.Random(seed)  # noqa: S311 - the same history for the same seed
    kept = room()
    for _ in range(60):
        name = f"n{chance.randrange(4)}"
        kind: ChangeKind = "added" if chance.random() < 0.5 else "deleted"
        if chance.random() < 0.5:
            extra = {"gpu": str(chance.randrange(3))} if chance.random() < 0.3 else {}
            has = {"cpu": str(chance.randrange(1, 9)), **extra}
            kept.nodes.apply(kind, node(name, unschedulable=chance.random() < 0.3, **has))
        else:
            on = chance.choice([name, ""])
            phase = chance.choice(["Running", "Succeeded"])
            kept.others.apply(
                kind, other(f"p{chance.randrange(6)}", f"{chance.randrange(500, 3000)}m", on=on, phase=phase)
            )
        fresh = NodeRoom(kept._cluster)
        fresh.others.replace_all(kept.others)
        assert kept.free() == fresh.free()
        fresh.close()


def test_many_nodes_are_counted_in_parts() -> None:
    kept = room(*(node(f"n{number}", cpu="1") for number in range(5)))
    assert [kept.count(2) for _ in range(3)] == [True, True, False]
    assert free(kept)["cpu"] == "5"


async def test_pods_of_others_are_watched_only_while_somebody_asks_for_the_nodes_room() -> None:
    """With one watch, however often they are asked for; the nodes themselves are watched anyway."""
    async with FaultyApiserver.serving() as server, server.client() as client, asyncio.timeout(PATIENCE):
        server.on("LIST", reply(listing(1)))
        server.on("WATCH", stream(then=hang))
        cluster = Cluster()
        cluster.nodes.replace_all([node()])
        watch = NodeWatch(client, cluster)
        assert await watch.room(wanted=False) is None
        assert server.requests == []
        for _ in range(2):
            assert await watch.room(wanted=True) == amounts(cpu="4", memory="8Gi")
        assert len(server.seen("LIST")) == 1
        assert await watch.room(wanted=False) is None
        assert watch._tasks == []


def ours(name: str, cpu: str, *, on: str = "n", phase: str = "Running") -> Pod:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return made(Pod, pod(name, phase=phase, containers=[container], nodeName=on))


@pytest.mark.parametrize("kind", ["cordoned", "not Ready"])
def test_a_node_leaves_together_with_what_runs_on_it(kind: str) -> None:
    """Its gangs' claims count like all others; a rolling upgrade would stop the cluster."""
    away = node("m", cpu="8", unschedulable=kind == "cordoned", ready="True" if kind == "cordoned" else "Unknown")
    running = (ours("a", "3"), ours("b", "5", on="m"), ours("ended", "1", on="m", phase="Succeeded"))
    assert free(room(node(cpu="4"), away, ours=running))["cpu"] == "9"


@pytest.mark.parametrize(("ready", "cpu"), [("True", "7"), ("Unknown", "4")])
def test_a_drained_node_leaves_together_with_what_still_ends_on_it(ready: str, cpu: str) -> None:
    """Where no kubelet tells that it ends it may stay for ever; its gang claims it for its grace period only."""
    away = node("m", cpu="8", unschedulable=True, ready=ready)
    assert free(room(node(cpu="4"), away, ours=(dying(ours("a", "3", on="m")),)))["cpu"] == cpu


def test_half_of_a_full_cluster_may_be_cordoned_while_the_other_half_goes_on() -> None:
    nodes = [node(f"n{number}", cpu="8") for number in range(4)]
    pods = tuple(ours(f"p{number}", "8", on=f"n{number}") for number in range(4))
    kept = room(*nodes, ours=pods)
    books = Ledger()
    books.set_queue(QueueView("q", "Open", {}))
    books.bound(kept.free())
    for number in range(4):
        books.hold(Claim(GangKey("team", f"g{number}"), "q", amounts(cpu="8")))
    kept.nodes.replace_all([node(f"n{number}", cpu="8", unschedulable=number < 2) for number in range(4)])
    books.forget(GangKey("team", "g3"))
    kept._cluster.pods.of("volcano").replace_all(pods[:3])
    books.bound(kept.free())
    next_ = Candidate(GangKey("team", "next"), "q", 0, "10:00", amounts(cpu="8"))
    books.wait(next_)
    assert books.startable("q", 0.0) == [next_.key]
    books.hold(Claim(next_.key, "q", next_.need))
    books.wait(Candidate(GangKey("team", "more"), "q", 0, "11:00", amounts(cpu="1")))
    assert books.startable("q", 0.0) == []
