"""The part of `muster audit` that checks Queues, and PodGroups of other creators, by the rules for new ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from muster.model.findings import Finding
from muster.model.gang_states import GangState
from muster.model.names import STATE
from muster.model.objects import InvalidObjectError, PodGroup, Queue
from muster.model.strictness import Validation
from muster.queueing.queue_tree import QueueTree, exceeding
from muster.queueing.queue_view import ROOT, read_queue
from muster.resources.amounts import parse_resources
from muster.schedulers import gang_name
from muster.validation.queue import burdened, faults, kept_out, left_outside
from muster.validation.workload import no_way_in

Findings = tuple[tuple[Finding, ...], tuple[Finding, ...]]
"""The refusals and the warnings of an object."""


@dataclass(slots=True)
class QueueAudit:
    """Checks the PodGroups first, each once, then the Queues; keeps only PodGroups that a finding of a queue names.

    `tree` holds all valid queues; None when they cannot be listed, and queue checks are skipped.
    """

    tree: QueueTree | None
    validation: Validation
    _running: set[tuple[str, str]] = field(default_factory=set)
    _too_large: dict[str, dict[tuple[str, str], PodGroup]] = field(default_factory=dict)
    _inside: dict[str, dict[tuple[str, str], PodGroup]] = field(default_factory=dict)

    def runs(self, namespace: str, name: str) -> bool:
        """Whether the gang of that name runs."""
        return (namespace, name) in self._running

    def saw(self, group: PodGroup) -> None:
        """Remember whether the gang runs: as its scheduler says it of the PodGroup, or muster."""
        if GangState.RUNNING in (group.status.phase, group.metadata.annotations.get(STATE)):
            self._running.add((group.metadata.namespace, gang_name(group)))

    def pod_group(self, group: PodGroup, namespace: Mapping[str, str]) -> Findings | None:
        """The findings of a PodGroup in a namespace with these labels; None for a PodGroup of muster."""
        meta = group.metadata
        self.saw(group)
        if self.tree is None:
            return None
        name = group.queue
        self._remember(group, self.tree, name)
        if meta.by_muster or meta.deletion_timestamp:
            return None
        way = no_way_in("spec.queue", name, self.tree.place(name, namespace))
        return kept_out((way,) if way else (), self.validation)

    def _remember(self, group: PodGroup, tree: QueueTree, name: str) -> None:
        key = group.metadata.namespace, group.metadata.name
        if not tree.leaf(name):
            self._inside.setdefault(name, {})[key] = group
        try:
            need = parse_resources(group.spec.min_resources, path="")
        except InvalidObjectError:
            return
        for level in tree.path(name):
            view = tree.get(level)
            if view and exceeding(need, view.limit):
                self._too_large.setdefault(level, {})[key] = group

    def queue(self, queue: Queue) -> Findings | None:
        """The findings of a Queue, after all PodGroups; None when it is being deleted."""
        if queue.metadata.deletion_timestamp or self.tree is None:
            return None
        name, parent = queue.metadata.name, queue.spec.parent or ROOT
        found = faults(queue, self.tree)
        if parent != ROOT and self.tree.get(parent):
            found += burdened(parent, list(self._inside.get(parent, {}).values()))
        outside = [] if _unreadable(queue) else list(left_outside(queue, list(self._too_large.get(name, {}).values())))
        return self.validation.refused([*found, *outside]), self.validation.warned([*found, *outside])


def queue_faults(queue: Queue, tree: QueueTree, validation: Validation) -> Findings:
    """The findings of a Queue from its manifest and the queue tree alone."""
    found = faults(queue, tree)
    return validation.refused(found), validation.warned(found)


def _unreadable(queue: Queue) -> bool:
    try:
        read_queue(queue)
    except InvalidObjectError:
        return True
    return False
