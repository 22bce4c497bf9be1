"""CPU time of a forecast of the starts of waiting gangs.

In a tree of three levels a quarter as many gangs run as wait, each for another time. The goals: a copy of the ledger
takes less than 10 ms with 16,000 gangs, and `one gang`, what `muster explain` adds for a gang a tenth down the line,
less than a second with 5,000 in ten queues. `all` is what the page asks for, and cuts off; it has no goal.
"""

import random
from collections.abc import Sequence
from functools import partial

from hack.bench.harness import Table, milliseconds, options
from muster.cli.when import ExpectedStarts
from muster.queueing.entries import Claim, EndKind, Run
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import ROOT, QueueView
from muster.resources.amounts import Resources, parse_resources

_NOW = 1_800_000_000.0
_PATIENCE = 600.0
# So many cpu there are for each gang that waits, in the root; seconds of CPU for a whole forecast.
_CPU = 2.5
_LONGEST = 60.0


def _cpu(count: float) -> Resources:
    return parse_resources({"cpu": int(count)}, path="")


def _ledger(waiting: int, queues: int, *, by_age: bool) -> Ledger:
    chance, ledger, cpus = random.Random(1), Ledger(), waiting * _CPU  # noqa: S311 - the same gangs in every run
    teams = max(2, queues // 5)
    ledger.set_queue(QueueView(ROOT, "Open", _cpu(cpus), parent="", by_age=by_age))
    for team in range(teams):
        ledger.set_queue(QueueView(f"team-{team}", "Open", _cpu(2 * cpus / teams), by_age=by_age))
    for queue in range(queues):
        limit = _cpu(max(200, 4 * cpus / queues))
        ledger.set_queue(QueueView(f"queue-{queue}", "Open", limit, parent=f"team-{queue % teams}"))
    for number in range(waiting // 4):
        claim = chance.randint(1, 40)
        cpus -= claim
        if cpus < 0:
            break
        end = _run(chance).from_(_NOW - chance.uniform(0, 500))
        ledger.hold(
            Claim(GangKey("bench", f"runs-{number}"), f"queue-{chance.randrange(queues)}", _cpu(claim), end=end)
        )
    for number in range(waiting):
        ledger.wait(
            Candidate(
                *(GangKey("bench", f"waits-{number}"), f"queue-{chance.randrange(queues)}", 0, f"{number:08}"),
                _cpu(chance.randint(1, 100)),
                passed_since=_NOW - chance.choice([0.0, 2 * _PATIENCE]),
                run=_run(chance),
            )
        )
    return ledger


def _run(chance: random.Random) -> Run:
    return Run(chance.uniform(600, 36_000), EndKind.ABOUT)


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    given = options(argv, __doc__, waiting=[1000, 5000, 16_000])
    table = Table("ms of CPU", "waiting", "queues", "a copy", "one gang", "all", "starts")
    for waiting in given.waiting:
        for queues, by_age in ((10, True), (10, False), (100, False)):
            ledger = _ledger(waiting, queues, by_age=by_age)
            copy = milliseconds(ledger.copy)
            starts = ExpectedStarts(ledger, _NOW, seconds=_LONGEST, whole=True)
            one = milliseconds(partial(starts.when, GangKey("bench", f"waits-{waiting // 10}")))
            whole = one + milliseconds(starts.run)
            found = sum(len(starts.in_queue(f"queue-{queue}")) for queue in range(queues))
            table.row("by age" if by_age else "by share", waiting, queues, copy, one, whole, found)
