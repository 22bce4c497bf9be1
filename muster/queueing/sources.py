"""Where queues come from: Volcano's Queues, or muster's own GangQueues in a cluster without Volcano.

The administrator chooses (chart value `queues.source`). A GangQueue has as fields what muster reads of a Queue, its
annotations included, and is decoded as one: no rule below knows the difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
from msgspec.structs import force_setattr, replace

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
    RESERVES,
    SIBLINGS,
    UNPLACED_AFTER,
)
from muster.model.objects import LocalObject, Queue, QueueSpec, QueueStatus
from muster.model.resource import Resource

FIELDS = {
    QUEUEING: "queueing",
    PATIENCE: "patience",
    RESERVES: "reserves",
    DRAIN_AFTER: "drain_after",
    UNPLACED_AFTER: "unplaced_after",
    PREEMPTION: "preemption",
    SIBLINGS: "siblings",
    HALF_LIFE: "half_life",
    BOUND: "bound",
    GATE_MODE: "gate",
}
"""The annotations of a Queue that are plain fields of a GangQueue."""
# Values that are the defaults.
_DEFAULTS = frozenset({"", "backfill", "share"})
_OPERATORS = {"In": "in", "NotIn": "notin"}


class _Requirement(LocalObject, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(LocalObject, frozen=True):
    """A metav1.LabelSelector."""

    match_labels: dict[str, str] = msgspec.field(default_factory=dict)
    match_expressions: tuple[_Requirement, ...] = ()


class _Spec(QueueSpec, frozen=True):
    """The specification of a GangQueue: a Queue's, and muster's annotations of a Queue as fields."""

    closed: bool = False
    namespace_selector: LabelSelector | None = None
    queueing: str = ""
    patience: str = ""
    reserves: str = ""
    drain_after: str = ""
    unplaced_after: str = ""
    preemption: str = ""
    siblings: str = ""
    half_life: str = ""
    bound: str = ""
    gate: str = ""


class GangQueue(Queue, frozen=True):
    """A queue of muster's own (`muster.dev/v1alpha1`, cluster-scoped), read as if it were Volcano's."""

    spec: _Spec = _Spec()

    def __post_init__(self) -> None:
        spec = self.spec
        fields = {key: getattr(spec, name) for key, name in FIELDS.items()}
        annotations = {key: text for key, text in fields.items() if text not in _DEFAULTS}
        # Those that have no field. A hold is set and taken off by hand, next to manifests without it; of the other
        # one its administrator hears that no scheduler here keeps to it.
        annotations |= {key: text for key, text in self.metadata.annotations.items() if key in {HOLD, MIN_RUNTIME}}
        if spec.namespace_selector is not None and (text := selector_text(spec.namespace_selector)):
            annotations[NAMESPACE_SELECTOR] = text
        force_setattr(self, "metadata", replace(self.metadata, annotations=annotations))
        # Nothing else decides whether it takes new work.
        force_setattr(self, "status", QueueStatus(state="Closed" if spec.closed else "Open"))


def selector_text(selector: LabelSelector) -> str:
    """The selector as kubectl's -l takes it; "" for one that selects everything."""

    def parts() -> Iterator[str]:
        for key, value in sorted(selector.match_labels.items()):
            yield f"{key}={value}"
        for one in selector.match_expressions:
            match one.operator:
                case "Exists":
                    yield one.key
                case "DoesNotExist":
                    yield f"!{one.key}"
                case operator:
                    yield f"{one.key} {_OPERATORS.get(operator, operator)} ({','.join(one.values)})"

    return ",".join(parts())


@dataclass(frozen=True, slots=True)
class QueueSource:
    """Where queues are read, and as what they are decoded."""

    group: str
    version: str
    plural: str
    kind: str
    decoded: type[Queue]

    @property
    def resource(self) -> Resource:
        """Its resource at the apiserver."""
        return Resource(self.group, self.version, self.plural, self.kind, namespaced=False)


QUEUE_SOURCES = {
    "volcano": QueueSource("scheduling.volcano.sh", "v1beta1", "queues", "Queue", Queue),
    "muster": QueueSource("muster.dev", "v1alpha1", "gangqueues", "GangQueue", GangQueue),
}
"""By the chart value `queues.source`."""
