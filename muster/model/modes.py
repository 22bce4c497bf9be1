"""The gate modes: a gang is held until its queue has room, until it is whole, or not at all.

An annotation `muster.dev/gate` on the Queue goes before one on the Namespace, and that before the installation's value.
The queue's is first because all gangs that wait there share its room: its administrator decides how.
"""

from collections.abc import Mapping
from enum import StrEnum

from muster.model.names import GATE_MODE


class GateMode(StrEnum):
    """The time until which the pods of a gang are held.

    With `queue` until the gang is whole and its queue has room; with `assemble` until it is whole. With `off` they are
    bound, assigned to their queue and given their priority, and never held. The usage of gangs counts in all modes.
    """

    QUEUE = "queue"
    ASSEMBLE = "assemble"
    OFF = "off"


def read_gate_mode(annotations: Mapping[str, str]) -> GateMode | None:
    """Return the mode that the annotations name; None if they name no known mode."""
    text = annotations.get(GATE_MODE)
    return next((mode for mode in GateMode if mode == text), None) if text else None


def gate_mode(namespace: Mapping[str, str], default: GateMode) -> GateMode:
    """Return the mode for gangs of a namespace with these annotations, if their queue sets none."""
    return read_gate_mode(namespace) or default
