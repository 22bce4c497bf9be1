"""What a leader remembers of a gang, and for how long."""

import pytest

from controller.memory import Memory
from muster.model.objects import PodGroup
from muster.model.times import text_of
from muster.observe.observing import observe
from muster.observe.view import Mark, View
from tests.support.controller.stores import filled
from tests.support.manifests.observed import DEFAULTS, KEY, made, pod_group, ray_cluster, ray_pod

NOW = 1000.0


def seen(uid: str = "uid-demo", node: str = "") -> View:
    pod = ray_pod("w", owner_uid=uid, nodeName=node)
    return observe(KEY, filled(workloads=[ray_cluster(uid=uid)], pods=[pod]), DEFAULTS)


def believes(memory: Memory) -> bool:
    return memory.written is not None


def test_a_group_that_the_watch_does_not_show_is_believed_in_for_five_seconds() -> None:
    memory = Memory(written=made(PodGroup, pod_group()))
    assert [memory.doubt(now, shown=False) for now in (10.0, 12.0)] == [5.0, 3.0]
    assert believes(memory)
    assert memory.doubt(15.0, shown=False) == 0.0
    assert not believes(memory)


def test_a_group_that_was_shown_meanwhile_is_believed_in_anew() -> None:
    memory = Memory(written=made(PodGroup, pod_group()))
    memory.doubt(10.0, shown=False)
    memory.doubt(14.0, shown=True)
    assert memory.doubt(100.0, shown=False) == 5.0


def test_nothing_that_was_decided_of_a_former_workload_holds_for_the_next() -> None:
    memory = Memory()
    assert memory.notice(seen(), {"uid-w"}, NOW) == ""
    memory.mark, memory.terms = Mark("uid-demo"), made(PodGroup, pod_group()).spec
    assert memory.completed(seen()).terms == memory.terms
    assert memory.notice(seen(), {"uid-w"}, NOW) == ""
    assert memory.mark == Mark("uid-demo")
    assert memory.completed(seen("uid-new")).terms is None
    assert memory.notice(seen("uid-new"), {"uid-w"}, NOW) == "uid-demo"
    assert memory.mark == Mark()


def test_a_pod_whose_gate_the_watch_shows_as_open_need_not_be_remembered() -> None:
    memory = Memory(opened={"uid-w", "uid-v"})
    memory.notice(seen(), {"uid-w"}, NOW)
    assert memory.opened == {"uid-w"}


def test_since_when_a_gang_has_no_node_any_more_is_known_only_where_it_had_one() -> None:
    memory = Memory()
    memory.notice(seen(), set(), NOW)
    assert memory.unplaced_since == 0.0
    memory.notice(seen(node="node-1"), set(), NOW)
    memory.notice(seen(), set(), NOW + 1)
    memory.notice(seen(), set(), NOW + 2)
    assert memory.unplaced_since == NOW + 1


@pytest.mark.parametrize(
    ("said", "remembered", "known"),
    [
        pytest.param(text_of(1.0), text_of(2.0), text_of(1.0), id="the PodGroup says it"),
        pytest.param("long ago", text_of(2.0), text_of(2.0), id="it is remembered"),
        pytest.param("", "", text_of(NOW), id="nobody knows"),
    ],
)
def test_when_a_gang_was_admitted_is_what_can_be_read_or_now(said: str, remembered: str, known: str) -> None:
    group = pod_group(annotations={"muster.dev/admitted-at": said})
    view = observe(KEY, filled(workloads=[ray_cluster()], groups=[group]), DEFAULTS)
    assert Memory(mark=Mark("", remembered)).admitted(view, None, NOW).admitted_at == known


def test_what_was_said_of_a_former_workload_is_nothing_for_its_successor() -> None:
    """Else the second is held to the queue and the minMember of the first, where the gate is off."""
    memory = Memory()
    memory.notice(seen(), set(), NOW)
    memory.terms = made(PodGroup, pod_group()).spec
    memory.assembling_since = memory.warned_of = NOW
    memory.notice(seen("uid-2"), set(), NOW)
    after: list[object] = [memory.terms, memory.assembling_since, memory.warned_of]
    assert after == [None, None, None]
    assert memory.completed(seen("uid-2")).terms is None
