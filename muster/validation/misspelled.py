"""What of a workload looks as if it were meant for muster, and is not read: a slip of the pen, or in the wrong place.

The apiserver takes any label. A workload whose only label for muster is misspelled is nobody's gang, and starts one pod
after another without a word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from muster.model.findings import Finding, Reason
from muster.model.names import (
    ADMITTED,
    ADMITTED_AT,
    ADMITTED_FOR,
    GANG,
    GANG_SIZE,
    GATE_MODE,
    HOLD,
    MANAGED,
    NUDGE,
    PRIORITY_CLASS_LABEL,
    QUEUE_ANNOTATION,
    QUEUE_LABEL,
    REQUEUE_AFTER,
    RUNS_AT_MOST,
    SCHEDULER_LABEL,
    TOPOLOGY_MODE_LABEL,
    TOPOLOGY_TIER_LABEL,
)
from muster.model.nearest import nearest_key
from muster.model.objects import ObjectMeta
from muster.workloads import Decoded, Kind
from muster.workloads.model import SchedulingPolicy

_LABELS = (
    QUEUE_LABEL,
    SCHEDULER_LABEL,
    PRIORITY_CLASS_LABEL,
    MANAGED,
    TOPOLOGY_MODE_LABEL,
    TOPOLOGY_TIER_LABEL,
)
_HEARD = (QUEUE_ANNOTATION, REQUEUE_AFTER, RUNS_AT_MOST)
_ANNOTATIONS = (*_HEARD, HOLD)
_LONGEST = 2 * max(map(len, (*_LABELS, *_ANNOTATIONS)))
# Muster's own, and what stands on other objects: nobody misspelled these.
_OTHERS = frozenset({ADMITTED, ADMITTED_AT, ADMITTED_FOR, GANG, GANG_SIZE, GATE_MODE, NUDGE})
_OWN = "muster.dev/"
# Of one object; who makes a gang writes a dozen, and to compare one takes as long as to read a pod.
_MOST_KEYS = 64


def misspelled(kind: Kind, decoded: Decoded) -> Iterator[Finding]:
    """What is found in the metadata of a workload; a right key beside the wrong one makes that somebody else's."""
    meta, heard = decoded.metadata, kind.speaks(decoded)
    yield from _of(meta, "metadata")
    makes_members = not kind.owns_pod_group and kind.plural != "pods"
    if makes_members and GANG in meta.labels and kind.policy(decoded) == SchedulingPolicy():
        path = f"metadata.labels[{GANG}]"
        rest = "it is read on the pods; write it, and the gang's size, into spec.template.metadata"
        yield Finding(Reason.MISSPELLED, path, f"{path}: {rest}")
    elif makes_members:
        yield from _not_passed_on(meta, heard)
    if heard is not meta:
        yield from _of(heard, "spec.template.metadata")


def _of(meta: ObjectMeta, where: str) -> Iterator[Finding]:
    said = {*meta.labels, *meta.annotations}
    yield from _keys(f"{where}.labels", meta.labels, _LABELS, _ANNOTATIONS, said)
    yield from _keys(f"{where}.annotations", meta.annotations, _ANNOTATIONS, _LABELS, said)


def _not_passed_on(meta: ObjectMeta, heard: ObjectMeta) -> Iterator[Finding]:
    """Keys of what makes plain pods that the pods do not get."""
    rest = "it is read on the pods, which do not get it from there; write it into spec.template.metadata"
    for field, own, of_pods, keys in (
        ("labels", meta.labels, heard.labels, _LABELS),
        ("annotations", meta.annotations, heard.annotations, _HEARD),
    ):
        for key in keys:
            if key in own and own[key] != of_pods.get(key):
                path = f"metadata.{field}[{key}]"
                yield Finding(Reason.MISSPELLED, path, f"{path}: {rest}")


def _keys(
    field: str, found: Mapping[str, str], here: Iterable[str], there: Iterable[str], said: set[str]
) -> Iterator[Finding]:
    """Keys of labels, or of annotations, that are not read; `there` are those that are read in the other of the two."""
    where, _, own = field.rpartition(".")
    other = f"{where}.{'annotations' if own == 'labels' else 'labels'}"
    for key in islice(found, _MOST_KEYS):
        if key in here or key in _OTHERS or len(key) > _LONGEST:
            continue
        path = f"{field}[{key}]"
        if key in there:
            yield Finding(Reason.MISSPELLED, path, f"{path}: it is read in {other}; move it there")
        elif (meant := nearest_key(key, [*here, *there])) and meant not in said:
            place = f", in {other}" if meant in there else ""
            yield Finding(Reason.MISSPELLED, path, f"{path}: muster reads no such key; did you mean {meant}{place}?")
        elif key.startswith(_OWN) and not meant:
            yield Finding(Reason.MISSPELLED, path, f"{path}: muster reads no such key of a workload; remove it")
