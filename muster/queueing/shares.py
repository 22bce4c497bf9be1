"""How much a queue has of its share, among the queues with the same parent, and the room that is beyond all shares.

A queue's share of a resource is what its `deserved` names. Where that names nothing it is the part of the room below
the parent that its weight (1 by default) gives it among its siblings; Volcano's plugin `capacity` reads the
first, `proportion` the second. A guarantee is part of the share, as in both. The room is what the parent and those
above it limit, so that only resources count for which siblings compete. The resource with the largest part
of its share counts. Where the parent sets a half-life, what a queue has held so far counts, too.
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from math import floor, inf, isinf

from muster.queueing.past_use import PastUse
from muster.queueing.queue_state import QueueState
from muster.queueing.queue_tree import QueueTree, own_leaf
from muster.queueing.usage import Amounts, Usage
from muster.resources.amounts import Resources

# How often what was held in the past counts, next to once for what is held. It sets how fast queues catch up, hardly
# how much; one that had nothing for long may hold eight times its share until then. Over weeks of gangs that take up to
# half of a share, queues came within 4.7 % of their weights with 7, within 5.3 % with 3 (`hack.bench share`).
_PAST = 7


def percent(share: float) -> str:
    """A part of a share in words, rounded down: 0.29 is 29%, though a hundred times the float is a bit less."""
    return "more than 100%" if isinf(share) else f"{floor(share * 100 + 1e-9)}%"


class Shares:
    """The shares of the queues of `tree`, as it stands, with what they have held in the `past`."""

    def __init__(self, tree: QueueTree, past: PastUse | None = None) -> None:
        self.tree = tree
        self.past = PastUse() if past is None else past
        self._revision = tree.revision
        # By queue: a resource, the fraction of its share that a billionth of its unit is, and the weights of a mean.
        self._parts: dict[str, tuple[tuple[str, int, int, int], ...]] = {}

    def by_age(self, parent: str) -> bool:
        """True if gangs of the queues directly below start by age: by its setting, or because it is strict.

        So do gangs for which nothing is limited in common.
        """
        self._refresh()
        view = self.tree.get(parent)
        if (view is not None and view.by_age) or not self.tree.tightest(parent):
            return True
        return self.tree.in_strict_line(parent)

    def competes(self, queue: str) -> bool:
        """True if the queue has siblings with which it shares what their parent has."""
        path = self.tree.path(queue)
        if len(path) == 1 or self.tree.siblings(queue) < 2:  # noqa: PLR2004 - itself and another
            return False
        return not self.by_age(path[1])

    def of(self, queue: str, taken: Mapping[str, int], *, held_only: bool = False) -> float:
        """The part of its share that is taken: 1.0 is all of it; infinity where it has what it deserves nothing of.

        With a half-life it is a mean: what is taken counts once, and what was held in the past `_PAST` times, unless
        only what is held counts. Equal parts are equal numbers: a quotient of integers is rounded once.
        """
        share, before = 0.0, self.past.of(queue)
        for name, times, deserved, weights in self._parts_of(queue):
            has = taken.get(name, 0)
            if deserved and held_only:
                share = max(share, has * times / deserved)
            elif deserved:
                share = max(share, (has + _PAST * before.get(name, 0)) * times / (deserved * weights))
            elif has > 0:
                return inf
        return share

    def deserved(self, queue: str) -> dict[str, float]:
        """The queue's share, by resource, in billionths; the root has none."""
        if len(self.tree.path(queue)) == 1:
            return {}
        return {name: deserved / times for name, times, deserved, _ in self._parts_of(queue)}

    def by_past(self, queue: str) -> float | None:
        """What its past adds to its part of its share; None where that does not count."""
        path = self.tree.path(queue)
        return self.of(queue, {}) if len(path) > 1 and self.tree.settings(path[1]).half_life else None

    def beyond(self, queue: str, taken: Mapping[str, int]) -> dict[str, int]:
        """The amounts above the queue's share, by resource, in billionths; the root has no share."""
        if len(self.tree.path(queue)) == 1:
            return {}
        over = {
            name: (taken[name] * times - deserved) // times
            for name, times, deserved, _ in self._parts_of(queue)
            if taken.get(name, 0) * times > deserved
        }
        return {name: amount for name, amount in over.items() if amount}

    def _refresh(self) -> None:
        if self._revision != self.tree.revision:
            self._parts.clear()
            self._revision = self.tree.revision

    def _parts_of(self, queue: str) -> tuple[tuple[str, int, int, int], ...]:
        self._refresh()
        known = self._parts.get(queue)
        if known is None:
            known = self._parts[queue] = self._read(queue)
        return known

    def _read(self, queue: str) -> tuple[tuple[str, int, int, int], ...]:
        tree = self.tree
        view = tree.get(queue)
        parts = []
        parent = tree.path(queue)[1]
        weights = 1 + _PAST if tree.settings(parent).half_life else 1
        for name, room in self.tree.tightest(parent).items():
            # The share is deserved / times.
            if view is None:
                # Of what is no object, all; of a queue's own leaf, that of one more queue below it.
                parts.append((name, tree.weights(queue) if queue == own_leaf(parent) else 1, room, weights))
                continue
            times, deserved = tree.weights(queue), room * view.weight
            if name in view.deserved:
                times, deserved = 1, max(view.deserved[name].nano, 0)
            guaranteed = view.guarantee[name].nano if name in view.guarantee else 0
            if guaranteed * times > deserved:
                times, deserved = 1, guaranteed
            parts.append((name, times, deserved, weights))
        return tuple(parts)


class Reclaimable:
    """The room that a scheduler's reclaim frees of what queues hold beyond their shares, as a pass begins.

    If the root allows it (`muster.dev/reclaim`), a gang that lacks nothing but room of the root may start when it
    would fit after that. Volcano chooses the victims: it knows no tree, and compares each queue in which gangs run with
    what that deserves. Of a gang it takes running pods beyond the minimum, so that no more is counted on than what the
    gangs of such a queue can spare, and no more than what it holds beyond its share (plugins `gang`, `capacity` and
    `proportion` of Volcano 1.14.1). Nor does it take a pod that would leave a queue less than its guarantee of any
    resource.
    """

    def __init__(
        self, shares: Shares, states: Mapping[str, QueueState], usage: Usage, *, lasting: bool = False
    ) -> None:
        self._shares = shares
        self._usage = usage
        self.given: dict[str, int] = {}
        """By resource, in billionths."""
        for queue, state in states.items():
            view = shares.tree.get(queue)
            if view is None or not view.reclaimable:
                continue
            leaf = shares.tree.gang_path(queue)[0]
            taken = usage.taken(leaf)
            spare = _beside(view.guarantee, state.spare(lasting=lasting), taken)
            beyond = shares.beyond(leaf, taken) if spare else {}
            for name, amount in beyond.items():
                self.given[name] = self.given.get(name, 0) + min(amount, spare.get(name, 0))

    def counts_for(self, queue: str, amounts: Amounts, names: Iterable[str]) -> bool:
        """True if a queue that takes so much more stays within its share of these resources, and gives none itself.

        A `deserved` must name one of the resources that it takes, and leave room for it, or a guarantee must: to the
        plugin `capacity` it deserves nothing of the others, and that takes nothing back for them alone.
        """
        taken = dict(self._usage.taken(queue))
        for name, amount in amounts:
            taken[name] = taken.get(name, 0) + amount
        beyond = self._shares.beyond(queue, taken)
        view = self._shares.tree.get(queue)
        if view is not None and view.deserved:
            named = [name for name, amount in amounts if amount and (name in view.deserved or name in view.guarantee)]
            if all(name in beyond for name in named):
                return False
        return not any(name in beyond for name in names)


def _beside(guarantee: Resources, spare: Mapping[str, int], taken: Mapping[str, int]) -> Mapping[str, int]:
    """The amounts of spare pods that may go: each as a whole, and none that leaves its queue below the guarantee."""
    part = Fraction(1)
    for name, least in guarantee.items():
        left, whole = taken.get(name, 0) - least.nano, spare.get(name, 0)
        if left < whole:
            part = min(part, Fraction(max(left, 0), whole or 1))
    return {name: floor(amount * part) for name, amount in spare.items()} if part < 1 else spare
