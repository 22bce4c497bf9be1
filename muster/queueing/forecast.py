"""Forecasts when waiting gangs start: the ledger itself, run on in a copy.

It assumes that no gang comes, that no node fails, that each run lasts as long as it is expected to, and that claims
without a node stay as they are; nothing grows, and nothing is evicted. Ends are rounded up to a grid that is finer for
the near future than for the far one, so that the passes go with the length of the forecast and not with its gangs.
"""

import heapq
from collections.abc import Iterator
from dataclasses import replace
from math import ceil, inf, log
from typing import NamedTuple

from muster.queueing.entries import Candidate, End, EntryKey
from muster.queueing.ledger import Ledger

_STEP = 60.0
_FACTOR = 1.1


class Start(NamedTuple):
    """An expected start."""

    key: EntryKey
    at: float
    """Seconds of the wall clock."""


def forecast(ledger: Ledger, now: float) -> Iterator[Start]:
    """The expected starts, in order of time, as far as ends are known; the ledger is used up by it: pass a copy.

    Each step of the iterator does the work up to the next start, so that a caller may stop at any time.
    """
    ends: list[tuple[float, EntryKey]] = []
    for queue in ledger.queues_in_use():
        for key, claim in ledger.claims(queue).items():
            if claim.end is not None and not claim.lasts:
                _note(ends, key, claim.end, now, begin=now)
    time = now
    while time < inf:
        while changed := ledger.changed_subtrees(time):
            for waits in (one for queue in changed for one in start(ledger, queue, time).values()):
                yield Start(waits.key, time)
                if not waits.lasts and (end := waits.end(time)) is not None:
                    _note(ends, waits.key, end, now, begin=time)
        following = min(ends[0][0] if ends else inf, ledger.next_moment())
        # Between two points of the grid nothing happens, so that no claim overruns its end in a pass.
        time = max(_rounded(following, now), time)
        ledger.note_use(time)
        while ends and ends[0][0] <= time:
            ledger.forget(heapq.heappop(ends)[1])


def start(ledger: Ledger, queue: str, now: float) -> dict[EntryKey, Candidate]:
    """Start all gangs of the queue's subtree that may start, and note which gangs they pass.

    Gives them as they waited.
    """
    started: dict[EntryKey, Candidate] = {}
    while fits := [key for key in ledger.startable(queue, now) if key not in started]:
        key = fits[0]
        for other in filter(None, map(ledger.candidate, ledger.passed_by(key, now))):
            ledger.wait(replace(other, passed_since=now))
        if (waits := ledger.candidate(key)) is not None:
            ledger.hold(waits.claim(now))
            started[key] = waits
    ledger.newly_startable(queue, now)
    return started


def _note(ends: list[tuple[float, EntryKey]], key: EntryKey, end: End, now: float, *, begin: float) -> None:
    at = end.after(begin)
    if at < inf:
        heapq.heappush(ends, (_rounded(at, now), key))


def _rounded(at: float, now: float) -> float:
    """The next point of the grid: a minute, and a tenth more each."""
    if at == inf:
        return inf
    ahead = max(at - now, _STEP)
    return now + _STEP * _FACTOR ** ceil(log(ahead / _STEP, _FACTOR) - 1e-9)
