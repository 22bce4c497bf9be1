"""Reviews workloads: what can never run is refused, with numbers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import msgspec

from muster.admitters import Admitter
from muster.gangs.intent import Defaults, Intent, Surroundings, find_intent, is_managed
from muster.model.findings import Finding, Reason, Severity
from muster.model.names import KUEUE_QUEUE
from muster.model.objects import InvalidObjectError, LocalObject, decode
from muster.resources.amounts import Resources
from muster.resources.quantity import ZERO
from muster.validation.quotas import TooMuch
from muster.validation.workload import Verdict, is_judged, judge, name_taken
from muster.workloads import KINDS, Decoded, Kind, kind_of
from webhook.reviews.admission_review import AdmissionRequest, AdmissionResponse, allow, deny
from webhook.reviews.knowledge import Knowledge
from webhook.server.review_thread import in_review_thread

# What is wrong because of the size of the gang.
_OF_QUEUES = (Reason.EXCEEDS_CAPABILITY, Reason.NO_ROOM_TO_UPGRADE)
# What is wrong with all pods of a role, whatever the line says of it.
_OF_ROLES = (Reason.REQUIRED_BY_RESOURCE_QUOTA, Reason.OUTSIDE_LIMIT_RANGE)


async def review_workload(request: AdmissionRequest, knowledge: Knowledge, defaults: Defaults) -> AdmissionResponse:
    """The answer for a new or changed workload; raises ApiError when its queue cannot be read."""
    kind = kind_of(request.kind.api_version, request.kind.kind)
    if kind is None or defaults.validation.mode is Severity.OFF:
        return allow()
    decoded = await in_review_thread(decode, request.object, kind.decoded)
    if not is_judged(decoded.metadata):
        return allow()
    around = await knowledge.around(request.namespace)
    around = replace(around, owners=await knowledge.owners(decoded.metadata))
    if request.operation == "UPDATE":
        old = request.old_object
        return await _changed(kind, old, decoded, lambda one: _verdict(kind, one, around, knowledge, defaults))
    verdict = await _verdict(kind, decoded, around, knowledge, defaults, new=request.operation == "CREATE")
    verdict = await _with_name(verdict, kind, knowledge, defaults)
    return allow(warnings=verdict.warnings) if verdict.allowed else deny(verdict.refusals, verdict.slips)


async def _with_name(verdict: Verdict, kind: Kind, knowledge: Knowledge, defaults: Defaults) -> Verdict:
    """The verdict on a new workload with what is found where its PodGroup's name is taken."""
    workload, gang, intent, validation = verdict.workload, verdict.gang, verdict.intent, defaults.validation
    if workload is None or gang is None or intent is None or not (kind.owns_gang and kind.owns_pod_group):
        return verdict
    if validation.severity(Reason.POD_GROUP_TAKEN) is Severity.OFF:
        return verdict
    holder = await knowledge.holder_of(gang, intent, kind, workload.metadata.name)
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
    """What stands under `/scale` of a workload, all that a review of it shows."""

    spec: _ScaleSpec = _ScaleSpec()


async def review_scale(request: AdmissionRequest, knowledge: Knowledge, defaults: Defaults) -> AdmissionResponse:
    """The answer for another number of pods, by `kubectl scale` or an autoscaler; raises ApiError as `review_workload`.

    It is judged as the same change of the workload itself, which is read now: of a watch nobody knows how late it is.
    """
    asked = request.resource.group, request.resource.resource
    kind = next((one for one in KINDS if (one.group, one.plural) == asked), None)
    if kind is None or kind.scaled is None or defaults.validation.mode is Severity.OFF:
        return allow()
    wanted = await in_review_thread(decode, request.object, _Scale)
    before = await knowledge.workload(kind, request.namespace, request.name)
    if before is None or not is_judged(before.metadata):
        return allow()
    around = await knowledge.around(request.namespace)
    around = replace(around, owners=await knowledge.owners(before.metadata))
    after: Decoded = kind.scaled(before, wanted.spec.replicas)
    return await _changed(kind, before, after, lambda one: _verdict(kind, one, around, knowledge, defaults))


async def _changed(
    kind: Kind, old: msgspec.Raw | Decoded, decoded: Decoded, verdict_on: Callable[[Decoded], Awaitable[Verdict]]
) -> AdmissionResponse:
    """The answer for a change; the old workload is decoded only where it is asked for."""
    verdict = await verdict_on(decoded)
    if verdict.allowed:
        return allow(warnings=verdict.warnings)
    # What was wrong before must stay editable, or it could never be put right in steps.
    before = await in_review_thread(decode, old, kind.decoded) if isinstance(old, msgspec.Raw) else old
    refusals = await in_review_thread(_new, verdict.refusals, await verdict_on(before), verdict)
    return deny(refusals, verdict.slips) if refusals else allow(warnings=[*verdict.refusals, *verdict.warnings])


def _new(refusals: tuple[Finding, ...], old: Verdict, new: Verdict) -> tuple[Finding, ...]:
    return tuple(refusal for refusal in refusals if not _was_there(refusal, old, new))


def _was_there(refusal: Finding, old: Verdict, new: Verdict) -> bool:
    """Whether the workload had this fault before, and it has not got worse.

    Of one that made no gang nobody knows which other faults it had.
    """
    if any(fault.reason is Reason.INVALID for fault in old.refusals):
        return True
    had = any(fault.reason is refusal.reason for fault in old.refusals)
    if refusal.reason in _OF_QUEUES and old.gang and new.gang and old.intent and new.intent:
        # What exceeds a capability and is no larger did so before; an upgrade may have been in place.
        known = had or refusal.reason is Reason.EXCEEDS_CAPABILITY
        same_queue = old.intent.queue == new.intent.queue
        return known and same_queue and _no_more(new.gang.most, old.gang.most)
    if isinstance(refusal, TooMuch):
        return any(map(refusal.no_worse_than, old.refusals))
    if refusal.reason in _OF_ROLES:
        return any((fault.reason, fault.field) == (refusal.reason, refusal.field) for fault in old.refusals)
    return refusal in old.refusals


def _no_more(now: Resources, before: Resources) -> bool:
    """Also where `before` does not name a resource, which `amounts.within` takes for no limit."""
    return all(amount <= before.get(name, ZERO) for name, amount in now.items())


async def _verdict(
    kind: Kind,
    decoded: Decoded,
    around: Surroundings,
    knowledge: Knowledge,
    defaults: Defaults,
    *,
    new: bool = False,
) -> Verdict:
    origin = await knowledge.origin(kind, decoded)
    made = None if new or origin is None else await knowledge.made(kind, decoded)
    whole = decoded if origin is None else kind.whole(decoded, lambda _: origin, made)
    intent = await in_review_thread(_intent, kind, whole, around, defaults)
    context = replace(await knowledge.context(intent, around, new=new), origin=lambda _: origin, made=made)
    if new and intent is not None and context.admitter is Admitter.KUEUE:
        said = (one.labels.get(KUEUE_QUEUE, "") for one in (decoded.metadata, *around.owners))
        queue = await knowledge.cluster_queue(around.namespace.name, next(filter(None, said), ""))
        context = replace(context, cluster_queue=queue)
    return await in_review_thread(judge, kind, decoded, context)


def _intent(kind: Kind, decoded: Decoded, around: Surroundings, defaults: Defaults) -> Intent | None:
    """The intent that the verdict will ask about, so that what it names can be read before."""
    around = replace(around, nearer=kind.voices(decoded))
    if not is_managed(kind.speaks(decoded), kind.policy(decoded), around):
        return None
    try:
        return find_intent(kind.read(decoded), defaults, around)
    except InvalidObjectError:
        return None
