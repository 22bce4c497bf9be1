"""What Volcano may take back of a gang, and the gang runs on."""

from dataclasses import replace
from math import inf

import pytest
from msgspec.structs import force_setattr

from muster.gangs.roles import Role
from muster.model.names import COOLDOWN, PREEMPTABLE
from muster.model.pods import Pod
from muster.model.times import seconds_of
from muster.planning.claim import kept_until, spare
from muster.planning.snapshot import GangSnapshot, Member
from muster.queueing.ledger import GangKey
from tests.support.manifests.observed import amounts, made, ray_pod

HEAD = Role("headgroup", 1, 1, amounts(cpu="1"), leads=True)
WORKERS = Role("workers", 4, 1, amounts(cpu="2"), leads=False)


def member(
    name: str, role: str = "workers", *, cpu: str = "2", phase: str = "Running", preemptable: str = "", node: str = ""
) -> Member:
    manifest = ray_pod(name, role, nodeName=node)
    manifest["status"] = {"phase": phase}
    if preemptable:
        manifest["metadata"]["annotations"][PREEMPTABLE] = preemptable
    return Member(made(Pod, manifest), role, amounts(cpu=cpu), gated=False)


def view(*members: Member) -> GangSnapshot:
    return GangSnapshot(GangKey("team", "gang"), None, (member("head", "headgroup", cpu="1"), *members))


def test_it_is_what_runs_beyond_the_minimum() -> None:
    workers = [member(name) for name in "abc"]
    assert spare(view(*workers), (HEAD, WORKERS), 0.0) == amounts(cpu="4")


def test_pods_that_do_not_run_yet_are_not_taken() -> None:
    assert spare(view(member("a"), member("b"), member("c", phase="Pending")), (HEAD, WORKERS), 0.0) == amounts(cpu="2")


@pytest.mark.parametrize("role", [replace(WORKERS, replicas=1), replace(WORKERS, together=True)])
def test_a_role_that_needs_all_its_pods_spares_none(role: Role) -> None:
    assert not spare(view(member("a")), (HEAD, role), 0.0)


def test_a_gang_that_lacks_a_pod_spares_none() -> None:
    assert not spare(view(*map(member, "abc")), (replace(HEAD, replicas=2, minimum=2), WORKERS), 0.0)


def test_a_pod_that_has_finished_counts_towards_the_minimum() -> None:
    ended = replace(view(member("a"), member("b")), ended=("workers",))
    assert spare(ended, (HEAD, WORKERS), 0.0) == amounts(cpu="4")


def test_pods_that_their_owner_keeps_from_eviction_stay() -> None:
    kept = [member(name, preemptable="false") for name in "ab"]
    assert spare(view(*kept, member("c")), (HEAD, WORKERS), 0.0) == amounts(cpu="2")
    assert not spare(view(*kept), (HEAD, WORKERS), 0.0)


def test_pods_on_nodes_that_take_no_others_stay() -> None:
    """They count towards the minimum, and the others may go."""
    members = [member("a", node="cordoned"), member("b", node="n"), member("c", node="cordoned")]
    away = replace(view(*members), away=frozenset({"cordoned"}))
    assert spare(away, (HEAD, WORKERS), 0.0) == amounts(cpu="2")
    assert spare(view(*members), (HEAD, WORKERS), 0.0) == amounts(cpu="4")


def test_of_unequal_pods_the_smallest_are_counted() -> None:
    """Whichever the scheduler takes, it gets as much."""
    assert spare(view(member("a", cpu="3"), member("b"), member("c", cpu="4")), (HEAD, WORKERS), 0.0) == amounts(
        cpu="4"
    )


def test_pods_that_are_younger_than_their_cooldown_stay() -> None:
    """Volcano's plugin cdp counts from about their start; a time that it alone can read is as good as endless."""
    young, odd = member("a"), member("b")
    for one, text in ((young, "10m"), (odd, "1.5h")):
        one.pod.metadata.annotations[COOLDOWN] = text
        force_setattr(one.pod.status, "start_time", "2026-11-21T12:00:00Z")
    start = seconds_of("2026-11-21T12:00:00Z") or 0.0
    assert [kept_until(one.pod) for one in (young, odd, member("c"))] == [start + 600, inf, 0.0]
    members = view(young, odd, member("c"))
    assert spare(members, (HEAD, WORKERS), start + 599) == amounts(cpu="2")
    assert spare(members, (HEAD, WORKERS), start + 600) == amounts(cpu="4")
