"""The run time limit by a user: `muster.dev/runs-at-most`, or Kueue's `max-exec-time-seconds`.

Each is read from the object nearest to the pods; the shorter one of both counts. One that cannot be read sets no limit,
and never stops the gang.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muster.model.names import KUEUE_MOST_RUN, RUNS_AT_MOST
from muster.model.times import duration_of
from muster.workloads import Voice, Workload

_SHORTEST_RUN, LONGEST_RUN = 60.0, 60 * 24 * 3600.0
_MOST_DIGITS = 9


class SaidRun(NamedTuple):
    """The run time limit of a gang: seconds, and the path of the field that sets it."""

    seconds: float
    path: str
    text: str


def said_run(workload: Workload, voices: Sequence[Voice]) -> SaidRun | None:
    """Return the limit of a workload, set by itself or by the `voices` that speak for it; None for none."""
    annotated = next(_annotated(workload, voices), None)
    label = next(_labelled(workload, voices), None)
    seconds = _whole(label[1]) if label is not None else None
    found = [SaidRun(float(seconds), label[0], f"{seconds}s")] if label is not None and seconds else []
    if annotated is not None and (most := _run(annotated[1])) is not None:
        found.append(SaidRun(most, *annotated))
    return min(found, default=None)


def unreadable_runs(workload: Workload, voices: Sequence[Voice]) -> Iterator[tuple[str, str]]:
    """Yield the paths at which the annotation is no valid duration, each with its value."""
    return ((path, text) for path, text in _annotated(workload, voices) if _run(text) is None)


def _run(text: str) -> float | None:
    seconds = duration_of(text)
    return seconds if seconds is not None and _SHORTEST_RUN <= seconds <= LONGEST_RUN else None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def _annotated(workload: Workload, voices: Sequence[Voice]) -> Iterator[tuple[str, str]]:
    if text := workload.metadata.annotations.get(RUNS_AT_MOST):
        yield workload.annotation_path(RUNS_AT_MOST), text
    for voice in voices:
        if text := voice.annotations.get(RUNS_AT_MOST):
            yield voice.annotation_path(RUNS_AT_MOST), text


def _labelled(workload: Workload, voices: Sequence[Voice]) -> Iterator[tuple[str, str]]:
    if text := workload.metadata.labels.get(KUEUE_MOST_RUN):
        yield workload.label_path(KUEUE_MOST_RUN), text
    for voice in voices:
        if text := voice.labels.get(KUEUE_MOST_RUN):
            yield voice.label_path(KUEUE_MOST_RUN), text
