"""The gangs that are passed when one starts or grows: those before it, not passed yet, that wait for what it takes.

Of those that lack it in the same queue the first in order is passed, for only the first can have a reservation there.
The next one is passed by the next start: to note thousands at one would be thousands of writes. Among siblings that
compete by share a start passes the gangs whose turn came before its own: their queue had less of its share, or as much
and they are older.
"""

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice, takewhile
from math import inf
from sys import maxsize

from muster.queueing.admission_pass import AdmissionPass
from muster.queueing.entries import EntryKey, GangKey, Order
from muster.queueing.queue_state import Stage
from muster.queueing.queue_view import ROOT
from muster.queueing.waiting_line import WaitingLine

_MayBePassed = Callable[[EntryKey], bool]
_LAST = Order(maxsize, "", GangKey("", ""))


class LineBypass:
    """The gangs of some lines that lack something, in order; as long as one admission pass holds.

    It keeps its place: a gang that may not be passed once may not be passed later either.
    """

    def __init__(self, lines: Iterable[WaitingLine], free: Mapping[str, int]) -> None:
        self._orders = heapq.merge(*(_beyond(line, free) for line in lines))
        self._head: list[Order] = []

    def first(self, before: Order | None, may_be_passed: _MayBePassed) -> Order | None:
        """The first of them that may be passed, if it stands before that place (None: any)."""
        if not self._head:
            self._head.extend(islice(self._orders, 1))
        while self._head and (before is None or self._head[0] < before):
            if may_be_passed(self._head[0].key):
                return self._head[0]
            self._head[:] = islice(self._orders, 1)
        return None


def _beyond(line: WaitingLine, free: Mapping[str, int]) -> Iterator[Order]:
    last = None
    # The line changes all the while: gangs start, or are passed.
    while (found := line.next_within(last, {}, beyond=(free,))) is not None:
        last = found[0]
        yield last


class BypassCandidates:
    """The gangs that lack, at the queue `level`, what others take there, by the queue directly below where they wait.

    The pass keeps them, so that they do not keep the pass: a circle of objects would stay for ever.
    """

    def __init__(
        self, outcome: AdmissionPass, level: str, free: Mapping[str, int], queues: Iterable[str], namespace: str = ""
    ) -> None:
        """Of the resources of `free`, where the pass leaves so much; of the gangs that one namespace limits, or all."""
        self._level = level
        self._by_age = outcome.shares.by_age(level)
        self._free, self._lines = free, defaultdict[str, list[WaitingLine]](list)
        for queue in queues:
            path = outcome.tree.gang_path(queue)
            for key, line in outcome.states[queue].lines.items() if level in path else ():
                if key.stage is Stage.FRESH and namespace in ("", key.namespace):
                    self._lines[self._below(path)].append(line)
        # Most queues are not asked for.
        self._lacking: dict[str, LineBypass] = {}
        shares = sorted((self._share(outcome, queue), queue) for queue in self._lines)
        self._shares = {queue: share for share, queue in shares}

    def first(
        self, outcome: AdmissionPass, path: tuple[str, ...], own: Order | None, may_be_passed: _MayBePassed
    ) -> Order | None:
        """The first that is passed by a gang of the first queue of this path, at that place (None: behind all)."""
        below = self._below(path)
        started = outcome.turns.get(below, {})
        if own is None:
            turn = inf, _LAST
        elif own in started:
            turn = started[own], own
        else:
            # A wave has no turn under the name of its gang: what it took counts, too.
            turn = self._share(outcome, below), _LAST
        earlier = takewhile(lambda queue: self._shares[queue] <= turn[0], self._shares)
        # Where gangs have started in the pass those before them had their turns when their queue had less.
        for queue in filter(self._lines.__contains__, chain(earlier, (below, *outcome.turns))):
            before = own if queue == below else None
            if self._shares[queue] == turn[0] and queue != below and queue not in outcome.turns:
                before = turn[1]
            if queue not in self._lacking:
                self._lacking[queue] = LineBypass(self._lines[queue], self._free)
            first = self._lacking[queue].first(before, may_be_passed)
            if first is not None and (queue == below or (self._share_at(outcome, queue, first), first) <= turn):
                return first
        return None

    def _below(self, path: tuple[str, ...]) -> str:
        """The queue directly below, on the way to the first of the path; the queue itself where none competes."""
        at = path.index(self._level)
        return self._level if at == 0 or self._by_age else path[at - 1]

    def _share(self, outcome: AdmissionPass, queue: str) -> float:
        return 0.0 if queue == self._level else outcome.share(queue)

    def _share_at(self, outcome: AdmissionPass, queue: str, order: Order) -> float:
        """The share usage of a queue at the turn of a gang that waits there and lacks something."""
        # Those behind it have started since.
        behind = (share for other, share in outcome.turns.get(queue, {}).items() if other > order)
        return next(behind, self._share(outcome, queue))


def first_bypassed(
    outcome: AdmissionPass,
    queue: str,
    *,
    takes: tuple[str, ...],
    behind: Order | None,
    namespace: str,
    may_be_passed: _MayBePassed,
) -> Iterator[Order]:
    """The gangs that a start in a queue passes that takes these resources, at this place (None: behind all).

    One for each queue on the way to the root, and one of its `namespace` where that is limited ("": where not).
    """
    path = outcome.tree.gang_path(queue)
    for level, of in (*((level, "") for level in path), *(((ROOT, namespace),) if namespace else ())):
        known = outcome.bypassed.get((level, takes, of))
        if known is None:
            most = outcome.namespaces.largest(of) if of else outcome.usage.free(level, takes)
            free = {name: most[name] for name in takes if name in most}
            queues = (queue,) if level == path[0] else outcome.states
            known = outcome.bypassed[level, takes, of] = BypassCandidates(outcome, level, free, queues, of)
        first = known.first(outcome, path, behind, may_be_passed)
        if first is not None:
            yield first
