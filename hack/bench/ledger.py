"""Memory and decisions of the ledger with 50,000 gangs of six sizes; half of them run.

In 1,000 queues of three levels, then all in one. In each round a gang ends, another comes, and all start that may.
There is no goal (`waiting` has them): docs/operations.md plans by these figures. `one sum` is what adding up the claims
of one queue would cost, which the ledger never does.
"""

import random
import resource
import statistics
from collections.abc import Sequence
from functools import partial

from hack.bench.harness import Table, milliseconds, options
from muster.queueing.entries import EntryKey
from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import QueueView
from muster.resources.amounts import Resources, parse_resources, total

_ORGANISATIONS, _TEAMS = 10, 100
_NOW = 1_000_000.0


def _limit(cpu: int) -> Resources:
    return parse_resources({"cpu": str(cpu), "memory": f"{cpu * 4}Gi", "nvidia.com/gpu": str(cpu)}, path="")


_SIZES = [_limit(2), _limit(4), _limit(8), _limit(16), _limit(32), _limit(64)]


def _tree() -> tuple[Ledger, list[str]]:
    """Every organisation may hold half of what its teams may hold together."""
    ledger = Ledger()
    teams = []
    for number in range(_ORGANISATIONS):
        ledger.set_queue(QueueView(f"org-{number}", "Open", _limit(_TEAMS * 600)))
        for team in range(_TEAMS):
            teams.append(f"team-{number}-{team}")
            ledger.set_queue(QueueView(teams[-1], "Open", _limit(700), parent=f"org-{number}"))
    return ledger, teams


def _one() -> tuple[Ledger, list[str]]:
    ledger = Ledger()
    ledger.set_queue(QueueView("only", "Open", _limit(500_000)))
    return ledger, ["only"]


class _Rounds:
    def __init__(self, ledger: Ledger, queues: Sequence[str], gangs: int) -> None:
        self._ledger = ledger
        self._queues = queues
        self._chance = random.Random(1)  # noqa: S311 - the same history in every run
        self._gangs: dict[EntryKey, Candidate] = {}
        self.admitted = 0
        for number in range(gangs):
            one = self._gang()
            if number % 2:
                ledger.wait(one)
            else:
                ledger.hold(one.claim(_NOW))
        self._running = [key for key in self._gangs if ledger.holds(key) is not None]

    def _gang(self) -> Candidate:
        number, chance = len(self._gangs), self._chance
        key = GangKey(f"team-{number % 97}", f"gang-{number}")
        since = f"2026-11-{1 + number % 28:02}T10:00:{number % 60:02}Z"
        one = Candidate(key, chance.choice(self._queues), chance.choice([0, 0, 10, 100]), since, chance.choice(_SIZES))
        self._gangs[key] = one
        return one

    def round(self) -> float:
        """Microseconds of CPU."""
        ending = self._running.pop(self._chance.randrange(len(self._running)))
        return 1000 * milliseconds(partial(self._decide, ending, self._gang()))

    def _decide(self, ending: EntryKey, coming: Candidate) -> None:
        ledger = self._ledger
        ledger.forget(ending)
        ledger.wait(coming)
        for key in ledger.startable(self._gangs[ending].queue, _NOW):
            one = self._gangs[key]
            decision = ledger.decide(key, _NOW)
            if decision is not None and decision.fits:
                ledger.hold(one.claim(_NOW))
                self._running.append(key)
                self.admitted += 1
        ledger.decide(coming.key, _NOW)

    def sum(self) -> float:
        """Microseconds for the sum of the claims of the busiest queue."""
        queues = [self._gangs[key].queue for key in self._running]
        claims = [self._gangs[key].need for key in self._running if self._gangs[key].queue == statistics.mode(queues)]
        return 1000 * milliseconds(partial(total, claims))


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    given = options(argv, __doc__, gangs=50_000, rounds=2000)
    table = Table("us of CPU", "queues", "gangs", "MB more", "a round", "99 of 100", "a decision", "one sum")
    for title, (ledger, queues) in {"a tree": _tree(), "one queue": _one()}.items():
        before = _megabytes()
        rounds = _Rounds(ledger, queues, given.gangs)
        took = sorted(rounds.round() for _ in range(given.rounds))
        figures = (statistics.median(took), took[int(len(took) * 0.99)], sum(took) / (len(took) + rounds.admitted))
        table.row(title, len(queues), given.gangs, _megabytes() - before, *figures, rounds.sum())
