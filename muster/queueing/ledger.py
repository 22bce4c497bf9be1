"""Who holds what of which queue, who is next, and why the others wait.

The ledger is a value in memory: everything in it comes from objects in the cluster, so that the same objects give the
same ledger in any order of events. It never reads a clock and does no I/O: `now` is seconds of the wall clock, and is
passed in. Whoever asks it to admit a gang must write that down in the cluster before acting on it.

A claim counts for its queue and for all above it. Gangs that compete for the same room, those below the highest queue
that limits anything, are one field: among them the more urgent is first, then the older. What fits of a field is
settled once and kept until something in it changes.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from muster.model.gang_states import State
from muster.queueing.admission_pass import Settled, settle
from muster.queueing.queue_state import Book, Candidate, Claim, GangKey, Order
from muster.queueing.queue_tree import ROOT, QueueTree
from muster.queueing.unplaced_claims import soft_in, softened
from muster.queueing.usage import Room, amounts_of
from muster.queueing.verdicts import Decision, queue_not_found, refused, why
from muster.resources.amounts import Resources, describe, minus, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.queueing.queue_tree import QueueView
    from muster.queueing.usage import Amounts

__all__ = ["Candidate", "Decision", "GangKey", "Ledger", "queue_not_found"]


class Ledger:
    """The claims of all gangs on all queues.

    Invariant: `decide` never says yes to gangs that together would take a queue, or one above it, beyond its limit,
    soft claims and those that a preempting queue leaves out apart. A gang whose claim is written by `hold` counts
    whether it fits or not, for it runs already.
    """

    def __init__(self) -> None:
        self._tree = QueueTree()
        self._room = Room(self._tree)
        self._lasting = Room(self._tree)
        self._books: dict[str, Book] = {}
        self._queue_of: dict[GangKey, str] = {}
        self._fields: dict[str, str] = {}
        self._queues_of_field: dict[str, set[str]] = {}
        self._settled: dict[str, Settled] = {}

    # --- queues -----------------------------------------------------------------------------------------------------

    @property
    def tree(self) -> QueueTree:
        """The queues; they are changed by the ledger only."""
        return self._tree

    def set_queue(self, view: QueueView) -> bool:
        """Enter a queue, or what has changed in it; True when anything has."""
        changed = self._tree.set(view)
        if changed:
            self._replanted()
        return changed

    def drop_queue(self, name: str) -> bool:
        """Take out a queue that is gone, True when it was there; what is held there and waits there stays known."""
        known = self._tree.drop(name)
        if known:
            self._replanted()
        return known

    def bound(self, nodes: Resources | None) -> bool:
        """Bound all queues together by what the nodes can give, or no longer; True when that changed anything."""
        before = self._tree.counts_nodes, bool(self._tree.limit(ROOT))
        if not self._tree.bound(nodes):
            return False
        if before == (self._tree.counts_nodes, True):
            # All compete with all, before and after: only what fits is another question.
            self._settled.clear()
            for book in self._books.values():
                book.look_anew()
        else:
            self._replanted()
        return True

    def _replanted(self) -> None:
        self._fields.clear()
        self._queues_of_field.clear()
        self._settled.clear()
        self._room, self._lasting = Room(self._tree), Room(self._tree)
        for queue, book in self._books.items():
            self._queues_of_field.setdefault(self._field(queue), set()).add(queue)
            book.set_moments(self._patience(queue))
            for claim in book.held.values():
                self._take(queue, claim)

    def _take(self, queue: str, claim: Claim, sign: int = 1) -> None:
        for room in (self._room, self._lasting) if claim.lasts else (self._room,):
            room.take(queue, _signed(claim.amounts, sign))
            room.take_in(soft_in(self._tree, queue, claim), _signed(claim.soft_amounts, -sign))

    def _field(self, queue: str) -> str:
        """The highest queue above this one where anything is shared; all below it compete."""
        known = self._fields.get(queue)
        if known is None:
            path = self._tree.path(queue)
            known = next((one for one in reversed(path) if self._tree.limit(one) or self._strict(one)), path[0])
            self._fields[queue] = known
        return known

    def _strict(self, queue: str) -> bool:
        view = self._tree.get(queue)
        return view is not None and view.strict

    def _patience(self, queue: str) -> float:
        view = self._tree.get(queue)
        return view.patience if view is not None else 0.0

    # --- gangs ------------------------------------------------------------------------------------------------------

    def hold(
        self,
        key: GangKey,
        queue: str,
        claim: Resources,
        *,
        priority: int = 0,
        since: str = "",
        soft: Resources | None = None,
        idle: bool = False,
        lasts: bool = False,
    ) -> bool:
        """Enter the claim of an admitted gang, of which `soft` is soft; True when that changed anything for others."""
        unplaced, order = soft or {}, Order(-priority, since, key)
        new = Claim(claim, amounts_of(claim), order, unplaced, amounts_of(unplaced), idle, lasts)
        if self._queue_of.get(key) == queue:
            book, settled = self._books[queue], self._settled.get(self._field(queue))
            if book.held.get(key) == new:
                return False
            if settled and _as_expected(settled, book.candidate(key), new):
                del settled.fits[key]
                book.leave(key)
                self._enter(queue, key, new)
                return True
        self.forget(key)
        self._enter(queue, key, new)
        self._settled.pop(self._field(queue), None)
        return True

    def _enter(self, queue: str, key: GangKey, claim: Claim) -> None:
        self._book(queue).hold(key, claim)
        self._queue_of[key] = queue
        self._take(queue, claim)

    def wait(self, candidate: Candidate) -> bool:
        """Enter a gang that wants to start; True when that changed anything for others."""
        key, queue = candidate.key, candidate.queue
        if self._candidate(key) == candidate:
            return False
        self.forget(key)
        self._book(queue).line_up(candidate, self._patience(queue))
        self._queue_of[key] = queue
        self._settled.pop(self._field(queue), None)
        return True

    def forget(self, key: GangKey) -> bool:
        """Take a gang out: it holds nothing and waits for nothing; True when it was in."""
        queue = self._queue_of.pop(key, None)
        if queue is None:
            return False
        book = self._books[queue]
        claim = book.let_go(key)
        if claim is None:
            book.leave(key)
        else:
            self._take(queue, claim, -1)
            self._room.has_given_back(queue)
        field = self._field(queue)
        self._settled.pop(field, None)
        if not book:
            del self._books[queue]
            self._queues_of_field[field].discard(queue)
        return True

    def _book(self, queue: str) -> Book:
        book = self._books.get(queue)
        if book is None:
            book = self._books[queue] = Book()
            self._queues_of_field.setdefault(self._field(queue), set()).add(queue)
        return book

    def _candidate(self, key: GangKey) -> Candidate | None:
        queue = self._queue_of.get(key)
        return None if queue is None else self._books[queue].candidate(key)

    # --- questions --------------------------------------------------------------------------------------------------

    def queue_of(self, key: GangKey) -> str | None:
        """The queue in which the gang holds or waits."""
        return self._queue_of.get(key)

    def holds(self, key: GangKey) -> Resources | None:
        """The claim of an admitted gang, or None."""
        claim = self._claim(key)
        return None if claim is None else claim.resources

    def _claim(self, key: GangKey) -> Claim | None:
        queue = self._queue_of.get(key)
        return None if queue is None else self._books[queue].held.get(key)

    def waiting(self, queue: str, start: int = 0, stop: int | None = None) -> list[GangKey]:
        """The gangs that wait in a queue, first in order first; of all of them those of the slice."""
        book = self._books.get(queue)
        return [order.key for order in islice(book.in_order(), start, stop)] if book else []

    def position(self, key: GangKey, now: float) -> tuple[int, int] | None:
        """Its place among those who wait in its queue and may not start yet, and how many wait; None when it does not.

        Those before it who may start now are as good as gone.
        """
        candidate = self._candidate(key)
        if candidate is None:
            return None
        return self._position(candidate, self._settle(self._field(candidate.queue), now))

    def claims(self, queue: str) -> dict[GangKey, Claim]:
        """What the admitted gangs of a queue hold, without those below it."""
        book = self._books.get(queue)
        return dict(book.held) if book else {}

    def used(self, queue: str) -> Resources:
        """What is taken of a queue, by its own gangs and those below it; what is soft there takes nothing."""
        soft = softened(self._tree, self._books)
        below = ((other, book) for other, book in self._books.items() if queue in self._tree.path(other))
        return total(
            minus(claim.resources, claim.soft)
            if claim.soft and claim.order.key in soft and queue in soft_in(self._tree, other, claim)
            else claim.resources
            for other, book in below
            for claim in book.held.values()
        )

    def soft(self, key: GangKey, now: float) -> bool:
        """Whether a part of the gang's claim counts for nothing."""
        queue = self._queue_of.get(key)
        return queue is not None and key in self._settle(self._field(queue), now).soft

    def competing(self, queue: str) -> set[str]:
        """The queues in which somebody holds or waits for the same room as in this one."""
        return set(self._queues_of_field.get(self._field(queue), ()))

    def fields(self) -> list[str]:
        """One queue of every set of queues that compete, where anybody holds or waits."""
        return [next(iter(queues)) for queues in self._queues_of_field.values() if queues]

    def startable(self, queue: str, now: float) -> list[GangKey]:
        """All gangs that may start now among those that compete with a queue's."""
        return list(self._settle(self._field(queue), now).fits)

    def news(self, queue: str, now: float) -> list[GangKey] | None:
        """As `startable`, or None where that was asked before of the same competitors and nothing is different since.

        Nothing is different when those start that may.
        """
        settled = self._settle(self._field(queue), now)
        if settled.told:
            return None
        settled.told = True
        return list(settled.fits)

    def decide(self, key: GangKey, now: float) -> Decision | None:
        """What holds for a waiting gang, given all who wait with it; None when it does not wait."""
        candidate = self._candidate(key)
        if candidate is None:
            return None
        place = self._tree.place(candidate.queue)
        never = refused(candidate, place, now)
        if never is not None or place is None:
            return never
        settled = self._settle(self._field(candidate.queue), now)
        if key in settled.fits:
            message = f'{describe(candidate.need)} of queue "{candidate.queue}"'
            return Decision(fits=True, state=State.ADMITTED, message=message)
        message = why(candidate, place, settled, self._position(candidate, settled))
        return Decision(fits=False, state=State.WAITING_FOR_QUOTA, message=message)

    def refusal(self, candidate: Candidate, now: float) -> Decision | None:
        """Why such a gang cannot start however much is free, whether it waits here or not; None when it can."""
        return refused(candidate, self._tree.place(candidate.queue), now)

    def passed_by(self, key: GangKey, now: float, *, growth: bool = False) -> list[GangKey]:
        """Those who were first and still wait for room of which this gang takes some, and were not passed before.

        Asked of a gang that may start, or that has grown: before `growth` stands everybody who waits.
        """
        queue = self._queue_of.get(key)
        if queue is None:
            return []
        claim, candidate = self._claim(key), self._candidate(key)
        own = claim.order if claim else candidate.order if candidate else None
        amounts = claim.amounts if claim else amounts_of(candidate.need) if candidate else ()
        takes = {(level, name) for level in self._tree.path(queue) for name, _ in amounts}
        field = self._field(queue)
        settled = self._settle(field, now)
        passed = []
        for other in self._queues_of_field[field]:
            book, place = self._books[other], self._tree.place(other)
            for (asked, before, _), line in book.lines.items():
                # Those who fit stand before those who do not: where there is no room is the same for all of a line.
                if own is None or before or not (growth or line.orders[0] < own):
                    continue
                lacking = settled.room.lacking(self._tree.path(other), asked)
                if not any((level, name) in takes for level, names in lacking.items() for name in names):
                    continue
                passed += [
                    order.key
                    for order in line.orders[: None if growth else line.before(own)]
                    if order.key not in settled.fits and refused(book.waits(order.key), place, now) is None
                ]
        return passed

    def fits_more(
        self,
        key: GangKey,
        queue: str,
        claim: Resources,
        now: float,
        *,
        waits_as: GangKey | None = None,
        replaces: GangKey | None = None,
    ) -> bool:
        """Whether the claim of an admitted gang may grow to this: beside all that is held or may start now.

        Growth stands behind all who wait: it may pass them as a small gang may, but nobody whom nobody passes. Where it
        stands in line itself, under the key `waits_as`, what it may take there is its own; so is what is held under
        the key `replaces`.
        """
        view = self._tree.get(queue)
        if view is None or not view.open:
            return False
        held = self._claim(key) if self._queue_of.get(key) == queue else None
        settled = self._settle(self._field(queue), now)
        own = settled.fits.get(waits_as) if waits_as else None
        if own is None and settled.behind(queue) is not None:
            return False
        has = dict(held.amounts) if held is not None else {}
        gone = self._claim(replaces) if replaces else None
        for name, amount in (*(own or ()), *(gone.amounts if gone else ())):
            has[name] = has.get(name, 0) + amount
        more = _more(claim, has)
        spared = soft_in(self._tree, queue, held) if held is not None and key in settled.soft else ()
        counts = [one for one in self._tree.path(queue) if one not in spared]
        kept = {} if own is not None else settled.bars.kept
        if settled.room.lacking(counts, more, kept=kept):
            return False
        for name, amount in held.soft_amounts if held is not None and spared else ():
            has[name] -= amount
        return not spared or not settled.room.lacking(spared, _more(claim, has), kept=kept)

    def _settle(self, field: str, now: float) -> Settled:
        known = self._settled.get(field)
        if known is None or known.until <= now:
            books = {queue: self._books[queue] for queue in self._queues_of_field.get(field, ())}
            known = self._settled[field] = settle(self._tree, books, self._room, self._lasting, now)
        return known

    def _position(self, candidate: Candidate, settled: Settled) -> tuple[int, int]:
        book = self._books[candidate.queue]
        fitting = (waits for key in settled.fits if (waits := book.candidate(key)))
        ahead = book.before(candidate.order) - sum(other.order < candidate.order for other in fitting)
        return ahead + 1, book.waiting


def _as_expected(settled: Settled, candidate: Candidate | None, new: Claim) -> bool:
    """Whether what was settled comes to pass with this claim, so that for all others nothing is different."""
    return (
        candidate is not None
        and settled.fits.get(candidate.key) == new.amounts
        and not new.soft_amounts
        and (candidate.order, candidate.lasts) == (new.order, new.lasts)
        and settled.comes_to_pass(candidate, new.amounts)
    )


def _signed(amounts: Amounts, sign: int) -> Amounts:
    return amounts if sign > 0 else tuple((name, -amount) for name, amount in amounts)


def _more(claim: Resources, has: Mapping[str, int]) -> Amounts:
    """What a claim would be more than there is."""
    return tuple((name, grown) for name, amount in amounts_of(claim) if (grown := amount - has.get(name, 0)) > 0)
