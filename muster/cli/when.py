"""The starts of the gangs of a ledger, by their reservations and by a forecast of the ledger.

The forecast runs on a copy, and only as far as it is asked for and its CPU time lasts. It is as good as the run times
that it knows: when fewer than half of those that a gang waits for are known, no start is given.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, inf
from typing import Any, NamedTuple

from muster.cli.ui import ago
from muster.model.times import minute_of, seconds_of, stamp_of
from muster.queueing.entries import Candidate, EndKind, EntryKey, Order
from muster.queueing.forecast import forecast
from muster.queueing.ledger import GangKey, Ledger
from muster.queueing.reservations import Reservation

_ASSUMES = (
    "no gang comes, goes or grows",
    "no node fails",
    "each run takes as long as it says, or as is estimated",
    "pods without a node find none",
    "no pod is evicted",
)
_MINUTE, _HOUR = 60, 3600
# Below these seconds ahead a start is given to these seconds; beyond them to the hour.
_STEPS = ((_HOUR, _MINUTE), (10 * _HOUR, 10 * _MINUTE), (inf, _HOUR))
_ENOUGH = 0.5


class _Awaited(NamedTuple):
    """The number of gangs that a gang waits for, and of those with a known run time."""

    gangs: int = 0
    known: int = 0

    def plus(self, *, known: bool) -> _Awaited:
        return _Awaited(self.gangs + 1, self.known + known)

    @property
    def part(self) -> float:
        return self.known / self.gangs if self.gangs else 1.0


class _Start(NamedTuple):
    at: float
    awaited: _Awaited


class ExpectedStarts:
    """The expected starts of the gangs of a ledger, which nothing else may change.

    The forecast goes on from one question to the next, for `seconds` of CPU at most. `whole` is true if all gangs
    of the cluster are in the ledger.
    """

    def __init__(self, ledger: Ledger, now: float, *, seconds: float, whole: bool) -> None:
        self.now = now
        self._ledger = ledger
        self._seconds = self._left = seconds
        self._whole = whole
        self._forecast = forecast(ledger.copy(), now)
        self._ended = False
        self._starts: dict[EntryKey, _Start] = {}
        self._in_queue: dict[str, list[float]] = {}
        # By queue: the gangs of it, and of all below it, that hold or have started in the forecast.
        self._before: dict[str, _Awaited] = {}
        for queue in ledger.queues_in_use():
            for claim in ledger.claims(queue).values():
                self._count(queue, known=claim.lasts or (claim.end is not None and claim.end.after(now) < inf))

    def run(self, key: EntryKey | None = None) -> None:
        """Go on until that gang has started, or (None) until nothing more starts."""
        began = time.thread_time()
        while key not in self._starts and not self._ended and time.thread_time() - began < self._left:
            start = next(self._forecast, None)
            waits = self._ledger.candidate(start.key) if start is not None else None
            if start is None:
                self._ended = True
            elif waits is not None:
                self._starts[start.key] = _Start(start.at, self._awaited(waits))
                self._in_queue.setdefault(waits.queue, []).append(start.at)
                self._count(waits.queue, known=waits.lasts or waits.run is not None)
        self._left -= time.thread_time() - began

    def stop(self) -> None:
        """End a forecast that runs in another thread."""
        self._left = 0.0

    def in_queue(self, queue: str) -> Sequence[float]:
        """The expected starts of the gangs that wait in a queue, as far as the forecast has come."""
        return self._in_queue.get(queue, ())

    def when(self, key: GangKey) -> dict[str, Any] | None:
        """The known facts about the start of a waiting gang; None for one that does not wait, or can never start."""
        waits = self._ledger.candidate(key)
        if waits is None or self._ledger.refusal(waits, self.now) is not None:
            return None
        known: dict[str, Any] = {
            **dict.fromkeys(("startsBy", "basis", "expected", "knownRuns"), None),
            "behind": [],
            "assumes": list(_ASSUMES),
            "why": "gangs of other namespaces cannot be read",
        }
        if not self._whole:
            return known
        self.run(key)
        reservations = self._ledger.outcome(waits.queue, self.now).reservations
        own, start = reservations.of(waits.order), self._starts.get(key)
        awaited = start.awaited if start is not None else self._awaited(waits)
        why = self._why_not(start, awaited)
        return known | {
            "startsBy": starts_by(own),
            "basis": basis_of(own),
            "expected": stamp_of(_rounded(start.at, self.now)) if start is not None and not why else None,
            "knownRuns": round(awaited.part, 2),
            "behind": list(dict.fromkeys(str(one.key) for one in self._behind(waits, reservations.made))),
            "why": why,
        }

    def _why_not(self, start: _Start | None, awaited: _Awaited) -> str:
        """The reason why no expected start is known; "" when one is."""
        if start is not None and (start.at <= self.now or awaited.part >= _ENOUGH):
            return ""
        if start is None and not self._ended:
            return f"the forecast takes more than {self._seconds:g} s of CPU"
        if unknown := awaited.gangs - awaited.known:
            return f"{unknown} of {awaited.gangs} gangs before it have neither a time limit nor a history"
        return "nothing that is known to end makes room for it"

    def _behind(self, waits: Candidate, made: list[Reservation]) -> Iterator[Order]:
        """The gangs with a reservation before it that concerns its queue, or one above."""
        path = set(self._ledger.tree.gang_path(waits.queue))
        for one in made:
            if one.order == waits.order:
                return
            if not path.isdisjoint(one.spare):
                yield one.order

    def _count(self, queue: str, *, known: bool) -> None:
        for level in self._ledger.tree.gang_path(queue):
            self._before[level] = self._before.get(level, _Awaited()).plus(known=known)

    def _awaited(self, waits: Candidate) -> _Awaited:
        """The gangs before it in the highest queue that lacks room for it, or limits anything at all."""
        outcome = self._ledger.outcome(waits.queue, self.now)
        lacking, path = outcome.lacking(waits, waits.amounts), outcome.tree.path(waits.queue)
        levels = [one for one in path if one in lacking] or [one for one in path if outcome.tree.ceiling(one)]
        return self._before.get(levels[-1], _Awaited()) if levels else _Awaited()


def starts_by(reservation: Reservation | None) -> str | None:
    """The start of a reservation (RFC 3339), as sure as its basis is; None where it is not known."""
    return stamp_of(reservation.start) if reservation is not None and reservation.start < inf else None


def basis_of(reservation: Reservation | None) -> str | None:
    """The basis of the start of a reservation."""
    return reservation.basis if reservation is not None else None


def when_lines(when: Mapping[str, Any], message: str, now: float) -> Iterator[tuple[str, str]]:
    """The known facts about a start in words, each with its title, without those that the message has already."""
    planned = seconds_of(when["startsBy"] or "")
    if planned is not None and (minute := minute_of(planned)) not in message:
        if when["basis"] == EndKind.ENFORCED.name.lower():
            yield "starts by", f"{minute}, unless a gang before it starts first"
        elif when["basis"] == EndKind.SAID.name.lower():
            yield "planned", f"for {minute}, if what runs ends as it says"
    expected = seconds_of(when["expected"] or "")
    if expected is None:
        yield "expected", f"not known: {when['why']}"
    elif expected <= now:
        yield "expected", "now"
    else:
        known = f"run times are known for {when['knownRuns']:.0%} of what it waits for"
        yield "expected", f"about {minute_of(expected)}, {ago(now - expected)}; {known}"


def expected_words(when: Mapping[str, Any] | None) -> str:
    """The expected start in few words; "" for a gang that has none."""
    expected = seconds_of(when["expected"] or "") if when is not None else None
    return minute_of(expected) if expected is not None else "not known" if when is not None else ""


def _rounded(at: float, now: float) -> float:
    """A start as exactly as it can be meant, and not before now."""
    step = next(step for below, step in _STEPS if at - now < below)
    return now if at <= now else ceil(at / step) * step
