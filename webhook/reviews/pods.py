"""Reviews pods at their creation: a member of a gang is bound, pointed at its scheduler, and held by the gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from msgspec import structs

from muster.gangs.gang import Gang, gang_of
from muster.gangs.intent import Defaults, Surroundings, find_intent, is_managed, may_run_beside, required
from muster.gangs.pod_patch import Membership, disown, inject, is_certain, is_free
from muster.model.findings import Finding, Reason
from muster.model.names import GANG, GANG_COMPLETIONS, GANG_TIME_LIMIT, GATE, UNNAMED_SCHEDULERS
from muster.model.objects import InvalidObjectError, Job, Pod, decode
from muster.schedulers import GangScheduler
from muster.validation.warnings import uncounted_claims
from muster.workloads import PLAIN_POD
from muster.workloads.plain import gang_of_run, runs
from webhook.reviews.admission_review import (
    AdmissionRequest,
    AdmissionResponse,
    InvalidReviewError,
    PodRequest,
    allow,
    deny,
)
from webhook.reviews.knowledge import GangTemplate, Knowledge, OwnerWorkload
from webhook.reviews.memo import version
from webhook.reviews.reads import ask_again
from webhook.server.review_thread import in_review_thread


async def review_pod(
    request: AdmissionRequest | PodRequest, knowledge: Knowledge, defaults: Defaults
) -> AdmissionResponse:
    """The answer for a new pod.

    Raises ApiError when the pod's owner cannot be read, Refused when that is too large for now, InvalidReviewError or
    InvalidObjectError when it is no pod.
    """
    if (request.kind.api_version, request.kind.kind) != ("v1", "Pod"):
        raise InvalidReviewError(f"expected a v1 Pod, got {request.kind.api_version} {request.kind.kind}")
    pod = request.object if isinstance(request, PodRequest) else await in_review_thread(decode, request.object, Pod)
    if not pod.spec.containers:
        # The apiserver refuses it by itself; where it has no specification at all, a patch of that would not apply.
        return allow()
    around = await knowledge.around(request.namespace)
    for fresh in (False, True):
        # A role that the workload has not is one that the watch has not shown yet, perhaps: it is read once.
        behind = await knowledge.behind(request.namespace, pod.metadata.controller, fresh=fresh)
        if behind is None and pod.metadata.labels.get(GANG):
            # It opts in by itself.
            behind = OwnerWorkload(PLAIN_POD, None, _as_it_came(pod, defaults, knowledge))
        if behind is None or behind.decoded.metadata.deletion_timestamp:
            # Nothing is left to wait for.
            return _untouched(pod)
        workload = behind.decoded.metadata
        if may_run_beside(workload, around.namespace) and knowledge.unmanaged_pods.of(behind.kind, workload):
            # A part of it came without muster: it is left alone until that is gone.
            return _untouched(pod)
        origin = await knowledge.origin(behind.kind, behind.decoded)
        answer = await _decide(pod, behind, origin, around=around, knowledge=knowledge, defaults=defaults)
        if answer is not None:
            return answer
        if behind.early:
            raise ask_again()
    if required(around.namespace):
        return _refused("metadata.labels", "of a role that its workload has not")
    return _untouched(pod)


def _as_it_came(pod: Pod, defaults: Defaults, knowledge: Knowledge) -> Pod:
    """A pod that opts in by itself, before another webhook gave it to another scheduler, and after muster held it.

    It is of the gang of the Job or workflow that made it, where that is a run of its own.
    """
    maker = pod.metadata.controller
    if maker is not None and runs(maker):
        own = gang_of_run(pod.metadata.labels[GANG], maker.name, made=knowledge.is_made(maker))
        labels = {**pod.metadata.labels, GANG: own}
        pod = structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))
    if not pod.gated(GATE) or pod.spec.scheduler_name in defaults.schedulers:
        return pod
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduler_name=""))


async def _decide(
    pod: Pod,
    behind: OwnerWorkload,
    origin: object | None,
    *,
    around: Surroundings,
    knowledge: Knowledge,
    defaults: Defaults,
) -> AdmissionResponse | None:
    """The answer for a pod of that workload, or None when it has a role that the workload does not know."""
    kind = behind.kind
    plain = kind is PLAIN_POD
    found = await _gang_behind(behind, origin, around, knowledge, defaults)
    if found is None:
        return _untouched(pod, plain=plain)
    if isinstance(found, AdmissionResponse):
        return found
    name = kind.role_of(pod)
    if name is None:
        return _untouched(pod, plain=plain)
    member = found.member(name)
    if member is None:
        return None
    scheduler = member.scheduler
    if not is_free(pod, scheduler):
        if required(around.namespace) and not (plain and is_certain(pod)):
            return _refused(*_why_not_free(pod, scheduler))
        return _left_alone(pod, scheduler, defaults, plain=plain)
    reference, controller = behind.reference, pod.metadata.controller
    if reference is not None and controller is not None and reference.uid == controller.uid:
        reference = None
    if pod.spec.resource_claims:
        # Also where the template has none, and where nobody has looked at the workload.
        refusals = defaults.validation.refused([uncounted_claims("spec", "this pod")])
        if refusals:
            return deny(refusals)
    member = _of_job(member, knowledge.job(controller) if plain else None)
    gate = await knowledge.gate(found.gang, found.intent, around)
    return allow(await in_review_thread(inject, pod, member, gate=gate, workload=reference))


def _of_job(member: Membership, job: Job | None) -> Membership:
    """With what tells the controller, which watches no Jobs, of the Job of plain pods.

    That is how many pods are to come of a gang that begins again, and when its pods are deleted.
    """
    said = (job.spec.completions, job.spec.active_deadline_seconds) if job is not None else (None, None)
    of_job = zip((GANG_COMPLETIONS, GANG_TIME_LIMIT), said, strict=True)
    return replace(
        member, annotations={**member.annotations, **{key: str(number) for key, number in of_job if number is not None}}
    )


def _refused(field: str, what: str) -> AdmissionResponse:
    """The refusal of a pod that would go past muster where that is required."""
    cure = "this namespace requires muster, and nothing opts out; make the pod as its workload says"
    return deny([Finding(Reason.INVALID, field, f"{field}: {what}; {cure}")])


def _why_not_free(pod: Pod, scheduler: GangScheduler) -> tuple[str, str]:
    if pod.spec.node_name:
        return "spec.nodeName", f'names the node "{pod.spec.node_name}"'
    if pod.spec.scheduler_name not in (*UNNAMED_SCHEDULERS, scheduler.name):
        return "spec.schedulerName", f'"{pod.spec.scheduler_name}" is not {scheduler.name}'
    return "metadata.annotations", f'the pod names the PodGroup "{scheduler.bound_to(pod)}"'


def _untouched(pod: Pod, *, plain: bool = False) -> AdmissionResponse:
    """The pod passes, and as no member of any gang."""
    return allow(disown(pod, plain=plain))


def _left_alone(pod: Pod, scheduler: GangScheduler, defaults: Defaults, *, plain: bool) -> AdmissionResponse:
    """The answer for a member that is not muster's to bind, as `is_free` tells."""
    named, validation = pod.spec.scheduler_name, defaults.validation
    other = named not in (*UNNAMED_SCHEDULERS, scheduler.name)
    found = [left_alone(named, scheduler.name)] if other else []
    if refusals := validation.refused(found):
        return deny(refusals)
    return allow(disown(pod, plain=plain), validation.warned(found))


def left_alone(named: str, scheduler: str) -> Finding:
    """What is told of a member that names another scheduler than its gang."""
    field = "spec.schedulerName"
    message = f'{field}: "{named}" is not {scheduler}; muster leaves the pod alone'
    return Finding(Reason.POD_LEFT_ALONE, field, message)


async def _gang_behind(
    behind: OwnerWorkload, origin: object | None, around: Surroundings, knowledge: Knowledge, defaults: Defaults
) -> GangTemplate | AdmissionResponse | None:
    """What the pods of a workload have in common, or the refusal of all, or None when it is none of muster's.

    Hundreds may come one after the other.
    """
    priorities = knowledge.priorities()
    if behind.reference is None:
        # The workload is the pod, of which no other one is ever seen.
        return await in_review_thread(_common, behind, origin, around, priorities, defaults)
    decoded = behind.decoded
    sources = (decoded, origin, behind.made, around.namespace, priorities, *behind.owners)
    found = knowledge.commons.of(
        decoded.metadata.uid,
        tuple(map(version, sources)),
        lambda: _common(behind, origin, around, priorities, defaults),
    )
    several = len(defaults.schedulers) > 1
    return await knowledge.kept(found) if several and isinstance(found, GangTemplate) else found


def bare(gang: Gang) -> Gang:
    """The gang without what its pods request: no patch depends on that, and it is kept for as long as the workload."""
    return replace(gang, min_resources={}, roles=tuple(replace(role, requests={}) for role in gang.roles))


def _common(
    behind: OwnerWorkload,
    origin: object | None,
    around: Surroundings,
    priorities: Mapping[str, int],
    defaults: Defaults,
) -> GangTemplate | AdmissionResponse | None:
    kind, decoded = behind.kind, behind.decoded
    joined = decoded if origin is None else kind.whole(decoded, lambda _: origin, behind.made)
    around = replace(around, nearer=kind.voices(joined), owners=behind.owners)
    if not is_managed(decoded.metadata, kind.policy(decoded), around):
        return None
    try:
        # Without what it is made from nobody can count its pods: this says so.
        workload = kind.read(kind.whole(decoded, lambda _: None) if origin is None else joined)
        intent = find_intent(workload, defaults, around)
        return None if intent is None else GangTemplate(intent, bare(gang_of(workload, intent, priorities)))
    except InvalidObjectError as error:
        # It slipped past validation. Without numbers there is no gang, and a part of one must not start.
        message = f"{kind.kind} {decoded.metadata.name}: {error}"
        field = "metadata.ownerReferences" if behind.reference else error.field
        return deny([Finding(Reason.INVALID, field, message)])
