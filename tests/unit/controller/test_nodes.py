"""What the nodes can give."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from controller.nodes import NodeRoom, NodeWatch
from muster.objects import Node, Pod
from muster.resources import as_text
from tests.support.faults.apiserver import FaultyApiserver, hang, listing, manifest, only, reply, stream
from tests.support.manifests.observed import amounts, made, pod

if TYPE_CHECKING:
    from collections.abc import Mapping


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


def room(*nodes: Node, others: tuple[Pod, ...] = ()) -> NodeRoom:
    kept = NodeRoom()
    kept.nodes.replace_all(nodes)
    kept.others.replace_all(others)
    return kept


def free(kept: NodeRoom) -> Mapping[str, str]:
    return as_text(kept.free())


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param([node(), node("m", cpu="2")], {"cpu": "6", "memory": "8Gi"}, id="the sum of all"),
        pytest.param([node(), node("m", ready="False")], {"cpu": "4", "memory": "8Gi"}, id="without what is not Ready"),
        pytest.param([node(), node("m", ready="Unknown")], {"cpu": "4", "memory": "8Gi"}, id="nor heard of"),
        pytest.param([node(), node("m", unschedulable=True)], {"cpu": "4", "memory": "8Gi"}, id="nor cordoned"),
        pytest.param([node(), node("m", cpu="many")], {"cpu": "4", "memory": "8Gi"}, id="nor readable"),
        pytest.param([], {}, id="no nodes"),
    ],
)
def test_what_nodes_can_give(nodes: list[Node], expected: dict[str, str]) -> None:
    assert free(room(*nodes)) == expected


def test_pods_of_others_take_room_from_their_node_until_they_end() -> None:
    kept = room(node(), others=(other("a", "1"), other("b", "500m"), other("done", "2", phase="Succeeded")))
    assert free(kept)["cpu"] == "2500m"
    kept.others.apply("modified", other("a", "1", phase="Failed"))
    assert free(kept)["cpu"] == "3500m"
    kept.others.apply("deleted", other("b", "500m"))
    assert free(kept)["cpu"] == "4"


def test_a_crowded_node_takes_nothing_from_another() -> None:
    """What is used beyond a node's allocatable is not missing elsewhere."""
    assert free(room(node(), node("m"), others=(other("a", "9"),)))["cpu"] == "4"


async def test_nodes_are_watched_only_while_somebody_asks_for_them() -> None:
    """With one watch of each kind, however often they are asked for."""
    of_node = manifest(
        "n", 1, status={"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}
    )
    async with FaultyApiserver.serving() as server, server.client() as client, asyncio.timeout(60):
        server.on("LIST", only("/api/v1/nodes", reply(listing(1, of_node)), reply(listing(1))))
        server.on("WATCH", stream(then=hang))
        watch = NodeWatch(client)
        assert await watch.room(wanted=False) is None
        assert server.requests == []
        for _ in range(2):
            assert await watch.room(wanted=True) == amounts(cpu="4")
        assert len(server.seen("LIST")) == 2
        assert await watch.room(wanted=False) is None
        assert watch._tasks == []
