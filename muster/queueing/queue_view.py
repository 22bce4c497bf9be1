"""The settings of one queue, read from its Queue object.

As in Volcano, a resource that a capability does not name is unlimited, and so are cpu and memory of 0 or less; 0 of any
other resource is none of it. A queue may name the namespaces that it is there for.
"""

from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, TypeVar

from muster.model.modes import GateMode, read_gate_mode
from muster.model.names import (
    BOUND,
    DRAIN_AFTER,
    GATE_MODE,
    HALF_LIFE,
    HOLD,
    MIN_RUNTIME,
    NAMESPACE_SELECTOR,
    PATIENCE,
    PREEMPTION,
    QUEUEING,
    RECLAIM,
    RESERVES,
    SIBLINGS,
    UNPLACED_AFTER,
)
from muster.model.objects import Queue
from muster.model.selectors import NOTHING, InvalidSelectorError, Selector, parse_selector
from muster.model.texts import unread_keys
from muster.model.times import duration_of, duration_text
from muster.queueing.sources import FIELDS
from muster.resources.amounts import Resources, parse_resources
from muster.resources.quantity import ZERO, Quantity

ROOT = "root"
_Seconds = TypeVar("_Seconds", float, None)
_READ = frozenset({*FIELDS, HOLD, MIN_RUNTIME, NAMESPACE_SELECTOR, RECLAIM})
# Volcano's controller writes the state of a new queue within moments; until then it is neither open nor closed.
_NEW = ""
_OPEN = "Open"
_PATIENCE = 600.0
# Of a half-life, in seconds; a min-runtime is no longer, for more is nothing that Volcano reads.
_SHORTEST, _LONGEST = 60.0, 365 * 86400.0
# Volcano's plugins take 0 of these as not set (pkg/scheduler/plugins/{capacity,proportion} of 1.14.1): they
# are plain fields of its type for amounts. All others stand in a map, and are what they are.
_UNLIMITED_AT_ZERO = frozenset({"cpu", "memory"})
UNPLACED = 300.0
"""Seconds for which an admitted gang may have no node if its queue sets no time: most autoscalers need less."""
DRAINS = 43200.0
"""Seconds after its first bypass from which a queue drains for a gang, if the queue sets no time."""


class Problem(NamedTuple):
    """A field of a queue that cannot be read: what is wrong with it, and what holds until it is mended."""

    field: str
    wrong: str
    effect: str = "it is ignored"

    def __str__(self) -> str:
        return f"{self.field}: {self.wrong}"


@dataclass(frozen=True, slots=True)
class QueueView:
    """The settings of a queue, from its Queue object."""

    name: str
    """Its name."""
    state: str
    """Its state by Volcano; "" before Volcano has seen it."""
    limit: Resources
    """The limits by its capability; resources that it does not name are unlimited."""
    parent: str = ROOT
    """The queue above it; "" for the root."""
    guarantee: Resources = field(default_factory=dict)
    """The amounts that no other queue may take."""
    deserved: Resources = field(default_factory=dict)
    """The amounts that it gets before its siblings get more than their share."""
    weight: int = 1
    """Its part among its siblings, of resources that its `deserved` does not name."""
    by_age: bool = False
    """True if gangs of the queues directly below it start by age, whatever these queues have of their share."""
    half_life: float | None = None
    """After how many seconds past use counts half in the shares of the queues directly below; None: not at all."""
    strict: bool = False
    """True if no gang may pass another one here."""
    patience: float = _PATIENCE
    """For how many seconds smaller gangs may pass a waiting one."""
    trusts_estimates: bool = True
    """True if reservations here rest on estimates where no bounds are known."""
    drain_after: float | None = None
    """After how many seconds without a start a bypassed gang has the queue drained for it; None for the default."""
    unplaced_after: float = UNPLACED
    """After how many seconds without a node the claim of an admitted gang may turn soft."""
    preempts: bool = False
    """True if claims of lower priority do not stand in the way of a gang that preempts."""
    min_runtime: float = 0.0
    """For how many seconds after its start Volcano evicts no pod of a gang that came since this was set; 0 for none."""
    reclaimable: bool = True
    """True if what it holds beyond its share may be taken back."""
    reclaims: bool = False
    """Of the root: whether what queues hold beyond their shares is taken back for those that have less."""
    bound_by_nodes: bool = False
    """True if the root admits no more than the nodes can hold."""
    gate: GateMode | None = None
    """The gate mode of its gangs; None where the queue sets none."""
    on_hold: bool = False
    """True if no gang is to start here, or in a queue below it, until it is resumed."""
    zeros: tuple[str, ...] = ()
    """The names, of cpu and memory, that its capability sets to 0, which Volcano reads as unlimited."""
    namespaces: Selector | None = None
    """The namespaces that may use it; None for all."""
    problems: tuple[Problem, ...] = ()
    """Annotations that cannot be read: they do not count, but a queue with an unreadable selector is closed."""
    unread: tuple[Problem, ...] = ()
    """Annotations that are meant for muster, and that it does not read: misspelled keys."""

    @property
    def open(self) -> bool:
        """True if Volcano takes new work here now."""
        return self.state == _OPEN

    @property
    def closed(self) -> bool:
        """True if the queue was closed, or is being closed; a queue too new to have a state is not."""
        return self.state not in (_NEW, _OPEN)


def read_queue(queue: Queue) -> QueueView:
    """The queue by itself. Raises InvalidObjectError when its capability or its guarantee is no resource list."""
    spec, annotations = queue.spec, queue.metadata.annotations
    problems: list[Problem] = []

    def one_of(key: str, *known: str) -> str:
        text = annotations.get(key, "")
        if text and text not in known:
            wrong = f'"{text[:80]}" is not known; use {" or ".join(known)}'
            problems.append(Problem(f"metadata.annotations[{key}]", wrong))
        return text

    def duration(key: str, default: _Seconds, shortest: float = 0.0, longest: float = inf) -> float | _Seconds:
        text = annotations.get(key, "")
        seconds = duration_of(text)
        if not text or (seconds is not None and shortest <= seconds <= longest):
            return default if seconds is None else seconds
        between = f"between {duration_text(shortest)} and {duration_text(longest)}" if seconds is not None else ""
        wrong = f'"{text[:80]}" is not {between or "a duration such as 30s, 10m or 1h30m"}'
        problems.append(Problem(f"metadata.annotations[{key}]", wrong))
        return default

    namespaces = None
    if NAMESPACE_SELECTOR in annotations:
        try:
            namespaces = parse_selector(annotations[NAMESPACE_SELECTOR])
        except InvalidSelectorError as error:
            namespaces = NOTHING
            wrong = f"{error}; write a label selector as kubectl's -l takes it, or remove it to open the queue to all"
            effect = "the queue is closed to all namespaces"
            problems.append(Problem(f"metadata.annotations[{NAMESPACE_SELECTOR}]", wrong, effect))
    name = queue.metadata.name
    capability = parse_resources(spec.capability, path="spec.capability", least=None)
    return QueueView(
        name=name,
        state=queue.status.state,
        limit=_limits(capability),
        parent="" if name == ROOT else spec.parent or ROOT,
        guarantee=_above_zero(parse_resources(spec.guarantee.resource, path="spec.guarantee.resource", least=None)),
        strict=one_of(QUEUEING, "strict") == "strict",
        patience=duration(PATIENCE, _PATIENCE),
        trusts_estimates=one_of(RESERVES, "estimates", "bounds") != "bounds",
        drain_after=duration(DRAIN_AFTER, None),
        unplaced_after=duration(UNPLACED_AFTER, UNPLACED),
        deserved=parse_resources(spec.deserved, path="spec.deserved", least=None),
        weight=max(spec.weight, 1),
        by_age=one_of(SIBLINGS, "age", "share") == "age",
        half_life=duration(HALF_LIFE, None, _SHORTEST, _LONGEST),
        preempts=one_of(PREEMPTION, "lower-priority") == "lower-priority",
        min_runtime=duration(MIN_RUNTIME, 0.0, longest=_LONGEST),
        reclaimable=spec.reclaimable,
        reclaims=one_of(RECLAIM, "beyond-share") == "beyond-share",
        bound_by_nodes=one_of(BOUND, "nodes") == "nodes",
        gate=read_gate_mode({GATE_MODE: one_of(GATE_MODE, *GateMode)}),
        on_hold=one_of(HOLD, "true", "false") == "true",
        zeros=tuple(name for name, amount in capability.items() if name in _UNLIMITED_AT_ZERO and amount == ZERO),
        namespaces=namespaces,
        problems=tuple(problems),
        unread=tuple(
            Problem(f"metadata.annotations[{key}]", wrong) for key, wrong in unread_keys(annotations, _READ).items()
        ),
    )


def _limits(capability: Resources) -> dict[str, Quantity]:
    above = _above_zero(capability)
    return above | {name: ZERO for name in capability if name not in above and name not in _UNLIMITED_AT_ZERO}


def _above_zero(amounts: Resources) -> dict[str, Quantity]:
    # As in Volcano, what is not above zero limits nothing.
    return {name: amount for name, amount in amounts.items() if amount > ZERO}
