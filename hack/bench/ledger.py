"""What a decision costs: `python -m hack.bench.ledger`.

A thousand queues in a tree of three levels and fifty thousand gangs, half of which run: then gangs end one after the
other, and each time the ledger says who may start, these start, and somebody new comes to wait. Prints microseconds for
each step, the median and the slowest percentile, memory, and the same for one queue that has all the gangs; and beside
it, in the same run, the cost of adding up the claims of one queue anew, which is what the ledger does not do.
"""

from __future__ import annotations

import random
import resource
import statistics
import time
from typing import TYPE_CHECKING

from muster.queueing.ledger import Candidate, GangKey, Ledger
from muster.queueing.queue_view import QueueView
from muster.resources.amounts import Resources, parse_resources, total

if TYPE_CHECKING:
    from collections.abc import Sequence

    from muster.queueing.entries import EntryKey

_ORGANISATIONS, _TEAMS = 10, 100
_GANGS = 50_000
_STEPS = 2_000
_NOW = 1_000_000.0


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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


def _fill(ledger: Ledger, queues: Sequence[str], chance: random.Random) -> dict[EntryKey, Candidate]:
    gangs = {}
    for number in range(_GANGS):
        candidate = _gang(number, queues, chance)
        gangs[candidate.key] = candidate
        if number % 2:
            ledger.wait(candidate)
        else:
            ledger.hold(candidate.claim(_NOW))
    return gangs


def _gang(number: int, queues: Sequence[str], chance: random.Random) -> Candidate:
    key = GangKey(f"team-{number % 97}", f"gang-{number}")
    since = f"2026-11-{1 + number % 28:02}T10:00:{number % 60:02}Z"
    return Candidate(key, chance.choice(queues), chance.choice([0, 0, 10, 100]), since, chance.choice(_SIZES))


def _measure(title: str, ledger: Ledger, queues: Sequence[str]) -> None:
    chance = random.Random(1)  # noqa: S311 - the same history in every run
    before = _megabytes()
    started = time.process_time()
    gangs = _fill(ledger, queues, chance)
    filled = time.process_time() - started
    running = [key for key in gangs if ledger.holds(key) is not None]
    steps: list[float] = []
    admitted = 0
    for number in range(_STEPS):
        ending = running.pop(chance.randrange(len(running)))
        coming = _gang(_GANGS + number, queues, chance)
        gangs[coming.key] = coming
        queue = gangs[ending].queue
        started = time.process_time()
        ledger.forget(ending)
        ledger.wait(coming)
        for key in ledger.startable(queue, _NOW):
            candidate = gangs[key]
            decision = ledger.decide(key, _NOW)
            if decision is not None and decision.fits:
                ledger.hold(candidate.claim(_NOW))
                running.append(key)
                admitted += 1
        ledger.decide(coming.key, _NOW)
        steps.append((time.process_time() - started) * 1e6)
    busiest = max(queues, key=lambda name: sum(gangs[key].queue == name for key in running[:2000]))
    claims = [gangs[key].need for key in running if gangs[key].queue == busiest]
    started = time.process_time()
    total(claims)
    anew = (time.process_time() - started) * 1e6
    steps.sort()
    more = _megabytes() - before
    print(f"{title}: {len(queues)} queues, {_GANGS} gangs, filled in {filled:.2f} s, {more:.0f} MB more")
    print(f"  one ends, one comes, whoever may start does ({admitted} in {_STEPS} rounds):")
    print(
        f"    a round: median {statistics.median(steps):.0f} us, 99 of 100 below {steps[int(len(steps) * 0.99)]:.0f} us"
    )
    print(f"    a decision (start or wait): {sum(steps) / (_STEPS + admitted):.0f} us")
    print(f"  adding up {len(claims)} claims of one queue anew: {anew:.0f} us")


def main() -> None:
    """Measure and print."""
    print(f"start: {_megabytes():.0f} MB")
    _measure("a tree", *_tree())
    _measure("one queue", *_one())


if __name__ == "__main__":
    main()
