"""What a forecast costs: `python -m hack.bench.forecast [--waiting 1000,5000,16000]`.

In a tree of three levels a quarter as many gangs run as wait, each for another time. Prints milliseconds of CPU: of a
copy of the ledger, until the expected start of a gang a tenth down the line is known, as `muster explain` asks, and
until the forecast has come to its end, or is cut off.
"""

from __future__ import annotations

import argparse
import random
import time
from functools import partial
from typing import TYPE_CHECKING

from muster.cli.when import ExpectedStarts
from muster.queueing.entries import Claim
from muster.queueing.ledger import Candidate, EndKind, GangKey, Ledger, Run
from muster.queueing.queue_view import ROOT, QueueView
from muster.resources.amounts import Resources, parse_resources

if TYPE_CHECKING:
    from collections.abc import Callable

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


def _took(work: Callable[[], object]) -> float:
    """The milliseconds of CPU that something takes."""
    began = time.process_time()
    work()
    return 1000 * (time.process_time() - began)


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--waiting", default="1000,5000,16000", help="how many gangs wait, for each row")
    print(f"{'waiting':>8} {'queues':>7} {'order':<6} {'copy':>8} {'one gang':>9} {'all':>8}  starts")
    for waiting in map(int, options.parse_args().waiting.split(",")):
        for queues, by_age in ((10, True), (10, False), (100, False)):
            ledger = _ledger(waiting, queues, by_age=by_age)
            copy = _took(ledger.copy)
            starts = ExpectedStarts(ledger, _NOW, seconds=_LONGEST, whole=True)
            one = _took(partial(starts.when, GangKey("bench", f"waits-{waiting // 10}")))
            whole = one + _took(starts.run)
            found = sum(len(starts.in_queue(f"queue-{queue}")) for queue in range(queues))
            order = "age" if by_age else "share"
            print(f"{waiting:>8} {queues:>7} {order:<6} {copy:>8.1f} {one:>9.0f} {whole:>8.0f}  {found}")


if __name__ == "__main__":
    main()
