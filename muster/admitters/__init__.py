"""The admitters of gangs: the ledger, Kueue, or none.

The chart's value `admitters` lists them, the default first; the annotation `muster.dev/admitter` of a Namespace chooses
among them. A workload cannot choose. A gang keeps the admitter with which it began.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from muster.model.modes import GateMode
from muster.model.names import ADMITTER


class Admitter(StrEnum):
    """The admitter for whose admission the gates of a whole gang wait."""

    LEDGER = "ledger"
    """muster itself: in the order of its queue, and within the limits of its queue."""
    KUEUE = "kueue"
    """Kueue, by the Workload that Kueue makes of the gang's workload."""
    NONE = "none"
    """No admitter: the gang starts as soon as it is whole."""


def listed(text: str) -> tuple[Admitter, ...]:
    """Return the admitters of a list such as "ledger,kueue"; raises ValueError with the valid values."""
    try:
        return tuple(dict.fromkeys(Admitter(name) for name in text.split(",")))
    except ValueError:
        raise ValueError(f'"{text[:80]}" names an unknown admitter; use {", ".join(Admitter)}') from None


def chosen_admitter(namespace: Mapping[str, str], admitters: Sequence[Admitter]) -> Admitter:
    """Return the admitter of a namespace with these annotations: the first if it names none of these."""
    named = namespace.get(ADMITTER, "")
    return next((one for one in admitters if one == named), admitters[0])


def gate_by(admitter: Admitter, of_queue: GateMode | None, otherwise: GateMode) -> GateMode:
    """Return the gate mode of gangs: `of_queue`, the queue's own, if the ledger admits.

    Gangs of other admitters do not wait for room in a queue; a gate that is off in the namespace stays off.
    """
    if admitter is Admitter.LEDGER:
        return of_queue or otherwise
    return GateMode.ASSEMBLE if otherwise is GateMode.QUEUE else otherwise
