"""The admitters: the ledger, Kueue, or none. Rules alone: they read their arguments."""

from __future__ import annotations

from muster.admitters.kueue import KueueAnswer, KueueWorkload, answer_of, newest, reverted
from muster.admitters.model import Admitter, chosen_admitter, gate_by, listed

__all__ = [
    "Admitter",
    "KueueAnswer",
    "KueueWorkload",
    "answer_of",
    "chosen_admitter",
    "gate_by",
    "listed",
    "newest",
    "reverted",
]
