"""A waiting gang: its queue, how long and how urgently it waits, what it needs, and how long it will run.

Pure functions of a snapshot. A run time is known at most, by limits of operators and users, or about, by former runs.
A limit of an operator counts where the room is free afterwards, with the grace period of the pods. It may have begun
before the gang: its whole length bounds the run, and the claim ends no later than the limit.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import filterfalse
from operator import attrgetter

from muster.gangs.gang import priority_value
from muster.gangs.history import Lineage, lineage_of
from muster.gangs.intent import Intent
from muster.gangs.roles import Gang
from muster.model.names import queue_named
from muster.model.pods import Pod
from muster.model.times import duration_of, durations_of, seconds_of
from muster.planning.opening import minimum_of
from muster.planning.pod_group import scheduler_of
from muster.planning.record import recorded_queue
from muster.planning.snapshot import AdmissionRecord, GangSnapshot
from muster.queueing.entries import End, EndKind, Run
from muster.queueing.ledger import Candidate
from muster.resources.amounts import Resources, largest, minus, positive, times, total
from muster.workloads import PLAIN_POD, Workload
from muster.workloads.model import TimeLimit
from muster.workloads.ray import RAY_CLUSTER

GONE_IN = 60.0
"""Seconds in which what ends is gone once its time is over: its operator, kubelet and the apiserver need moments."""


def with_limits(workload: Workload, snapshot: GangSnapshot) -> Workload:
    """The workload with the limits of what made it, and of each when it began.

    The limit of a batch Job begins a moment before its first pod is made, and no Job is watched.
    """
    limits = (*workload.time_limits, *snapshot.above.time_limits)
    if not limits:
        return workload
    return replace(workload, time_limits=tuple(_begun(one, snapshot) if one.role else one for one in limits))


def _begun(limit: TimeLimit, snapshot: GangSnapshot) -> TimeLimit:
    pods = [member.pod.metadata for member in snapshot.members if member.role == limit.role]
    since = min((pod.creation_timestamp for pod in pods), default="")
    several = snapshot.kind is PLAIN_POD and len({pod.controller for pod in pods}) > 1
    return replace(limit, since=seconds_of(since), frees_after=None if several else limit.frees_after)


def run_of(snapshot: GangSnapshot, record: AdmissionRecord) -> Run | None:
    """The run time of the gang from its start; None where nothing is known, and for what does not end by itself.

    `record` is what this leader has decided; estimates on the PodGroup go before.
    """
    if lasts(snapshot):
        return None
    if bounds := [run for run, _ in _bounds(snapshot)]:
        return min(bounds)
    about = durations_of((snapshot.record.runs_about if snapshot.ours else "") or record.runs_about)
    return Run.about(about)


def end_of(snapshot: GangSnapshot, record: AdmissionRecord, now: float) -> End | None:
    """The end of the claim of an admitted gang: the first bound that is not over yet; its leader remembers `record`."""
    run, start = run_of(snapshot, record), _start(snapshot, record)
    if run is None or start is None:
        return None
    ends = [run.from_(start), *(bound.from_(start if since is None else since) for bound, since in _bounds(snapshot))]
    return min(ends, key=lambda end: (end.start + end.seconds <= now, end.start + end.seconds, end.kind))


def requested_end(snapshot: GangSnapshot, record: AdmissionRecord) -> End | None:
    """The end of an admitted gang by the run time that its user gave; None where none is given."""
    start, limit = _start(snapshot, record), snapshot.intent.run_limit if snapshot.intent is not None else None
    return None if start is None or limit is None or lasts(snapshot) else End(start, limit.seconds, EndKind.SAID)


def _start(snapshot: GangSnapshot, record: AdmissionRecord) -> float | None:
    return seconds_of((snapshot.record if snapshot.record.admitted == snapshot.uid else record).admitted_at)


def _bounds(snapshot: GangSnapshot) -> Iterator[tuple[Run, float | None]]:
    # A gang may have thousands of members.
    limited = snapshot.workload is not None and snapshot.workload.time_limits
    members = snapshot.members if limited else ()
    grace = max((member.pod.spec.termination_grace_period_seconds for member in members), default=0)
    return bounds_of(snapshot.workload, snapshot.intent, grace)


def bounds_of(workload: Workload | None, intent: Intent | None, grace: int = 0) -> Iterator[tuple[Run, float | None]]:
    """What bounds the run of a gang, and since when where that is not its start and is known.

    `grace` is the longest grace period of its pods, in seconds.
    """
    for limit in workload.time_limits if workload is not None else ():
        if limit.frees_after is not None:
            kind = EndKind.ENFORCED if limit.exact else EndKind.SAID
            yield Run(limit.seconds + limit.frees_after + grace + GONE_IN, kind), limit.since
    if intent is not None and intent.run_limit is not None:
        yield Run(intent.run_limit.seconds, EndKind.SAID), None


def lineage(snapshot: GangSnapshot) -> Lineage:
    """The lineage of a gang: of its maker."""
    return lineage_of(snapshot.key.namespace, *maker(snapshot))


def maker(snapshot: GangSnapshot) -> tuple[str, str]:
    """Kind and name of what stands highest above the gang's workload, or of that; of plain pods what made them."""
    makers = snapshot.above.makers
    if snapshot.kind is PLAIN_POD or snapshot.kind is None or snapshot.decoded is None:
        return (makers[0].kind, makers[0].name) if makers else ("Pod", snapshot.key.name)
    return (makers[-1].kind, makers[-1].name) if makers else (snapshot.kind.kind, snapshot.decoded.metadata.name)


def lasts(snapshot: GangSnapshot) -> bool:
    """True if the gang goes on until it is deleted: a service, or a RayCluster that no RayJob made and deletes.

    A workload of an unknown kind counts as one that lasts, except for Volcano's own jobs.
    """
    if snapshot.decoded is None or snapshot.kind is None:
        owner = snapshot.group_owner
        return owner is None or owner.kind != "Job"
    if snapshot.kind is RAY_CLUSTER:
        above = snapshot.decoded.metadata.controller
        return above is None or above.kind != "RayJob" or snapshot.above.leaves
    return isinstance(snapshot.decoded, Pod) and snapshot.decoded.spec.restart_policy in ("", "Always")


# A gang may have thousands of members.
_GATED, _MADE = attrgetter("gated"), attrgetter("pod.metadata.creation_timestamp", "pod.metadata.name")


def queue_held(snapshot: GangSnapshot) -> str:
    """The queue of the gang's existing PodGroup or pods, whatever its workload names by now; "" where none exist."""
    if snapshot.pod_group is not None:
        return snapshot.pod_group.queue
    pods = (member.pod.metadata for member in snapshot.members)
    return next((queue_named(meta.labels, meta.annotations) for meta in pods), "")


def queue_counted(snapshot: GangSnapshot) -> str:
    """The queue in which what runs of the gang counts: for which it was admitted, or its pods were made.

    The queues of the workload and of the PodGroup do not count: a tenant may write both.
    """
    if queue := recorded_queue(snapshot.pod_group):
        return queue
    oldest = min(filterfalse(_GATED, snapshot.members), key=_MADE, default=None)
    made_for = oldest.pod.metadata if oldest is not None else None
    return (queue_named(made_for.labels, made_for.annotations) if made_for else "") or queue_held(snapshot)


def priority_held(snapshot: GangSnapshot) -> int:
    """The priority of the gang's existing pods, by its PodGroup: Volcano preempts by the PodGroup's priority."""
    return priority_value(
        snapshot.pod_group.spec.priority_class_name if snapshot.pod_group else "", snapshot.priorities
    )


def waiting_since(snapshot: GangSnapshot, requeued_at: str = "") -> str:
    """Since when the gang counts as waiting: a requeued gang is behind the gangs that waited before."""
    created = snapshot.decoded.metadata.creation_timestamp if snapshot.decoded else ""
    return max(snapshot.above.since or created, requeued_at)


def passed_since(snapshot: GangSnapshot, record: AdmissionRecord, queue: str) -> tuple[str, str]:
    """Since when smaller gangs pass this one in the queue in which it waits (RFC 3339), and when that drains for it.

    Both are "" where they do not.
    """
    marks = (snapshot.record, record) if queue else ()
    return next(((one.passed_since, one.drain_after) for one in marks if one.passed_in == queue), ("", ""))


def candidate(snapshot: GangSnapshot, record: AdmissionRecord) -> Candidate:
    """The gang as a candidate for admission.

    It needs its minResources, or what its pods really ask for where operators or the cluster's defaults added to them,
    and the pods with them whose room is kept until they come.
    """
    gang, intent = gang_and_intent(snapshot)
    may_preempt = _may_preempt(snapshot)
    since, drain_after = passed_since(snapshot, record, intent.queue)
    return Candidate(
        key=snapshot.key,
        queue=intent.queue,
        priority=priority_value(intent.priority_class, snapshot.priorities),
        since=waiting_since(snapshot, snapshot.record.requeued_at or record.requeued_at),
        need=needed(gang, requested(snapshot)),
        passed_since=seconds_of(since),
        drain_after=duration_of(drain_after),
        deadline=snapshot.workload.deadline.ends if snapshot.workload and snapshot.workload.deadline else None,
        lasts=lasts(snapshot),
        run=run_of(snapshot, record),
        follows=snapshot.follows,
        limited=limited(snapshot),
        preempts=may_preempt and _evicts_for(snapshot),
        reclaims=may_preempt and scheduler_of(snapshot).reclaims,
    )


def needed(gang: Gang, requests: Mapping[str, Resources]) -> Resources:
    """What the gang needs to start, where its pods request so much by role (`requested`)."""
    return largest(gang.min_resources, total(requests.values()))


def requested(snapshot: GangSnapshot) -> dict[str, Resources]:
    """What the pods of each role request together with which the gang starts, and those that come with it.

    What webhooks have added to the pods that are there they add to the pods of a role that comes when these run, which
    would wait for it while they do nothing.
    """
    roles = gang_and_intent(snapshot)[0].roles
    there = {role.name: minimum_of(snapshot.members, (role,)) for role in roles}
    added: Resources = {}
    if any(role.reserved and not role.minimum for role in roles):
        more = (positive(minus(one.requests, role.requests)) for role in roles for one in there[role.name])
        added = reduce(largest, more, added)
    asked: dict[str, Resources] = {}
    for role in roles:
        coming = max((role.minimum if there[role.name] else 0) + role.reserved - len(there[role.name]), 0)
        each = role.requests if role.minimum else total((role.requests, added))
        asked[role.name] = total((*(one.requests for one in there[role.name]), times(each, coming)))
    return asked


def limited(snapshot: GangSnapshot) -> bool:
    """True if the ElasticQuotas of its namespace bound what the gang may hold."""
    return snapshot.elastic_quotas and scheduler_of(snapshot).elastic_quotas


def preempts(snapshot: GangSnapshot) -> bool:
    """True if its scheduler evicts gangs of lower priority for it, where that is set up."""
    return _evicts_for(snapshot) and _may_preempt(snapshot)


def _evicts_for(snapshot: GangSnapshot) -> bool:
    """True if its scheduler does so for gangs like it.

    Volcano does not for a gang with a network topology (pkg/scheduler/actions/preempt of 1.14.1).
    """
    near = snapshot.intent is not None and snapshot.intent.topology is not None
    return scheduler_of(snapshot).preempts and not near


def _may_preempt(snapshot: GangSnapshot) -> bool:
    """True if none of its pods forbids that others are evicted for it."""
    return all(one.pod.spec.preemption_policy != "Never" for one in snapshot.members)


def gang_and_intent(snapshot: GangSnapshot) -> tuple[Gang, Intent]:
    """The gang of a managed workload, and what its user asked for; ValueError for any other snapshot."""
    if snapshot.gang is None or snapshot.intent is None:
        raise ValueError(f"{snapshot.key} has no gang")
    return snapshot.gang, snapshot.intent
