"""Which gates are opened, in which order, and what waits."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.gangs.roles import Role
from muster.model.pods import Pod
from muster.planning.opening import Opening, mark_of_unit, minimum_of, plan_opening, plan_pause, rest_of_units
from muster.planning.snapshot import Member
from muster.resources.amounts import Resources, total, within
from muster.workloads.model import Unit
from tests.support.cases import cases
from tests.support.manifests.observed import amounts, made, ray_pod

ROLES = (Role("headgroup", 1, 1, amounts(cpu="1"), leads=True), Role("workers", 3, 2, amounts(cpu="1"), leads=False))


def member(name: str, role: str = "workers", *, held: bool = True, cpu: str = "1") -> Member:
    return Member(made(Pod, ray_pod(name, role, held=held)), role, amounts(cpu=cpu), held)


def names(members: list[Member] | tuple[Member, ...]) -> list[str]:
    return [member.pod.metadata.name for member in members]


def never(_: Resources) -> bool:
    return False


HEAD = member("head", "headgroup")


def test_the_minimum_is_filled_by_open_members_first_then_by_name() -> None:
    members = [HEAD, member("w-0"), member("w-1"), member("w-2", held=False)]
    assert names(minimum_of(members, ROLES)) == ["head", "w-2", "w-0"]


def test_a_new_gang_is_opened_whole_role_minimums_first() -> None:
    plan = plan_opening([HEAD, member("a"), member("b"), member("c")], ROLES, amounts(cpu="4"), never)
    assert (names(plan.members), names(plan.waiting)) == (["head", "a", "b", "c"], [])


def test_members_beyond_the_minimum_wait_when_the_claim_may_not_grow() -> None:
    plan = plan_opening([HEAD, member("a"), member("b"), member("c")], ROLES, amounts(cpu="3"), never)
    assert (names(plan.members), names(plan.waiting)) == (["head", "a", "b"], ["c"])
    assert plan.claim == amounts(cpu="3")


def test_members_beyond_the_minimum_are_opened_while_the_claim_may_grow() -> None:
    members = [HEAD, member("a"), member("b"), member("c"), member("d")]
    plan = plan_opening(members, ROLES, amounts(cpu="3"), lambda claim: within(claim, amounts(cpu="4")))
    assert (names(plan.members), names(plan.waiting)) == (["head", "a", "b", "c"], ["d"])
    assert plan.claim == amounts(cpu="4")


def test_a_smaller_surplus_member_bypasses_one_that_does_not_fit() -> None:
    members = [HEAD, member("a"), member("b"), member("c", cpu="5"), member("d")]
    plan = plan_opening(members, ROLES, amounts(cpu="3"), lambda claim: within(claim, amounts(cpu="4")))
    assert (names(plan.members), names(plan.waiting)) == (["head", "a", "b", "d"], ["c"])


def test_a_replacement_takes_the_place_of_its_predecessor() -> None:
    """The claim stays although a member died, so the one that comes for it needs no new room."""
    members = [member("head", "headgroup", held=False), member("a", held=False), member("b-again")]
    plan = plan_opening(members, ROLES, amounts(cpu="3"), never)
    assert (names(plan.members), plan.claim) == (["b-again"], amounts(cpu="3"))


def test_a_held_newcomer_takes_the_place_of_a_running_member_that_the_operator_deleted() -> None:
    """KubeRay, scaled up where the queue is full and down again, may keep the one that waits."""
    running = [member("head", "headgroup", held=False), member("a", held=False), member("b", held=False)]
    newcomer = member("c")
    before = plan_opening([*running, newcomer], ROLES, amounts(cpu="3"), never)
    assert (names(before.members), names(before.waiting)) == ([], ["c"])
    after = plan_opening([*running[:2], newcomer], ROLES, amounts(cpu="3"), never)
    assert (names(after.members), names(after.waiting), after.claim) == (["c"], [], amounts(cpu="3"))


def test_a_held_newcomer_takes_the_place_of_a_running_member_beyond_the_minimum() -> None:
    """There, too, no more is claimed than before: what minResources leave room for is the gang's."""
    running = [member("head", "headgroup", held=False), member("a", held=False), member("b", held=False)]
    plan = plan_opening([*running, member("d")], ROLES, amounts(cpu="4"), never)
    assert (names(plan.members), plan.claim) == (["d"], amounts(cpu="4"))


def test_what_is_beyond_the_minimum_does_not_take_the_place_of_a_head_that_died() -> None:
    """Its replacement is opened whatever is free, so that both would be more than the queue has (seen in the chaos)."""
    running = [member("a", held=False), member("b", held=False)]
    while_it_lacks = plan_opening([*running, member("c")], ROLES, amounts(cpu="3"), never)
    assert (names(while_it_lacks.members), names(while_it_lacks.waiting)) == ([], ["c"])
    assert while_it_lacks.claim == amounts(cpu="3")
    back = plan_opening([*running, member("c"), HEAD], ROLES, amounts(cpu="3"), never)
    assert (names(back.members), names(back.waiting), back.claim) == (["head"], ["c"], amounts(cpu="3"))


def test_what_is_beyond_the_minimum_may_take_the_place_of_one_that_has_ended() -> None:
    running = [member("head", "headgroup", held=False), member("a", held=False)]
    plan = plan_opening([*running, member("c"), member("d")], ROLES, amounts(cpu="4"), never, ["workers"])
    assert (names(plan.members), names(plan.waiting), plan.claim) == (["c", "d"], [], amounts(cpu="4"))


def test_a_replacement_beyond_the_minimum_stays_within_the_claim() -> None:
    """A larger claim that was granted for a surplus member is kept by the members that run."""
    running = [member("head", "headgroup", held=False), *(member(name, held=False) for name in "abc")]
    plan = plan_opening([*running, member("d")], ROLES, amounts(cpu="3"), never)
    assert (names(plan.members), names(plan.waiting), plan.claim) == ([], ["d"], amounts(cpu="4"))


def test_a_member_that_asks_for_more_than_its_role_was_admitted_with_needs_room() -> None:
    """The place that it would take is kept, and who is within what was granted is opened all the same."""
    members = [HEAD, member("a", cpu="9"), member("b")]
    plan = plan_opening(members, ROLES, amounts(cpu="3"), never)
    assert (names(plan.members), names(plan.waiting), plan.claim) == (["head", "b"], ["a"], amounts(cpu="3"))
    room = plan_opening(members, ROLES, amounts(cpu="3"), lambda claim: within(claim, amounts(cpu="11")))
    assert (names(room.members), room.claim, room.grows) == (["head", "b", "a"], amounts(cpu="11"), True)


def test_a_member_takes_no_place_of_another_role() -> None:
    """Head and worker are lost, and a worker of both sizes comes before the head does."""
    roles = (replace(ROLES[0], requests=amounts(cpu="3")), ROLES[1])
    running = member("a", held=False)
    plan = plan_opening([running, member("b", cpu="4")], roles, amounts(cpu="5"), never)
    assert (names(plan.members), plan.claim) == ([], amounts(cpu="5"))
    head = member("head", "headgroup", cpu="3")
    back = plan_opening([running, member("b", cpu="4"), head], roles, amounts(cpu="5"), never)
    assert (names(back.members), names(back.waiting)) == (["head"], ["b"])


def test_what_others_have_added_to_pods_comes_back_with_their_replacements() -> None:
    roles = (ROLES[0], replace(ROLES[1], granted=amounts(cpu="3")))
    members = [member("head", "headgroup", held=False), member("a", held=False, cpu="1500m")]
    assert names(plan_opening([*members, member("b", cpu="1500m")], roles, amounts(cpu="4"), never).members) == ["b"]
    assert plan_opening([*members, member("b", cpu="1501m")], roles, amounts(cpu="4"), never).members == ()


def test_one_that_is_too_large_keeps_no_other_from_its_place() -> None:
    members = [member("head", "headgroup", held=False), member("a", held=False), member("b", cpu="9"), member("c")]
    for plan in (
        plan_opening(members, ROLES, amounts(cpu="3"), never),
        plan_pause(members, ROLES, amounts(cpu="3"), never),
        plan_pause(members, ROLES, amounts(cpu="3"), never, keeps=ROLES),
    ):
        assert (names(plan.members), names(plan.waiting), plan.claim) == (["c"], ["b"], amounts(cpu="3"))


@pytest.mark.parametrize(
    ("left", "opened", "claim"), [("1", ["head", "a"], "3"), ("2", ["head"], "3"), ("3", [], "3"), ("4", [], "4")]
)
def test_what_has_left_the_gang_has_its_place(left: str, opened: list[str], claim: str) -> None:
    """It still runs: what comes in its stead needs room beside it."""
    members = [HEAD, member("a"), member("b")]
    for plan in (
        plan_opening(members, ROLES, amounts(cpu="3"), never, left=amounts(cpu=left)),
        plan_pause(members, ROLES, amounts(cpu="3"), never, left=amounts(cpu=left)),
        plan_pause(members, ROLES, amounts(cpu="3"), never, keeps=ROLES, left=amounts(cpu=left)),
    ):
        assert (names(plan.members), plan.claim) == (opened, amounts(cpu=claim))


def test_a_large_base_has_room_for_surplus() -> None:
    """MinResources that a user wrote larger than the pods need."""
    plan = plan_opening([HEAD, member("a"), member("b"), member("c")], ROLES, amounts(cpu="8"), never)
    assert (names(plan.waiting), plan.claim) == ([], amounts(cpu="8"))


def test_open_members_of_a_role_that_is_no_more_still_count() -> None:
    plan = plan_opening([HEAD, member("x", "gone", held=False)], ROLES, amounts(cpu="3"), never)
    assert plan.claim == amounts(cpu="4")


@pytest.mark.parametrize(("base", "claim"), [("1", "2"), ("5", "5")])
def test_while_no_more_is_opened_a_gang_holds_what_runs_and_what_it_was_admitted_for(base: str, claim: str) -> None:
    members = [HEAD, member("w-0", held=False), member("w-1", held=False), member("w-2")]
    plan = plan_pause(members, (), amounts(cpu=base), never)
    assert (names(plan.members), plan.claim, names(plan.waiting)) == ([], amounts(cpu=claim), ["head", "w-2"])


def test_in_a_pause_the_minimums_are_opened_and_nothing_else() -> None:
    members = [HEAD, member("a", held=False), member("b"), member("c")]
    plan = plan_pause(members, ROLES, amounts(cpu="3"), never)
    assert (names(plan.members), plan.claim, names(plan.waiting)) == (["head", "b"], amounts(cpu="3"), ["c"])


def test_in_a_pause_a_minimum_whose_place_is_taken_needs_room() -> None:
    """By those beyond the minimum that run."""
    members = [HEAD, *(member(name, held=False) for name in "abc")]
    full = plan_pause(members, ROLES, amounts(cpu="3"), never)
    assert (names(full.members), full.claim, names(full.waiting)) == ([], amounts(cpu="3"), ["head"])
    room = plan_pause(members, ROLES, amounts(cpu="3"), lambda claim: within(claim, amounts(cpu="4")))
    assert (names(room.members), room.claim, names(room.waiting)) == (["head"], amounts(cpu="4"), [])


@cases("there", ("held", True), ("still to come", False))
def test_before_more_is_opened_the_room_of_what_the_minimums_lack_is_kept(*, there: bool) -> None:
    """Nobody was evicted for others: what is lost comes again, and those beyond the minimum run of no use without."""
    members = [*([HEAD] if there else []), *(member(name, held=False) for name in "abc"), member("d")]
    plan = plan_pause(members, ROLES, amounts(cpu="3"), never, keeps=ROLES)
    assert (names(plan.members), plan.claim) == (["head"] if there else [], amounts(cpu="4"))
    assert names(plan.waiting) == ["d"]


WAVES = (
    Role("first", 1, 1, amounts(cpu="1"), leads=False),
    Role("later", 2, 0, amounts(cpu="1"), leads=False, together=True),
)
FIRST = member("f", "first", held=False)


def test_a_role_of_a_later_wave_is_opened_as_a_whole_when_it_is_there_and_has_room() -> None:
    """A part of it would only wait for the rest, and keep room from others meanwhile."""
    wave = [member("a", "later"), member("b", "later")]
    part = plan_opening([FIRST, wave[0]], WAVES, amounts(cpu="9"), never)
    assert (names(part.members), part.waiting, dict(part.lacking)) == ([], (), {"later": 1})
    small = plan_opening([FIRST, *wave], WAVES, amounts(cpu="1"), lambda claim: within(claim, amounts(cpu="2")))
    assert (names(small.members), names(small.waiting), small.claim) == ([], ["a", "b"], amounts(cpu="1"))
    large = plan_opening([FIRST, *wave], WAVES, amounts(cpu="1"), lambda claim: within(claim, amounts(cpu="3")))
    assert (names(large.members), large.waiting, large.claim) == (["a", "b"], (), amounts(cpu="3"))


DONE = (replace(WAVES[0], done=1), WAVES[1])


@cases("roles, opened", ("done", DONE, ["a", "b"]), ("lost", WAVES, []))
def test_a_wave_takes_the_room_that_the_one_before_has_left(roles: tuple[Role, ...], opened: list[str]) -> None:
    """A pod that will be made again keeps its room."""
    plan = plan_opening([member("a", "later"), member("b", "later")], roles, amounts(cpu="2"), never)
    assert names(plan.members) == opened


@cases("there, ended", ("one runs", [member("a", "later", held=False)], ()), ("one has finished", [], ("later",)))
def test_successors_in_a_wave_that_has_begun_come_one_by_one(there: list[Member], ended: tuple[str, ...]) -> None:
    """The last pods of a Job are fewer than it has at once."""
    plan = plan_opening([*there, member("b", "later")], DONE, amounts(cpu="2"), never, ended)
    assert (names(plan.members), dict(plan.lacking)) == (["b"], {})


members_of_any_kind = st.lists(
    st.builds(
        lambda role, held, cpu: (role, held, str(cpu)),
        *(st.sampled_from(["headgroup", "workers", "other"]), st.booleans(), st.integers(0, 4)),
    ),
    max_size=8,
).map(lambda all_: [member(f"p-{n}", role, held=held, cpu=cpu) for n, (role, held, cpu) in enumerate(all_)])


@given(members_of_any_kind, st.integers(0, 8), st.integers(0, 16))
def test_every_member_is_open_to_be_opened_or_surplus_and_the_claim_covers_what_is_open(
    members: list[Member], base: int, room: int
) -> None:
    plan = plan_opening(members, ROLES, amounts(cpu=str(base)), lambda claim: within(claim, amounts(cpu=str(room))))
    already = [one for one in members if not one.gated]
    assert sorted(names([*already, *plan.members, *plan.waiting])) == sorted(names(members))
    used = total(one.requests for one in (*already, *plan.members))
    assert within(used, plan.claim)
    assert within(amounts(cpu=str(base)), plan.claim)


@given(members_of_any_kind, st.integers(0, 8))
def test_whatever_comes_changes_nothing_of_the_claim_without_permission(members: list[Member], base: int) -> None:
    already = [one for one in members if not one.gated]
    before, after = (plan_opening(some, ROLES, amounts(cpu=str(base)), never) for some in (already, members))
    assert after.claim == before.claim


@given(members_of_any_kind, st.integers(0, 8), st.integers(0, 16))
def test_the_claim_grows_beyond_what_is_due_only_with_permission(members: list[Member], base: int, room: int) -> None:
    allowed = amounts(cpu=str(room))
    least = plan_opening(members, ROLES, amounts(cpu=str(base)), never).claim
    plan = plan_opening(members, ROLES, amounts(cpu=str(base)), lambda claim: within(claim, allowed))
    assert plan.claim == least or within(plan.claim, allowed)


SLICE = Unit(2, "ray.io/worker-group-replica-name")
SLICES = (ROLES[0], Role("workers", 6, 2, amounts(cpu="1"), leads=False, grows=True, unit=SLICE))
HEAD_RUNS = member("head", "headgroup", held=False)


def host(name: str, *, of: str = "", held: bool = True) -> Member:
    """A host of that replica, by default of the one that its name begins with."""
    pod = ray_pod(name, held=held)
    pod["metadata"]["labels"][SLICE.label] = of or name[0]
    return Member(made(Pod, pod), "workers", amounts(cpu="1"), held)


@pytest.mark.parametrize("plan", [plan_opening, plan_pause])
def test_the_minimum_is_filled_with_a_whole_replica(plan: Callable[..., Opening]) -> None:
    """Half of each would hold nodes, and none could work."""
    hosts = [host("1", of="b"), host("2", of="a"), host("3", of="b"), host("4", of="a")]
    assert names(plan([HEAD, *hosts], SLICES, amounts(cpu="3"), never).members) == ["head", "2", "4"]


def test_a_replica_that_has_begun_and_whole_ones_go_first() -> None:
    whole = minimum_of([HEAD, host("a-1"), host("b-1"), host("b-2")], SLICES)
    assert names(whole) == ["head", "b-1", "b-2"], "not all hosts of the other one are there"
    begun = minimum_of([HEAD, host("a-1"), host("a-2"), host("b-1", held=False), host("b-2")], SLICES)
    assert names(begun) == ["head", "b-1", "b-2"]


def test_beyond_the_minimum_a_replica_is_opened_as_a_whole() -> None:
    running = [HEAD_RUNS, host("a-1", held=False), host("a-2", held=False)]
    grown = [*running, host("b-1"), host("b-2"), host("c-1"), host("c-2")]

    def room(cpu: str) -> Callable[[Resources], bool]:
        return lambda claim: within(claim, amounts(cpu=cpu))

    assert names(plan_opening(grown, SLICES, amounts(cpu="3"), room("4")).members) == []
    part = plan_opening(grown, SLICES, amounts(cpu="3"), room("6"))
    assert (names(part.members), names(part.waiting), part.claim) == (["b-1", "b-2"], ["c-1", "c-2"], amounts(cpu="5"))
    assert part.growth
    assert names(plan_opening(grown, SLICES, amounts(cpu="3"), room("7")).waiting) == []


def test_a_replica_waits_for_its_last_host() -> None:
    running = [HEAD_RUNS, host("a-1", held=False), host("a-2", held=False)]
    plan = plan_opening([*running, host("b-1")], SLICES, amounts(cpu="9"), never)
    assert (names(plan.members), plan.waiting, dict(plan.lacking)) == ([], (), {"workers": 1})


def test_a_host_that_comes_again_joins_its_replica() -> None:
    running = [HEAD_RUNS, host("a-1", held=False), host("a-2", held=False), host("b-1", held=False)]
    plan = plan_opening([*running, host("b-2")], SLICES, amounts(cpu="5"), never)
    assert names(plan.members) == ["b-2"]


def test_hosts_that_say_of_no_replica_come_one_by_one() -> None:
    """A KubeRay that does not mark them."""
    running = [HEAD_RUNS, member("a", held=False), member("b", held=False)]
    plan = plan_opening([*running, member("c")], SLICES, amounts(cpu="4"), never)
    assert names(plan.members) == ["c"]


def test_the_rest_of_a_replica_that_was_given_room_needs_none() -> None:
    begun = [host("b-1", held=False), host("b-2")]
    members = [HEAD_RUNS, host("a-1", held=False), host("a-2", held=False), *begun, host("c-1"), host("c-2")]
    rest = rest_of_units(members, SLICES, {mark_of_unit(begun)})
    assert names(rest) == ["b-2"]
    plan = plan_opening(members, SLICES, amounts(cpu="3"), never, granted=rest)
    assert (names(plan.members), names(plan.waiting), plan.claim) == (["b-2"], ["c-1", "c-2"], amounts(cpu="5"))
    pause = plan_pause(members, SLICES, amounts(cpu="3"), never, granted=rest)
    assert (names(pause.members), names(pause.reserved), pause.claim) == ([], ["b-2"], amounts(cpu="5"))


def test_what_comes_for_a_host_was_given_nothing() -> None:
    granted = {mark_of_unit([host("b-1"), host("b-2")])}
    assert rest_of_units([host("b-1", held=False), host("b-3")], SLICES, granted) == []


def test_a_replica_that_is_given_room_is_named() -> None:
    whole = [host("b-1"), host("b-2")]
    members = [HEAD_RUNS, host("a-1", held=False), host("a-2", held=False), *whole]
    assert plan_opening(members, SLICES, amounts(cpu="5"), never).units == {mark_of_unit(whole)}
    assert plan_opening(members, SLICES, amounts(cpu="3"), never).units == set()
