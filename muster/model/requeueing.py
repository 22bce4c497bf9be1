"""`muster.dev/requeue-after`: the time after which a gang gives back a place that it cannot use."""

from __future__ import annotations

from typing import NamedTuple

from muster.model.times import duration_of

LEAST_REQUEUE = 5.0
"""Least seconds that an admitted gang has, whatever its workload requests."""
NOT_READY = "not-ready"
"""The word after the duration and a comma by which pods that have nodes and are not ready count, too."""


class RequeueAfter(NamedTuple):
    """The seconds, and whether pods that have nodes and are not ready count, too."""

    seconds: float
    not_ready: bool


def requeue_after(text: str) -> RequeueAfter | None:
    """Return the value of the annotation, such as `30m` or `30m,not-ready`; None if it cannot be read."""
    duration, comma, word = (part.strip() for part in text.partition(","))
    seconds = duration_of(duration)
    if not seconds or word != (NOT_READY if comma else ""):
        return None
    return RequeueAfter(max(seconds, LEAST_REQUEUE), bool(comma))
