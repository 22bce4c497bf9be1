"""Reviews of workloads: what can never run is refused, with numbers."""

from dataclasses import replace

import msgspec

from muster.admitters import Admitter
from muster.gangs.intent import Defaults, Intent, IntentScope, find_intent, is_managed
from muster.model.findings import Finding, Reason, Severity
from muster.model.names import KUEUE_QUEUE
from muster.model.objects import InvalidObjectError, LocalObject, decode
from muster.resources.amounts import Resources
from muster.resources.quantity import ZERO
from muster.validation.context import Context
from muster.validation.quotas import TooMuch
from muster.validation.workload import Verdict, is_judged, judge, name_taken, named_intent
from muster.workloads import KINDS, Decoded, Kind, kind_of
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.codec import AdmissionRequest, AdmissionResponse, allow, deny

# Faults that come from the size of the gang.
_OF_QUEUES = (Reason.EXCEEDS_CAPABILITY, Reason.NO_ROOM_TO_UPGRADE)
# Faults of all pods of a role, whatever numbers the message has.
_OF_ROLES = (Reason.REQUIRED_BY_RESOURCE_QUOTA, Reason.OUTSIDE_LIMIT_RANGE)


async def review_workload(request: AdmissionRequest, cluster: ClusterReader) -> AdmissionResponse:
    """The answer for a new or changed workload; raises ApiError if its queue cannot be read."""
    kind = kind_of(request.kind.api_version, request.kind.kind)
    if kind is None or cluster.defaults.validation.mode is Severity.OFF:
        return allow()
    run = cluster.review.run
    decoded = await run(decode, request.object, kind.decoded)
    if not is_judged(decoded.metadata):
        return allow()
    scope = await _scope_of(decoded, request.namespace, cluster)
    if request.operation == "UPDATE":
        return await _review_change(kind, request.old_object, decoded, scope, cluster)
    facts = await gather(kind, decoded, scope, cluster, new=request.operation == "CREATE")
    verdict = await _with_holder(await run(judge, kind, decoded, facts), kind, cluster)
    return allow(warnings=verdict.warnings) if verdict.allowed else deny(verdict.refusals, verdict.slips)


async def _scope_of(decoded: Decoded, namespace: str, cluster: ClusterReader) -> IntentScope:
    """The sources of a workload's intent: its namespace and its owners."""
    scope = await cluster.scope_of(namespace)
    return replace(scope, owners=await cluster.owners(decoded.metadata))


async def _with_holder(verdict: Verdict, kind: Kind, cluster: ClusterReader) -> Verdict:
    """The verdict on a new workload, with a finding if another object has its PodGroup's name."""
    workload, gang, intent = verdict.workload, verdict.gang, verdict.intent
    validation = cluster.defaults.validation
    if workload is None or gang is None or intent is None or not (kind.owns_gang and kind.owns_pod_group):
        return verdict
    if validation.severity(Reason.POD_GROUP_TAKEN) is Severity.OFF:
        return verdict
    holder = await cluster.holder_of(gang, intent, kind, workload.metadata.name)
    if holder is None:
        return verdict
    found = [name_taken(gang, holder)]
    return replace(
        verdict,
        refusals=(*verdict.refusals, *validation.refused(found)),
        warnings=(*validation.warned(found), *verdict.warnings),
    )


class _ScaleSpec(LocalObject, frozen=True):
    replicas: int = 0


class _Scale(LocalObject, frozen=True):
    """The `/scale` subresource of a workload, which is all that its review contains."""

    spec: _ScaleSpec = _ScaleSpec()


async def review_scale(request: AdmissionRequest, cluster: ClusterReader) -> AdmissionResponse:
    """The answer for another number of pods, by `kubectl scale` or an autoscaler; raises ApiError as `review_workload`.

    It is judged as the same change of the workload, which is read now: a watch may be late.
    """
    scaled = request.resource.group, request.resource.resource
    kind = next((one for one in KINDS if (one.group, one.plural) == scaled), None)
    if kind is None or kind.scaled is None or cluster.defaults.validation.mode is Severity.OFF:
        return allow()
    wanted = await cluster.review.run(decode, request.object, _Scale)
    before = await cluster.workload(kind, request.namespace, request.name)
    if before is None or not is_judged(before.metadata):
        return allow()
    scope = await _scope_of(before, request.namespace, cluster)
    after: Decoded = kind.scaled(before, wanted.spec.replicas)
    return await _review_change(kind, before, after, scope, cluster)


async def _review_change(
    kind: Kind, old: msgspec.Raw | Decoded, decoded: Decoded, scope: IntentScope, cluster: ClusterReader
) -> AdmissionResponse:
    """The answer for a change; the old workload is decoded and judged only if the new one has faults."""
    run = cluster.review.run
    verdict = await run(judge, kind, decoded, await gather(kind, decoded, scope, cluster))
    if verdict.allowed:
        return allow(warnings=verdict.warnings)
    # Old faults must stay editable, or they could never be corrected in steps.
    before = await run(decode, old, kind.decoded) if isinstance(old, msgspec.Raw) else old
    old_verdict = await run(judge, kind, before, await gather(kind, before, scope, cluster))
    refusals = await run(_new, verdict.refusals, old_verdict, verdict)
    return deny(refusals, verdict.slips) if refusals else allow(warnings=[*verdict.refusals, *verdict.warnings])


def _new(refusals: tuple[Finding, ...], old: Verdict, new: Verdict) -> tuple[Finding, ...]:
    return tuple(refusal for refusal in refusals if not _was_there(refusal, old, new))


def _was_there(refusal: Finding, old: Verdict, new: Verdict) -> bool:
    """True if the workload had this fault before, and it has not become worse.

    The other faults of a workload that made no gang are unknown, so it counts as if it had this one.
    """
    if any(fault.reason is Reason.INVALID for fault in old.refusals):
        return True
    had = any(fault.reason is refusal.reason for fault in old.refusals)
    if refusal.reason in _OF_QUEUES and old.gang and new.gang and old.intent and new.intent:
        # A gang that exceeds a capability and is not larger did so before; an upgrade may have been in progress.
        known = had or refusal.reason is Reason.EXCEEDS_CAPABILITY
        same_queue = old.intent.queue == new.intent.queue
        return known and same_queue and _no_more(new.gang.most, old.gang.most)
    if isinstance(refusal, TooMuch):
        return any(map(refusal.no_worse_than, old.refusals))
    if refusal.reason in _OF_ROLES:
        return any((fault.reason, fault.field) == (refusal.reason, refusal.field) for fault in old.refusals)
    return refusal in old.refusals


def _no_more(now: Resources, before: Resources) -> bool:
    """True if no amount is larger; a resource that `before` does not name was 0, not unlimited as in `within`."""
    return all(amount <= before.get(name, ZERO) for name, amount in now.items())


async def gather(
    kind: Kind, decoded: Decoded, scope: IntentScope, cluster: ClusterReader, *, new: bool = False
) -> Context:
    """The facts by which a workload is judged; `new` if it is being created. Raises as ClusterReader."""
    origin = await cluster.origin(kind, decoded)
    made = None if new or origin is None else await cluster.made(kind, decoded)
    whole = decoded if origin is None else kind.whole(decoded, lambda _: origin, made)
    intent = await cluster.review.run(_intent, kind, whole, scope, cluster.defaults)
    facts = replace(await cluster.context(intent, scope, new=new), origin=lambda _: origin, made=made)
    if new and intent is not None and facts.admitter is Admitter.KUEUE:
        names = (one.labels.get(KUEUE_QUEUE, "") for one in (decoded.metadata, *scope.owners))
        queue = await cluster.cluster_queue(scope.namespace.name, next(filter(None, names), ""))
        facts = replace(facts, cluster_queue=queue)
    return facts


def _intent(kind: Kind, decoded: Decoded, scope: IntentScope, defaults: Defaults) -> Intent | None:
    """The intent of the workload, so that its queue and class can be read before it is judged."""
    scope = replace(scope, nearer=kind.intent_sources(decoded))
    if not is_managed(kind.intent_metadata(decoded), kind.policy(decoded), scope):
        return None
    try:
        return find_intent(kind.read(decoded), defaults, scope)
    except InvalidObjectError:
        return named_intent(kind, decoded, defaults, scope)
