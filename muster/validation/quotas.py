"""What no quota ever has room for: of the namespace's ResourceQuotas and ElasticQuotas, and of Kueue's ClusterQueue.

The capability of the gang's own queue is judged in `muster.validation.workload`, with the queue's name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from muster.admitters import Admitter
from muster.admitters.kueue_quota import PodSetNeed, never_fits
from muster.model.findings import Finding, Reason
from muster.model.modes import GateMode
from muster.model.names import KUEUE_PARTIAL, KUEUE_QUEUE
from muster.model.objects import InvalidObjectError
from muster.queueing.queue_tree import exceeding
from muster.resources.amounts import times
from muster.resources.pod_requests import pod_requests
from muster.resources.resource_quotas import limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from muster.gangs.gang import Gang, Role
    from muster.gangs.intent import Intent
    from muster.resources.amounts import Resources
    from muster.resources.pod_defaults import PodDefaults
    from muster.validation.workload import Context
    from muster.workloads import RoleSpec, Workload

__all__ = ["elastic_quota_findings", "kueue_findings", "needs", "resource_quota_findings"]


def needs(gang: Gang, least: Resources, gate: GateMode) -> Iterator[tuple[str, Resources]]:
    """What the gang needs at `least`, and where it waits for room each later wave, which starts as a whole."""
    waves = gang.waves if gate is GateMode.QUEUE else ()
    return _called(gang, least, ((role, role.whole) for role in waves))


def _charged(gang: Gang, gate: GateMode) -> Iterator[tuple[str, Resources]]:
    """The same of what a ResourceQuota counts; a wave that only assembles must be there as a whole, too."""
    waves = gang.waves if gate is not GateMode.OFF else ()
    return _called(gang, gang.charged, ((role, role.whole_charged) for role in waves))


def _called(gang: Gang, least: Resources, waves: Iterable[tuple[Role, Resources]]) -> Iterator[tuple[str, Resources]]:
    called = f'gang "{gang.name}"'
    yield called, least
    for role, need in waves:
        yield f'role "{role.name}" of {called}, which starts as a whole,', need


def resource_quota_findings(gang: Gang | None, intent: Intent, context: Context) -> Iterator[Finding]:
    """What the namespace's quotas never hold: the last pods of such a gang, or of a later wave, are never made."""
    if gang is None or not context.pod_defaults.quotas:
        return
    charged = [*_charged(gang, context.gate(intent))]
    for quota in context.pod_defaults.quotas:
        try:
            hard = limits(quota) if quota.counts_all else {}
        except InvalidObjectError:
            # It was said when it was learnt; the apiserver takes none.
            continue
        found = ((who, exceeding(need, hard)) for who, need in charged)
        who, over = next((one for one in found if one[1]), ("", None))
        if over:
            message = (
                f'spec: {who} needs {over[0]}, ResourceQuota "{quota.metadata.name}" has hard {over[1]}; '
                "lower the replicas or have the quota raised"
            )
            yield Finding(Reason.EXCEEDS_RESOURCE_QUOTA, "spec", message)


def elastic_quota_findings(gang: Gang | None, intent: Intent, context: Context) -> Iterator[Finding]:
    """What the scheduler, or the ledger before it, never gives the namespace, by the ElasticQuotas that it heeds."""
    if gang is None or context.ceiling is None or not intent.gang_scheduler.elastic_quotas:
        return
    gate = context.gate(intent)
    # Only the ledger asks for what the user says of minResources; it is no pod's request.
    least = gang.needed if gate is GateMode.QUEUE else gang.requested
    for who, need in needs(gang, least, gate):
        if never := context.ceiling.never(need):
            message = f"spec: {who} {never}; lower the replicas or have the quota raised"
            yield Finding(Reason.EXCEEDS_ELASTIC_QUOTA, "spec", message)
            return


def kueue_findings(workload: Workload, gang: Gang | None, context: Context) -> Iterator[Finding]:
    """What keeps Kueue from ever admitting the workload, where that is Kueue's to do."""
    if context.admitter is not Admitter.KUEUE:
        return
    # Of what makes plain pods Kueue reads its own label, unlike muster.
    path = f"metadata.labels[{KUEUE_QUEUE}]"
    voices = (workload.metadata, *context.around.owners)
    if not any(one.labels.get(KUEUE_QUEUE) for one in voices):
        rest = "missing; Kueue admits the gangs of this namespace, and this one waits for ever: name a LocalQueue"
        yield Finding(Reason.IN_NO_KUEUE_QUEUE, path, f"{path}: {rest}")
    if context.cluster_queue is None or gang is None or KUEUE_PARTIAL in workload.metadata.annotations:
        return
    try:
        sets = [_pod_set(role, context.pod_defaults) for role in (*workload.roles, *workload.beside)]
    except InvalidObjectError:
        # Of a submitter, which is no member: its Job is the apiserver's to refuse, and Kueue cannot count it either.
        return
    if never := never_fits(sets, context.cluster_queue):
        rest = f"{never}, so that Kueue never admits it; lower the replicas or use a larger ClusterQueue"
        yield Finding(Reason.EXCEEDS_KUEUE_QUOTA, path, f"{path}: {rest}")


def _pod_set(role: RoleSpec, pod_defaults: PodDefaults) -> PodSetNeed:
    """A role as Kueue counts it: by the manifest, without the init containers that its operator adds later."""
    spec = role.template.spec
    written = structs.replace(spec, init_containers=spec.init_containers[: len(spec.init_containers) - role.added])
    requests = pod_requests(pod_defaults.completed(written, path=role.path), path=role.path)
    return PodSetNeed(role.name, times(requests, role.replicas))
