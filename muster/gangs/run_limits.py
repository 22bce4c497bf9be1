"""The run time limit by a user: `muster.dev/runs-at-most`, or Kueue's `max-exec-time-seconds`.

Each is read from the object nearest to the pods; the shorter one of both counts. One that cannot be read sets no limit,
and never stops the gang.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muster.model.names import KUEUE_MOST_RUN, RUNS_AT_MOST
from muster.model.times import duration_of
from muster.workloads import IntentSource, Workload

_SHORTEST_RUN, LONGEST_RUN = 60.0, 60 * 24 * 3600.0
_MOST_DIGITS = 9


class RunLimit(NamedTuple):
    """The run time limit of a gang: seconds, and the path of the field that sets it."""

    seconds: float
    path: str
    text: str


def run_limit_of(workload: Workload, sources: Sequence[IntentSource]) -> RunLimit | None:
    """Return the limit of a workload, set by itself or by the `sources` that speak for it; None for none."""
    annotated = next(_annotated(workload, sources), None)
    label = next(_labelled(workload, sources), None)
    seconds = _whole(label[1]) if label is not None else None
    found = [RunLimit(float(seconds), label[0], f"{seconds}s")] if label is not None and seconds else []
    if annotated is not None and (most := _run(annotated[1])) is not None:
        found.append(RunLimit(most, *annotated))
    return min(found, default=None)


def unreadable_limits(workload: Workload, sources: Sequence[IntentSource]) -> Iterator[tuple[str, str]]:
    """Yield the paths at which the annotation is no valid duration, each with its value."""
    return ((path, text) for path, text in _annotated(workload, sources) if _run(text) is None)


def _run(text: str) -> float | None:
    seconds = duration_of(text)
    return seconds if seconds is not None and _SHORTEST_RUN <= seconds <= LONGEST_RUN else None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def _annotated(workload: Workload, sources: Sequence[IntentSource]) -> Iterator[tuple[str, str]]:
    if text := workload.metadata.annotations.get(RUNS_AT_MOST):
        yield workload.annotation_path(RUNS_AT_MOST), text
    for source in sources:
        if text := source.annotations.get(RUNS_AT_MOST):
            yield source.annotation_path(RUNS_AT_MOST), text


def _labelled(workload: Workload, sources: Sequence[IntentSource]) -> Iterator[tuple[str, str]]:
    if text := workload.metadata.labels.get(KUEUE_MOST_RUN):
        yield workload.label_path(KUEUE_MOST_RUN), text
    for source in sources:
        if text := source.labels.get(KUEUE_MOST_RUN):
            yield source.label_path(KUEUE_MOST_RUN), text
