"""Checks of what administrators write on Namespaces and queues: values and keys that muster does not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from muster.admitters import Admitter
from muster.cli.doctor.diagnosis import Check, Diagnosis, Unseen, fine, unknown, warning
from muster.cli.words import counted
from muster.model.modes import GateMode
from muster.model.names import ADMITTER, GATE_MODE, HOLD, QUEUE_ANNOTATION, SCHEDULER
from muster.model.nearest import unread_keys
from muster.model.objects import Namespace, Queue
from muster.queueing.queue_view import read_queue
from muster.queueing.sources import QUEUE_SOURCES, QueueSource

if TYPE_CHECKING:
    from muster.cli.doctor.installed import Installation
    from muster.cli.doctor.objects import QueueSeen
    from muster.cli.doctor.sight import Sight


MOST = 20
"""How many annotations are reported; of the others only the number."""

_READ = (ADMITTER, GATE_MODE, QUEUE_ANNOTATION, SCHEDULER)


def unread_annotations(sight: Sight) -> Iterator[Diagnosis]:
    """No Namespace and no queue has an annotation for muster that muster does not read."""
    installed = sight.installation
    if installed is None:
        return
    source = installed.queue_source
    found: list[Diagnosis] = []
    counts: list[str] = []
    if isinstance(sight.namespaces, Unseen):
        yield unknown(Check.ANNOTATIONS, sight.namespaces, "the annotations of Namespaces")
    else:
        counts.append(counted(len(sight.namespaces), "Namespace"))
        for namespace in sight.namespaces:
            found += _of_namespace(namespace, installed)
    if isinstance(sight.queues, Unseen):
        yield unknown(Check.ANNOTATIONS, sight.queues, "the annotations of queues")
    else:
        counts.append(counted(len(sight.queues), "queue"))
        for queue in sight.queues:
            found += _of_queue(queue, source)
    yield from found[:MOST]
    if len(found) > MOST:
        yield warning(Check.ANNOTATIONS, f"{len(found) - MOST} more annotations are not read", "as above")
    if not found and counts:
        yield fine(Check.ANNOTATIONS, f"every annotation for muster of {' and '.join(counts)} is read")


def _of_queue(queue: QueueSeen, source: QueueSource) -> Iterator[Diagnosis]:
    kind, name = f"{source.plural}.{source.group}", queue.metadata.name
    if source is QUEUE_SOURCES["muster"]:
        # What a Queue says in annotations it says in fields.
        for key, wrong in unread_keys(queue.metadata.annotations, (HOLD,)).items():
            yield _ignored(kind, name, f"metadata.annotations[{key}]: {wrong}", key)
        return
    view = read_queue(Queue(metadata=queue.metadata))
    said = {one.field: f"{one}; {one.meanwhile}" for one in view.problems} | {
        one.field: str(one) for one in view.unread
    }
    for field, wrong in said.items():
        yield _ignored(kind, name, wrong, field.partition("[")[2].rstrip("]"))


def _of_namespace(namespace: Namespace, installed: Installation) -> Iterator[Diagnosis]:
    name, found = namespace.metadata.name, namespace.metadata.annotations
    said = dict(_unknown(found, installed)) | unread_keys(found, _READ)
    for key, wrong in said.items():
        yield _ignored("namespace", name, f"metadata.annotations[{key}]: {wrong}", key)


def _unknown(found: Mapping[str, str], installed: Installation) -> Iterator[tuple[str, str]]:
    """The annotations whose values are not known, each with what counts in its place."""
    known: Mapping[str, tuple[tuple[str, ...], str]] = {
        GATE_MODE: (tuple(GateMode), "the chart value `gate` counts"),
        ADMITTER: (installed.admitters, f"{installed.admitters[0]} admits"),
    }
    for key, (values, instead) in known.items():
        value = found.get(key, "")
        if value and value not in values:
            more = ", or add it to the chart value `admitters`" if key == ADMITTER and value in tuple(Admitter) else ""
            yield key, f'"{value[:80]}" is not known; use {" or ".join(values)}{more}; it is ignored, and {instead}'
    scheduler, own = found.get(SCHEDULER, ""), installed.gang_schedulers
    if scheduler and own and scheduler not in own:
        left = "muster leaves workloads alone that name no other"
        yield SCHEDULER, f'"{scheduler[:80]}" is none of its schedulers; use {" or ".join(own)}; {left}'


def _ignored(kind: str, name: str, said: str, key: str) -> Diagnosis:
    cure = f"correct it, or remove it: kubectl annotate {kind} {name} {key}-"
    return warning(Check.ANNOTATIONS, f"{kind} {name}: {said}", cure)
