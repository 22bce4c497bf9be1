"""Who admits a gang: the ledger, Kueue, or nobody.

The chart's value `admitters` lists who may, first who does where nobody says; the annotation `muster.dev/admitter` of a
Namespace chooses among them. Nothing that a workload says does. A gang keeps the admitter with which it began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from muster.model.modes import GateMode
from muster.model.names import ADMITTER


class Admitter(StrEnum):
    """Whose yes the gates of a whole gang wait for."""

    LEDGER = "ledger"
    """muster's own: in the order of its queue, and within the limits of its queue."""
    KUEUE = "kueue"
    """Kueue's, by the Workload that Kueue makes of the gang's workload."""
    NONE = "none"
    """Nobody's: the gang starts as soon as it is whole."""


def listed(text: str) -> tuple[Admitter, ...]:
    """The admitters of a list such as "ledger,kueue"; raises ValueError saying what may be written."""
    try:
        return tuple(dict.fromkeys(Admitter(name) for name in text.split(",")))
    except ValueError:
        raise ValueError(f'"{text[:80]}" names an unknown admitter; use {", ".join(Admitter)}') from None


def chosen_admitter(namespace: Mapping[str, str], admitters: Sequence[Admitter]) -> Admitter:
    """The admitter of a namespace with these annotations: the first where it names none of these."""
    named = namespace.get(ADMITTER, "")
    return next((one for one in admitters if one == named), admitters[0])


def gate_by(admitter: Admitter, of_queue: GateMode | None, otherwise: GateMode) -> GateMode:
    """What holds gangs back until they start, `of_queue` where the ledger admits, as a queue's own mode says.

    No room of a queue is waited for where another one admits; a gate that is off in the namespace stays off.
    """
    if admitter is Admitter.LEDGER:
        return of_queue or otherwise
    return GateMode.ASSEMBLE if otherwise is GateMode.QUEUE else otherwise
