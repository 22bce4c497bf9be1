"""The entries of a plan: for each workload its gang, its PodGroup, the patches of its pods, and the verdict."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import jsonpatch
import msgspec

from muster.admitters import Admitter
from muster.cli.parsing import InputError
from muster.cli.plan.context import PlanContext, as_of_input, default_queue_unknown, near_kind, readable, unserved
from muster.cli.plan.entry import PlanEntry
from muster.cli.plan.manifests import Document
from muster.cli.plan.other_kinds import gang_of_pods, skipped, why_not_run, with_templates
from muster.cli.plan.shape import (
    above_limits,
    fractions,
    misplaced,
    parts_of_devices,
    spec_type,
    twice_written,
    type_words,
    unfilled,
    unreadable,
    unusable_labels,
)
from muster.gangs.gang import as_its_pods
from muster.gangs.intent import Defaults, Intent
from muster.gangs.pod_patch import Membership, inject, is_free, membership
from muster.gangs.roles import Gang
from muster.model.findings import Finding, Reason, finding
from muster.model.modes import GateMode
from muster.model.names import GATE, NAMESPACE_SELECTOR, is_object_name
from muster.model.objects import InvalidObjectError, ObjectMeta, OwnerReference, convert
from muster.model.pods import Pod
from muster.queueing.sources import QUEUE_SOURCES
from muster.resources.amounts import as_text
from muster.validation.context import Context
from muster.validation.ignored import misspelled_keys
from muster.validation.not_managed import why_not_managed
from muster.validation.queue import all_faults
from muster.validation.workload import judge, named_intent
from muster.workloads import Kind, RoleSpec, Workload, kind_of

# Named with their own words.
_NAMES = ("metadata.name", "metadata.namespace")
# The API groups of kinds of Kubernetes itself.
_OF_KUBERNETES = ("", "apps", "batch")
_UNCHECKED = "no Queue in the input: queue limits are not checked"
# In place of the five letters that the apiserver appends to a generateName.
_GENERATED = "xxxxx"
# The apiserver cuts a longer generateName, so that the name fits into a label.
_LONGEST_PREFIX = 58


def plan(
    documents: Iterable[Document], defaults: Defaults, known: PlanContext | None = None, errors: list[str] | None = None
) -> list[PlanEntry]:
    """One entry per workload, and per Queue or GangQueue with a finding, in input order.

    Documents of other kinds are context, or get a note. `known` is more context, for example from a cluster; the
    documents override it, and their notes are added to it. `errors` gets a message for each document that cannot be
    read; without it the first one raises InputError.
    """
    known = known or PlanContext(queue_source=defaults.queue_source)
    read: list[tuple[Document, Kind | None, bool]] = []
    for document in with_templates(documents):
        kind = kind_of(document.api_version, document.kind)
        try:
            read.append((document, kind, kind is None and known.learn(document)))
        except InputError as error:
            _fail(error, errors)
    entries: list[PlanEntry] = []
    passed: list[Document] = []
    for document, kind, is_context in read:
        if kind is not None:
            try:
                entries.append(_entry(document, kind, known, defaults))
            except InputError as error:
                _fail(error, errors)
        elif is_context:
            entries += _queue_entries(document, known, defaults)
        else:
            entries += _other_entries(document, passed, defaults, known)
    if line := skipped(passed):
        known.notes.append(line)
    return entries


def _other_entries(
    document: Document, passed: list[Document], defaults: Defaults, known: PlanContext
) -> list[PlanEntry]:
    """The entry of a document of another kind, if its user may expect a gang of it; else it is added to `passed`."""
    if meant := near_kind(document):
        return [replace(_not_managed(document, meant), wrong_kind=True)]
    if gang := gang_of_pods(document):
        words = f'the pods of this {document.kind} join gang "{gang}"; plan does not check them'
        known.notes.append(f"{document.source}: {words}")
    elif why := why_not_run(document, defaults.schedulers):
        return [_not_managed(document, why)]
    else:
        passed.append(document)
    return []


def _fail(error: InputError, errors: list[str] | None) -> None:
    if errors is None:
        raise error
    errors.append(str(error))


def _entry(document: Document, kind: Kind, known: PlanContext, defaults: Defaults) -> PlanEntry:
    if not isinstance(document.manifest.get("metadata"), dict | None):
        raise unreadable(document, kind.decoded)
    meta, misnamed = _metadata_of(document)
    context = known.context(meta["namespace"], defaults)
    manifest = {**document.manifest, "metadata": meta}

    if faults := [*misnamed, *(one for one in unfilled(manifest, kind.decoded) if one.field not in _NAMES)]:
        raise unreadable(document, kind.decoded, faults)
    try:
        decoded = convert(manifest, kind.decoded)
        verdict = judge(kind, decoded, context)
        if unchecked := default_queue_unknown(verdict, known):
            context = replace(context, queue=None)
            verdict = judge(kind, decoded, context)
    except InvalidObjectError as error:
        raise unreadable(document, kind.decoded, _slips(meta), error) from error
    of_input = _of_input(document, kind, known)
    verdict = replace(
        verdict,
        refusals=(*verdict.refusals, *_others(defaults.validation.refused(of_input), verdict.refusals)),
        warnings=(*verdict.warnings, *defaults.validation.warned(of_input)),
    )
    scope = replace(context.scope, nearer=kind.intent_sources(decoded))
    intent = verdict.intent or named_intent(kind, decoded, context.defaults, scope)
    verdict = as_of_input(verdict, intent, meta["namespace"], known)
    managed = verdict.intent is not None or not verdict.allowed
    note = ""
    if not managed:
        workload = verdict.workload or readable(kind, decoded, known)
        note = why_not_managed(kind, decoded, workload, defaults, scope, outer=document.outer)
    elif context.queue is None:
        note = unchecked or _UNCHECKED
    entry = replace(
        _named(document, meta["namespace"], meta["name"]),
        refusals=verdict.refusals,
        warnings=verdict.warnings,
        managed=managed,
        note=note,
        verdict=verdict,
    )
    _note_closed_queue(entry, context, known)
    if verdict.workload and verdict.intent and verdict.gang:
        of_pods = as_its_pods(verdict.intent, verdict.workload, context.priorities or {})
        entry = replace(
            entry,
            intent=_intent(verdict.intent, context.admitter),
            pod_group=_pod_group(verdict.workload, verdict.gang, of_pods),
            roles=_roles(verdict.workload, verdict.gang, verdict.intent, context),
        )
    return entry


def _slips(metadata: dict[str, Any]) -> list[Finding]:
    """The misspelled labels and annotations of a workload that cannot be read as a whole."""
    with suppress(InvalidObjectError):
        return [*misspelled_keys(convert(metadata, ObjectMeta))]
    return []


def _note_closed_queue(entry: PlanEntry, context: Context, known: PlanContext) -> None:
    """Note why the workload may not use its queue: the verdict does not reveal it, but its manifest is in the input."""
    queue = entry.verdict.intent.queue if entry.verdict and entry.verdict.intent else ""
    if context.queue and known.queues.get(queue) and context.queue(queue) is None:
        unknown = [one for one in known.queues.path(queue)[:-1] if known.queues.get(one) is None]
        where = f'namespace "{entry.namespace}" ({NAMESPACE_SELECTOR})'
        why = f'is below "{unknown[0]}", which does not exist' if unknown else f"is not open to {where}"
        known.notes.append(f'{entry.source}: queue "{queue}" {why}')


def _pod_group(workload: Workload, gang: Gang, intent: Intent) -> dict[str, Any]:
    manifest = intent.gang_scheduler.pod_group(gang, intent, workload)
    for owner in manifest["metadata"].get("ownerReferences", ()):
        if not owner["uid"]:
            # Unknown before the workload exists.
            del owner["uid"]
    return manifest


def _roles(workload: Workload, gang: Gang, intent: Intent, context: Context) -> list[dict[str, Any]]:
    gate = context.gate(intent)
    specs = {spec.name: spec for spec in workload.roles}
    place = context.queue(intent.queue) if context.queue else None
    least = place.view.min_runtime if place is not None else 0.0
    members = (membership(role, gang, intent, intent.gang_scheduler, min_runtime=least) for role in gang.roles)
    patches = {one.role.name: _patch(one, specs[one.role.name], workload, context) for one in members}
    return [
        {
            "name": role.name,
            "replicas": role.replicas,
            "minMember": role.minimum,
            "getsGate": role.gated and patches[role.name] is not None and gate is not GateMode.OFF,
            "requests": as_text(role.requests),
            "patch": patches[role.name] or [],
        }
        for role in gang.roles
    ]


def _metadata_of(document: Document) -> tuple[dict[str, Any], list[Finding]]:
    """The metadata of a workload with a name and a namespace that are valid, and what is wrong with its own."""
    meta = document.manifest.get("metadata")
    meta = dict(meta) if isinstance(meta, dict) else {}
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = f"{str(meta['generateName'])[:_LONGEST_PREFIX]}{_GENERATED}"
    meta["namespace"] = meta.get("namespace") or "default"
    misnamed = []
    for field, instead in (("name", _GENERATED), ("namespace", "default")):
        found = meta.get(field) or ""
        if not (isinstance(found, str) and is_object_name(found)):
            words = f'"{str(found)[:80]}" is not a valid name; use at most 253 lower-case letters, digits, - and .'
            words = (type_words(found, {str}) or words) if found else "missing; an object needs a name"
            misnamed.append(finding(Reason.INVALID, f"metadata.{field}", words))
            meta[field] = instead
    return meta, misnamed


def _of_input(document: Document, kind: Kind, known: PlanContext) -> list[Finding]:
    """The findings that the webhook would not have: on the text, and on what the apiserver drops or refuses itself."""
    manifest = document.manifest
    found = [*twice_written(document), *unserved(document, known), *unusable_labels(manifest)]
    found += [*parts_of_devices(manifest), *above_limits(manifest)]
    if kind.group not in _OF_KUBERNETES:
        found += _others(fractions(manifest), found)
    of_schema = list(known.schemas.findings(document))
    of_shape = list(misplaced(manifest, spec_type(kind.decoded)))
    if known.schemas.has(document.api_version, document.kind):
        # A schema may allow any key somewhere; of metadata it says nothing.
        fields = {one.field for one in of_schema}
        of_shape = [one for one in of_shape if one.field in fields or one.field.partition(".")[0] != "spec"]
    found += of_shape
    return [*found, *_others(of_schema, found)]


def _others(findings: Iterable[Finding], known: Iterable[Finding]) -> list[Finding]:
    """Those of the findings that are about other fields than the known ones."""
    fields = {one.field for one in known}
    return [one for one in findings if one.field not in fields]


def _not_managed(document: Document, why: str) -> PlanEntry:
    """The entry of a document of a kind that muster does not run."""
    meta = document.manifest.get("metadata")
    named = {key: str(meta.get(key) or "")[:80] for key in ("namespace", "name")} if isinstance(meta, dict) else {}
    entry = _named(document, named.get("namespace") or "default", named.get("name", ""))
    return replace(entry, managed=False, note=why)


def _queue_entries(document: Document, known: PlanContext, defaults: Defaults) -> list[PlanEntry]:
    """The entry of a Queue, or a GangQueue, with findings; none for any other document."""
    source = next((one for one in QUEUE_SOURCES.values() if one.kind == document.kind), None)
    if source is None or not known.queues:
        return []
    queue = convert(document.manifest, source.decoded)
    found = [
        *all_faults(queue, known.queues),
        *twice_written(document),
        *fractions(document.manifest),
        *misplaced(document.manifest, spec_type(source.decoded)),
    ]
    refusals, warnings = defaults.validation.refused(found), defaults.validation.warned(found)
    if not (refusals or warnings):
        return []
    return [replace(_named(document, "", queue.metadata.name), refusals=refusals, warnings=warnings)]


def _named(document: Document, namespace: str, name: str) -> PlanEntry:
    return PlanEntry(
        document.api_version,
        document.kind,
        namespace,
        name,
        source=document.source,
        file=document.file,
        line=document.line,
        within=document.within,
    )


def _intent(intent: Intent, admitter: Admitter) -> dict[str, Any]:
    return {
        "scheduler": intent.scheduler,
        "admitter": str(admitter),
        "queue": intent.queue,
        "priorityClassName": intent.priority_class,
        "from": dict(intent.paths),
    }


def _patch(member: Membership, spec: RoleSpec, workload: Workload, context: Context) -> list[dict[str, Any]] | None:
    """The patch of a pod of that role, applied once as a self-check; None when muster does not change the pod."""
    if not workload.kind.owns_gang:
        return None
    template = spec.template
    priorities = context.priorities or {}
    # The pod as the webhook receives it: created by the operator, with the defaults of the apiserver.
    pod = Pod(
        metadata=ObjectMeta(
            namespace=workload.metadata.namespace,
            labels={**template.metadata.labels, **workload.kind.pod_labels(workload, spec)},
            annotations=template.metadata.annotations,
            owner_references=(
                OwnerReference(
                    api_version=workload.api_version,
                    kind=workload.kind.kind,
                    name=workload.metadata.name,
                    uid=workload.metadata.uid,
                    controller=True,
                ),
            ),
        ),
        spec=msgspec.structs.replace(
            template.spec,
            scheduler_name=template.spec.scheduler_name or "default-scheduler",
            priority=priorities.get(template.spec.priority_class_name, 0),
            preemption_policy=template.spec.preemption_policy or "PreemptLowerPriority",
        ),
    )
    if not is_free(pod, member.scheduler):
        return None
    gate = context.gate(member.intent)
    held = spec.gated and gate is not GateMode.OFF
    operations = inject(pod, member, gate=gate)
    # Through JSON, as in the apiserver: a patch appends to lists, not to tuples.
    document = msgspec.json.decode(msgspec.json.encode(pod))
    patched = msgspec.convert(jsonpatch.apply_patch(document, operations, in_place=True), Pod)
    if patched.gated(GATE) != held or inject(patched, member, gate=gate):
        raise AssertionError(
            f"internal error: the patch for {spec.name} has the wrong result; please report this with the manifest"
        )
    return operations
