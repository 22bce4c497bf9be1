"""The tree that the queues form: what each can hold there, whether it takes new work, and which namespaces may use it.

Every queue stands below `root`, directly or further down, and a gang takes room of its queue and of all above it. Under
Volcano's hierarchical capacity what is guaranteed to a queue's siblings is out of its reach, and what is guaranteed to
the queue itself is not, even where more is guaranteed than there is. It is kept from the tightest limit above, which
need not be the parent's own.

A queue that has queues below it takes no new gangs. Those that it holds all the same, from a time before, stand in a
leaf below it (`own_leaf`): a sibling of the queues there, for which all rules are the same.

A namespace that may not use a queue may not use those below it either. To it they do not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from muster.model.names import NAMESPACE_NAME
from muster.model.objects import ObjectMeta
from muster.queueing.queue_view import ROOT, QueueView
from muster.resources.amounts import Resources, describe, minus, total
from muster.resources.quantity import ZERO, Quantity

# What holds in a queue that is not there.
_SILENT = QueueView("", "", {})
# Among more queues the one that may be meant is not looked for: a refusal is to cost little.
_MOST_NAMED = 256


class QueueLevel(NamedTuple):
    """A queue, or one above it, and what all gangs there together may hold.

    That may be less than its `own` capability: the rest is guaranteed to its siblings.
    """

    queue: str
    limit: Resources
    own: Resources

    def called(self, asking: str) -> str:
        """Its name in a message for a gang of the queue `asking`."""
        if self.queue == asking:
            return f'queue "{self.queue}"'
        return "the cluster" if self.queue == ROOT else f'queue "{self.queue}" above "{asking}"'

    def exceeded(self, need: Resources) -> tuple[str, str] | None:
        """As `exceeding` of its limit; the words differ if its own capability is another."""
        over = exceeding(need, self.limit)
        kept = {name: most for name, most in self.limit.items() if name not in self.own or most < self.own[name]}
        if over is None or exceeding(need, kept) is None:
            return over
        return over[0], f"{over[1]} apart from what is guaranteed to its siblings"


@dataclass(frozen=True, slots=True)
class Place:
    """A queue in its tree; a `leaf` has no queues below it, `levels` go from the queue itself up to the root.

    `on_hold_by` is the queue, itself or one above it, that is on hold; "" where none is.
    """

    view: QueueView
    leaf: bool
    levels: tuple[QueueLevel, ...]
    on_hold_by: str = ""


def own_leaf(queue: str) -> str:
    """The name of the leaf in which gangs of a queue stand that has queues below it; no object has such a name."""
    return f"{queue}/"


def labels_of(namespace: ObjectMeta) -> Mapping[str, str]:
    """A namespace's labels, with the one that the apiserver puts on all of them."""
    return {**namespace.labels, NAMESPACE_NAME: namespace.name}


def exceeding(need: Resources, limit: Resources) -> tuple[str, str] | None:
    """The resources that exceed the limit, need and limit in words; None if nothing does."""
    over: dict[str, Quantity] = {name: need[name] for name in limit if name in need and need[name] > limit[name]}
    if not over:
        return None
    return describe(over), describe({name: limit[name] for name in over})


class QueueTree:
    """All queues, by name; what is not there as an object (a parent, the root) limits nothing."""

    def __init__(self, views: Iterable[QueueView] = ()) -> None:
        self._views: dict[str, QueueView] = {}
        self._children: dict[str, set[str]] = {}
        self.nodes: Resources | None = None
        self._revision = 0
        self._paths: dict[str, tuple[str, ...]] = {}
        self._limits: dict[str, Resources] = {}
        self._reaches: dict[str, Resources] = {}
        self._ceilings: dict[str, dict[str, int]] = {}
        self._hands_up: dict[str, dict[str, int]] = {}
        self._limiting: dict[str, tuple[str, ...]] = {}
        self._tightest: dict[str, dict[str, int]] = {}
        # Of all queues directly below one: what each would otherwise add up for itself.
        self._weights: dict[str, int] = {}
        self._guarantees: dict[str, Resources] = {}
        self._occupied: set[str] = set()
        # What few queues are, that no pass need look for it in the paths of thousands.
        self._on_hold: set[str] = set()
        self._strict: set[str] = set()
        for view in views:
            self.set(view)

    def __bool__(self) -> bool:
        return bool(self._views)

    def __iter__(self) -> Iterator[QueueView]:
        return iter(self._views.values())

    def get(self, name: str) -> QueueView | None:
        """The queue by itself."""
        return self._views.get(name)

    def set(self, view: QueueView) -> bool:
        """Enter a queue, or what has changed in it; True when anything did."""
        return self.put(view.name, view)

    def drop(self, name: str) -> bool:
        """Take out a queue that is gone; True when it was there."""
        return self.put(name, None)

    def put(self, name: str, new: QueueView | None) -> bool:
        """Set the view of a queue, None to remove it; True when that changed anything."""
        old = self._views.get(name)
        if old == new:
            return False
        self._views.pop(name, None)
        if new is not None:
            self._views[name] = new
        if old is not None and old.parent:
            siblings = self._children[old.parent]
            siblings.discard(name)
            if not siblings:
                del self._children[old.parent]
        if new is not None and new.parent:
            self._children.setdefault(new.parent, set()).add(name)
        for few, among in ((self._on_hold, new and new.on_hold), (self._strict, new and new.strict)):
            (few.add if among else few.discard)(name)
        self._changed(name, old, new)
        return True

    def copy(self) -> QueueTree:
        """The same queues, to be changed by themselves."""
        other = QueueTree()
        other._views, other.nodes = dict(self._views), self.nodes
        other._children = {parent: set(names) for parent, names in self._children.items()}
        other._occupied, other._on_hold, other._strict = set(self._occupied), set(self._on_hold), set(self._strict)
        return other

    def having(self, view: QueueView) -> QueueTree:
        """This tree with one more queue, or another one of its name."""
        return QueueTree([*(one for one in self._views.values() if one.name != view.name), view])

    def occupy(self, name: str, *, held: bool) -> None:
        """Note whether any gang stands in this very queue: its own leaf then has a share among the queues below it."""
        (self._occupied.add if held else self._occupied.discard)(name)
        if name in self._children:
            self._weights.pop(name, None)
            self._revision += 1

    @property
    def revision(self) -> int:
        """Another number after each change of a queue, or of what the nodes can give."""
        return self._revision

    def _changed(self, name: str, old: QueueView | None, new: QueueView | None) -> None:
        """Forget what followed from the queue as it was."""
        names = self.with_below(name)
        below = [*names, *map(own_leaf, names)]
        for one in below:
            self._paths.pop(one, None)
        for view in (old, new):
            if view is not None:
                self._weights.pop(view.parent, None)
                self._guarantees.pop(view.parent, None)
        guarantees = any(view is not None and view.guarantee for view in (old, new))
        # Below root stand queues, too, that are not there and only named as parents.
        self._forget_limits(None if guarantees or name == ROOT else below)

    def _forget_limits(self, of: Iterable[str] | None = None) -> None:
        """Of these queues, or of all (None)."""
        self._revision += 1
        for known in (self._limits, self._reaches, self._ceilings, self._hands_up, self._limiting, self._tightest):
            if of is None:
                known.clear()
            else:
                for one in of:
                    known.pop(one, None)

    def bound(self, nodes: Resources | None) -> None:
        """Bound the root by what the nodes can give now, or no longer."""
        self.nodes = nodes
        self._forget_limits()

    def settings(self, name: str) -> QueueView:
        """The settings of a queue; the defaults if there is no such queue."""
        return self._views.get(name, _SILENT)

    def strict(self, name: str) -> bool:
        """True if no gang may pass another one there."""
        return name in self._strict

    def in_strict_line(self, name: str) -> bool:
        """True if the queue, or one above it, is strict."""
        return bool(self._strict) and not self._strict.isdisjoint(self.path(name))

    def leaf(self, name: str) -> bool:
        """True if no queue stands below it; the root takes no gangs even when it is alone."""
        return name != ROOT and name not in self._children

    def on_hold_by(self, name: str) -> str:
        """The queue that is on hold: this one, or the nearest above it; "" where none is."""
        return next((one for one in self.path(name) if one in self._on_hold), "") if self._on_hold else ""

    def takes_work(self, name: str) -> bool:
        """True if anything new may start there: the queue is open, and neither it nor one above it is on hold."""
        view = self._views.get(name)
        return view is not None and view.open and not self.on_hold_by(name)

    def siblings(self, name: str) -> int:
        """How many queues have the same parent, itself included where it is known."""
        parent = self._parent(name)
        return len(self._children.get(parent, ())) + (parent in self._occupied)

    def weights(self, name: str) -> int:
        """The sum of the weights of the queues with the same parent, itself included where it is known."""
        parent = self._parent(name)
        known = self._weights.get(parent)
        if known is None:
            siblings = self._children.get(parent, ())
            weights = sum(self._views[one].weight for one in siblings)
            known = self._weights[parent] = weights + (parent in self._occupied)
        return known

    def _parent(self, name: str) -> str:
        view = self._views.get(name)
        return view.parent if view else name.removesuffix("/") if name.endswith("/") else ROOT

    def half_lives(self) -> Iterator[tuple[str, float]]:
        """The queues whose past use counts, each with the half-life that its parent sets."""
        for view in self._views.values():
            if view.half_life:
                for one in (*self._children.get(view.name, ()), own_leaf(view.name)):
                    yield one, view.half_life

    def gang_path(self, queue: str) -> tuple[str, ...]:
        """The queues in which a gang of that queue takes room, from its leaf up to the root."""
        return self.path(queue if self.leaf(queue) else own_leaf(queue))

    def path(self, name: str) -> tuple[str, ...]:
        """The queue and those above it, up to the root."""
        known = self._paths.get(name)
        if known is None:
            path: list[str] = []
            one = name
            # Of parents that make a circle each is there once: no queue is lost, and none is its own parent.
            while one and one != ROOT and one not in path:
                path.append(one)
                one = self._parent(one)
            known = self._paths[name] = (*path, ROOT)
        return known

    def with_below(self, name: str) -> tuple[str, ...]:
        """The queue, and all queues below it however far down."""
        if name == ROOT:
            # Also those below a parent that is not there.
            return (ROOT, *(one for one in self._views if one != ROOT))
        found, left = {name: None}, [name]
        while left:
            for one in self._children.get(left.pop(), ()):
                # Parents may make a circle.
                if one not in found:
                    found[one] = None
                    left.append(one)
        return tuple(found)

    def limit(self, name: str) -> Resources:
        """The most that all gangs of the queue and of those below it may hold, as far as the queues above leave more.

        Its own capability, or less where guarantees to its siblings leave less.
        """
        known = self._limits.get(name)
        if known is None:
            for one in reversed(self.path(name)):
                if one not in self._limits:
                    self._limits[one], self._reaches[one] = self._read(one)
            known = self._limits[name]
        return known

    def ceiling(self, name: str) -> dict[str, int]:
        """The limit in billionths of its units."""
        known = self._ceilings.get(name)
        if known is None:
            known = self._ceilings[name] = {resource: amount.nano for resource, amount in self.limit(name).items()}
        return known

    def tightest(self, name: str) -> Mapping[str, int]:
        """The least ceiling of the queue and of all above it, by resource."""
        known = self._tightest.get(name)
        if known is None:
            ceilings = [self.ceiling(one) for one in self.path(name)]
            names = {resource for ceiling in ceilings for resource in ceiling}
            known = {one: min(ceiling[one] for ceiling in ceilings if one in ceiling) for one in names}
            self._tightest[name] = known
        return known

    def limiting(self, name: str) -> tuple[str, ...]:
        """The queues on the path to the root that limit anything, from the root down."""
        known = self._limiting.get(name)
        if known is None:
            known = self._limiting[name] = tuple(one for one in reversed(self.path(name)) if self.limit(one))
        return known

    def hands_up(self, name: str) -> dict[str, int]:
        """The ceiling, where it also bounds what the queue takes of those above it: there are some, and no ring."""
        known = self._hands_up.get(name)
        if known is None:
            above = name != ROOT and name not in self.path(self._parent(name))
            known = self._hands_up[name] = self.ceiling(name) if above else {}
        return known

    def _read(self, name: str) -> tuple[Resources, Resources]:
        """The limit of a queue, and its reach: what it could hold with all others empty, whichever queue limits that.

        Guarantees to its siblings are kept from the reach of the parent (Volcano 1.14.1, capacity.go:779-831).
        """
        view = self._views.get(name)
        own = view.limit if view else {}
        if name == ROOT:
            whole = _tighter(own, self.nodes or {})
            return whole, whole
        parent = self._parent(name)
        # In a ring no queue is above another: otherwise the answer would depend on where the walk begins.
        above = {} if name in self.path(parent) else self._reaches.get(parent, {})
        left, kept = above, self._guaranteed_below(parent)
        if above and kept:
            promised = view.guarantee if view else {}
            free = minus(above, minus(kept, promised))
            left = {one: max(free[one], min(promised.get(one, ZERO), most)) for one, most in above.items()}
        reach = _tighter(own, left)
        # As much as the queue above has is no limit of its own.
        return {**own, **{one: most for one, most in reach.items() if most != above.get(one)}}, reach

    def _level(self, name: str) -> QueueLevel:
        view, limit = self._views.get(name), self.limit(name)
        # The root has no siblings; the nodes may bound it.
        own = limit if name == ROOT else view.limit if view is not None else {}
        return QueueLevel(name, limit, own)

    def _guaranteed_below(self, parent: str) -> Resources:
        """The sum of the guarantees of all queues directly below one."""
        known = self._guarantees.get(parent)
        if known is None:
            guarantees = (self._views[one].guarantee for one in self._children.get(parent, ()))
            known = self._guarantees[parent] = total(guarantee for guarantee in guarantees if guarantee)
        return known

    def open_to_all(self, name: str) -> bool:
        """True if every namespace may use the queue and all that are below it, as well as those above."""
        views = (self._views.get(one) for one in (*self.path(name), *self.with_below(name)))
        return all(view is None or view.namespaces is None for view in views)

    def open_to(self, name: str, namespace: Mapping[str, str]) -> bool:
        """True if there is a queue of that name for a namespace with these labels.

        One below a queue that is not known is open to none: which namespaces that is for is not known.
        """
        if name not in self._views:
            return False
        for one in self.path(name):
            view = self._views.get(one)
            if view is None and one != ROOT:
                return False
            if view is not None and view.namespaces is not None and not view.namespaces.matches(namespace):
                return False
        return True

    def names_for(self, namespace: Mapping[str, str]) -> list[str]:
        """The queues that take gangs of a namespace with these labels; none where there are too many to look at each.

        A queue that is on hold is among them, a closed one is not.
        """
        if len(self._views) > _MOST_NAMED:
            return []
        return [
            one
            for one, view in self._views.items()
            if not view.closed and self.leaf(one) and self.open_to(one, namespace)
        ]

    def place(self, name: str, namespace: Mapping[str, str] | None = None) -> Place | None:
        """The queue in its tree, or None when there is none of that name, or none for a namespace with these labels."""
        view = self._views.get(name)
        if view is None or not (namespace is None or self.open_to(name, namespace)):
            return None
        levels = tuple(map(self._level, self.path(name)))
        return Place(view, self.leaf(name), tuple(level for level in levels if level.limit), self.on_hold_by(name))


def _tighter(first: Resources, second: Resources) -> Resources:
    if not first:
        # Most queues share the reach of the queue above them.
        return second
    return {
        name: min(first[name], second[name]) if name in first and name in second else {**second, **first}[name]
        for name in {**first, **second}
    }
