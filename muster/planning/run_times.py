"""The run times of gangs: at most, by limits of operators and users, or about, by former runs.

Pure functions of a snapshot. A limit of an operator counts where the room is free afterwards, with the grace period of
the pods. It may have begun before the gang: its whole length bounds the run, and the claim ends no later than the
limit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from muster.gangs.history import Lineage, lineage_of
from muster.gangs.intent import Intent
from muster.model.pods import Pod
from muster.model.times import durations_of, seconds_of
from muster.planning.snapshot import AdmissionRecord, GangSnapshot
from muster.queueing.entries import End, EndKind, Run
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

    `record` is what this leader has decided; the estimates that the PodGroup says already go before.
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


def said_end(snapshot: GangSnapshot, record: AdmissionRecord) -> End | None:
    """The end that its user said of an admitted gang; None where nothing is said."""
    start, said = _start(snapshot, record), snapshot.intent.run_limit if snapshot.intent is not None else None
    return None if start is None or said is None or lasts(snapshot) else End(start, said.seconds, EndKind.SAID)


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
    """The lineage of a gang: of what stands highest above its workload; of plain pods, of the first that made them."""
    makers = snapshot.above.makers
    if snapshot.kind is PLAIN_POD or snapshot.kind is None or snapshot.decoded is None:
        kind, name = (makers[0].kind, makers[0].name) if makers else ("Pod", snapshot.key.name)
    else:
        kind, name = (
            (makers[-1].kind, makers[-1].name) if makers else (snapshot.kind.kind, snapshot.decoded.metadata.name)
        )
    return lineage_of(snapshot.key.namespace, kind, name)


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
