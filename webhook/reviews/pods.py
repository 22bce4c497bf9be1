"""Reviews of new pods: a member of a gang is bound to it, given its scheduler, and held by the gate."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from msgspec import structs

from muster.gangs.gang import gang_of
from muster.gangs.intent import Defaults, IntentScope, find_intent, is_managed, may_have_unmanaged_pods, required
from muster.gangs.pod_patch import Membership, disown, inject, is_certain, is_free
from muster.gangs.roles import Gang
from muster.model.findings import Finding, Reason
from muster.model.modes import GateMode
from muster.model.names import GANG, GANG_COMPLETIONS, GANG_TIME_LIMIT, GATE, UNNAMED_SCHEDULERS
from muster.model.objects import InvalidObjectError, Job, decode
from muster.model.pods import Pod
from muster.schedulers import GangScheduler
from muster.validation.warnings import uncounted_claims
from muster.workloads import PLAIN_POD
from muster.workloads.plain import gang_of_run, runs
from webhook.reviews.cluster_cache import GangTemplate, OwnerWorkload, try_again, version
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.codec import AdmissionRequest, AdmissionResponse, PodRequest, allow, deny


@dataclass(frozen=True, slots=True)
class PodFacts:
    """Everything that decides about a new pod.

    :ivar pod: as it was sent
    :ivar scope: the pod's namespace, as a source of intent
    :ivar owner: the workload whose gang the pod may join; None if there is none, if it is being deleted, or while
        unmanaged pods of it live
    :ivar template: what all pods of the workload have in common, or the refusal of all; None if it is no gang
    :ivar role: the role that the pod names; None if none
    :ivar member: what the pods of that role have in common; None if the workload has no such role
    :ivar job: the batch Job of a plain pod
    :ivar gate: the gate mode of the pod
    """

    pod: Pod
    scope: IntentScope
    owner: OwnerWorkload | None = None
    template: GangTemplate | AdmissionResponse | None = None
    role: str | None = None
    member: Membership | None = None
    job: Job | None = None
    gate: GateMode = GateMode.QUEUE

    @property
    def has_unknown_role(self) -> bool:
        """True if the pod names a role that its workload does not have."""
        return self.role is not None and self.member is None

    @property
    def from_cache(self) -> bool:
        """True if the workload was read for an earlier review, and may be stale."""
        return self.owner is not None and self.owner.from_cache


async def review_pod(request: AdmissionRequest | PodRequest, cluster: ClusterReader) -> AdmissionResponse:
    """The answer for a new pod.

    Raises ApiError if the pod's owner cannot be read, Refused if that is too large for now, InvalidObjectError if it is
    no pod.
    """
    if (request.kind.api_version, request.kind.kind) != ("v1", "Pod"):
        raise InvalidObjectError("", f"expected a v1 Pod, got {request.kind.api_version} {request.kind.kind}")
    run = cluster.review.run
    pod = request.object if isinstance(request, PodRequest) else await run(decode, request.object, Pod)
    if not pod.spec.containers:
        # The apiserver refuses it, and a patch of a missing specification would not apply.
        return allow()
    facts = await gather(pod, request.namespace, cluster)
    return await run(decide, facts, cluster.defaults)


async def gather(pod: Pod, namespace: str, cluster: ClusterReader) -> PodFacts:
    """The facts about a new pod; raises as ClusterReader.

    The watch may not show the pod's role yet, so a workload without that role is read once more.
    """
    scope = await cluster.scope_of(namespace)
    facts = await _gather(pod, namespace, scope, cluster)
    if facts.has_unknown_role and not facts.from_cache:
        facts = await _gather(pod, namespace, scope, cluster, live=True)
    if facts.has_unknown_role and facts.from_cache:
        raise try_again()
    return facts


async def _gather(
    pod: Pod, namespace: str, scope: IntentScope, cluster: ClusterReader, *, live: bool = False
) -> PodFacts:
    """The facts about a new pod; `live` reads its workload even if the watch has shown it."""
    controller = pod.metadata.controller
    owner = await cluster.workload_of(namespace, controller, live=live)
    if owner is None and pod.metadata.labels.get(GANG):
        owner = OwnerWorkload(PLAIN_POD, None, _as_submitted(pod, cluster))
    if owner is None or owner.decoded.metadata.deletion_timestamp:
        return PodFacts(pod, scope)
    workload = owner.decoded.metadata
    if may_have_unmanaged_pods(workload, scope.namespace) and cluster.cache.unmanaged_pods.of(owner.kind, workload):
        return PodFacts(pod, scope)
    template = await _template_of(owner, scope, cluster)
    if not isinstance(template, GangTemplate):
        return PodFacts(pod, scope, owner, template)
    role = owner.kind.role_of(pod)
    member = template.member(role, cluster.min_runtime_of(template)) if role is not None else None
    gate = GateMode.QUEUE
    if member is not None and is_free(pod, member.scheduler):
        gate = await cluster.gate_of(template, scope)
    job = cluster.job(controller) if owner.kind is PLAIN_POD else None
    return PodFacts(pod, scope, owner, template, role, member, job, gate)


def _as_submitted(pod: Pod, cluster: ClusterReader) -> Pod:
    """A plain pod before another webhook changed its scheduler after muster gated it.

    It belongs to the gang of the Job or workflow that made it, if that is a run of its own.
    """
    maker = pod.metadata.controller
    if maker is not None and runs(maker):
        own = gang_of_run(pod.metadata.labels[GANG], maker.name, made=cluster.is_made(maker))
        labels = {**pod.metadata.labels, GANG: own}
        pod = structs.replace(pod, metadata=structs.replace(pod.metadata, labels=labels))
    if not pod.gated(GATE) or pod.spec.scheduler_name in cluster.defaults.schedulers:
        return pod
    return structs.replace(pod, spec=structs.replace(pod.spec, scheduler_name=""))


async def _template_of(
    owner: OwnerWorkload, scope: IntentScope, cluster: ClusterReader
) -> GangTemplate | AdmissionResponse | None:
    """The common part of all pods of a workload, as `gang_template`, computed once for hundreds of pods."""
    decoded, priorities, defaults = owner.decoded, cluster.cache.priorities(), cluster.defaults
    origin = await cluster.origin(owner.kind, decoded)
    if owner.reference is None:
        # The workload is the pod, and no other pod has it.
        return await cluster.review.run(gang_template, owner, origin, scope, priorities, defaults)
    sources = (decoded, origin, owner.made, scope.namespace, priorities, *owner.owners)
    found = cluster.cache.templates.of(
        decoded.metadata.uid,
        tuple(map(version, sources)),
        lambda: gang_template(owner, origin, scope, priorities, defaults),
    )
    return await cluster.pinned_scheduler(found) if isinstance(found, GangTemplate) else found


def gang_template(
    owner: OwnerWorkload,
    origin: object | None,
    scope: IntentScope,
    priorities: Mapping[str, int],
    defaults: Defaults,
) -> GangTemplate | AdmissionResponse | None:
    """The common part of all pods of a workload, or the refusal of all; None if it is not muster's.

    :param origin: what the workload is made from in addition to its manifest
    """
    kind, decoded = owner.kind, owner.decoded
    joined = decoded if origin is None else kind.whole(decoded, lambda _: origin, owner.made)
    scope = replace(scope, nearer=kind.intent_sources(joined), owners=owner.owners)
    if not is_managed(decoded.metadata, kind.policy(decoded), scope):
        return None
    try:
        # Without its origin the pods of a workload cannot be counted: `whole` raises then.
        workload = kind.read(kind.whole(decoded, lambda _: None) if origin is None else joined)
        intent = find_intent(workload, defaults, scope)
        return None if intent is None else GangTemplate(intent, without_requests(gang_of(workload, intent, priorities)))
    except InvalidObjectError as error:
        # It slipped past validation. Without numbers there is no gang, and a part of one must not start.
        message = f"{kind.kind} {decoded.metadata.name}: {error}"
        field = "metadata.ownerReferences" if owner.reference else error.field
        return deny([Finding(Reason.INVALID, field, message)])


def without_requests(gang: Gang) -> Gang:
    """The gang without its pods' requests: no patch depends on them, and it is kept as long as the workload."""
    return replace(gang, min_resources={}, roles=tuple(replace(role, requests={}) for role in gang.roles))


def decide(facts: PodFacts, defaults: Defaults) -> AdmissionResponse:
    """The answer for a new pod."""
    pod, owner, template, member = facts.pod, facts.owner, facts.template, facts.member
    if owner is None:
        return _unchanged(pod)
    plain = owner.kind is PLAIN_POD
    if isinstance(template, AdmissionResponse):
        return template
    if template is None or facts.role is None:
        return _unchanged(pod, plain=plain)
    must_join = required(facts.scope.namespace)
    if member is None:
        return _refused("metadata.labels", "of a role that its workload has not") if must_join else _unchanged(pod)
    if not is_free(pod, member.scheduler):
        if must_join and not (plain and is_certain(pod)):
            return _refused(*_why_not_free(pod, member.scheduler))
        return _unmanaged(pod, member.scheduler, defaults, plain=plain)
    if pod.spec.resource_claims:
        # Also if the template has none, or the workload was never judged.
        refusals = defaults.validation.refused([uncounted_claims("spec", "this pod")])
        if refusals:
            return deny(refusals)
    reference, controller = owner.reference, pod.metadata.controller
    if reference is not None and controller is not None and reference.uid == controller.uid:
        reference = None
    return allow(inject(pod, _of_job(member, facts.job), gate=facts.gate, workload=reference))


def _of_job(member: Membership, job: Job | None) -> Membership:
    """With the facts about the Job of a plain pod that the controller needs, which watches no Jobs.

    These are the number of pods of a gang that is started again, and when its pods are deleted.
    """
    if job is None:
        return member
    numbers = {GANG_COMPLETIONS: job.spec.completions, GANG_TIME_LIMIT: job.spec.active_deadline_seconds}
    of_job = {key: str(number) for key, number in numbers.items() if number is not None}
    return replace(member, annotations={**member.annotations, **of_job})


def _refused(field: str, fault: str) -> AdmissionResponse:
    """The refusal of a pod that would bypass muster in a namespace that requires it."""
    cure = "this namespace requires muster, and nothing opts out; create the pod as its workload defines it"
    return deny([Finding(Reason.INVALID, field, f"{field}: {fault}; {cure}")])


def _why_not_free(pod: Pod, scheduler: GangScheduler) -> tuple[str, str]:
    if pod.spec.node_name:
        return "spec.nodeName", f'names the node "{pod.spec.node_name}"'
    if pod.spec.scheduler_name not in (*UNNAMED_SCHEDULERS, scheduler.name):
        return "spec.schedulerName", f'"{pod.spec.scheduler_name}" is not {scheduler.name}'
    return "metadata.annotations", f'the pod names the PodGroup "{scheduler.bound_to(pod)}"'


def _unchanged(pod: Pod, *, plain: bool = False) -> AdmissionResponse:
    """The pod passes as a member of no gang."""
    return allow(disown(pod, plain=plain))


def _unmanaged(pod: Pod, scheduler: GangScheduler, defaults: Defaults, *, plain: bool) -> AdmissionResponse:
    """The answer for a member that muster does not bind, because it is not `is_free`."""
    named, validation = pod.spec.scheduler_name, defaults.validation
    other = named not in (*UNNAMED_SCHEDULERS, scheduler.name)
    found = [names_another_scheduler(named, scheduler.name)] if other else []
    if refusals := validation.refused(found):
        return deny(refusals)
    return allow(disown(pod, plain=plain), validation.warned(found))


def names_another_scheduler(named: str, scheduler: str) -> Finding:
    """The finding for a member that names another scheduler than its gang."""
    field = "spec.schedulerName"
    message = f'{field}: "{named}" is not {scheduler}; muster leaves the pod alone'
    return Finding(Reason.POD_LEFT_ALONE, field, message)
