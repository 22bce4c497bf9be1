"""Gates of any age, which no apiserver can be made to show, and PodGroups of nobody."""

import pytest

from muster.cli.doctor.diagnosis import Severity, Unseen
from muster.cli.doctor.gangs import MOST, gates, pod_groups
from muster.cli.doctor.sight import GangMember, Group
from muster.schedulers import PRODUCTS
from tests.support.cases import cases
from tests.support.cli.doctor_snapshots import HOUR, NOW, found, levels, messages


def held(name: str = "p", *, age: float = 2 * HOUR, group: str = "g", **more: bool) -> GangMember:
    return GangMember("ns", name, group, NOW - age, gated=more.get("gated", True), placed=more.get("placed", False))


def group(name: str = "g", *, age: float = 2 * HOUR, **more: object) -> Group:
    scheduler = PRODUCTS[str(more.pop("scheduler", "volcano"))]()
    return Group("ns", name, NOW - age, scheduler, called=f"{name}-of-it", **more)  # type: ignore[arg-type]


@cases(
    "state, level",
    ("waits", "WaitingForQuota", Severity.WARNING),
    ("needs a hand", "QueueNotFound", Severity.WARNING),
    ("admitted, and not opened", "Admitted", Severity.PROBLEM),
    ("muster says nothing", "", Severity.PROBLEM),
)
def test_gates_older_than_an_hour_are_told_with_musters_own_words(state: str, level: Severity) -> None:
    (said,) = found(gates, members=(held(),), groups=(group(state=state, message="why"),))
    assert said.level is level
    words = f"{state}: why" if state else "muster reports no state for it"
    assert said.message.startswith(f"PodGroup ns/g: 1 pod held for 2 hours; {words}")


@pytest.mark.parametrize(("minimum", "level"), [(2, Severity.WARNING), (3, Severity.PROBLEM)])
def test_pods_beyond_the_minimum_of_a_running_gang_wait_for_room_as_others_do(minimum: int, level: Severity) -> None:
    """Who opened them by hand would have the queue hold more than it may."""
    members = (held(), *(held(name, gated=False, placed=True) for name in "qr"))
    (said,) = found(gates, members=members, groups=(group(state="Running", message="why", minimum=minimum),))
    assert said.level is level
    assert ("muster release" in said.cure) is (level is Severity.PROBLEM)


def test_younger_gates_are_counted_only() -> None:
    (said,) = found(gates, members=(held(age=HOUR - 1),), groups=(group(state="WaitingForQuota"),))
    assert said.message == "1 held gang, none held for more than 60 minutes"
    assert levels(found(gates, 60.0, members=(held(age=HOUR - 1),), groups=(group(state="X"),))) == {Severity.WARNING}


def test_pods_that_do_not_wait_are_none() -> None:
    opened, over = held(gated=False, placed=True), GangMember("ns", "q", "g", 0.0, gated=True, living=False)
    assert levels(found(gates, members=(opened, over), groups=(group(state="Running"),))) == {Severity.OK}


@pytest.mark.parametrize(
    ("gated", "age", "level"),
    [(True, 61.0, Severity.PROBLEM), (False, 61.0, Severity.PROBLEM), (True, 5.0, Severity.OK)],
)
def test_pods_bound_to_a_podgroup_that_nobody_made(gated: bool, age: float, level: Severity) -> None:  # noqa: FBT001
    """Volcano passes over them without a word, held or not."""
    assert levels(found(gates, members=(held(age=age, gated=gated),))) == {level}


def test_pods_with_a_node_need_no_podgroup_any_more() -> None:
    assert levels(found(gates, members=(held(gated=False, placed=True),))) == {Severity.OK}


def test_of_many_the_longest_are_named_and_the_others_counted() -> None:
    members = tuple(held(f"p{n}", group=f"g{n}", age=HOUR * (2 + n)) for n in range(MOST + 5))
    groups = tuple(group(f"g{n}", state="WaitingForQuota") for n in range(MOST + 5))
    said = messages(found(gates, members=members, groups=groups))
    assert len(said) == MOST + 1
    assert f"ns/g{MOST + 4}: " in said[0]
    assert said[-1] == "5 more gangs are held for more than 60 minutes"
    lost = messages(found(gates, members=members))
    assert (len(lost), lost[-1]) == (MOST + 1, "5 more gangs have no PodGroup")


def test_without_a_look_at_the_podgroups_nothing_is_said_to_be_missing() -> None:
    said = found(gates, members=(held(),), groups=Unseen("you may not list them"))
    assert levels(said) == {Severity.UNKNOWN, Severity.WARNING}
    assert messages(said)[1].endswith("held for 2 hours; its state could not be read")


def test_the_cure_of_a_held_gang_is_a_whole_command() -> None:
    (said,) = found(gates, members=(held(),), groups=(group(state="WaitingForQuota"),))
    assert said.cure.startswith("muster explain -n ns pod/p; ")


@cases(
    "one, members, level",
    ("muster's", group(owned=False, phase="Inqueue"), (), Severity.WARNING),
    ("owned", group(owned=True), (), Severity.OK),
    ("of plain pods", group(owned=False), (held(),), Severity.OK),
    ("somebody else's", group(owned=False, ours=False), (), Severity.WARNING),
    ("somebody else's, and new", group(owned=False, ours=False, age=60.0), (), Severity.OK),
    ("somebody else's, pods unread", group(owned=False, ours=False, scheduler="coscheduling"), (), Severity.OK),
)
def test_podgroups_that_nobody_owns_and_no_pod_names(
    one: Group, members: tuple[GangMember, ...], level: Severity
) -> None:
    assert levels(found(pod_groups, groups=(one,), members=members)) == {level}


@pytest.mark.parametrize(
    ("scheduler", "resource", "keeps"),
    [
        ("volcano", "podgroups.scheduling.volcano.sh", True),
        ("kubernetes", "podgroups.scheduling.k8s.io", False),
        ("coscheduling", "podgroups.scheduling.x-k8s.io", False),
    ],
)
def test_what_deletes_a_podgroup_of_nobody_names_its_own_kind_and_name(
    scheduler: str, resource: str, *, keeps: bool
) -> None:
    (said,) = found(pod_groups, groups=(group(owned=False, scheduler=scheduler),), members=())
    assert said.cure == f"kubectl -n ns delete {resource} g-of-it"
    assert ("keep room" in said.message) is keeps


def test_of_many_podgroups_some_are_named() -> None:
    groups = tuple(group(f"g{n}", owned=False) for n in range(MOST + 1))
    assert messages(found(pod_groups, groups=groups))[-1] == "1 more PodGroups have neither owner nor pods"


@pytest.mark.parametrize("missing", ["groups", "members"])
def test_who_may_not_look_hears_no_all_clear(missing: str) -> None:
    assert levels(found(pod_groups, **{missing: Unseen("you may not list them")})) == {Severity.UNKNOWN}
