"""Which gangs hold what of which queue, which gang is next, and why the others wait.

The ledger is a value in memory: everything in it comes from objects in the cluster, so that the same objects give the
same ledger in any order of events. It never reads a clock and does no I/O: `now` is seconds of the wall clock, and is
passed in. Whoever asks it to admit a gang must write that down in the cluster before acting on it.

A claim counts for its queue and for all above it. Gangs that compete for the same room, those below the highest queue
that limits anything, are one subtree: the queue that has least of its share is first, and in a queue the more urgent
gang, then the older. What fits of a subtree is settled once and kept until something in it changes. Where any namespace
has an ElasticQuota all gangs are one subtree.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from muster.model.gang_states import GangState
from muster.queueing.admission_pass import AdmissionPass, run_admission_pass
from muster.queueing.bypassed import BypassedBelow
from muster.queueing.namespace_room import NamespaceUse
from muster.queueing.queue_state import Candidate, Claim, GangKey, Order, QueueState, Terms
from muster.queueing.queue_tree import ROOT, QueueTree
from muster.queueing.shares import Shares
from muster.queueing.unplaced_claims import soft_in, softened
from muster.queueing.usage import Usage, amounts_of
from muster.queueing.verdicts import Decision, queue_not_found, refused, why
from muster.resources.amounts import Resources, describe, minus, total

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.queueing.namespace_limits import NamespaceLimit
    from muster.queueing.queue_tree import QueueView
    from muster.queueing.usage import Amounts

__all__ = ["Candidate", "Decision", "GangKey", "Ledger", "queue_not_found"]


class Ledger:
    """The claims of all gangs on all queues.

    Invariant: `decide` never says yes to gangs that together would take a queue, or one above it, beyond its limit,
    soft claims and those that a preempting queue leaves out apart; nor to limited ones that would take their namespace
    beyond its ElasticQuotas. A gang whose claim is written by `hold` counts whether it fits or not: it runs already.
    """

    def __init__(self) -> None:
        self._tree = QueueTree()
        self._shares = Shares(self._tree)
        self._usage = Usage(self._tree)
        self._lasting = Usage(self._tree)
        self._namespaces = NamespaceUse(self._tree)
        self._states: dict[str, QueueState] = {}
        self._queue_of: dict[GangKey, str] = {}
        self._fields: dict[str, str] = {}
        self._queues_of_subtree: dict[str, set[str]] = {}
        self._outcome: dict[str, AdmissionPass] = {}

    # --- queues -----------------------------------------------------------------------------------------------------

    @property
    def tree(self) -> QueueTree:
        """The queues; they are changed by the ledger only."""
        return self._tree

    def set_queue(self, view: QueueView) -> bool:
        """Add or update a queue; True when anything changed."""
        old = self._tree.get(view.name)
        if not self._tree.set(view):
            return False
        if old is not None and _role(old) == _role(view):
            # Who competes with whom, and what is held where, is as before.
            self._outcome.pop(self._subtree(view.name), None)
            if view.name in self._states:
                self._states[view.name].set_terms(self._terms(view.name))
        else:
            self._replanted()
        return True

    def drop_queue(self, name: str) -> bool:
        """Remove a queue; True when it was known. Gangs that hold or wait there stay known."""
        known = self._tree.drop(name)
        if known:
            self._replanted()
        return known

    def bound(self, nodes: Resources | None) -> bool:
        """Bound all queues together by the nodes' resources, or by nothing (None); True when anything changed."""
        before = self._tree.counts_nodes, bool(self._tree.limit(ROOT))
        if not self._tree.bound(nodes):
            return False
        if before == (self._tree.counts_nodes, True):
            # All gangs compete with all others, before and after; only what fits changes.
            self._outcome.clear()
        else:
            self._replanted()
        return True

    def limit_namespace(self, namespace: str, limit: NamespaceLimit | None, *, whole: bool = True) -> bool:
        """Limit what gangs of a namespace hold in all queues, or no longer (None); True when anything changed.

        Not `whole` are those of somebody who does not know the ElasticQuotas of all namespaces: no sum bounds them.
        """
        if not self._namespaces.limit(namespace, limit, whole=whole):
            return False
        self._replanted()
        return True

    def others_use(self, namespace: str, use: Resources) -> bool:
        """Count what pods that are not of gangs use of a namespace's ElasticQuotas; True when anything changed."""
        if not self._namespaces.others(namespace, use):
            return False
        self._outcome.clear()
        return True

    def _replanted(self) -> None:
        self._fields.clear()
        self._queues_of_subtree.clear()
        self._outcome.clear()
        self._namespaces.empty()
        self._usage, self._lasting = Usage(self._tree), Usage(self._tree)
        for queue, state in self._states.items():
            self._queues_of_subtree.setdefault(self._subtree(queue), set()).add(queue)
            state.set_terms(self._terms(queue))
            for claim in state.held.values():
                self._take(queue, claim)

    def _take(self, queue: str, claim: Claim, sign: int = 1) -> None:
        for usage in (self._usage, self._lasting) if claim.lasts else (self._usage,):
            usage.take(queue, _signed(claim.amounts, sign))
            usage.take_in(soft_in(self._tree, queue, claim), _signed(claim.soft_amounts, -sign))
        self._namespaces.enter(claim, sign)

    def _subtree(self, queue: str) -> str:
        """The root of the queue's subtree: the highest queue above it that limits anything. All below it compete."""
        if self._namespaces:
            return ROOT
        known = self._fields.get(queue)
        if known is None:
            path = self._tree.path(queue)
            known = next((one for one in reversed(path) if self._tree.limit(one) or self._tree.strict(one)), path[0])
            self._fields[queue] = known
        return known

    def _terms(self, queue: str) -> Terms:
        view = self._tree.get(queue)
        return Terms(view.patience, view.preempts) if view is not None else Terms()

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
        spare: Resources | None = None,
    ) -> bool:
        """Record the claim of an admitted gang and its `soft` part; True when anything changed for other gangs.

        `spare` is what its scheduler may take back of it.
        """
        unplaced, order = soft or {}, Order(-priority, since, key)
        new = Claim(
            claim, amounts_of(claim), order, unplaced, amounts_of(unplaced), idle, lasts, amounts_of(spare or {})
        )
        if self._queue_of.get(key) == queue:
            state, outcome = self._states[queue], self._outcome.get(self._subtree(queue))
            old = state.held.get(key)
            if old == new:
                return False
            if old is not None and replace(old, spare=new.spare) == new:
                state.hold(key, new)
                if self._tree.reclaims:
                    self._outcome.pop(self._subtree(queue), None)
                return self._tree.reclaims
            if outcome and _as_expected(outcome, state.candidate(key), new):
                del outcome.fits[key]
                state.leave(key)
                self._enter(queue, key, new)
                return True
        self.forget(key)
        self._enter(queue, key, new)
        self._outcome.pop(self._subtree(queue), None)
        return True

    def _enter(self, queue: str, key: GangKey, claim: Claim) -> None:
        self._state_of(queue).hold(key, claim)
        self._queue_of[key] = queue
        self._take(queue, claim)

    def wait(self, candidate: Candidate) -> bool:
        """Record a gang that wants to start; True when anything changed for other gangs."""
        key, queue = candidate.key, candidate.queue
        known = self.candidate(key)
        if known == candidate:
            return False
        outcome = self._outcome.get(self._subtree(queue))
        passed = known is not None and known.passed_since is None and candidate.passed_since is not None
        if known and passed and outcome and replace(known, passed_since=candidate.passed_since) == candidate:
            moment = self._states[queue].has_been_passed(candidate)
            if moment > outcome.now:
                outcome.until = min(outcome.until, moment)
            else:
                del self._outcome[self._subtree(queue)]
            return True
        self.forget(key)
        self._state_of(queue).line_up(candidate)
        self._queue_of[key] = queue
        self._outcome.pop(self._subtree(queue), None)
        return True

    def forget(self, key: GangKey) -> bool:
        """Remove a gang: it holds nothing and waits for nothing; True when it was known."""
        queue = self._queue_of.pop(key, None)
        if queue is None:
            return False
        state = self._states[queue]
        claim = state.let_go(key)
        if claim is None:
            state.leave(key)
        else:
            self._take(queue, claim, -1)
        subtree = self._subtree(queue)
        self._outcome.pop(subtree, None)
        if not state:
            del self._states[queue]
            self._queues_of_subtree[subtree].discard(queue)
        return True

    def _state_of(self, queue: str) -> QueueState:
        state = self._states.get(queue)
        if state is None:
            state = self._states[queue] = QueueState(self._terms(queue))
            self._queues_of_subtree.setdefault(self._subtree(queue), set()).add(queue)
        return state

    # --- questions --------------------------------------------------------------------------------------------------

    def queue_of(self, key: GangKey) -> str | None:
        """The queue in which the gang holds or waits."""
        return self._queue_of.get(key)

    def candidate(self, key: GangKey) -> Candidate | None:
        """The gang as one that waits, or None."""
        queue = self._queue_of.get(key)
        return None if queue is None else self._states[queue].candidate(key)

    def holds(self, key: GangKey) -> Resources | None:
        """The claim of an admitted gang, or None."""
        claim = self._claim(key)
        return None if claim is None else claim.resources

    def _claim(self, key: GangKey) -> Claim | None:
        queue = self._queue_of.get(key)
        return None if queue is None else self._states[queue].held.get(key)

    def waiting(self, queue: str, start: int = 0, stop: int | None = None) -> list[GangKey]:
        """The gangs that wait in a queue, in order; from `start` up to `stop`."""
        state = self._states.get(queue)
        return [order.key for order in islice(state.in_order(), start, stop)] if state else []

    def position(self, key: GangKey, now: float) -> tuple[int, int] | None:
        """Its place among the gangs of its queue that wait and may not start yet, and how many wait; else None.

        Those before it who may start now are as good as gone.
        """
        candidate = self.candidate(key)
        if candidate is None:
            return None
        return self._position(candidate, self._pass(self._subtree(candidate.queue), now))

    def claims(self, queue: str) -> dict[GangKey, Claim]:
        """The claims of a queue's own gangs, without the queues below it."""
        state = self._states.get(queue)
        return dict(state.held) if state else {}

    def holding_in(self, namespace: str) -> set[GangKey]:
        """The gangs that hold anything in a namespace, where that is limited."""
        return {key.gang for key in self._namespaces.holders(namespace)}

    def used(self, queue: str) -> Resources:
        """The usage of a queue, by its own gangs and the gangs of queues below it; soft claims do not count."""
        soft = softened(self._tree, self._states)
        below = ((other, state) for other, state in self._states.items() if queue in self._tree.path(other))
        return total(
            minus(claim.resources, claim.soft)
            if claim.soft and claim.order.key in soft and queue in soft_in(self._tree, other, claim)
            else claim.resources
            for other, state in below
            for claim in state.held.values()
        )

    def share(self, queue: str) -> float | None:
        """The part of its share that a queue has; None where it has no siblings, or these do not share."""
        if not self._shares.competes(queue):
            return None
        return self._shares.of(queue, dict(amounts_of(self.used(queue))))

    def soft(self, key: GangKey, now: float) -> bool:
        """Whether a part of the gang's claim does not count."""
        queue = self._queue_of.get(key)
        return queue is not None and key in self._pass(self._subtree(queue), now).soft

    def competing(self, queue: str) -> set[str]:
        """The queues of the same subtree in which any gang holds or waits."""
        return set(self._queues_of_subtree.get(self._subtree(queue), ()))

    def changed_subtrees(self, now: float) -> list[str]:
        """One queue of each subtree in which any gang holds or waits, where something has changed for who may start."""
        return [
            next(iter(queues))
            for subtree, queues in self._queues_of_subtree.items()
            if queues and not ((known := self._outcome.get(subtree)) and known.told and known.until > now)
        ]

    def startable(self, queue: str, now: float) -> list[GangKey]:
        """All gangs of the queue's subtree that may start now."""
        return list(self._pass(self._subtree(queue), now).fits)

    def newly_startable(self, queue: str, now: float) -> list[GangKey] | None:
        """As `startable`, or None where nothing has changed since the last call for the same subtree.

        Nothing is different when those start that may.
        """
        outcome = self._pass(self._subtree(queue), now)
        if outcome.told:
            return None
        outcome.told = True
        return list(outcome.fits)

    def decide(self, key: GangKey, now: float) -> Decision | None:
        """The decision on a waiting gang, given all gangs that wait with it; None when it does not wait."""
        candidate = self.candidate(key)
        if candidate is None:
            return None
        place = self._tree.place(candidate.queue)
        never = self.refusal(candidate, now)
        if never is not None or place is None:
            return never
        outcome = self._pass(self._subtree(candidate.queue), now)
        if key in outcome.fits:
            message = f'{describe(candidate.need)} of queue "{candidate.queue}"'
            return Decision(fits=True, state=GangState.ADMITTED, message=message)
        message = why(candidate, place, outcome, self._position(candidate, outcome))
        return Decision(fits=False, state=GangState.WAITING_FOR_QUOTA, message=message)

    def refusal(self, candidate: Candidate, now: float) -> Decision | None:
        """Why a gang like this cannot start however much is free; None when it can. The gang need not wait here."""
        return refused(candidate, self._tree.place(candidate.queue), self._namespaces.ceiling(candidate), now)

    def passed_by(self, key: GangKey, now: float, *, growth: bool = False) -> list[GangKey]:
        """The gangs that this gang passes: in its queue and those above, the first before it that lacks what it takes.

        Before it stand those of siblings that have no more of their share, with what starts. Asked of a gang that may
        start, or that has grown: before `growth` stands everybody who waits.
        """
        queue = self._queue_of.get(key)
        if queue is None:
            return []
        claim, candidate = self._claim(key), self.candidate(key)
        own = claim.order if claim else candidate.order if candidate else None
        amounts = claim.amounts if claim else amounts_of(candidate.need) if candidate else ()
        if own is None:
            return []
        outcome = self._pass(self._subtree(queue), now)
        takes = tuple(name for name, _ in amounts)
        behind = None if growth else own
        path = self._tree.path(queue)
        firsts = [self._bypassed(outcome, level, takes).first(path, behind) for level in path]
        if key.namespace in self._namespaces:
            firsts.append(self._bypassed(outcome, ROOT, takes, key.namespace).first(path, behind))
        return list(dict.fromkeys(first.key for first in firsts if first is not None))

    def _bypassed(
        self, outcome: AdmissionPass, level: str, takes: tuple[str, ...], namespace: str = ""
    ) -> BypassedBelow:
        """Those whom nobody has passed and who lack at this queue, or in this namespace, what gangs take there."""
        known = outcome.bypassed.get((level, takes, namespace))
        if known is None:
            free = outcome.usage.free(level, takes)
            if namespace:
                most = outcome.namespaces.largest(namespace, kept=False)
                free = {name: most[name] for name in takes if name in most}
            known = BypassedBelow(
                outcome, level, free, lambda key: self._may_be_passed(key, outcome), namespace=namespace
            )
            outcome.bypassed[level, takes, namespace] = known
        return known

    def _may_be_passed(self, key: GangKey, outcome: AdmissionPass) -> bool:
        waits = self.candidate(key)
        if waits is None or waits.passed_since is not None or key in outcome.fits:
            return False
        return self.refusal(waits, outcome.now) is None

    def fits_more(
        self,
        key: GangKey,
        queue: str,
        claim: Resources,
        now: float,
        *,
        waits_as: GangKey | None = None,
        replaces: GangKey | None = None,
        limited: bool = False,
    ) -> bool:
        """Whether the claim of an admitted gang may grow to this, beside everything that is held or may start now.

        Growth stands behind all who wait: it may pass them as a small gang may, but nobody whom nobody passes. Where it
        stands in line itself, under the key `waits_as`, what it may take there is its own; so is what is held under
        the key `replaces`. `limited` as a candidate is.
        """
        if not self._tree.takes_work(queue):
            return False
        held = self._claim(key) if self._queue_of.get(key) == queue else None
        outcome = self._pass(self._subtree(queue), now)
        own = outcome.fits.get(waits_as) if waits_as else None
        if own is None and outcome.behind(queue) is not None:
            return False
        has = dict(held.amounts) if held is not None else {}
        gone = self._claim(replaces) if replaces else None
        for name, amount in (*(own or ()), *(gone.amounts if gone else ())):
            has[name] = has.get(name, 0) + amount
        more = _more(claim, has)
        spared = soft_in(self._tree, queue, held) if held is not None and key in outcome.soft else ()
        counts = [one for one in self._tree.path(queue) if one not in spared]
        if limited and not outcome.namespaces.has(key.namespace, more, kept=own is None):
            return False
        kept = {} if own is not None else outcome.bars.kept
        if outcome.usage.lacking(counts, more, kept=kept):
            return False
        for name, amount in held.soft_amounts if held is not None and spared else ():
            has[name] -= amount
        return not spared or not outcome.usage.lacking(spared, _more(claim, has), kept=kept)

    def room_to_grow(self, queue: str, now: float) -> dict[str, int] | None:
        """What growth may take at most in a queue, of the resources that are limited; None where it may take nothing.

        It says no to no growth that `fits_more`, apart from that of a gang that may start under a key of its own.
        """
        outcome = self._pass(self._subtree(queue), now)
        if not self._tree.takes_work(queue) or outcome.behind(queue) is not None:
            return None
        return outcome.room(queue)

    def _pass(self, subtree: str, now: float) -> AdmissionPass:
        known = self._outcome.get(subtree)
        if known is None or known.until <= now:
            states = {queue: self._states[queue] for queue in self._queues_of_subtree.get(subtree, ())}
            used = self._usage, self._lasting, self._namespaces.room()
            known = self._outcome[subtree] = run_admission_pass(self._shares, states, *used, now=now)
        return known

    def _position(self, candidate: Candidate, outcome: AdmissionPass) -> tuple[int, int]:
        state = self._states[candidate.queue]
        fitting = (waits for key in outcome.fits if (waits := state.candidate(key)))
        ahead = state.before(candidate.order) - sum(other.order < candidate.order for other in fitting)
        return ahead + 1, state.waiting


def _as_expected(outcome: AdmissionPass, candidate: Candidate | None, new: Claim) -> bool:
    """Whether this claim is what the last pass expected, so that nothing changes for all other gangs."""
    return (
        candidate is not None
        and outcome.fits.get(candidate.key) == new.amounts
        and not new.soft_amounts
        and (candidate.order, candidate.lasts) == (new.order, new.lasts)
        and outcome.comes_to_pass(candidate, new.amounts)
    )


def _role(view: QueueView) -> tuple[str, bool, bool, bool]:
    """What of a queue decides who competes with whom, and whether any gang of queues below it starts."""
    return view.parent, bool(view.limit), view.strict, view.on_hold


def _signed(amounts: Amounts, sign: int) -> Amounts:
    return amounts if sign > 0 else tuple((name, -amount) for name, amount in amounts)


def _more(claim: Resources, has: Mapping[str, int]) -> Amounts:
    """By how much a claim would grow beyond what is held."""
    return tuple((name, grown) for name, amount in amounts_of(claim) if (grown := amount - has.get(name, 0)) > 0)
