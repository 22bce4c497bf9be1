"""What a queue can hold, and whether it takes new work.

One level for now: a queue's own capability and state. As in Volcano, a resource that the capability does not name is
unlimited, and so is a capability of 0 or less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from muster.quantity import ZERO
from muster.resources import Resources, describe, parse_resources

if TYPE_CHECKING:
    from muster.objects import Queue
    from muster.quantity import Quantity

__all__ = ["QueueView", "exceeding", "read_queue"]

# Volcano's controller writes the state of a new queue within moments; until then it is neither open nor closed.
_NEW = ""
_OPEN = "Open"
_ROOT = "root"


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue as the rules see it; `limit` names only what is limited, a `leaf` has no queues below it."""

    name: str
    state: str
    limit: Resources
    leaf: bool = True

    @property
    def open(self) -> bool:
        """Whether Volcano takes new work here now."""
        return self.state == _OPEN

    @property
    def closed(self) -> bool:
        """Whether the queue was closed, or is being closed; a queue too new to have a state is not."""
        return self.state not in (_NEW, _OPEN)


def read_queue(queue: Queue, *, leaf: bool = True) -> QueueView:
    """The queue as the rules see it; whether it is a leaf is for the caller to say, who knows the others.

    Raises InvalidObjectError when its capability is no resource list.
    """
    capability = parse_resources(queue.spec.capability, path="spec.capability", least=None)
    # As in Volcano, what is not above zero limits nothing.
    limit = {name: amount for name, amount in capability.items() if amount > ZERO}
    return QueueView(queue.metadata.name, queue.status.state, limit, leaf and queue.metadata.name != _ROOT)


def exceeding(need: Resources, limit: Resources) -> tuple[str, str] | None:
    """The resources of which more is needed than the limit ever allows: need and limit in words, or None."""
    over: dict[str, Quantity] = {name: need[name] for name in limit if name in need and need[name] > limit[name]}
    if not over:
        return None
    return describe(over), describe({name: limit[name] for name in over})
