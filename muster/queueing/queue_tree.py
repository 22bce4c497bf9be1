"""What a queue can hold, whether it takes new work, and how its gangs wait; and the tree that the queues form.

As in Volcano, a resource that a capability does not name is unlimited, and so is a capability of 0 or less; every queue
stands below `root`, directly or further down, and a gang takes room of its queue and of all above it. Under Volcano's
hierarchical capacity what is guaranteed to a queue's siblings is out of its reach.

A queue may name the namespaces that it is there for; who may not use a queue may not use those below it either. To all
others it does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from muster.model.modes import GateMode, read_gate_mode
from muster.model.names import (
    BOUND,
    GATE_MODE,
    HOLD,
    NAMESPACE_NAME,
    NAMESPACE_SELECTOR,
    PATIENCE,
    PREEMPTION,
    QUEUEING,
    RECLAIM,
    SIBLINGS,
    UNPLACED_AFTER,
)
from muster.model.selectors import NOTHING, InvalidSelectorError, Selector, parse_selector
from muster.model.times import duration_of
from muster.resources.amounts import Resources, describe, minus, parse_resources, total
from muster.resources.quantity import ZERO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from muster.model.objects import ObjectMeta, Queue
    from muster.resources.quantity import Quantity

__all__ = [
    "ROOT",
    "UNPLACED",
    "Place",
    "Problem",
    "QueueLevel",
    "QueueTree",
    "QueueView",
    "exceeding",
    "labels_of",
    "read_queue",
]

ROOT = "root"
# Volcano's controller writes the state of a new queue within moments; until then it is neither open nor closed.
_NEW = ""
_OPEN = "Open"
_PATIENCE = 600.0
UNPLACED = 300.0
"""Seconds for which an admitted gang may have no node where its queue does not say: most autoscalers need less."""


class Problem(NamedTuple):
    """A field of a queue that cannot be read: what is wrong with it, and what holds meanwhile."""

    field: str
    wrong: str
    meanwhile: str = "it is ignored"

    def __str__(self) -> str:
        return f"{self.field}: {self.wrong}"


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue by itself, as its Queue object says."""

    name: str
    """Its name."""
    state: str
    """Its state by Volcano; "" before Volcano has seen it."""
    limit: Resources
    """What its capability limits; resources that it does not name are unlimited."""
    parent: str = ROOT
    """The queue above it; "" for the root."""
    guarantee: Resources = field(default_factory=dict)
    """What no other queue may take."""
    deserved: Resources = field(default_factory=dict)
    """What it is to have before its siblings have more than their share."""
    weight: int = 1
    """Its part among its siblings, of resources that its `deserved` does not name."""
    by_age: bool = False
    """Whether gangs of the queues directly below it start by age, whatever these queues have of their share."""
    strict: bool = False
    """Whether no gang may pass another one here."""
    patience: float = _PATIENCE
    """For how many seconds smaller gangs may pass a waiting one."""
    unplaced_after: float = UNPLACED
    """After how many seconds without a node the claim of an admitted gang may turn soft."""
    preempts: bool = False
    """Whether claims of lower priority do not stand in the way of a gang."""
    reclaims: bool = False
    """Of the root: whether what queues hold beyond their shares is taken back for those that have less."""
    bound_by_nodes: bool = False
    """Whether the root admits no more than the nodes can hold."""
    gate: GateMode | None = None
    """The gate mode of its gangs; None where the queue sets none."""
    on_hold: bool = False
    """Whether no gang is to start here, or in a queue below it, until it is resumed."""
    zeros: tuple[str, ...] = ()
    """The resources of which its capability says 0, which is unlimited to Volcano."""
    namespaces: Selector | None = None
    """The namespaces that may use it; None for all."""
    problems: tuple[Problem, ...] = ()
    """Annotations that cannot be read: they do not count, but a queue with an unreadable selector is closed."""

    @property
    def open(self) -> bool:
        """Whether Volcano takes new work here now."""
        return self.state == _OPEN

    @property
    def closed(self) -> bool:
        """Whether the queue was closed, or is being closed; a queue too new to have a state is not."""
        return self.state not in (_NEW, _OPEN)


class QueueLevel(NamedTuple):
    """A queue, or one above it, and what all gangs there together may hold."""

    queue: str
    limit: Resources

    def called(self, asking: str) -> str:
        """How it is called where a gang of the queue `asking` is told of it."""
        if self.queue == asking:
            return f'queue "{self.queue}"'
        return "the cluster" if self.queue == ROOT else f'queue "{self.queue}" above "{asking}"'


@dataclass(frozen=True, slots=True)
class Place:
    """A queue in its tree; a `leaf` has no queues below it, `levels` go from the queue itself up to the root.

    `on_hold_by` is the queue, itself or one above it, that is on hold; "" where none is.
    """

    view: QueueView
    leaf: bool
    levels: tuple[QueueLevel, ...]
    on_hold_by: str = ""


def read_queue(queue: Queue) -> QueueView:
    """The queue by itself. Raises InvalidObjectError when its capability or its guarantee is no resource list."""
    spec, annotations = queue.spec, queue.metadata.annotations
    problems: list[Problem] = []

    def one_of(key: str, *known: str) -> str:
        text = annotations.get(key, "")
        if text and text not in known:
            problems.append(Problem(f"metadata.annotations[{key}]", f'"{text}" is not known; use {" or ".join(known)}'))
        return text

    def duration(key: str, default: float) -> float:
        text = annotations.get(key, "")
        seconds = duration_of(text)
        if text and seconds is None:
            wrong = f'"{text}" is not a duration such as 30s, 10m or 1h30m'
            problems.append(Problem(f"metadata.annotations[{key}]", wrong))
        return default if seconds is None else seconds

    namespaces = None
    if NAMESPACE_SELECTOR in annotations:
        try:
            namespaces = parse_selector(annotations[NAMESPACE_SELECTOR])
        except InvalidSelectorError as error:
            namespaces = NOTHING
            wrong = f"{error}; write a label selector as kubectl's -l takes it, or remove it to open the queue to all"
            meanwhile = "the queue is closed to all namespaces"
            problems.append(Problem(f"metadata.annotations[{NAMESPACE_SELECTOR}]", wrong, meanwhile))
    name = queue.metadata.name
    capability = parse_resources(spec.capability, path="spec.capability", least=None)
    return QueueView(
        name=name,
        state=queue.status.state,
        limit=_above_zero(capability),
        parent="" if name == ROOT else spec.parent or ROOT,
        guarantee=_above_zero(parse_resources(spec.guarantee.resource, path="spec.guarantee.resource", least=None)),
        strict=one_of(QUEUEING, "strict") == "strict",
        patience=duration(PATIENCE, _PATIENCE),
        unplaced_after=duration(UNPLACED_AFTER, UNPLACED),
        deserved=parse_resources(spec.deserved, path="spec.deserved", least=None),
        weight=max(spec.weight, 1),
        by_age=one_of(SIBLINGS, "age", "share") == "age",
        preempts=one_of(PREEMPTION, "lower-priority") == "lower-priority",
        reclaims=one_of(RECLAIM, "beyond-share") == "beyond-share",
        bound_by_nodes=one_of(BOUND, "nodes") == "nodes",
        gate=read_gate_mode({GATE_MODE: one_of(GATE_MODE, *GateMode)}),
        on_hold=one_of(HOLD, "true", "false") == "true",
        zeros=tuple(resource for resource, amount in capability.items() if amount == ZERO),
        namespaces=namespaces,
        problems=tuple(problems),
    )


def _above_zero(amounts: Resources) -> dict[str, Quantity]:
    # As in Volcano, what is not above zero limits nothing.
    return {name: amount for name, amount in amounts.items() if amount > ZERO}


def labels_of(namespace: ObjectMeta) -> Mapping[str, str]:
    """A namespace's labels, with the one that the apiserver puts on all of them."""
    return {**namespace.labels, NAMESPACE_NAME: namespace.name}


def exceeding(need: Resources, limit: Resources) -> tuple[str, str] | None:
    """The resources of which more is needed than the limit ever allows: need and limit in words, or None."""
    over: dict[str, Quantity] = {name: need[name] for name in limit if name in need and need[name] > limit[name]}
    if not over:
        return None
    return describe(over), describe({name: limit[name] for name in over})


class QueueTree:
    """All queues, by name; what is not there as an object (a parent, the root) limits nothing."""

    def __init__(self, views: Iterable[QueueView] = ()) -> None:
        self._views: dict[str, QueueView] = {}
        self._children: dict[str, set[str]] = {}
        self._nodes: Resources | None = None
        self._revision = 0
        self._paths: dict[str, tuple[str, ...]] = {}
        self._limits: dict[str, Resources] = {}
        self._ceilings: dict[str, dict[str, int]] = {}
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
        old = self._views.get(view.name)
        if old == view:
            return False
        self._take_out(view.name)
        self._views[view.name] = view
        if view.parent:
            self._children.setdefault(view.parent, set()).add(view.name)
        self._changed()
        return True

    def drop(self, name: str) -> bool:
        """Take out a queue that is gone; True when it was there."""
        known = name in self._views
        self._take_out(name)
        self._changed()
        return known

    def having(self, view: QueueView) -> QueueTree:
        """This tree with one more queue, or another one of its name."""
        return QueueTree([*(one for one in self._views.values() if one.name != view.name), view])

    @property
    def revision(self) -> int:
        """Another number after each change of a queue, or of what the nodes can give."""
        return self._revision

    def _changed(self) -> None:
        self._paths.clear()
        self._forget_limits()

    def _forget_limits(self) -> None:
        self._revision += 1
        self._limits.clear()
        self._ceilings.clear()

    def _take_out(self, name: str) -> None:
        old = self._views.pop(name, None)
        if old is not None and old.parent:
            siblings = self._children[old.parent]
            siblings.discard(name)
            if not siblings:
                del self._children[old.parent]

    def bound(self, nodes: Resources | None) -> bool:
        """Bound the root by what the nodes can give, or no longer; True when that changed anything."""
        if nodes == self._nodes:
            return False
        self._nodes = nodes
        self._forget_limits()
        return True

    def unplaced_after(self, name: str) -> float:
        """The seconds for which an admitted gang there may have no node before others may be admitted past it."""
        view = self._views.get(name)
        return UNPLACED if view is None else view.unplaced_after

    @property
    def counts_nodes(self) -> bool:
        """Whether the root is bounded by what the nodes can give now."""
        return self._nodes is not None

    @property
    def bound_by_nodes(self) -> bool:
        """Whether the root queue asks to be bound by the nodes."""
        root = self._views.get(ROOT)
        return root is not None and root.bound_by_nodes

    @property
    def reclaims(self) -> bool:
        """Whether what queues hold beyond their shares is taken back for those that have less."""
        root = self._views.get(ROOT)
        return root is not None and root.reclaims

    def strict(self, name: str) -> bool:
        """Whether no gang may pass another one there."""
        view = self._views.get(name)
        return view is not None and view.strict

    def leaf(self, name: str) -> bool:
        """Whether no queue stands below it; the root takes no gangs even when it is alone."""
        return name != ROOT and name not in self._children

    def on_hold_by(self, name: str) -> str:
        """The queue that is on hold: this one, or the nearest above it; "" where none is."""
        return next((one for one in self.path(name) if (view := self._views.get(one)) and view.on_hold), "")

    def takes_work(self, name: str) -> bool:
        """Whether anything new may start there: the queue is open, and neither it nor one above it is on hold."""
        view = self._views.get(name)
        return view is not None and view.open and not self.on_hold_by(name)

    def siblings(self, name: str) -> tuple[str, ...]:
        """The queues with the same parent, itself included where it is known."""
        view = self._views.get(name)
        return tuple(self._children.get(view.parent if view else ROOT, ()))

    def path(self, name: str) -> tuple[str, ...]:
        """The queue and those above it, up to the root."""
        known = self._paths.get(name)
        if known is None:
            path: list[str] = []
            one = name
            # Of parents that make a circle each is there once: no queue is lost, and none is its own parent.
            while one and one != ROOT and one not in path:
                path.append(one)
                view = self._views.get(one)
                one = view.parent if view else ROOT
            known = self._paths[name] = (*path, ROOT)
        return known

    def with_below(self, name: str) -> tuple[str, ...]:
        """The queue, and all queues below it however far down."""
        return (name, *(one for one in self._views if one != name and name in self.path(one)))

    def limit(self, name: str) -> Resources:
        """What all gangs of the queue and of those below it may hold together."""
        known = self._limits.get(name)
        if known is None:
            for one in reversed(self.path(name)):
                if one not in self._limits:
                    self._limits[one] = self._limit(one)
            known = self._limits[name]
        return known

    def ceiling(self, name: str) -> dict[str, int]:
        """The limit in billionths of its units."""
        known = self._ceilings.get(name)
        if known is None:
            known = self._ceilings[name] = {resource: amount.nano for resource, amount in self.limit(name).items()}
        return known

    def _limit(self, name: str) -> Resources:
        view = self._views.get(name)
        own = view.limit if view else {}
        if name == ROOT:
            return _tighter(own, self._nodes or {})
        parent = view.parent if view else ROOT
        kept = total(
            other.guarantee
            for sibling in self._children.get(parent, ())
            if sibling != name and (other := self._views[sibling]).guarantee
        )
        # In a ring no queue is above another: otherwise the answer would depend on where the walk begins.
        above = {} if name in self.path(parent) else self._limits.get(parent, {})
        reach = minus({resource: above[resource] for resource in above if resource in kept}, kept)
        return _tighter(own, reach)

    def open_to_all(self, name: str) -> bool:
        """Whether every namespace may use the queue and all that are below it, as well as those above."""
        views = (self._views.get(one) for one in (*self.path(name), *self.with_below(name)))
        return all(view is None or view.namespaces is None for view in views)

    def open_to(self, name: str, namespace: Mapping[str, str]) -> bool:
        """Whether there is a queue of that name for a namespace with these labels.

        One below a queue that is not known is open to nobody: whoever that is there for, it may not be this namespace.
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

    def place(self, name: str, namespace: Mapping[str, str] | None = None) -> Place | None:
        """The queue in its tree, or None when there is none of that name, or none for a namespace with these labels."""
        view = self._views.get(name)
        if view is None or not (namespace is None or self.open_to(name, namespace)):
            return None
        levels = tuple(QueueLevel(one, self.limit(one)) for one in self.path(name))
        return Place(view, self.leaf(name), tuple(level for level in levels if level.limit), self.on_hold_by(name))


def _tighter(first: Resources, second: Resources) -> Resources:
    return {
        name: min(first[name], second[name]) if name in first and name in second else {**second, **first}[name]
        for name in {**first, **second}
    }
