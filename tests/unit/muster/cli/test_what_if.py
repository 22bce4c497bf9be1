"""`muster plan --what-if`: the gangs whose expected start changes, and no others."""

from dataclasses import replace

import pytest

from muster.cli.plan.what_if import StartChange, changes, expected_starts
from muster.queueing.entries import Claim, EntryKey
from muster.queueing.ledger import Candidate, EndKind, GangKey, Ledger, Run
from muster.queueing.queue_view import QueueView
from tests.support.cli.in_process import muster
from tests.support.manifests.observed import amounts

NOW = 1_000_000.0
RUNS, NEXT, LAST, NEW = (GangKey("team", name) for name in ("runs", "next", "last", "new"))


def scene() -> Ledger:
    """A queue of four cpus that is full for 600 s; two gangs of all of it wait, each for as long."""
    ledger, run = Ledger(), Run(600.0, EndKind.ENFORCED)
    ledger.set_queue(QueueView("q", "Open", amounts(cpu="4")))
    ledger.hold(Claim(RUNS, "q", amounts(cpu="4"), end=run.from_(NOW)))
    for since, key in enumerate((NEXT, LAST)):
        ledger.wait(Candidate(key, "q", 0, f"{since}", amounts(cpu="4"), run=run))
    return ledger


def moved(after: Ledger) -> dict[str, tuple[bool, bool]]:
    """The gangs whose start changes: whether it is known before and after."""
    found = changes(expected_starts(scene(), NOW), expected_starts(after, NOW), NOW)
    return {one.gang.name: (one.before is not None, one.after is not None) for one in found}


def test_a_gang_that_comes_before_another_one_moves_it_and_nothing_before_it() -> None:
    after = scene()
    after.wait(Candidate(NEW, "q", 1, "z", amounts(cpu="4"), run=Run(600.0, EndKind.ENFORCED)))
    assert moved(after) == {"new": (False, True), "next": (True, True), "last": (True, True)}
    after = scene()
    after.wait(Candidate(NEW, "q", 0, "z", amounts(cpu="4"), run=Run(600.0, EndKind.ENFORCED)))
    assert moved(after) == {"new": (False, True)}


def test_a_larger_queue_has_gangs_start_at_once() -> None:
    after = scene()
    after.set_queue(QueueView("q", "Open", amounts(cpu="12")))
    assert moved(after) == {"next": (True, True), "last": (True, True)}


def test_a_smaller_queue_leaves_no_start_known() -> None:
    after = scene()
    after.set_queue(QueueView("q", "Open", amounts(cpu="2")))
    assert moved(after) == {"next": (True, False), "last": (True, False)}


def test_less_than_a_tenth_of_the_wait_is_no_change() -> None:
    before: dict[EntryKey, float] = {NEXT: NOW + 1000, LAST: NOW + 1000}
    after: dict[EntryKey, float] = {NEXT: NOW + 1099, LAST: NOW + 1101}
    assert changes(before, after, NOW) == [StartChange(LAST, NOW + 1000, NOW + 1101)]


def test_what_stands_behind_all_others_moves_none_of_them() -> None:
    after = scene()
    waits = after.candidate(LAST)
    assert waits is not None
    after.wait(replace(waits, run=None))
    assert moved(after) == {}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--what-if"], "--what-if: needs --cluster"),
        (["--queue", "q", "-f", "-"], "--queue, --lose-node and --reserves are for --what-if"),
        ([], "no file: muster plan FILE, or - for standard input"),
    ],
)
def test_options_that_lack_another_one_are_refused(arguments: list[str], said: str) -> None:
    done = muster("plan", *arguments)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, f"muster: error: {said}")
