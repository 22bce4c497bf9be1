"""`muster audit`: lists existing objects that admission would reject or warn about, by the rules of the webhook."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from muster.cli.connecting import NO_ANSWER, PATIENCE, connected, find_settings
from muster.cli.parsing import InputError
from muster.cli.plan.context import PlanContext
from muster.cli.plan.reading import learn_all
from muster.cli.plan.text import print_audit
from muster.cli.ui import as_long_as_read
from muster.gangs.gang import priority_values
from muster.gangs.intent import Defaults, is_managed
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.listing import list_all
from muster.model.findings import Finding, Reason, Severity
from muster.model.gang_states import GangState
from muster.model.names import GANG, STATE
from muster.model.objects import InvalidObjectError, ObjectMeta, PartialObjectMetadata, PodGroup, Queue, decode
from muster.model.resource import POD_GROUPS, PRIORITY_CLASSES, Resource
from muster.model.strictness import Validation, read_validation
from muster.model.texts import printable
from muster.queueing.queue_tree import QueueTree, exceeding, labels_of
from muster.queueing.queue_view import ROOT, read_queue
from muster.queueing.sources import QUEUE_SOURCES
from muster.resources.amounts import parse_resources
from muster.schedulers import PRODUCTS, GangScheduler, gang_name
from muster.validation.context import Context
from muster.validation.queue import burdened, faults, kept_out, left_outside
from muster.validation.workload import is_judged, judge, no_way_in
from muster.workloads import KINDS, PLAIN_POD, Kind, SchedulingPolicy, kind_of_owner
from muster.workloads.owners import OwnerWalk
from muster.workloads.plain import PlainJob, PlainStatefulSet

_REFUSED, _CANNOT_LOOK = 1, 2
# Owners come before the objects that they own, because their labels count for these. Plain pods are not checked again.
_ORDER = tuple(kind for kind in reversed(KINDS) if kind is not PLAIN_POD)
# The audit drops this annotation from the metadata that it keeps: kubectl writes the whole object into it.
_BULKY = "kubectl.kubernetes.io/last-applied-configuration"
_Key = tuple[str, str, str, str]
_POD_GROUP = (POD_GROUPS.kind, POD_GROUPS.group)
_OTHERS = {_POD_GROUP: "podGroups"} | {(one.kind, one.group): "queues" for one in QUEUE_SOURCES.values()}
Findings = tuple[tuple[Finding, ...], tuple[Finding, ...]]
"""The refusals and the warnings of an object."""


@dataclass(slots=True)
class Audit:
    """The objects with findings, by kind, group, namespace and name, and the parts that could not be checked.

    The audit keeps only the findings of a workload, and the metadata of owners whose labels count for other workloads.
    PodGroups are read before queues and workloads: they show which gangs run, and in which queue.
    """

    defaults: Defaults
    known: PlanContext = field(default_factory=PlanContext)
    unlisted: set[Resource] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)
    looked_at: set[_Key] = field(default_factory=set)
    entries: dict[_Key, dict[str, Any]] = field(default_factory=dict)
    _parents: dict[tuple[Kind, str, str], ObjectMeta] = field(default_factory=dict)
    _queues: QueueAudit | None = None

    @property
    def queue_kind(self) -> Resource:
        """The kind of the queues that count."""
        return self.defaults.queue_source.resource

    @property
    def queues(self) -> QueueAudit:
        """The checks of PodGroups and queues; complete once all queues are read."""
        if self._queues is None:
            tree = None if self.queue_kind in self.unlisted else self.known.queues
            self._queues = QueueAudit(tree, self.defaults.validation)
        return self._queues

    def read_pod_group(self, scheduler: GangScheduler, raw: bytes) -> None:
        """Check one PodGroup; one of another scheduler than Volcano only shows whether its gang runs."""
        try:
            group = decode(raw, scheduler.pod_groups)
        except InvalidObjectError as error:
            self.note(f"skipping malformed {scheduler.resource.full_name}: {error}")
            return
        if scheduler.group != POD_GROUPS.group:
            self.queues.saw(group)
            return
        meta = group.metadata
        scope = self._context(meta).scope
        found = self.queues.pod_group(group, labels_of(scope.namespace))
        if found is not None and not scope.unselected:
            self._enter(
                _POD_GROUP, POD_GROUPS.version, meta, *found, running=self.queues.runs(meta.namespace, meta.name)
            )

    def read_queue(self, raw: bytes) -> None:
        """Check one Queue."""
        try:
            queue = decode(raw, self.defaults.queue_source.decoded)
        except InvalidObjectError:
            # Reading the queues has already noted it.
            return
        found = self.queues.queue(queue)
        if found is not None:
            kind = self.queue_kind
            self._enter((kind.kind, kind.group), kind.version, queue.metadata, *found)

    def read(self, kind: Kind, raw: bytes) -> None:
        """Check one workload; the same workload a second time, from a restarted list, changes nothing."""
        try:
            decoded = decode(raw, kind.decoded)
        except InvalidObjectError as error:
            self._note_unreadable(kind, raw, error)
            return
        meta: ObjectMeta = decoded.metadata
        if not kind.owns_gang:
            slim = {key: value for key, value in meta.annotations.items() if key != _BULKY}
            self._parents[kind, meta.namespace, meta.name] = ObjectMeta(
                name=meta.name,
                uid=meta.uid,
                labels=meta.labels,
                annotations=slim,
                owner_references=meta.owner_references,
            )
        # As in the webhook configuration, a batch Job or StatefulSet is checked only when its pods join a gang.
        plain = isinstance(decoded, PlainJob | PlainStatefulSet) and not decoded.spec.template.metadata.labels.get(GANG)
        if plain or self._context(meta).scope.unselected or not is_judged(meta):
            return
        origin = kind.origin.of(decoded) if kind.origin else None
        if origin is not None and origin.source.resource in self.unlisted:
            self.note(f"skipping each {kind.kind} with a {origin.source.kind}: you cannot list these")
            return
        verdict = judge(kind, decoded, self._context(meta))
        self._enter_workload(kind, meta, verdict.refusals, verdict.warnings)

    def _note_unreadable(self, kind: Kind, raw: bytes, error: InvalidObjectError) -> None:
        """The webhook cannot decode it either and rejects it, if the workload asks for muster at all."""
        try:
            meta = decode(raw, PartialObjectMetadata).metadata
        except InvalidObjectError:
            self.note(f"skipping malformed {kind.resource.full_name}: {error}")
            return
        if is_managed(meta, SchedulingPolicy(), self._context(meta).scope):
            self._enter_workload(kind, meta, (Finding(Reason.INVALID, error.field, str(error)),), ())

    def _enter_workload(
        self, kind: Kind, meta: ObjectMeta, refusals: Sequence[Finding], warnings: Sequence[Finding]
    ) -> None:
        running = self.queues.runs(meta.namespace, kind.pod_group_name(meta.name))
        self._enter((kind.kind, kind.group), kind.versions[0], meta, refusals, warnings, running=running)

    def _enter(
        self,
        kind: tuple[str, str],
        version: str,
        meta: ObjectMeta,
        refusals: Sequence[Finding],
        warnings: Sequence[Finding],
        *,
        running: bool = False,
    ) -> None:
        key = *kind, meta.namespace, meta.name
        self.looked_at.add(key)
        found = [*((Severity.DENY, one) for one in refusals), *((Severity.WARN, one) for one in warnings)]
        if not found:
            return
        self.entries[key] = {
            "apiVersion": f"{kind[1]}/{version}",
            "kind": kind[0],
            "namespace": meta.namespace,
            "name": meta.name,
            "running": running,
            "findings": [
                {"severity": str(severity), "reason": str(one.reason), "field": one.field, "message": one.message}
                for severity, one in found
            ],
        }

    def _context(self, meta: ObjectMeta) -> Context:
        context = self.known.context(meta.namespace, self.defaults)
        if self.queue_kind not in self.unlisted and context.queue is None:
            # The cluster has no queues. A plan without queues skips the queue checks; an audit must not.
            context = replace(context, queue=lambda _: None)
        if PRIORITY_CLASSES not in self.unlisted:
            context = replace(context, priorities=priority_values(self.known.classes.values()))
        return replace(context, scope=replace(context.scope, owners=self._owners(meta)))

    def _owners(self, meta: ObjectMeta) -> tuple[ObjectMeta, ...]:
        """The owners of a workload, the nearest first."""
        above: list[ObjectMeta] = []
        walk = OwnerWalk(meta.controller)
        for owner in walk:
            kind = kind_of_owner(owner)
            found = self._parents.get((kind, meta.namespace, owner.name)) if kind else None
            if found is None or found.uid != owner.uid:
                break
            above.append(found)
            walk.step_to(found.controller)
        return tuple(above)

    def note(self, text: str) -> None:
        """Add a note about missing information, once."""
        if text not in self.unknown:
            self.unknown.append(text)

    def cannot_list(self, resource: Resource, error: ApiError) -> None:
        """Remember a missing permission; any other error is raised."""
        if not error.forbidden:
            raise error
        self.unlisted.add(resource)

    @property
    def incomplete(self) -> list[str]:
        """The parts that could not be checked; all kinds that this user may not list are one line."""
        names = ", ".join(sorted(one.full_name for one in self.unlisted))
        return ([f"cannot list with your permissions: {names}"] if names else []) + self.unknown

    def unread(self, error: InputError) -> None:
        """Note a malformed object; the webhook ignores such objects, too."""
        for line in str(error).split("\n"):
            self.note(f"{line}; ignoring it, as the webhook does")

    def report(self) -> dict[str, Any]:
        """The result, for people and programs."""
        names = ("workloads", "queues", "podGroups")
        looked = Counter(_OTHERS.get(key[:2], "workloads") for key in self.looked_at)
        entries: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        for key in sorted(self.entries):
            entries[_OTHERS.get(key[:2], "workloads")].append(self.entries[key])
        refused = sum(entry["findings"][0]["severity"] == Severity.DENY for entry in self.entries.values())
        return {
            "lookedAt": {name: looked[name] for name in names},
            "refused": refused,
            "warned": len(self.entries) - refused,
            **entries,
            "unknown": self.incomplete,
        }


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster audit`: 1 when an object would be rejected, 2 when something could not be checked."""
    try:
        validation = read_validation(arguments.validation, arguments.validation_reason)
        audit = asyncio.run(_look(arguments, validation))
    except (*NO_ANSWER, ValueError) as error:
        print(f"muster audit: {printable(str(error))}", file=sys.stderr)
        return _CANNOT_LOOK
    report = audit.report()
    with as_long_as_read():
        print_audit(report, arguments.output, sys.stdout)
    for text in report["unknown"]:
        print(f"muster audit: {printable(text)}", file=sys.stderr)
    if report["unknown"]:
        return _CANNOT_LOOK
    return _REFUSED if report["refused"] else 0


async def _look(arguments: argparse.Namespace, validation: Validation) -> Audit:
    async with connected(arguments) as client:
        settings = await find_settings(client, arguments.values)
        if settings.note:
            print(f"muster audit: {settings.note}", file=sys.stderr)
        defaults = replace(settings.defaults, validation=validation)
        audit = Audit(defaults, known=PlanContext(queue_source=defaults.queue_source))
        await learn_all(
            client,
            audit.known,
            audit.cannot_list,
            audit.unread,
            arguments.namespace,
            elastic_quotas=defaults.elastic_quotas,
        )
        # Volcano's own PodGroups are checked wherever it runs.
        groups = {one.group: one for one in (PRODUCTS["volcano"](), *audit.defaults.schedulers.values())}
        for scheduler in groups.values():
            read = partial(audit.read_pod_group, scheduler)
            await _each(client, scheduler.resource, read, arguments.namespace, audit)
        if arguments.namespace is None and audit.queue_kind not in audit.unlisted:
            # A second time: the checks need the PodGroups of each queue.
            await _each(client, audit.queue_kind, audit.read_queue, None, audit)
        for kind in _ORDER:

            def workload(raw: bytes, kind: Kind = kind) -> None:
                audit.read(kind, raw)

            await _each(client, kind.resource, workload, arguments.namespace, audit)
        return audit


async def _each(
    client: Client, resource: Resource, read: Callable[[bytes], None], namespace: str | None, audit: Audit
) -> None:
    """Read every object of the kind page by page, and keep none."""
    try:
        await list_all(client, resource, read, namespace=namespace, deadline=PATIENCE)
    except ApiError as error:
        if not error.not_found:  # an operator that is not installed
            audit.cannot_list(resource, error)


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
        """True if the gang of that name runs."""
        return (namespace, name) in self._running

    def saw(self, group: PodGroup) -> None:
        """Remember whether the gang runs: by the phase of the PodGroup, or by muster's state."""
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


def _unreadable(queue: Queue) -> bool:
    try:
        read_queue(queue)
    except InvalidObjectError:
        return True
    return False
