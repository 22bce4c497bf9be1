"""What a leader expects of a gang that the watches may not show yet, and for how long."""

from muster.cluster.observe import observe
from muster.model.objects import PodGroup
from muster.model.times import text_of
from muster.planning.expectations import Expectations
from muster.planning.snapshot import AdmissionRecord, GangSnapshot
from tests.support.cases import cases
from tests.support.controller.stores import filled
from tests.support.manifests.observed import DEFAULTS, KEY, made, pod_group, ray_cluster, ray_pod

NOW = 1000.0


def seen(uid: str = "uid-demo", node: str = "") -> GangSnapshot:
    pod = ray_pod("w", owner_uid=uid, nodeName=node)
    return observe(KEY, filled(workloads=[ray_cluster(uid=uid)], pods=[pod]), DEFAULTS)


def believes(expects: Expectations) -> bool:
    return expects.written is not None


def test_a_group_that_the_watch_does_not_show_is_believed_in_for_five_seconds() -> None:
    expects = Expectations(written=made(PodGroup, pod_group()))
    assert [expects.expire_unseen_write(now, shown=False) for now in (10.0, 12.0)] == [5.0, 3.0]
    assert believes(expects)
    assert expects.expire_unseen_write(15.0, shown=False) == 0.0
    assert not believes(expects)


def test_a_group_that_was_shown_meanwhile_is_believed_in_anew() -> None:
    expects = Expectations(written=made(PodGroup, pod_group()))
    expects.expire_unseen_write(10.0, shown=False)
    expects.expire_unseen_write(14.0, shown=True)
    assert expects.expire_unseen_write(100.0, shown=False) == 5.0


def test_nothing_that_was_decided_of_a_former_workload_holds_for_the_next() -> None:
    expects = Expectations()
    assert expects.update(seen(), {"uid-w"}, NOW) == ""
    expects.record, expects.written_spec = AdmissionRecord("uid-demo"), made(PodGroup, pod_group()).spec
    assert expects.written_spec_for(seen().decoded) == expects.written_spec
    assert expects.update(seen(), {"uid-w"}, NOW) == ""
    assert expects.record == AdmissionRecord("uid-demo")
    assert expects.written_spec_for(seen("uid-new").decoded) is None
    assert expects.update(seen("uid-new"), {"uid-w"}, NOW) == "uid-demo"
    assert expects.record == AdmissionRecord()


def test_a_pod_whose_gate_the_watch_shows_as_open_need_not_be_remembered() -> None:
    expects = Expectations(opened={"uid-w", "uid-v"})
    expects.update(seen(), {"uid-w"}, NOW)
    assert expects.opened == {"uid-w"}


def test_since_when_a_gang_has_no_node_any_more_is_known_only_where_it_had_one() -> None:
    expects = Expectations()
    expects.update(seen(), set(), NOW)
    assert expects.unplaced_since == 0.0
    expects.update(seen(node="node-1"), set(), NOW)
    expects.update(seen(), set(), NOW + 1)
    expects.update(seen(), set(), NOW + 2)
    assert expects.unplaced_since == NOW + 1


@cases(
    "said, remembered, known",
    ("the PodGroup says it", text_of(1.0), text_of(2.0), text_of(1.0)),
    ("it is remembered", "long ago", text_of(2.0), text_of(2.0)),
    ("nobody knows", "", "", text_of(NOW)),
)
def test_when_a_gang_was_admitted_is_what_can_be_read_or_now(said: str, remembered: str, known: str) -> None:
    group = pod_group(annotations={"muster.dev/admitted-at": said})
    view = observe(KEY, filled(workloads=[ray_cluster()], groups=[group]), DEFAULTS)
    assert Expectations(record=AdmissionRecord("", remembered)).record_running(view, None, NOW).admitted_at == known


def test_what_was_said_of_a_former_workload_is_nothing_for_its_successor() -> None:
    """Else the second is held to the queue and the minMember of the first, where the gate is off."""
    expects = Expectations()
    expects.update(seen(), set(), NOW)
    expects.written_spec = made(PodGroup, pod_group()).spec
    expects.assembling_since = expects.warned_of = NOW
    expects.update(seen("uid-2"), set(), NOW)
    after: list[object] = [expects.written_spec, expects.assembling_since, expects.warned_of]
    assert after == [None, None, None]
    assert expects.written_spec_for(seen("uid-2").decoded) is None
