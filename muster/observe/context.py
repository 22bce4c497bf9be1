"""What is known of a gang beside what the stores show of it, when it is entered into the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from muster.observe.view import Mark

DOUBLINGS = 6
"""How often the time doubles after which a gang gives its place back that never finds a node."""


@dataclass(frozen=True, slots=True)
class EntryContext:
    """One look at a gang: when, by which priorities, and what its leader knows that the cluster may not show yet."""

    now: float
    """Seconds of the wall clock."""
    priorities: Mapping[str, int]
    """The value of each PriorityClass, by name."""
    mark: Mark = field(default_factory=Mark)
    """What this leader decided, whether the PodGroup says it already or not."""
    unplaced_since: float = 0.0
    """When this leader saw the last node of an admitted gang go (seconds of the wall clock): a gang that crashed has as
    much time to find nodes as a new one. Before its first look (`units`) the pods tell it."""
    waiting: Mapping[str, float] = field(default_factory=dict)
    """Since when this leader has seen single members open and without a node, by the UID of the pod."""
    grow: bool = True
    """Whether the gang may claim more than it holds. Not before all gangs are in the ledger: what seems free may be
    somebody's."""
    refused: bool = False
    """Whether the apiserver does not take a write for the gang: it stands in no line, for it would keep the gangs
    behind it from what it cannot use."""
    units: AbstractSet[str] | None = None
    """The units beyond its minimum that this leader is opening (`muster.observe.units`); None before its first look,
    where the PodGroup says it."""
    tried: AbstractSet[str] = frozenset()
    """The UIDs of the pods that this leader was opening when a write failed: any of them may be open."""
    requeues: int = 0
    """How often this leader has seen it give its place back since its pods last had nodes."""
    yielded: bool = False
    """Whether it gave back the room of what cannot be opened: it needs room for that again, as growth does."""
    unready_since: float | None = None
    """Since when this leader has seen a member that has a node and is not ready; None where there is none."""
