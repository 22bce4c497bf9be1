"""Who holds what of which queue, who is next, and why the others wait.

The ledger is a value in memory: everything in it comes from objects in the cluster, so that the same objects give the
same ledger in any order of events. It never reads a clock and does no I/O. Whoever asks it to admit a gang must write
that down in the cluster before acting on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from muster.queues import exceeding
from muster.reasons import State
from muster.resources import Resources, describe, minus, total, within

if TYPE_CHECKING:
    from muster.queues import QueueView

__all__ = ["Candidate", "Decision", "GangKey", "Ledger"]


class GangKey(NamedTuple):
    """A gang, by the namespace and name of its PodGroup."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """An assembled gang that wants to start.

    `priority` is its PriorityClass's value, `since` the creation time of its workload (RFC 3339, UTC), `need` what it
    will hold of its queue.
    """

    key: GangKey
    queue: str
    priority: int
    since: str
    need: Resources

    @property
    def order(self) -> tuple[int, str, GangKey]:
        """Who is first: the more urgent, the older, then by name."""
        return -self.priority, self.since, self.key


@dataclass(frozen=True, slots=True)
class Decision:
    """What the ledger says of a candidate: it may start now, or the reason and the sentence why not."""

    fits: bool
    state: State
    message: str


@dataclass(slots=True)
class _Book:
    """What there is to say of one queue."""

    view: QueueView | None = None
    held: dict[GangKey, Resources] = field(default_factory=dict)
    waiting: dict[GangKey, Candidate] = field(default_factory=dict)
    decisions: dict[GangKey, Decision] | None = None


class Ledger:
    """The claims of all gangs on all queues.

    Invariant: `decide` never says yes to gangs that together would take a queue above its limit; a gang whose claim is
    written by `hold` counts whether it fits or not, for it runs already.
    """

    def __init__(self) -> None:
        self._books: dict[str, _Book] = {}
        self._queue_of: dict[GangKey, str] = {}

    def set_queue(self, view: QueueView) -> None:
        """Enter a queue, or what has changed in it."""
        book = self._book(view.name)
        book.view, book.decisions = view, None

    def drop_queue(self, name: str) -> None:
        """Take out a queue that is gone; what is held there and waits there stays known."""
        book = self._book(name)
        book.view, book.decisions = None, None

    def hold(self, key: GangKey, queue: str, claim: Resources) -> bool:
        """Enter the claim of an admitted gang; True when that changed anything for others."""
        if self._queue_of.get(key) == queue and self._books[queue].held.get(key) == claim:
            return False
        self.forget(key)
        book = self._book(queue)
        book.held[key], book.decisions = claim, None
        self._queue_of[key] = queue
        return True

    def wait(self, candidate: Candidate) -> bool:
        """Enter a gang that wants to start; True when that changed anything for others."""
        key, queue = candidate.key, candidate.queue
        if self._queue_of.get(key) == queue and self._books[queue].waiting.get(key) == candidate:
            return False
        self.forget(key)
        book = self._book(queue)
        book.waiting[key], book.decisions = candidate, None
        self._queue_of[key] = queue
        return True

    def forget(self, key: GangKey) -> bool:
        """Take a gang out: it holds nothing and waits for nothing; True when it was in."""
        queue = self._queue_of.pop(key, None)
        if queue is None:
            return False
        book = self._books[queue]
        book.held.pop(key, None)
        book.waiting.pop(key, None)
        book.decisions = None
        if book.view is None and not book.held and not book.waiting:
            del self._books[queue]
        return True

    def queue_of(self, key: GangKey) -> str | None:
        """The queue in which the gang holds or waits."""
        return self._queue_of.get(key)

    def holds(self, key: GangKey) -> Resources | None:
        """The claim of an admitted gang, or None."""
        queue = self._queue_of.get(key)
        return None if queue is None else self._books[queue].held.get(key)

    def waiting(self, queue: str) -> list[GangKey]:
        """The gangs that wait in a queue, first in order first."""
        book = self._books.get(queue)
        return [] if book is None else [candidate.key for candidate in _in_order(book)]

    def fits_more(self, key: GangKey, queue: str, claim: Resources) -> bool:
        """Whether the claim of an admitted gang may grow to this beside what the others hold of an open queue."""
        book = self._books.get(queue)
        if book is None or book.view is None or not book.view.open:
            return False
        others = total(held for holder, held in book.held.items() if holder != key)
        return _has_room(book.view.limit, others, claim)

    def decide(self, key: GangKey) -> Decision | None:
        """What holds for a waiting gang, given all who wait with it; None when it does not wait."""
        queue = self._queue_of.get(key)
        if queue is None:
            return None
        book = self._books[queue]
        if book.decisions is None:
            book.decisions = _decide(queue, book)
        return book.decisions.get(key)

    def _book(self, queue: str) -> _Book:
        return self._books.setdefault(queue, _Book())


def _in_order(book: _Book) -> list[Candidate]:
    return sorted(book.waiting.values(), key=lambda candidate: candidate.order)


def _decide(name: str, book: _Book) -> dict[GangKey, Decision]:
    """Go through the waiting gangs in order; one that does not fit is passed by a smaller one behind it."""
    candidates = _in_order(book)
    if book.view is None:
        gone = Decision(fits=False, state=State.QUEUE_NOT_FOUND, message=f'queue "{name}" does not exist')
        return {candidate.key: gone for candidate in candidates}
    if not book.view.open:
        state = book.view.state or "not open yet"
        shut = Decision(
            fits=False,
            state=State.QUEUE_CLOSED,
            message=f'queue "{name}" is {state} and takes no new work',
        )
        return {candidate.key: shut for candidate in candidates}
    limit = book.view.limit
    used = total(book.held.values())
    decisions: dict[GangKey, Decision] = {}
    ahead = 0
    for candidate in candidates:
        if _has_room(limit, used, candidate.need):
            used = total((used, candidate.need))
            decisions[candidate.key] = Decision(
                fits=True,
                state=State.ADMITTED,
                message=f'{describe(candidate.need)} of queue "{name}"',
            )
            continue
        ahead += 1
        decisions[candidate.key] = _refused(candidate, book.view, used, ahead, len(candidates))
    return decisions


def _has_room(limit: Resources, used: Resources, need: Resources) -> bool:
    """Whether the need fits beside what is used; what it does not ask for is not looked at."""
    asked = {resource: amount for resource, amount in limit.items() if need.get(resource)}
    return within(total((used, need)), asked)


def _refused(candidate: Candidate, queue: QueueView, used: Resources, position: int, waiting: int) -> Decision:
    over = exceeding(candidate.need, queue.limit)
    if over is not None:
        return Decision(
            fits=False,
            state=State.EXCEEDS_CAPABILITY,
            message=f'needs {over[0]}, queue "{queue.name}" has capability {over[1]}',
        )
    named = {resource: queue.limit[resource] for resource in queue.limit if resource in candidate.need}
    free = describe(minus(named, used))
    return Decision(
        fits=False,
        state=State.WAITING_FOR_QUOTA,
        message=(
            f'needs {describe(candidate.need)}; queue "{queue.name}" has {free} free of {describe(named)}; '
            f"position {position} of {waiting} waiting"
        ),
    )
