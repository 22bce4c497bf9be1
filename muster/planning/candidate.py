"""A waiting gang: in which queue, since when, how urgently, and for how much it waits. Pure functions of a snapshot."""

from __future__ import annotations

from functools import reduce
from itertools import filterfalse
from operator import attrgetter

from muster.gangs.gang import priority_value
from muster.gangs.intent import Intent
from muster.gangs.roles import Gang
from muster.model.names import queue_named
from muster.model.times import duration_of, seconds_of
from muster.planning.opening import minimum_of
from muster.planning.pod_group import scheduler_of
from muster.planning.record import recorded_queue
from muster.planning.run_times import lasts, run_of
from muster.planning.snapshot import AdmissionRecord, GangSnapshot
from muster.queueing.ledger import Candidate
from muster.resources.amounts import Resources, largest, minus, positive, times, total

# A gang may have thousands of members.
_HELD, _MADE = attrgetter("held"), attrgetter("pod.metadata.creation_timestamp", "pod.metadata.name")


def queue_held(snapshot: GangSnapshot) -> str:
    """The queue of the gang's existing PodGroup or pods, whatever its workload says by now; "" where none exist."""
    if snapshot.pod_group is not None:
        return snapshot.pod_group.queue
    pods = (member.pod.metadata for member in snapshot.members)
    return next((queue_named(meta.labels, meta.annotations) for meta in pods), "")


def queue_counted(snapshot: GangSnapshot) -> str:
    """The queue in which what runs of the gang counts: for which it was admitted, or its pods were made.

    Neither the workload nor the PodGroup's own queue tells: a tenant may write both.
    """
    if queue := recorded_queue(snapshot.pod_group):
        return queue
    oldest = min(filterfalse(_HELD, snapshot.members), key=_MADE, default=None)
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
        need=largest(gang.min_resources, total(requested(snapshot).values())),
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
