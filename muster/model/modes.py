"""What holds a gang back before it starts: room in its queue, its own completeness, or nothing.

An annotation `muster.dev/gate` on the Queue goes before one on the Namespace, and that before the installation's value.
The queue's is first because all who wait there share its room: whoever keeps the queue says how it is shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from muster.model.names import GATE_MODE


class GateMode(StrEnum):
    """Until when the pods of a gang are held.

    With `queue` until the gang is whole and its queue has room; with `assemble` until it is whole. With `off` they are
    bound, pointed at their queue and given their priority, and never held. What gangs hold counts in all modes.
    """

    QUEUE = "queue"
    ASSEMBLE = "assemble"
    OFF = "off"


def read_gate_mode(annotations: Mapping[str, str]) -> GateMode | None:
    """The mode that the annotations name; None where they name no known mode."""
    text = annotations.get(GATE_MODE)
    return next((mode for mode in GateMode if mode == text), None) if text else None


def gate_mode(namespace: Mapping[str, str], default: GateMode) -> GateMode:
    """The mode for gangs of a namespace with these annotations, where their queue sets none."""
    return read_gate_mode(namespace) or default
