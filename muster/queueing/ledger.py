"""The claims of all gangs on their queues, the next gang to start, and why the others wait.

The ledger is a value in memory: everything in it comes from objects in the cluster, so that the same objects give the
same ledger in any order of events. It never reads a clock and does no I/O: `now` is seconds of the wall clock, and is
passed in. A caller that has it admit a gang must write that down in the cluster before acting on it.

It has three parts: the gangs of each queue (`queue_state`), what their claims take of the tree (`holdings`), and, for
the gangs that compete for the same room, what was decided of them last and how long that holds (`passes`).

A claim counts for its queue and for all above it. Gangs that compete for the same room, those below the highest queue
that limits anything, are one subtree: the queue that has least of its share is first, and in a queue the more urgent
gang, then the older. Where any namespace has an ElasticQuota all gangs are one subtree.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial

from muster.model.gang_states import GangState
from muster.queueing.admission_pass import AdmissionPass
from muster.queueing.bypassed import first_bypassed
from muster.queueing.entries import Candidate, Claim, End, EndKind, EntryKey, GangKey, Growth, Order, Run
from muster.queueing.growth import fits_more
from muster.queueing.holdings import Holdings
from muster.queueing.line_visitor import run_admission_pass
from muster.queueing.passes import PassCache
from muster.queueing.past_use import PastUse
from muster.queueing.queue_numbers import QueueNumbers, read_numbers
from muster.queueing.queue_state import QueueState
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import ROOT, QueueView
from muster.queueing.reservations import Reservation
from muster.queueing.shares import Shares
from muster.queueing.usage import amounts_of
from muster.queueing.verdicts import Decision, queue_not_found, refused, why
from muster.resources.amounts import Resources, describe
from muster.resources.elastic_quotas import NamespaceLimit

__all__ = ["Candidate", "Decision", "End", "EndKind", "GangKey", "Ledger", "Run", "queue_not_found"]

# A pass that lets gangs start takes some 20 us for each of them: as many as are not much next to its other work.
_AT_ONCE = 128


class Ledger:
    """The claims of all gangs on all queues.

    Invariant: `decide` never admits gangs that together would take a queue, or one above it, beyond its limit,
    soft claims and those that a preempting gang leaves out apart; nor to limited ones that would take their namespace
    beyond its ElasticQuotas. A gang whose claim is written by `hold` counts whether it fits or not: it runs already.
    """

    def __init__(self, at_once: int = _AT_ONCE, past: PastUse | None = None) -> None:
        """No more than `at_once` gangs are let start before the next are looked for."""
        self._at_once = at_once
        self._tree = QueueTree()
        self._shares = Shares(self._tree, past)
        self._holdings = Holdings(self._tree)
        self._passes = PassCache(self._tree)
        self._states: dict[str, QueueState] = {}
        self._queue_of: dict[EntryKey, str] = {}

    def copy(self) -> Ledger:
        """A ledger that decides as this one does; neither changes the other."""
        other = Ledger(self._at_once)
        tree = other._tree = self._tree.copy()
        other._shares, other._holdings = Shares(tree, self.past.copy()), self._holdings.copy(tree)
        other._states = {queue: state.copy() for queue, state in self._states.items()}
        other._queue_of = dict(self._queue_of)
        other._passes = PassCache(tree)
        other._passes.together = self._passes.together
        other._passes.regroup(other._states)
        return other

    @property
    def gangs(self) -> int:
        """How many gangs hold or wait."""
        return len(self._queue_of)

    # --- queues -----------------------------------------------------------------------------------------------------

    @property
    def tree(self) -> QueueTree:
        """The queues; they are changed by the ledger only."""
        return self._tree

    def set_queue(self, view: QueueView) -> bool:
        """Add or update a queue; True when anything changed."""
        return self._put(view.name, view)

    def drop_queue(self, name: str) -> bool:
        """Remove a queue; True when it was known. Gangs that hold or wait there stay known."""
        return self._put(name, None)

    def _put(self, name: str, new: QueueView | None) -> bool:
        old = self._tree.get(name)
        if old == new:
            return False
        if old is not None and new is not None and _role(old) == _role(new):
            # Which queues compete, and what is held where, is as before.
            self._tree.put(name, new)
            self._passes.forget(name)
        elif name == ROOT:
            self._change_root(partial(self._tree.put, name, new))
        else:
            parents = (view.parent for view in (old, new) if view is not None)
            self._move(name, parents, partial(self._tree.put, name, new))
        if name in self._states:
            self._states[name].set_view(self._tree.settings(name))
        return True

    def bound(self, nodes: Resources | None) -> bool:
        """Bound all queues together by the nodes' resources, or by nothing (None); True when anything changed."""
        if nodes == self._tree.nodes:
            return False
        root = self._tree.settings(ROOT)
        if (nodes is None) is (self._tree.nodes is None) and bool(nodes or root.limit) and self._tree.limit(ROOT):
            # All gangs compete with all others, before and after; only what fits changes.
            self._tree.bound(nodes)
            self._passes.forget_all()
        else:
            self._change_root(partial(self._tree.bound, nodes))
        return True

    def limit_namespace(self, namespace: str, limit: NamespaceLimit | None, *, whole: bool = True) -> bool:
        """Limit what gangs of a namespace hold in all queues, or no longer (None); True when anything changed.

        Not `whole` where the ElasticQuotas of some namespaces are not known: their sum bounds nothing.
        """
        if not self._holdings.limit(namespace, limit, whole=whole):
            return False
        self._passes.together = bool(self._holdings.limits)
        self._passes.regroup(self._states)
        return True

    def others_use(self, namespace: str, use: Resources) -> bool:
        """Count what pods that are not of gangs use of a namespace's ElasticQuotas; True when anything changed."""
        if not self._holdings.others_use(namespace, use):
            return False
        self._passes.forget_all()
        return True

    def _move(self, name: str, parents: Iterable[str], change: Callable[[], object]) -> None:
        """Change the tree at a queue: what it and those below it hold counts elsewhere then.

        So does what its parent holds itself, which may get its first queue below it, or lose the last.
        """
        below = self._tree.with_below(name)
        states = {one: self._states[one] for one in (*below, *parents) if one in self._states}
        self._holdings.detach(below, states)
        self._passes.detach((*below, *self._tree.path(name)), used=states)
        change()
        self._holdings.attach(states)
        self._passes.attach(self._tree.path(name), used=states)

    def _change_root(self, change: Callable[[], object]) -> None:
        """Change the root, or whether nodes bound it: then claims between two waves count elsewhere, no others."""
        idle = {one: state for one, state in self._states.items() if any(like.idle for like in state.sums)}
        self._holdings.detach((), idle)
        change()
        self._holdings.attach(idle)
        self._passes.regroup(self._states)

    @property
    def past(self) -> PastUse:
        """What queues have held so far, where that counts."""
        return self._shares.past

    def note_use(self, now: float) -> bool:
        """Count what is held now as the use of the last minute; True if it changes which queue comes first.

        At once after the last time it does nothing.
        """
        if not self.past.due(now):
            return False
        usage = self._holdings.whole(self._states)
        changed = self.past.advance(now, ((one, life, usage.taken(one)) for one, life in self._tree.half_lives()))
        for queue in changed:
            self._passes.forget(queue)
        return bool(changed)

    # --- gangs ------------------------------------------------------------------------------------------------------

    def hold(self, claim: Claim) -> bool:
        """Record the claim of an admitted gang; True when anything changed for other gangs."""
        key, queue = claim.key, claim.queue
        old, candidate = self.claim(key), self.candidate(key)
        if old == claim:
            return False
        if old is not None and replace(old, spare=claim.spare, running=claim.running) == claim:
            self._states[queue].hold(claim)
            matters = self._holdings.runs(old, claim) or (
                self._tree.settings(ROOT).reclaims and amounts_of(old.spare) != amounts_of(claim.spare)
            )
            if matters:
                self._passes.forget(queue)
            return matters
        if candidate is not None and candidate.queue == queue and self._passes.on_started(candidate, claim):
            self._states[queue].leave(key)
        else:
            self.forget(key)
            self._passes.forget(queue)
        self._state_of(queue).hold(claim)
        self._queue_of[key] = queue
        self._holdings.enter(claim)
        return True

    def wait(self, candidate: Candidate) -> bool:
        """Record a gang that wants to start; True when anything changed for other gangs."""
        key, queue = candidate.key, candidate.queue
        known = self.candidate(key)
        if known == candidate:
            return False
        since, after = candidate.passed_since, candidate.drain_after
        passed = known is not None and known.passed_since is None and since is not None
        if known and passed and replace(known, passed_since=since, drain_after=after) == candidate:
            self._passes.on_passed(queue, self._states[queue].has_been_passed(candidate))
            return True
        self.forget(key)
        self._state_of(queue).line_up(candidate)
        self._queue_of[key] = queue
        self._passes.forget(queue)
        return True

    def forget(self, key: EntryKey) -> bool:
        """Remove a gang: it holds nothing and waits for nothing; True when it was known."""
        queue = self._queue_of.pop(key, None)
        if queue is None:
            return False
        state = self._states[queue]
        claim = state.let_go(key)
        if claim is None:
            state.leave(key)
        else:
            self._holdings.enter(claim, -1)
        self._passes.forget(queue)
        if not state:
            del self._states[queue]
            self._tree.occupy(queue, held=False)
            self._passes.leave(queue)
        return True

    def _state_of(self, queue: str) -> QueueState:
        state = self._states.get(queue)
        if state is None:
            state = self._states[queue] = QueueState(self._tree.settings(queue))
            self._tree.occupy(queue, held=True)
            self._passes.join(queue)
        return state

    # --- questions --------------------------------------------------------------------------------------------------

    def queue_of(self, key: EntryKey) -> str | None:
        """The queue in which the gang holds or waits."""
        return self._queue_of.get(key)

    def candidate(self, key: EntryKey) -> Candidate | None:
        """The gang as one that waits, or None."""
        queue = self._queue_of.get(key)
        return None if queue is None else self._states[queue].candidate(key)

    def holds(self, key: EntryKey) -> Resources | None:
        """The claim of an admitted gang, or None."""
        claim = self.claim(key)
        return None if claim is None else claim.whole

    def claim(self, key: EntryKey) -> Claim | None:
        """The claim of the gang as one that holds, or None."""
        queue = self._queue_of.get(key)
        return None if queue is None else self._states[queue].held.get(key)

    def waiting(self, queue: str) -> list[EntryKey]:
        """The gangs that wait in a queue, in order."""
        return [order.key for order in state.in_order()] if (state := self._states.get(queue)) else []

    def next_waiting(self, queue: str, behind: Order | None) -> Order | None:
        """The first gang that waits in a queue, or the first behind that place; None where there is none."""
        return state.next_behind(behind) if (state := self._states.get(queue)) else None

    def position(self, key: EntryKey, now: float) -> tuple[int, int] | None:
        """Its place among the gangs of its queue that wait and may not start yet, and how many wait; else None.

        Gangs before it that may start now are as good as gone.
        """
        waits = self.candidate(key)
        return None if waits is None else self._position(waits, self.outcome(waits.queue, now))

    def claims(self, queue: str) -> dict[EntryKey, Claim]:
        """The claims of a queue's own gangs, without the queues below it."""
        return dict(state.held) if (state := self._states.get(queue)) else {}

    def holding_in(self, namespace: str) -> set[GangKey]:
        """The gangs that hold anything in a namespace."""
        return {key.gang for key in self._holdings.holders(namespace)}

    def used(self, queue: str) -> Resources:
        """The usage of a queue, by its own gangs and the gangs of queues below it; soft claims do not count."""
        return self._holdings.used(queue, self._states)

    def share(self, queue: str) -> float | None:
        """The part of its share that a queue has; None where it has no siblings, or these do not share."""
        if not self._shares.competes(queue):
            return None
        return self._shares.of(queue, self._holdings.whole(self._states).taken(queue))

    def share_by_past(self, queue: str) -> float | None:
        """The part of that which comes from what it held in the past; None where that does not count."""
        return self._shares.by_past(queue) if self._shares.competes(queue) else None

    def soft(self, key: EntryKey, now: float) -> bool:
        """True if a part of the gang's claim does not count."""
        claim = self.claim(key)
        return claim is not None and self.outcome(claim.queue, now).is_soft(claim)

    def competing(self, queue: str) -> set[str]:
        """The queues of the same subtree in which any gang holds or waits."""
        return self._passes.competing(queue)

    def queues_in_use(self) -> list[str]:
        """The queues in which any gang holds or waits."""
        return list(self._states)

    def next_moment(self) -> float:
        """The first time at which something changes for a waiting gang though nothing happens; infinity for never."""
        return self._passes.next_moment()

    def changed_subtrees(self, now: float) -> list[str]:
        """One queue of each subtree in which any gang holds or waits, where other gangs may start now."""
        return list(self._passes.changed(now))

    def startable(self, queue: str, now: float) -> list[EntryKey]:
        """The gangs of the queue's subtree that may start now, the first of them where there are very many.

        They may start in any order: one decision lets all of them start. The next are known when half of these hold
        what they waited for.
        """
        return list(self.outcome(queue, now).fits)

    def newly_startable(self, queue: str, now: float) -> list[EntryKey] | None:
        """As `startable`, or None where nothing has changed since the last call for the same subtree.

        Nothing is different when those start that may.
        """
        outcome = self.outcome(queue, now)
        if outcome.consumed:
            return None
        outcome.consumed = True
        return list(outcome.fits)

    def decide(self, key: EntryKey, now: float) -> Decision | None:
        """The decision on a waiting gang, given all gangs that wait with it; None when it does not wait."""
        candidate = self.candidate(key)
        if candidate is None:
            return None
        place = self._tree.place(candidate.queue)
        never = self.refusal(candidate, now)
        if never is not None or place is None:
            return never
        outcome = self.outcome(candidate.queue, now)
        if key in outcome.fits:
            message = f'{describe(candidate.need)} of queue "{candidate.queue}"'
            return Decision(fits=True, state=GangState.ADMITTED, message=message)
        message = why(candidate, place, outcome, self._position(candidate, outcome))
        return Decision(fits=False, state=GangState.WAITING_FOR_QUOTA, message=message)

    def refusal(self, candidate: Candidate, now: float) -> Decision | None:
        """Why a gang like this cannot start however much is free; None when it can. The gang need not wait here."""
        ceiling = self._holdings.limits.ceiling(candidate.key.namespace) if candidate.limited else None
        return refused(candidate, self._tree.place(candidate.queue), ceiling, now)

    def patience_ends(self, key: EntryKey) -> float | None:
        """When the patience of a waiting gang is over (seconds of the wall clock); None where it was not passed."""
        candidate = self.candidate(key)
        view = self._tree.get(candidate.queue) if candidate else None
        since = candidate.passed_since if candidate else None
        return None if view is None or since is None else since + view.patience

    def passed_by(self, key: EntryKey, now: float, *, growth: bool = False) -> list[EntryKey]:
        """The gangs that this gang passes: in its queue and those above, the first before it that lacks what it takes.

        A gang of a sibling stands before it if its turn came first. This is asked of a gang that may start, or that has
        grown; `growth` passes all gangs that wait.
        """
        queue, claim = self._queue_of.get(key), self.claim(key)
        if queue is None:
            return []
        going = claim or self._states[queue].waits(key)
        outcome = self.outcome(queue, now)
        firsts = first_bypassed(
            outcome,
            queue,
            takes=tuple(name for name, _ in going.amounts),
            behind=None if growth else going.order,
            namespace=key.namespace if key.namespace in self._holdings.limits else "",
            may_be_passed=lambda other: self._may_be_passed(other, outcome),
        )
        return list(dict.fromkeys(first.key for first in firsts))

    def _may_be_passed(self, key: EntryKey, outcome: AdmissionPass) -> bool:
        waits = self.candidate(key)
        if waits is None or waits.passed_since is not None or key in outcome.fits:
            return False
        return self.refusal(waits, outcome.now) is None

    def reserved(self) -> Iterator[tuple[str, Reservation]]:
        """The reservations of the last passes, each with the queue of its gang; any thread may ask."""
        for one in self._passes.reservations():
            queue = self._queue_of.get(one.order.key)
            if queue is not None and not one.nothing_passes:
                yield queue, one

    def held(self) -> Iterator[tuple[str, str, float]]:
        """The usage of each queue by its gangs, of the resources that it, or a queue above it, limits."""
        for queue, state in self._states.items():
            limited = {name for one in self._tree.limiting(queue) for name in self._tree.ceiling(one)}
            for name in limited:
                amount = sum(one.amounts.get(name, 0) for one in state.sums.values())
                yield queue, name, amount / 10**9

    def numbers(self, resources: Collection[str]) -> Iterator[tuple[str, QueueNumbers] | None]:
        """The numbers of each queue, of these resources, in small steps; None after a step without a queue."""
        return read_numbers(resources, self._states, self._holdings, self._shares, self.reserved())

    def fits_more(self, growth: Growth, resources: Resources, now: float) -> bool:
        """True if the claim of an admitted gang may grow to this, with all that is held or may start now."""
        return fits_more(self.outcome(growth.queue, now), growth, resources)

    def outcome(self, queue: str, now: float) -> AdmissionPass:
        """The current admission pass of all gangs that compete with those of a queue; to be read only."""
        known = self._passes.of(queue, now)
        if known is None:
            states = {one: self._states[one] for one in self._passes.competing(queue)}
            room = self._holdings.room(states)
            known = run_admission_pass(self._shares, states, room, now=now, at_once=self._at_once)
            self._passes.keep(queue, known)
        return known

    def _position(self, candidate: Candidate, outcome: AdmissionPass) -> tuple[int, int]:
        state = self._states[candidate.queue]
        fitting = (waits for key in outcome.fits if (waits := state.candidate(key)))
        ahead = state.before(candidate.order) - sum(other.order < candidate.order for other in fitting)
        return ahead + 1, state.waiting


def _role(view: QueueView) -> tuple[str, bool, bool, bool]:
    """The fields of a queue that decide which queues compete, and whether gangs of queues below it may start."""
    return view.parent, bool(view.limit), view.strict, view.on_hold
