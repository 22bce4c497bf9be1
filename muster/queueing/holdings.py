"""The usage by the claims of all gangs: of their queues and those above, and of their namespaces' ElasticQuotas.

Each queue knows the sums of its own claims (`QueueState.sums`). What stands in the tree follows from these sums and the
tree, so that a change of the tree costs by the number of queues that it moves, and not by that of gangs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from muster.queueing.entries import Candidate, Claim, EntryKey
from muster.queueing.queue_state import Holds, QueueState
from muster.queueing.queue_tree import QueueTree, own_leaf
from muster.queueing.queue_view import ROOT
from muster.queueing.run_ends import RunEnds
from muster.queueing.unplaced_claims import CountedUnplaced, SoftClaims, count_unplaced, lasting_part, soft_where
from muster.queueing.usage import Amounts, Usage, amounts_of, namespace_level, signed
from muster.resources.amounts import Resources
from muster.resources.elastic_quotas import NamespaceLimit, NamespaceLimits
from muster.resources.quantity import Format, Quantity

_NOTHING: Mapping[str, int] = MappingProxyType({})


class Holdings:
    """The usage of a tree's queues by all claims, and by those alone that do not end by themselves; soft parts apart.

    Valid for all claims that were entered, while the tree stands as it did when the queue of each was planted last.
    """

    def __init__(self, tree: QueueTree) -> None:
        self._tree = tree
        self._usage = Usage(tree)
        self._lasting = Usage(tree)
        # The ends of claims at a level: found when they are asked for, and kept up to date from then on.
        self._ends: dict[str, RunEnds] = {}
        self._revision = tree.revision
        # How many claims of a queue ask for what it has free.
        self._asking: Counter[str] = Counter()
        # The formats in which amounts came, by resource; and the usage that `used` gave since something has changed.
        self._formats: dict[str, Format] = {}
        self._whole: Usage | None = None
        self.limits = NamespaceLimits()
        self._holders: dict[str, set[EntryKey]] = {}
        # What pods use of namespaces with a limit that are not of gangs.
        self._others: dict[str, Amounts] = {}
        self.soft = SoftClaims(tree)

    def copy(self, tree: QueueTree) -> Holdings:
        """The same usage of a copy of the tree, to be changed by itself."""
        other = Holdings(tree)
        other._usage, other._lasting = self._usage.apart(tree), self._lasting.apart(tree)
        other._asking, other._formats = self._asking.copy(), dict(self._formats)
        other.limits, other._others, other.soft = self.limits.copy(), dict(self._others), self.soft.copy(tree)
        other._holders = {namespace: set(keys) for namespace, keys in self._holders.items()}
        return other

    def enter(self, claim: Claim, sign: int = 1) -> None:
        """Count a claim, or with the sign -1 count it no longer."""
        queue, soft, running = claim.queue, signed(claim.soft_amounts, sign), signed(claim.running_amounts, sign)
        self._take(queue, signed(claim.amounts, sign), soft, running, idle=claim.idle, lasts=claim.lasts)
        for level in (*self._tree.gang_path(queue), *self._levels(claim.key.namespace)):
            if (ends := self._ends.get(level)) is not None:
                ends.enter(claim, sign)
        self._enter_in_namespace(claim, sign)
        if soft:
            self.soft.enter(claim, sign)
        for name, amount in claim.whole.items():
            self._formats.setdefault(name, amount.format)
        if claim.asked:
            self._asking[queue] += sign
            if not self._asking[queue]:
                del self._asking[queue]

    def _enter_in_namespace(self, claim: Claim, sign: int) -> None:
        """Count a claim in its namespace, where its soft part counts like the rest."""
        namespace = claim.key.namespace
        holders = self._holders.setdefault(namespace, set())
        (holders.add if sign > 0 else holders.discard)(claim.key)
        lasting = lasting_part(claim.amounts, claim.soft_amounts, idle=claim.idle, lasts=claim.lasts)
        for usage, amounts in ((self._usage, claim.amounts), (self._lasting, lasting)):
            usage.take_in(self._levels(namespace), signed(amounts, sign))
            if not holders and namespace not in self.limits:
                # Namespaces come and go; without a claim nothing is used.
                usage.empty(namespace_level(namespace))
        if not holders:
            del self._holders[namespace]

    def _levels(self, namespace: str) -> tuple[str, ...]:
        """The levels at which claims of a namespace count besides their queues."""
        own = namespace_level(namespace)
        return (own, namespace_level()) if namespace in self.limits else (own,)

    def holders(self, namespace: str) -> set[EntryKey]:
        """The gangs that hold anything in a namespace."""
        return set(self._holders.get(namespace, ()))

    def limit(self, namespace: str, limit: NamespaceLimit | None, *, whole: bool) -> bool:
        """Limit a namespace, or no longer (None); True when that changed anything."""
        self.limits.whole = whole
        before = namespace in self.limits
        if limit is None:
            self.others_use(namespace, {})
        if not self.limits.put(namespace, limit):
            return False
        if before is not (limit is not None):
            for usage in (self._usage, self._lasting):
                held = usage.taken(namespace_level(namespace)).items()
                usage.take_in((namespace_level(),), signed(held, 1 if limit is not None else -1))
        self._ends.clear()
        return True

    def others_use(self, namespace: str, use: Resources) -> bool:
        """Note what pods use there that are not of gangs; True when that changed anything.

        When they end is not known: they count as what does not end by itself.
        """
        now, before = amounts_of(use), self._others.pop(namespace, ())
        if namespace not in self.limits:
            return False
        if now:
            self._others[namespace] = now
        for usage in (self._usage, self._lasting):
            usage.take_in(self._levels(namespace), (*signed(before, -1), *now))
        return now != before

    def runs(self, old: Claim, new: Claim) -> bool:
        """Count that another part of a claim runs; True where that makes a difference to others."""
        more, self._whole = (*new.running_amounts, *signed(old.running_amounts, -1)), None
        matters = self._usage.take(new.queue, (), running=more)
        matters |= new.lasts and self._lasting.take(new.queue, (), running=more)
        return matters or self.soft.exceed

    def _take(self, queue: str, amounts: Amounts, soft: Amounts, running: Amounts, *, idle: bool, lasts: bool) -> None:
        self._whole = None
        lasting = lasting_part(amounts, soft, idle=idle, lasts=lasts)
        for usage, held, runs in ((self._usage, amounts, running), (self._lasting, lasting, running if lasts else ())):
            if held:
                usage.take(queue, (*held, *signed(soft, -1)), above=() if idle else soft, running=runs)
                if idle and self._tree.nodes is not None:
                    usage.take_in((ROOT,), soft)
        if soft:
            self.soft.take(queue, soft_where(self._tree, queue, idle=idle), soft)

    def detach(self, queues: Collection[str], states: Mapping[str, QueueState]) -> None:
        """Count nowhere what these hold, among them all of a queue and those below it (`queues`): they are to move."""
        self._count(states, -1)
        self._ends.clear()
        # Now nothing is taken of them; the numbers of a queue that is gone need not stay for ever.
        for one in (*queues, *map(own_leaf, (*queues, *states))):
            self._usage.empty(one)
            self._lasting.empty(one)

    def attach(self, states: Mapping[str, QueueState]) -> None:
        """Count the claims of these queues at their current places."""
        self._count(states)

    def _count(self, states: Mapping[str, QueueState], sign: int = 1) -> None:
        for queue, state in states.items():
            for like, held in state.sums.items():
                parts = (signed(sums.items(), sign) for sums in (held.amounts, held.soft, held.running))
                self._take(queue, *parts, idle=like.idle, lasts=like.lasts)

    def used(self, queue: str, states: Mapping[str, QueueState]) -> Resources:
        """The usage of a queue by these claims, which are all there are; soft claims do not count."""
        used = self.whole(states).taken(queue)
        return {name: Quantity(amount, self._formats[name]) for name, amount in used.items() if amount}

    def whole(self, states: Mapping[str, QueueState]) -> Usage:
        """The usage of all queues by these claims, which are all there are."""
        if self._whole is None or self._revision != self._tree.revision:
            self._whole = self.room(states).usage
        return self._whole

    def room(self, states: Mapping[str, QueueState]) -> Room:
        """The usage at the begin of an admission pass for these queues."""
        if self._revision != self._tree.revision:
            self._usage.settle()
            self._lasting.settle()
            self._revision, self._whole = self._tree.revision, None
        hard = self.soft.hard(states)
        usage, lasting = self._usage.copy(), self._lasting.copy()
        count_unplaced(self._tree, hard, usage, lasting)
        asked: dict[str, list[tuple[Holds, Amounts]]] = {}
        for queue in sorted(self._asking.keys() & states.keys()):
            for like, held in sorted(states[queue].sums.items()):
                if self._tree.get(queue) is None:
                    # What is not there has nothing of those above it.
                    usage.take_in((queue,), held.asked.items())
                    continue
                counts = self._free_of(usage, queue, held.asked)
                asked.setdefault(queue, []).append((like, counts))
                usage.take(queue, counts, running=())
                if like.lasts:
                    lasting.take(queue, counts, running=())
        namespaces = NamespaceRoom(self.limits, usage, lasting)
        return Room(usage, lasting, namespaces, hard, asked, partial(self._ends_at, states))

    def _ends_at(self, states: Mapping[str, QueueState], level: str) -> RunEnds:
        """The expected ends of claims at a level, of the tree or of namespaces; all of these are in these queues."""

        def claims() -> Iterator[Claim]:
            for queue, state in states.items():
                if level in self._tree.gang_path(queue):
                    yield from state.held.values()
                elif self.limits:
                    yield from (one for one in state.held.values() if level in self._levels(one.key.namespace))

        if level not in self._ends:
            self._ends[level] = RunEnds(claims())
        return self._ends[level]

    def _free_of(self, usage: Usage, queue: str, asked: Mapping[str, int]) -> Amounts:
        """As much of what is asked for as a queue and those above it have free."""
        free = dict(asked)
        for one in self._tree.gang_path(queue):
            for name, left in usage.free(one, free).items():
                free[name] = min(free[name], max(left, 0))
        return tuple(free.items())


@dataclass(slots=True)
class NamespaceRoom:
    """The amounts that the ElasticQuotas of namespaces leave in one admission pass.

    A claim counts for its namespace in whatever queue it is held. A gang that lacks room there holds up no gang in its
    queue: others share that, and cannot give what it waits for. Within the namespace it has a reservation like any
    other gang (`muster.queueing.reservations`), which does not keep room from other namespaces.
    """

    limits: NamespaceLimits
    usage: Usage
    lasting: Usage

    def __contains__(self, namespace: str) -> bool:
        return namespace in self.limits

    def levels(self, namespace: str) -> tuple[str, ...]:
        """The levels of a namespace: its own, and that of all together; none where it has no limit."""
        return (namespace_level(namespace), namespace_level()) if namespace in self.limits else ()

    def has(
        self,
        namespace: str,
        amounts: Amounts,
        kept: Mapping[str, int] = _NOTHING,
        ended: Mapping[str, int] = _NOTHING,
        ended_together: Mapping[str, int] = _NOTHING,
    ) -> bool:
        """True if so much is free there; what is `kept` counts as used, what has `ended` by then as free."""
        ceiling = self.limits.ceiling(namespace)
        if ceiling is None:
            return True
        own, together = map(self.usage.taken, self.levels(namespace))
        if kept or ended or ended_together:
            own = _after(own, kept, ended, amounts)
            together = _after(together, kept, ended_together, amounts)
        return ceiling.fits(amounts, own, together)

    def fits_when_drained(self, namespace: str, amounts: Amounts) -> bool:
        """True if so much would be free after all gangs that end by themselves had ended."""
        ceiling = self.limits.ceiling(namespace)
        return ceiling is None or ceiling.fits(amounts, *map(self.lasting.taken, self.levels(namespace)))

    def largest(self, namespace: str, *, in_the_end: bool = False) -> dict[str, int]:
        """No gang has room there that needs more of one of these resources: now, or whenever others have ended.

        One that needs no more may have room: what it may need of one resource depends on what it needs of the others.
        """
        ceiling, levels = self.limits.ceiling(namespace), self.levels(namespace)
        if ceiling is None:
            return {}
        most = ceiling.largest(*map(self.usage.taken, levels))
        if in_the_end:
            for name, amount in ceiling.largest(*map(self.lasting.taken, levels)).items():
                most[name] = max(most[name], amount)
        return most

    def shortage(self, candidate: Candidate) -> str | None:
        """The amounts that the gang lacks in its namespace, in words with numbers; None if it lacks nothing."""
        ceiling, need = self.limits.ceiling(candidate.key.namespace), candidate.need
        if not candidate.limited or ceiling is None:
            return None
        own, together = (self.usage.used(level, need) for level in self.levels(candidate.key.namespace))
        return ceiling.shortage(need, own, together)


def _after(used: Mapping[str, int], kept: Mapping[str, int], ended: Mapping[str, int], of: Amounts) -> dict[str, int]:
    """The usage of these resources, with the amounts kept and without those that have ended."""
    return {name: used.get(name, 0) + kept.get(name, 0) - ended.get(name, 0) for name, _ in of}


class Room(NamedTuple):
    """The usage at the beginning of an admission pass, as a copy that the pass adds to.

    :ivar usage: The usage of all claims.
    :ivar lasting: That of the claims alone that do not end by themselves.
    :ivar namespaces: The room in namespaces with ElasticQuotas.
    :ivar hard: The soft parts of claims that count all the same, by queue.
    :ivar asked: As much of what claims only ask for as counts, by queue.
    :ivar ends: Gives the expected ends of the claims at a level, of the tree or of namespaces.
    """

    usage: Usage
    lasting: Usage
    namespaces: NamespaceRoom
    hard: Mapping[str, CountedUnplaced]
    asked: Mapping[str, Sequence[tuple[Holds, Amounts]]]
    ends: Callable[[str], RunEnds]
