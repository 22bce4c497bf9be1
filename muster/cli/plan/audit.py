"""`muster audit`: a plan of the objects that a cluster has, judged by the rules of the webhook as if applied now."""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TextIO

from muster.cli.connecting import PATIENCE, opened
from muster.cli.plan.context import PlanContext
from muster.cli.plan.entry import PlanEntry
from muster.cli.plan.reading import learn_all
from muster.cli.plan.text import print_audit_summary, print_entries
from muster.cli.ui import CommandError, as_long_as_read, complain, print_data
from muster.gangs.gang import priority_values
from muster.gangs.intent import Defaults, is_managed
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.listing import list_all
from muster.model.findings import Finding, Reason, Validation, read_validation
from muster.model.gang_states import GangState
from muster.model.names import GANG, STATE
from muster.model.objects import InvalidObjectError, Object, ObjectMeta, PodGroup, decode
from muster.model.resource import POD_GROUPS, PRIORITY_CLASSES, Resource
from muster.queueing.queue_tree import QueueTree, exceeding, labels_of
from muster.queueing.sources import QUEUE_SOURCES
from muster.resources.amounts import parse_resources
from muster.schedulers import PRODUCTS, GangScheduler, gang_name
from muster.validation.context import Context
from muster.validation.queue import all_faults, kept_out
from muster.validation.workload import is_judged, judge, no_way_in
from muster.workloads import KINDS, PLAIN_POD, Kind, OwnerWalk, SchedulingPolicy, kind_of_owner
from muster.workloads.plain import PlainJob, PlainStatefulSet

_REFUSED, _CANNOT_LOOK = 1, 2
# Owners come before the objects that they own, because their labels count for these. Plain pods are not checked again.
_ORDER = tuple(kind for kind in reversed(KINDS) if kind is not PLAIN_POD)
# The audit drops this annotation from the metadata that it keeps: kubectl writes the whole object into it.
_BULKY = "kubectl.kubernetes.io/last-applied-configuration"
# Kind, API group, namespace and name.
_Key = tuple[str, str, str, str]
# The list of the report for the entries of a kind; all other kinds are workloads.
_LISTS = {(one.kind, one.group): "queues" for one in QUEUE_SOURCES.values()}
_LISTS[POD_GROUPS.kind, POD_GROUPS.group] = "podGroups"


@dataclass(slots=True)
class Audit:
    """The objects of a cluster, each judged when it is listed; none is kept but what later ones need.

    PodGroups are read before queues and workloads: they show which gangs run, and in which queue.

    :ivar defaults: the settings of the installation.
    :ivar known: queues, classes and other objects that the rules need, and notes on what could not be checked.
    :ivar unlisted: the kinds that this user may not list.
    :ivar entries: an entry for each object that was checked; None for one without findings.
    """

    defaults: Defaults
    known: PlanContext = field(default_factory=PlanContext)
    unlisted: set[Resource] = field(default_factory=set)
    entries: dict[_Key, PlanEntry | None] = field(default_factory=dict)
    # The metadata of owners whose labels count for other workloads.
    _parents: dict[tuple[Kind, str, str], ObjectMeta] = field(default_factory=dict)
    # The gangs that run, by namespace and name, and by queue the PodGroups that a finding of the queue names.
    _running: set[tuple[str, str]] = field(default_factory=set)
    _too_large: dict[str, dict[tuple[str, str], PodGroup]] = field(default_factory=dict)
    _inside: dict[str, dict[tuple[str, str], PodGroup]] = field(default_factory=dict)

    @property
    def queue_kind(self) -> Resource:
        """The kind of the queues that count."""
        return self.defaults.queue_source.resource

    @property
    def tree(self) -> QueueTree | None:
        """All valid queues; None if they cannot be listed, and nothing is checked by them."""
        return None if self.queue_kind in self.unlisted else self.known.queues

    def read_pod_group(self, scheduler: GangScheduler, raw: bytes) -> None:
        """Check one PodGroup that muster did not create; one of another scheduler than Volcano only shows a state."""
        try:
            group = decode(raw, scheduler.pod_groups)
        except InvalidObjectError as error:
            self.known.note(f"skipping malformed {scheduler.resource.full_name}: {error}")
            return
        meta = group.metadata
        if GangState.RUNNING in (group.status.phase, meta.annotations.get(STATE)):
            self._running.add((meta.namespace, gang_name(group)))
        if scheduler.group != POD_GROUPS.group or self.tree is None:
            return
        self._remember(group, self.tree)
        scope = self._context(meta).scope
        if meta.by_muster or meta.deletion_timestamp or scope.unselected:
            return
        place = self.tree.place(group.queue, labels_of(scope.namespace))
        way = no_way_in("spec.queue", group.queue, meta.namespace, place)
        refusals, warnings = kept_out((way,) if way else (), self.defaults.validation)
        self._enter(POD_GROUPS, meta, refusals, warnings, gang=meta.name)

    def _remember(self, group: PodGroup, tree: QueueTree) -> None:
        """Keep a PodGroup that is in a parent queue itself, or larger than a queue allows."""
        key = group.metadata.namespace, group.metadata.name
        if not tree.leaf(group.queue):
            self._inside.setdefault(group.queue, {})[key] = group
        try:
            need = parse_resources(group.spec.min_resources, path="")
        except InvalidObjectError:
            return
        for level in tree.path(group.queue):
            view = tree.get(level)
            if view and exceeding(need, view.limit):
                self._too_large.setdefault(level, {})[key] = group

    def read_queue(self, raw: bytes) -> None:
        """Check one Queue, after all PodGroups."""
        try:
            queue = decode(raw, self.defaults.queue_source.decoded)
        except InvalidObjectError:
            # Reading the queues has already noted it.
            return
        if queue.metadata.deletion_timestamp or self.tree is None:
            return
        found = all_faults(
            queue,
            self.tree,
            list(self._inside.get(queue.spec.parent, {}).values()),
            list(self._too_large.get(queue.metadata.name, {}).values()),
        )
        validation = self.defaults.validation
        self._enter(self.queue_kind, queue.metadata, validation.refused(found), validation.warned(found))

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
        context = self._context(meta)
        if plain or context.scope.unselected or not is_judged(meta):
            return
        origin = kind.origin.of(decoded) if kind.origin else None
        if origin is not None and origin.source.resource in self.unlisted:
            self.known.note(f"skipping each {kind.kind} with a {origin.source.resource.kind}: you cannot list these")
            return
        verdict = judge(kind, decoded, context)
        gang = kind.pod_group_name(meta.name)
        self._enter(kind.resource, meta, verdict.refusals, verdict.warnings, gang=gang)

    def _note_unreadable(self, kind: Kind, raw: bytes, error: InvalidObjectError) -> None:
        """The webhook cannot decode it either and rejects it, if the workload asks for muster at all."""
        try:
            meta = decode(raw, Object).metadata
        except InvalidObjectError:
            self.known.note(f"skipping malformed {kind.resource.full_name}: {error}")
            return
        if is_managed(meta, SchedulingPolicy(), self._context(meta).scope):
            found = Finding(Reason.INVALID, error.field, str(error))
            gang = kind.pod_group_name(meta.name)
            self._enter(kind.resource, meta, (found,), (), gang=gang)

    def _enter(
        self,
        resource: Resource,
        meta: ObjectMeta,
        refusals: Sequence[Finding],
        warnings: Sequence[Finding],
        *,
        gang: str = "",
    ) -> None:
        entry = PlanEntry(
            resource.api_version,
            resource.kind,
            meta.namespace,
            meta.name,
            refusals=tuple(refusals),
            warnings=tuple(warnings),
            running=(meta.namespace, gang) in self._running,
        )
        key = resource.kind, resource.group, meta.namespace, meta.name
        self.entries[key] = entry if refusals or warnings else None

    def _context(self, meta: ObjectMeta) -> Context:
        context = self.known.context(meta.namespace, self.defaults)
        if self.tree is not None and context.queue is None:
            # The cluster has no queues. A plan without queues skips the queue checks; an audit must not.
            context = replace(context, queue=lambda _: None)
        if PRIORITY_CLASSES not in self.unlisted:
            context = replace(context, priorities=priority_values(self.known.classes.values()))
        return replace(context, scope=replace(context.scope, owners=tuple(self._owners(meta))))

    def _owners(self, meta: ObjectMeta) -> Iterator[ObjectMeta]:
        """The owners of a workload, the nearest first."""
        walk = OwnerWalk(meta.controller)
        for owner in walk:
            kind = kind_of_owner(owner)
            found = self._parents.get((kind, meta.namespace, owner.name)) if kind else None
            if found is None or found.uid != owner.uid:
                return
            yield found
            walk.step_to(found.controller)

    def cannot_list(self, resource: Resource, error: ApiError) -> None:
        """Remember a missing permission; any other error is raised."""
        if not error.forbidden:
            raise error
        self.unlisted.add(resource)

    @property
    def incomplete(self) -> list[str]:
        """The parts that could not be checked; all kinds that this user may not list are one line."""
        names = ", ".join(sorted(one.full_name for one in self.unlisted))
        return ([f"cannot list with your permissions: {names}"] if names else []) + self.known.notes

    def found(self, name: str) -> list[PlanEntry]:
        """The entries with findings of a list of the report, in order."""
        entries = (entry for key, entry in sorted(self.entries.items()) if _LISTS.get(key[:2], "workloads") == name)
        return [entry for entry in entries if entry]

    def report(self) -> dict[str, Any]:
        """The result for programs."""
        names = ("workloads", "queues", "podGroups")
        looked = Counter(_LISTS.get(key[:2], "workloads") for key in self.entries)
        found = {name: self.found(name) for name in names}
        refused = [bool(one.refusals) for entries in found.values() for one in entries]
        return {
            "lookedAt": {name: looked[name] for name in names},
            "refused": sum(refused),
            "warned": len(refused) - sum(refused),
            **{name: [one.audit_data() for one in entries] for name, entries in found.items()},
            "unknown": self.incomplete,
        }


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster audit`: 1 when an object would be rejected, 2 when something could not be checked."""
    try:
        validation = read_validation(arguments.validation, arguments.validation_reason)
    except ValueError as error:
        raise CommandError(str(error)) from error
    audit = asyncio.run(_look(arguments, validation))
    with as_long_as_read():
        print_audit(audit, arguments.output, sys.stdout)
    complain("audit", *audit.incomplete)
    if audit.incomplete:
        return _CANNOT_LOOK
    return _REFUSED if any(entry and entry.refusals for entry in audit.entries.values()) else 0


def print_audit(audit: Audit, form: str, out: TextIO) -> None:
    """Print the result as json or yaml, or as text with a summary at the end."""
    report = audit.report()
    if print_data(report, form, out):
        return
    entries = [*audit.found("queues"), *audit.found("podGroups"), *audit.found("workloads")]
    print_entries(entries, out)
    if entries:
        print(file=out)
    print_audit_summary(report, out)


async def _look(arguments: argparse.Namespace, validation: Validation) -> Audit:
    async with opened(arguments) as (client, settings):
        complain("audit", *filter(None, [settings.note]))
        defaults = replace(settings.defaults, validation=validation)
        audit = Audit(defaults, known=PlanContext(queue_source=defaults.queue_source))
        await learn_all(
            client,
            audit.known,
            audit.cannot_list,
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
