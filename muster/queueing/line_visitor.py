"""Goes along a line of waiting gangs in a pass, from one that starts, or for which room is kept, to the next."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from math import floor, inf

from muster.queueing.admission_pass import AdmissionPass
from muster.queueing.entries import EntryKey, Order
from muster.queueing.holdings import Room
from muster.queueing.queue_state import LineKey, QueueState, Stage
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import ROOT
from muster.queueing.shares import Reclaimable, Shares
from muster.queueing.turns import QueueVisitor, in_turn
from muster.queueing.usage import RUN, clamp
from muster.queueing.waiting_line import WaitingLine

# What its queue held before a gang was passed counts an eighth by then; what keeps it back is that others of the queue
# start. With one, large gangs make a queue forget its past too often; without it they never start (`hack.bench share`).
_HALF_LIVES = 3


class LineVisitor(QueueVisitor):
    """Finds the gangs of a line that change anything when their turn comes; what they may need only shrinks in a pass.

    These are gangs that may fit, and gangs whose patience is over if a reservation may help them. In a strict queue
    it is all of them, until one has to wait.
    """

    def __init__(self, outcome: AdmissionPass, queue: str, key: LineKey, line: WaitingLine) -> None:
        super().__init__(queue, line.first)
        self.outcome = outcome
        self._waiting = outcome.states[queue]
        self.key = key
        self.line = line
        # Where gangs are visited only if they fit what is free: the limits, from the root down. Many a queue has no
        # gang that fits what is free for all.
        self._limits: tuple[str, ...] = ()
        if key.stage is not Stage.PATIENCE_EXPIRED and not outcome.tree.in_strict_line(queue) and not self._spared():
            self._limits = outcome.tree.limiting(queue)
            if outcome.reclaimable is not None and self._limits[:1] == (ROOT,):
                self._limits = self._limits[1:]
        # What is to be done at the turn of the next one, and how much had changed when that was found.
        self._step: Callable[[], None] | None = None
        self._found_at = -1

    def peek(self) -> bool:
        """Find the next; False where there is none."""
        if self.is_full():
            return False
        if self._found_at != self.outcome.changes:
            self.found, self._found_at = False, self.outcome.changes
        return super().peek()

    def advance(self) -> None:
        """Start the next, or keep room for it, and go on behind it."""
        if self._step is not None:
            self._step()
        super().advance()

    def find(self) -> Order | None:
        """The next behind the last, as the pass stands."""
        options, helped = self._options()
        while True:
            found = [self.line.next_within(self.last, *options)]
            if helped is not None and (unreserved := self._unreserved()) != []:
                found.append(self.line.next_within(self.last, helped, beyond=unreserved))
            first = min((one[0] for one in found if one is not None), default=None)
            if first is None:
                return None
            self._step = self.outcome.step(self._waiting.waits(first.key))
            if self._step is not None:
                return first
            self.last = first

    @property
    def _first_of_strict(self) -> bool:
        """True in a strict queue where no gang waits yet: the first that has to wait matters to all others."""
        strict = self.outcome.tree.in_strict_line(self.queue)
        return strict and self.outcome.strict_head_before(self.queue) is None

    def _options(self) -> tuple[list[dict[str, int]], dict[str, int] | None]:
        """The most that the next one may need of limited resources, and how long it may run, in each way to start.

        And the most that it may need to have room kept for it; None where that is out of the question.
        """
        outcome, tree = self.outcome, self.outcome.tree
        path = tree.path(self.queue)
        if not self.key.begun and outcome.strict_head_before(self.queue) is not None:
            return [], None
        spared = self._spared()
        over, strict = self.key.stage is Stage.PATIENCE_EXPIRED, self._first_of_strict
        # Gangs that can never start are never visited.
        most = self._most_of_namespace(helps=over)
        clamp(most, tree.tightest(self.queue))
        if self._none_within(most):
            return [], None
        # From the root down: many a queue has no gang that fits what is free for all.
        for level in () if over or strict else tree.limiting(self.queue):
            clamp(most, self._free(level, spared))
            if self._none_within(most):
                return [], None
        if strict:
            return [most], None
        free = dict(most)
        if over:
            clamp(free, self._room())
            clamp(most, self._room(lasting=True))
        return self._passing(free, path), most if over else None

    def _unreserved(self) -> list[Mapping[str, int]] | None:
        """The free amounts of levels without a reservation: one of these has to be short for a new reservation.

        None where its namespace may be short instead.
        """
        if self.key.namespace in self.outcome.namespaces:
            return None
        by_level, spared = self.outcome.reservations.by_level, self._spared()
        return [self._free(one, spared) for one in self.outcome.tree.path(self.queue) if one not in by_level]

    def _passing(self, free: dict[str, int], path: tuple[str, ...]) -> list[dict[str, int]]:
        """The most that a gang may need that passes all reservations, by its end or by their spare amounts."""
        outcome, kind = self.outcome, self.key.kind
        if self.key.begun:
            return [free]
        options, most, spared = [], free, self._spared()
        reservations = [(one.latest(kind), one) for one in outcome.reservations.at(path)]
        for latest, one in sorted(reservations, key=lambda entry: entry[0]):
            if latest > outcome.now:
                options.append(most if latest == inf else {**most, RUN: floor(latest - outcome.now)})
            most = dict(most)
            for level, spare in one.spare.items():
                if level in path:
                    more = self._reclaimable(level)
                    clamp(most, {name: left + spared.get(name, 0) + more.get(name, 0) for name, left in spare.items()})
        return [*options, most]

    def is_full(self) -> bool:
        """True if a level has less free than each of them needs, and nothing else can be done for them in this pass.

        So it is for most lines of a busy cluster, and what is free only shrinks in a pass.
        """
        for one in self._limits:  # noqa: SIM110 - asked of thousands of lines
            if self._none_within(self.outcome.free(one)):
                return True
        return False

    def _none_within(self, most: Mapping[str, int]) -> bool:
        """True if the line needs more of a resource than this, even the gang that needs least of it."""
        for name, amount in self.line.least:  # noqa: SIM110 - asked of thousands of lines
            if name in most and amount > most[name]:
                return True
        return False

    def _most_of_namespace(self, *, helps: bool) -> dict[str, int]:
        """The most that a gang may need for the ElasticQuotas of its namespace."""
        room, namespace = self.outcome.namespaces, self.key.namespace
        if namespace not in room:
            return {}
        helps = helps and namespace not in self.outcome.reservations.by_namespace
        return room.largest(namespace, in_the_end=helps)

    def _room(self, *, lasting: bool = False) -> Mapping[str, int]:
        """The amounts free at all levels of the queue for gangs of this line, now or when finite work has ended."""
        spared = self._spared(lasting=lasting)
        if not self._reclaimable(ROOT, lasting=lasting):
            room = self.outcome.room(self.queue, lasting=lasting)
            return {name: left + spared.get(name, 0) for name, left in room.items()} if spared else room
        most: dict[str, int] = {}
        for one in self.outcome.tree.path(self.queue):
            clamp(most, self._free(one, spared, lasting=lasting))
        return most

    def _free(self, level: str, spared: Mapping[str, int], *, lasting: bool = False) -> Mapping[str, int]:
        """The amounts free there for gangs of this line, with those `spared`, now or when finite work has ended."""
        free, more = self.outcome.free(level, lasting=lasting), self._reclaimable(level, lasting=lasting)
        return {name: left + spared.get(name, 0) + more.get(name, 0) for name, left in free.items()}

    def _reclaimable(self, level: str, *, lasting: bool = False) -> Mapping[str, int]:
        """The most that can be reclaimed there from other queues for gangs of this line."""
        if level != ROOT or self.outcome.reclaimable is None:
            return {}
        return self.outcome.reclaimable[lasting].given

    def _spared(self, *, lasting: bool = False) -> Mapping[str, int]:
        """The amounts of gangs that Volcano preempts for this line; a line has one priority then."""
        urgency = self.key.urgency
        return {} if urgency is None else self.outcome.less_urgent(self.queue, -urgency, lasting=lasting)


def _passed_for_long(tree: QueueTree, states: Mapping[str, QueueState], now: float) -> Iterator[tuple[str, EntryKey]]:
    """The first gangs that have been passed for so many half-lives, with the queues that a half-life is set for."""
    for queue, state in states.items():
        for key, since in state.passed_since():
            for one, parent in pairwise(tree.gang_path(queue)) if since < now else ():
                half_life = tree.settings(parent).half_life
                if half_life and since + _HALF_LIVES * half_life <= now:
                    yield one, key


def run_admission_pass(
    shares: Shares, states: Mapping[str, QueueState], room: Room, *, now: float, at_once: int
) -> AdmissionPass:
    """Decide for all gangs that wait in these queues, the queues of one subtree, until `at_once` may start.

    The pass takes of the room.
    """
    tree = shares.tree
    until = min((state.advance(now) for state in states.values()), default=inf)
    passed = frozenset(_passed_for_long(tree, states, now) if shares.past else ())
    outcome = AdmissionPass(shares, states, *room, now, at_once, until=until)
    if tree.settings(ROOT).reclaims:
        of_all = Reclaimable(shares, states, outcome.usage)
        outcome.reclaimable = of_all, Reclaimable(shares, states, outcome.lasting, lasting=True)
    visitors: dict[str, list[LineVisitor]] = {}
    for queue, state in states.items():
        if tree.takes_work(queue) and tree.leaf(queue):
            lines = (LineVisitor(outcome, queue, key, line) for key, line in state.lines.items())
            visitors[queue] = [one for one in lines if not one.is_full()]
    turns = in_turn(shares, outcome.usage, visitors, passed)
    while turns.next() is not None:
        if len(outcome.fits) == at_once:
            outcome.more = True
            break
        turns.advance()
    return outcome
