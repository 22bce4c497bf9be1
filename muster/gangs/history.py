"""The run times of former gangs, and the estimates for the next ones.

A gang is the next run of a lineage: of the maker of its workload, else of the workloads whose names differ only in a
trailing number or hash. Its estimate comes from the last runs of its lineage; if these are fewer than three, from those
of its namespace in its queue, and then from those of the queue. There at most the last twenty runs of a namespace
count, so that no tenant outweighs the others.

The history is bounded: above that the namespace with the most lineages loses the one that ran longest ago. Names are
kept as hashes.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from math import ceil
from typing import Annotated, NamedTuple

import msgspec

from muster.model.objects import decode

SHORTEST = 60
"""Least seconds of a run that is recorded: a failure at the start predicts nothing."""

_LAST = 20
_LEAST = 3
# Stored they take less than 300 kB.
_LINEAGES = 1400
_OF_QUEUE = 200
_SAMPLE = 9
# 60 days: a longer run counts as this.
_LONGEST = 5_184_000
# A queue is drained for a gang after five times the 95th percentile of the queue's run times, within these bounds: with
# a long tail, sooner drains would follow each other, and each takes as long as the longest run.
_DRAIN_RUNS, _DRAIN_TIMES, _DRAIN_SHARE = 20, 5, 0.95
_DRAIN_SOONEST, _DRAIN_LATEST = 12 * 3600, 72 * 3600
# Suffixes of runs by schedules, pipelines and generated names: a number, a random suffix of Kubernetes, digits of a
# hash, or a UUID.
_OF_A_RUN = re.compile(
    r"(?:[-.](?:\d+|[bcdfghjklmnpqrstvwxz2456789]{5,10}|(?=[a-f]*\d)[0-9a-f]{6,64}"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}))+$"
)

_Seconds = Annotated[int, msgspec.Meta(ge=SHORTEST, le=_LONGEST)]
_Hash = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{16}$")]
_Kept = dict[_Hash, dict[_Hash, list[_Seconds]]]


class Lineage(NamedTuple):
    """The series of runs that a gang belongs to: hashes of its namespace, and of the common maker or name."""

    namespace: str
    name: str


def lineage_of(namespace: str, kind: str, name: str) -> Lineage:
    """Return the lineage of a gang whose workload is this, or was made by this."""
    return Lineage(_hash(namespace), _hash(f"{kind}/{_OF_A_RUN.sub('', name)}"))


def sample(runs: Iterable[float]) -> tuple[float, ...]:
    """Return these run times in order, in seconds of whole minutes; of many a sample at even distances."""
    ordered = sorted(60.0 * ceil(seconds / 60) for seconds in runs)
    most = min(len(ordered), _SAMPLE)
    return tuple(ordered[(2 * number + 1) * len(ordered) // (2 * most)] for number in range(most))


class History:
    """The last run times of each lineage, and of each namespace in each queue, in seconds, the latest last."""

    def __init__(self) -> None:
        # By namespace, and in it by lineage or queue, both with the latest record at the end.
        self._runs: dict[str, dict[str, list[int]]] = {}
        self._lineages = 0
        self.changed = False
        """True if runs were recorded since the caller last set it to False."""

    def record(self, lineage: Lineage, queue: str, seconds: float) -> None:
        """Record the run of a gang that has ended."""
        if seconds < SHORTEST:
            return
        for name in (lineage.name, _of_queue(queue)):
            self._add(lineage.namespace, name, [min(int(seconds), _LONGEST)])
        self.changed = True

    def estimates(self, lineage: Lineage, queue: str) -> tuple[float, ...]:
        """Return the run times that estimate the next run of the lineage in the queue; () if there are too few."""
        own, of_queue = self._runs.get(lineage.namespace, {}), _of_queue(queue)
        for runs in (own.get(lineage.name, []), own.get(of_queue, [])):
            if len(runs) >= _LEAST:
                return sample(runs)
        runs = self._in_queue(of_queue)
        return sample(runs) if len(runs) >= _LEAST else ()

    def drain_after(self, queue: str) -> float | None:
        """Return the seconds after which the queue is drained for a gang; None if it has too few recorded runs."""
        runs = sorted(self._in_queue(_of_queue(queue)))
        if len(runs) < _DRAIN_RUNS:
            return None
        long = runs[ceil(_DRAIN_SHARE * len(runs)) - 1]
        return float(min(max(_DRAIN_TIMES * long, _DRAIN_SOONEST), _DRAIN_LATEST))

    def text(self) -> str:
        """Return the history as it is stored."""
        return msgspec.json.encode(self._runs).decode()

    def read(self, text: str) -> None:
        """Add a stored history before the runs recorded since. Raises InvalidObjectError for any other text."""
        kept, since = decode(text, _Kept), self._runs
        self._runs, self._lineages = {}, 0
        for runs in (kept, since):
            for namespace, name, seconds in _each(runs):
                self._add(namespace, name, seconds)

    def _add(self, namespace: str, name: str, seconds: list[int]) -> None:
        """Add runs, and drop the oldest beyond the bound."""
        of_namespace = self._runs.pop(namespace, {})
        before = of_namespace.pop(name, [])
        self._lineages += not before
        of_namespace[name] = [*before, *seconds][-_LAST:]
        self._runs[namespace] = of_namespace
        if self._lineages > _LINEAGES:
            most = max(self._runs, key=lambda one: len(self._runs[one]))
            del self._runs[most][next(iter(self._runs[most]))]
            self._lineages -= 1
            if not self._runs[most]:
                del self._runs[most]

    def _in_queue(self, of_queue: str) -> list[int]:
        """Return the last runs of the namespaces with the latest runs."""
        found: list[int] = []
        for runs in reversed(self._runs.values()):
            found += runs.get(of_queue, ())
            if len(found) >= _OF_QUEUE:
                break
        return found


def _each(kept: _Kept) -> Iterator[tuple[str, str, list[int]]]:
    found = ((namespace, name, seconds) for namespace, runs in kept.items() for name, seconds in runs.items())
    return (one for one in found if one[2])


def _of_queue(queue: str) -> str:
    return _hash(f"queue/{queue}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
