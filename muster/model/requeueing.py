"""`muster.dev/requeue-after`: when a gang gives back a place that it cannot use, as its workload asks for it."""

from __future__ import annotations

from typing import NamedTuple

from muster.model.times import duration_of

LEAST_REQUEUE = 5.0
"""Seconds that an admitted gang has at least, whatever its workload says."""
NOT_READY = "not-ready"
"""The word behind the duration, after a comma, with which pods that have nodes and are not ready count, too."""


class RequeueAfter(NamedTuple):
    """After how many seconds, and whether for pods that have nodes and are not ready, too."""

    seconds: float
    not_ready: bool


def requeue_after(text: str) -> RequeueAfter | None:
    """What the annotation says, such as `30m` or `30m,not-ready`; None where that is nothing."""
    duration, comma, word = (part.strip() for part in text.partition(","))
    seconds = duration_of(duration)
    if not seconds or word != (NOT_READY if comma else ""):
        return None
    return RequeueAfter(max(seconds, LEAST_REQUEUE), bool(comma))
