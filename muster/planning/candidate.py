"""A waiting gang: in which queue, since when, how urgently, and for how much it waits. Pure functions of a view."""

from __future__ import annotations

from functools import reduce
from itertools import filterfalse
from operator import attrgetter

from muster.gangs.gang import Gang, priority_value
from muster.gangs.intent import Intent
from muster.model.names import queue_named
from muster.model.times import duration_of, seconds_of
from muster.planning.opening import minimum_of
from muster.planning.pod_group import scheduler_of
from muster.planning.record import recorded_queue
from muster.planning.run_times import lasts, run_of
from muster.planning.snapshot import Mark, View
from muster.queueing.ledger import Candidate
from muster.resources.amounts import Resources, largest, minus, positive, times, total

# A gang may have thousands of members.
_HELD, _MADE = attrgetter("held"), attrgetter("pod.metadata.creation_timestamp", "pod.metadata.name")


def queue_held(view: View) -> str:
    """The queue of the gang's existing PodGroup or pods, whatever its workload says by now; "" where none exist."""
    if view.pod_group is not None:
        return view.pod_group.queue
    pods = (member.pod.metadata for member in view.members)
    return next((queue_named(meta.labels, meta.annotations) for meta in pods), "")


def queue_counted(view: View) -> str:
    """The queue in which what runs of the gang counts: for which it was admitted, or its pods were made.

    Neither the workload nor the PodGroup's own queue tells: a tenant may write both.
    """
    if queue := recorded_queue(view.pod_group):
        return queue
    oldest = min(filterfalse(_HELD, view.members), key=_MADE, default=None)
    made_for = oldest.pod.metadata if oldest is not None else None
    return (queue_named(made_for.labels, made_for.annotations) if made_for else "") or queue_held(view)


def priority_held(view: View) -> int:
    """The priority of the gang's existing pods, by its PodGroup: Volcano preempts by the PodGroup's priority."""
    return priority_value(view.pod_group.spec.priority_class_name if view.pod_group else "", view.priorities)


def waiting_since(view: View, requeued_at: str = "") -> str:
    """Since when the gang counts as waiting: a requeued gang is behind the gangs that waited before."""
    created = view.decoded.metadata.creation_timestamp if view.decoded else ""
    return max(view.above.since or created, requeued_at)


def passed_since(view: View, mark: Mark, queue: str) -> tuple[str, str]:
    """Since when smaller gangs pass this one in the queue in which it waits (RFC 3339), and when that drains for it.

    Both are "" where they do not.
    """
    marks = (view.mark, mark) if queue else ()
    return next(((one.passed_since, one.drain_after) for one in marks if one.passed_in == queue), ("", ""))


def candidate(view: View, mark: Mark) -> Candidate:
    """The gang as a candidate for admission.

    It needs its minResources, or what its pods really ask for where operators or the cluster's defaults added to them,
    and the pods with them whose room is kept until they come.
    """
    gang, intent = gang_and_intent(view)
    may_preempt = _may_preempt(view)
    since, drain_after = passed_since(view, mark, intent.queue)
    return Candidate(
        key=view.key,
        queue=intent.queue,
        priority=priority_value(intent.priority_class, view.priorities),
        since=waiting_since(view, view.mark.requeued_at or mark.requeued_at),
        need=largest(gang.min_resources, total(requested(view).values())),
        passed_since=seconds_of(since),
        drain_after=duration_of(drain_after),
        deadline=view.workload.deadline.ends if view.workload and view.workload.deadline else None,
        lasts=lasts(view),
        run=run_of(view, mark),
        follows=view.follows,
        limited=limited(view),
        preempts=may_preempt and _evicts_for(view),
        reclaims=may_preempt and scheduler_of(view).reclaims,
    )


def requested(view: View) -> dict[str, Resources]:
    """What the pods of each role request together with which the gang starts, and those that come with it.

    What webhooks have added to the pods that are there they add to the pods of a role that comes when these run, which
    would wait for it while they do nothing.
    """
    roles = gang_and_intent(view)[0].roles
    there = {role.name: minimum_of(view.members, (role,)) for role in roles}
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


def limited(view: View) -> bool:
    """True if the ElasticQuotas of its namespace bound what the gang may hold."""
    return view.elastic_quotas and scheduler_of(view).elastic_quotas


def preempts(view: View) -> bool:
    """True if its scheduler evicts gangs of lower priority for it, where that is set up."""
    return _evicts_for(view) and _may_preempt(view)


def _evicts_for(view: View) -> bool:
    """True if its scheduler does so for gangs like it.

    Volcano does not for a gang with a network topology (pkg/scheduler/actions/preempt of 1.14.1).
    """
    near = view.intent is not None and view.intent.topology is not None
    return scheduler_of(view).preempts and not near


def _may_preempt(view: View) -> bool:
    """True if none of its pods forbids that others are evicted for it."""
    return all(one.pod.spec.preemption_policy != "Never" for one in view.members)


def gang_and_intent(view: View) -> tuple[Gang, Intent]:
    """The gang of a managed workload, and what its user asked for; ValueError for any other view."""
    if view.gang is None or view.intent is None:
        raise ValueError(f"{view.key} has no gang")
    return view.gang, view.intent
