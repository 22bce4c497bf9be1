"""Findings in a workload at admission: it can never run, or will not do what its user may expect.

`muster.model.findings` decides between refusal and warning.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from muster.admitters import Admitter
from muster.gangs.gang import gang_of
from muster.gangs.intent import Defaults, Intent, IntentScope, find_intent, foreign_scheduler, is_managed
from muster.gangs.roles import Gang
from muster.model.findings import Finding, Reason, Severity, Validation, finding
from muster.model.names import PRIORITY_CLASS_LABEL, QUEUE_LABEL, is_label_name, is_object_name
from muster.model.objects import InvalidObjectError, ObjectMeta
from muster.model.texts import nearest
from muster.queueing.queue_tree import Place
from muster.queueing.verdicts import no_such_queue
from muster.validation.context import Context
from muster.validation.ignored import idle_hold, ignored_managed, misspelled, queues_of_others, unknown_admitter
from muster.validation.quotas import (
    elastic_quota_findings,
    kueue_findings,
    limit_range_findings,
    needs,
    resource_quota_findings,
)
from muster.validation.warnings import Case, run_time_findings, surprises, unreadable_amounts
from muster.workloads import Decoded, IntentSource, Kind, Workload, kind_of_owner

# Schedulers and queueing systems of the field that a Ray label may name on purpose; they get no warning.
_WELL_KNOWN = frozenset({"yunikorn", "kai-scheduler", "scheduler-plugins-scheduler", "kubernetes-was"})
_BUILT_IN_PRIORITIES = frozenset({"", "system-cluster-critical", "system-node-critical"})


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict of admission on a workload; `intent` and `gang` are None if it is not muster's or makes no gang.

    It is refused for `refusals`; `warnings` come with an acceptance, the most serious first.
    """

    workload: Workload | None = None
    intent: Intent | None = None
    gang: Gang | None = None
    refusals: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()

    @property
    def allowed(self) -> bool:
        """True if the workload may be created."""
        return not self.refusals

    @property
    def slips(self) -> tuple[Finding, ...]:
        """The warnings of misspelled names: they may be the cause of a refusal, and are shown with it."""
        return tuple(one for one in self.warnings if one.reason is Reason.MISSPELLED)


def is_judged(metadata: ObjectMeta) -> bool:
    """True if a workload is judged at all.

    A workload that is being deleted starts nothing any more. The gang of a JobSet that a TrainJob made is the
    TrainJob's, and judged there.
    """
    above = kind_of_owner(metadata.controller)
    return not metadata.deletion_timestamp and not (above and above.owns_gang)


def judge(kind: Kind, decoded: Decoded, context: Context) -> Verdict:
    """Return the verdict on a decoded workload; one that asks for no gang scheduling is never looked into."""
    decoded, missing = _with_origin(kind, decoded, context)
    scope = replace(context.scope, nearer=kind.intent_sources(decoded))
    validation = context.defaults.validation
    if not is_managed(kind.intent_metadata(decoded), kind.policy(decoded), scope):
        unheard = _unknown_origin(kind, decoded, scope, missing, validation)
        slips = _verdict((*ignored_managed(kind, decoded, scope.namespace), *misspelled(kind, decoded)), validation)
        refusals = () if decoded.metadata.deletion_timestamp else slips.refusals
        return Verdict(refusals=refusals, warnings=(*slips.warnings, *unheard))
    # A workload that is being deleted or has finished starts nothing any more.
    over = bool(decoded.metadata.deletion_timestamp)
    if missing:
        return Verdict() if over else _verdict([missing, *_of_names(kind, decoded, context, scope)], validation)
    try:
        workload = kind.read(decoded)
        # A workload that MultiKueue runs in another cluster starts nothing in this one.
        over = over or workload.finished or workload.elsewhere
        intent = find_intent(workload, context.defaults, scope)
    except InvalidObjectError as error:
        found = [_invalid(error), *_of_names(kind, decoded, context, scope)]
        return Verdict() if over else _verdict(found, validation)
    if intent is None or not workload.roles:
        warned = () if workload.roles or over else workload.findings
        return _verdict((*_left_alone(workload, context.defaults, scope), *warned), validation, workload)
    try:
        gang = gang_of(workload, intent, context.priorities or {}, context.pod_defaults)
    except InvalidObjectError as error:
        # What does not depend on the numbers is judged all the same, so that its user sees all findings at once.
        wrong = unreadable_amounts(workload)
        findings = [
            *(wrong if any(one.field == error.field for one in wrong) else [_invalid(error), *wrong]),
            *_findings(workload, None, intent, context),
            *_of_metadata(kind, decoded, context),
            *workload.findings,
        ]
        return Verdict() if over else _verdict(findings, validation)
    if over:
        return Verdict(workload, intent, gang)
    # The queue's room does not matter if the ledger does not admit.
    by_queue = context.queue if context.admitter is Admitter.LEDGER else None
    place = by_queue(intent.queue) if by_queue else None
    findings = [
        *_findings(workload, gang, intent, context),
        *idle_hold(kind, decoded.metadata, context.admitter, context.gate(intent)),
        *run_time_findings(workload, intent, scope),
        *_of_metadata(kind, decoded, context),
        *surprises(Case(workload, gang, intent, place, context.held, context.pod_defaults, context.gate(intent))),
    ]
    return replace(_verdict(findings, validation, workload), intent=intent, gang=gang)


def _of_metadata(kind: Kind, decoded: Decoded, context: Context) -> Iterator[Finding]:
    """Yield the findings for its name, and for labels and annotations without effect."""
    yield from _own_name(kind, decoded.metadata)
    yield from ignored_managed(kind, decoded, context.scope.namespace)
    yield from unknown_admitter(context)
    yield from misspelled(kind, decoded)
    yield from queues_of_others(decoded.metadata)


def named_intent(kind: Kind, decoded: Decoded, defaults: Defaults, scope: IntentScope) -> Intent | None:
    """Return the intent of a workload whose pods cannot be counted, by its metadata; None if that is malformed."""
    with suppress(InvalidObjectError):
        return find_intent(_without_pods(kind, decoded), defaults, scope)
    return None


def _without_pods(kind: Kind, decoded: Decoded) -> Workload:
    return Workload(kind, "", kind.intent_metadata(decoded), "", (), kind.policy(decoded))


def _of_names(kind: Kind, decoded: Decoded, context: Context, scope: IntentScope) -> Iterator[Finding]:
    """Yield the findings for the names in a workload whose pods cannot be counted."""
    if intent := named_intent(kind, decoded, context.defaults, scope):
        # The pods, or the object that it is made from, may name another queue than the default.
        known = context if "queue" in intent.paths else replace(context, queue=None)
        yield from _findings(_without_pods(kind, decoded), None, intent, known)
    yield from _of_metadata(kind, decoded, context)


def _findings(workload: Workload, gang: Gang | None, intent: Intent, context: Context) -> tuple[Finding, ...]:
    """Return the findings about the workload's queue, if the size of its gang is known, and about its class."""
    return _name_findings(workload, intent) or (
        *_queue_findings(workload, gang, intent, context),
        *resource_quota_findings(workload, gang, intent, context),
        *limit_range_findings(workload, gang, context),
        *elastic_quota_findings(gang, intent, context),
        *_priority_findings(workload, intent, context),
        *_scheduler_findings(workload, gang, intent),
        *kueue_findings(workload, gang, context),
    )


def _invalid(error: InvalidObjectError) -> Finding:
    return Finding(Reason.INVALID, error.field, str(error))


def _verdict(findings: Sequence[Finding], validation: Validation, workload: Workload | None = None) -> Verdict:
    return Verdict(workload, refusals=validation.refused(findings), warnings=validation.warned(findings))


def _with_origin(kind: Kind, decoded: Decoded, context: Context) -> tuple[Decoded, Finding | None]:
    """Return the workload together with the object that it is made from, or the finding if that is not known."""
    try:
        return kind.whole(decoded, context.origin, context.made), None
    except InvalidObjectError as error:
        reference = kind.origin.of(decoded) if kind.origin else None
        near = nearest(reference.name, context.origin_names(reference)) if reference else ""
        meant = f'; did you mean "{near}"?' if near else ""
        return decoded, Finding(Reason.TRAINING_RUNTIME_NOT_FOUND, error.field, f"{error}{meant}")


def _unknown_origin(
    kind: Kind, decoded: Decoded, scope: IntentScope, missing: Finding | None, validation: Validation
) -> tuple[Finding, ...]:
    """Return a warning, not a refusal, for a workload without intent whose origin, which may have one, is unknown."""
    if missing is None or validation.severity(missing.reason) is Severity.OFF:
        return ()
    anything = IntentSource("", {QUEUE_LABEL: "any"}, {})
    might = replace(scope, nearer=(*scope.nearer, anything))
    return (missing,) if is_managed(kind.intent_metadata(decoded), kind.policy(decoded), might) else ()


def _own_name(kind: Kind, metadata: ObjectMeta) -> Iterator[Finding]:
    """Yield the finding for a name with which the operator makes no pods: the gang would wait for ever."""
    name, longest = metadata.name, kind.longest_name
    if name and longest and (len(name) > longest or not is_label_name(name)):
        rest = f"at most {longest} lower-case letters, digits and -, beginning with a letter"
        message = f'metadata.name: the operator makes no pods of a {kind.kind} "{name[:80]}"; use {rest}'
        yield Finding(Reason.INVALID, "metadata.name", message)


def _name_findings(workload: Workload, intent: Intent) -> tuple[Finding, ...]:
    """Return findings for names that no queue and no class can have: the apiserver would refuse pods with them."""
    asked = [
        ("queue", "queue", QUEUE_LABEL, intent.queue),
        ("priorityClassName", "PriorityClass", PRIORITY_CLASS_LABEL, intent.priority_class),
    ]
    findings = []
    for field_, what, label, name in asked:
        if name and not is_object_name(name):
            usual = "use at most 253 lower-case letters, digits, - and ."
            cure = (_of_a_namespace(name) if what == "queue" else "") or usual
            message = f'"{name[:80]}" is not a valid {what} name; {cure}'
            findings.append(finding(Reason.INVALID, intent.paths.get(field_, workload.label_path(label)), message))
    return tuple(findings)


def _of_a_namespace(name: str) -> str:
    """Return what to do about the name of a NamespaceQueue, as Volcano 1.16 writes it; "" for any other name."""
    namespace, slash, own = name.partition("/")
    if not (slash and is_object_name(namespace) and is_object_name(own)):
        return ""
    return "a NamespaceQueue of Volcano 1.16 is none of muster's queues: name a Queue"


def no_way_in(path: str, name: str, namespace: str, place: Place | None, known: Sequence[str] = ()) -> Finding | None:
    """Return why the queue that the field `path` names takes no gangs of the namespace, or None; `place` is the queue.

    `known` are the queues that may be suggested: only those that are open to the namespace.
    """
    if place is None:
        near = nearest(name, known)
        meant = f' (did you mean "{near}"?)' if near else ""
        cure = _of_a_namespace(name) or "name another one, or ask its administrator"
        message = f"{no_such_queue(name, namespace)}{meant}; {cure}"
        return finding(Reason.QUEUE_NOT_FOUND, path, message)
    if place.view.closed:
        message = (
            f'queue "{name}" is {place.view.state} and takes no new work; use an open queue or have this one opened'
        )
        return finding(Reason.QUEUE_CLOSED, path, message)
    if not place.leaf:
        # Under Volcano's hierarchical capacity one such gang stops the scheduling of the whole cluster.
        message = f'queue "{name}" has queues below it and takes no gangs itself; name one of those'
        return finding(Reason.QUEUE_NOT_LEAF, path, message)
    return None


def name_taken(gang: Gang, holder: str) -> Finding:
    """Return the finding for a workload whose PodGroup would have the name of the PodGroup of the `holder`."""
    message = (
        f'metadata.name: the PodGroup "{gang.name}" belongs to {holder}, and two gangs cannot share one; '
        "use another name or delete the other first"
    )
    return Finding(Reason.POD_GROUP_TAKEN, "metadata.name", message)


def _queue_findings(workload: Workload, gang: Gang | None, intent: Intent, context: Context) -> tuple[Finding, ...]:
    others = context.admitter is not Admitter.LEDGER
    if context.queue is None or (others and not intent.gang_scheduler.enforces_limits):
        return ()
    path = intent.paths.get("queue", workload.label_path(QUEUE_LABEL))
    place, namespace = context.queue(intent.queue), workload.metadata.namespace
    closed = no_way_in(path, intent.queue, namespace, place, () if place else context.queue_names())
    if closed is not None or place is None or gang is None or others:
        return (closed,) if closed else ()
    for needing, need in needs(gang, gang.needed, context.gate(intent)):
        for level in place.levels:
            over = level.exceeded(need)
            if over is not None:
                message = (
                    f"{needing} needs {over[0]}, {level.called(intent.queue)} has capability {over[1]}; "
                    "lower the replicas or use a larger queue"
                )
                return (finding(Reason.EXCEEDS_CAPABILITY, path, message),)
    return ()


def _scheduler_findings(workload: Workload, gang: Gang | None, intent: Intent) -> Iterator[Finding]:
    """Yield findings for demands that the gang's scheduler cannot meet."""
    for field_, rest in intent.gang_scheduler.cannot(gang, intent, workload) if gang is not None else ():
        yield finding(Reason.SCHEDULER_CANNOT, field_, rest)


def _priority_findings(workload: Workload, intent: Intent, context: Context) -> tuple[Finding, ...]:
    name, path = intent.priority_class, intent.paths.get("priorityClassName", workload.label_path(PRIORITY_CLASS_LABEL))
    if intent.prioritise_pods and name in _BUILT_IN_PRIORITIES and name:
        message = f'PriorityClass "{name}" is for the cluster\'s own pods; name another class'
        return (finding(Reason.INVALID, path, message),)
    if context.priorities is None or name in _BUILT_IN_PRIORITIES or name in context.priorities:
        return ()
    near = nearest(name, context.priorities)
    meant = f' (did you mean "{near}"?)' if near else ""
    message = f'PriorityClass "{name}" does not exist{meant}; name an existing class or create it first'
    return (finding(Reason.UNKNOWN_PRIORITY_CLASS, path, message),)


def _left_alone(workload: Workload, defaults: Defaults, scope: IntentScope) -> tuple[Finding, ...]:
    foreign = foreign_scheduler(workload, defaults, scope)
    if foreign is None or foreign[1] in _WELL_KNOWN or not foreign[0].startswith("metadata.labels"):
        return ()
    known = ", ".join(sorted(defaults.schedulers))
    message = f'{foreign[0]}: muster is not configured for scheduler "{foreign[1]}" ({known}); it leaves this alone'
    return (Finding(Reason.UNKNOWN_SCHEDULER, foreign[0], message),)
