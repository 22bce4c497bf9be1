"""The numbers of each queue for metrics: limit, usage, demand, share and reservations, read in small steps."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from muster.queueing.holdings import Holdings
from muster.queueing.queue_state import QueueState
from muster.queueing.queue_view import ROOT
from muster.queueing.reservations import Reservation
from muster.queueing.shares import Shares
from muster.queueing.usage import Amounts

_Sums = defaultdict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class QueueNumbers:
    """The numbers of one queue and of all below it, by resource in base units."""

    limit: Mapping[str, float]
    """Its limit; without the resources that it does not limit itself."""
    used: Mapping[str, float]
    """The usage by claims; soft claims do not count."""
    waiting: Mapping[str, float]
    """The need of the gangs that wait."""
    deserved: Mapping[str, float]
    """Its share of the room below its parent; of what nothing limits there, its `spec.deserved` if it has that."""
    reserved: Mapping[str, float]
    """The need of those waiting gangs that have a reservation."""
    oldest: str
    """Since when the oldest gang of the queue itself waits (RFC 3339); "" where none waits."""


def read_numbers(
    names: Collection[str],
    states: Mapping[str, QueueState],
    holdings: Holdings,
    shares: Shares,
    reservations: Iterable[tuple[str, Reservation]],
) -> Iterator[tuple[str, QueueNumbers] | None]:
    """Yield the numbers of each queue that is there, of these resources, and None after each step before.

    Claims, gangs and queues may change between two steps: each number is one of a moment of the reading.
    """
    tree = shares.tree
    waiting: _Sums = defaultdict(dict)
    reserved: _Sums = defaultdict(dict)
    for queue, state in list(states.items()):
        _add(waiting, tree.path(queue), state.needs.items())
        yield None
    for queue, one in list(reservations):
        waits = states[queue].candidate(one.order.key) if queue in states else None
        if waits is not None:
            _add(reserved, tree.path(queue), waits.amounts)
    yield None
    usage = holdings.whole(states)
    yield None
    for queue in tree.with_below(ROOT):
        if queue != ROOT and tree.get(queue) is None:
            continue
        used, needs, its_own = usage.taken(queue), waiting[queue], states.get(queue)
        view = tree.get(queue)
        written = {name: amount.nano for name, amount in view.deserved.items()} if view is not None else {}
        deserved = {**written, **shares.deserved(queue)}
        limited = {*tree.tightest(queue), *deserved}
        counted = [name for name in names if name in limited or used.get(name) or needs.get(name)]

        def parts(amounts: Mapping[str, float], names: Iterable[str] = counted) -> dict[str, float]:
            return {name: amounts.get(name, 0) / 10**9 for name in names}

        limit = tree.ceiling(queue)
        yield (
            queue,
            QueueNumbers(
                parts(limit, [name for name in counted if name in limit]),
                parts(used),
                parts(needs),
                parts(deserved, [name for name in counted if name in deserved]),
                parts(reserved[queue]),
                its_own.oldest() if its_own is not None else "",
            ),
        )


def _add(sums: _Sums, path: Iterable[str], amounts: Amounts | Iterable[tuple[str, int]]) -> None:
    for level in path:
        known = sums[level]
        for name, amount in amounts:
            known[name] = known.get(name, 0) + amount
