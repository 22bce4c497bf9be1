"""Builds the snapshot of one gang from the stores; no decision is made here.

While its pods are held, the last request of the gang's owner stands: otherwise removing a label, or creating one pod
without muster, would open the gates of a whole gang in a full queue.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from muster.cluster import gang_pods
from muster.cluster.cluster import Cluster
from muster.cluster.kueue import admitter_of, with_kueue
from muster.cluster.owners import above, age, belongs, follows, on_hold_by, rivals_of, workload_behind
from muster.gangs.gang import gang_of, priority_value
from muster.gangs.intent import (
    Defaults,
    Intent,
    IntentScope,
    find_intent,
    is_managed,
    may_have_unmanaged_pods,
    named_queue,
)
from muster.gangs.roles import Gang
from muster.model.modes import gate_mode
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.planning.candidate import with_limits
from muster.planning.expectations import NOTHING_WRITTEN, Expectations
from muster.planning.pod_group import newer
from muster.planning.record import granted, written_spec_of
from muster.planning.snapshot import GangSnapshot, Pause
from muster.queueing.ledger import GangKey
from muster.queueing.queue_tree import labels_of
from muster.resources.amounts import check_few, largest, total
from muster.resources.pod_defaults import NOTHING_ADDED
from muster.workloads import PLAIN_POD, Decoded, Kind, RoleSpec, Workload
from muster.workloads.plain import completions_of, of_size, run_of

# Pods that are read before others get their turn: some ten milliseconds.
_AT_ONCE = 500


def observe(
    key: GangKey,
    cluster: Cluster,
    defaults: Defaults,
    expects: Expectations = NOTHING_WRITTEN,
    *,
    now: float = 0.0,
    believed: bool = True,
    pause: Pause = Pause.NONE,
) -> GangSnapshot:
    """The gang as the stores show it, and with the writes that its leader `expects` the watches to show soon.

    `now` is of the wall clock. `believed` and `pause` as the snapshot has them.
    """
    opened, group = expects.opened, newer(cluster.pod_group(key), expects.written)
    snapshot, others = _seen(GangSnapshot(key, group, (), believed=believed), cluster, defaults, opened)
    finished = gang_pods.finished_pods(snapshot, others)
    gone = gang_pods.leaving(cluster, others, now)
    own, left, former = gang_pods.other_holders(snapshot, others, gone, opened, now)
    placed = gang_pods.placed_pods(snapshot, others, gone)
    # All at once: to copy a snapshot takes as long as to read a pod.
    return replace(
        snapshot,
        gang=_with_done(snapshot, finished),
        written_spec=expects.written_spec_for(snapshot.decoded),
        pause=pause,
        priorities=cluster.priorities(),
        namespace=labels_of(cluster.namespace(key.namespace)),
        elastic_quotas=defaults.elastic_quotas,
        away=cluster.away,
        ended=tuple(snapshot.kind.role_of(pod) or "" for pod in finished) if snapshot.kind else (),
        follows=bool(snapshot.kind and snapshot.decoded and follows(cluster, snapshot.kind, snapshot.decoded)),
        leaving=gang_pods.requests_of(cluster, own),
        leaving_queue=gang_pods.queue_named_by(own),
        leaving_until=gang_pods.gone_by(own),
        left=gang_pods.requests_of(cluster, left),
        former=gang_pods.requests_of(cluster, former),
        former_queue=gang_pods.queue_named_by((*former, *left)),
        former_until=gang_pods.gone_by((*former, *left)),
        placed=gang_pods.requests_of(cluster, placed),
        running=gang_pods.requests_of(cluster, [one for one in (*own, *left, *former, *placed) if one.running]),
    )


def read_ahead(key: GangKey, cluster: Cluster) -> Iterator[None]:
    """Read the pods of a large gang for the first time, in steps: `observe` has little left to do then.

    `observe` reports what cannot be read.
    """
    pods = cluster.pods_of(key)
    if len(pods) <= _AT_ONCE:
        return
    with suppress(Exception):
        found = workload_behind(key, cluster, filter(gang_pods.labelled, pods), cluster.pod_group(key))
        if found is None:
            return
        kind, decoded = found
        for begin in range(0, len(pods), _AT_ONCE):
            gang_pods.read_members(cluster, kind, decoded, pods[begin : begin + _AT_ONCE], ())
            yield


def _with_done(snapshot: GangSnapshot, finished: Iterable[Pod]) -> Gang | None:
    """The gang, which knows which of its pods a Job does not make again, as it does those that have failed."""
    if snapshot.gang is None or snapshot.kind is None or not snapshot.kind.pods_of_jobs:
        return snapshot.gang
    done = Counter(snapshot.kind.role_of(pod) for pod in finished if pod.status.phase == "Succeeded")
    if not done:
        return snapshot.gang
    roles = tuple(replace(role, done=max(role.done, done[role.name])) for role in snapshot.gang.roles)
    return replace(snapshot.gang, roles=roles)


def _seen(
    empty: GangSnapshot, cluster: Cluster, defaults: Defaults, opened: Collection[str]
) -> tuple[GangSnapshot, list[Pod]]:
    """The gang, and the pods bound to its PodGroup that are no members; `empty` is the snapshot without pods."""
    key, group, pods = empty.key, empty.pod_group, cluster.pods_of(empty.key)
    found = workload_behind(key, cluster, filter(gang_pods.labelled, pods), group)
    if found is None:
        snapshot = replace(
            empty, members=tuple(gang_pods.orphans(cluster, list(filter(gang_pods.labelled, pods)), opened))
        )
        return snapshot, [pod for pod in pods if not gang_pods.labelled(pod)]
    kind, decoded = found
    members, others, error = gang_pods.read_members(cluster, kind, decoded, pods, opened)
    rest = [pod for pod in others if gang_pods.labelled(pod) and not belongs(pod, decoded)]
    snapshot = replace(
        empty,
        members=tuple(members),
        kind=kind,
        decoded=decoded,
        error=error,
        next_run=tuple(pod for pod in rest if kind is PLAIN_POD and run_of(pod) and gang_pods.is_held(pod, opened)),
        rivals=tuple(rivals_of(key, cluster, [pod for pod in rest if gang_pods.wants_the_name(pod, kind)])),
        gate=gate_mode(cluster.namespace(key.namespace).annotations, defaults.gate),
        above=above(cluster, kind, decoded, (member.pod.metadata for member in members)),
        on_hold_by=on_hold_by(cluster, kind, decoded, (member.pod.metadata for member in members)),
    )
    speaks, scope = _speaker(snapshot, decoded), cluster.scope_of(kind, decoded)
    asks = is_managed(speaks.metadata, kind.policy(speaks), scope) or snapshot.has_gated_members
    unmanaged: Iterable[Pod] = ()
    # Of a workload that is none of muster's business thousands of pods may come and go.
    if (asks or group is not None) and may_have_unmanaged_pods(decoded.metadata, cluster.namespace(key.namespace)):
        unmanaged = cluster.unmanaged_pods.of(kind, decoded.metadata)
    snapshot = replace(snapshot, admitter=admitter_of(snapshot, cluster, defaults), unmanaged_pods=tuple(unmanaged))
    if not error and asks:
        snapshot = _read(snapshot, found, cluster, defaults, speaks=speaks, scope=scope)
    return snapshot, others


def _read(
    snapshot: GangSnapshot,
    found: tuple[Kind, Decoded],
    cluster: Cluster,
    defaults: Defaults,
    *,
    speaks: Decoded,
    scope: IntentScope,
) -> GangSnapshot:
    """The snapshot with the request of the workload; `speaks` is the object that makes it, `scope` its surroundings."""
    kind, decoded = found
    try:
        workload = _from_here(kind.read(cluster.whole(kind, speaks)), snapshot)
        workload = with_limits(_rest_of_job(workload, snapshot, cluster), snapshot)
        intent = find_intent(workload, defaults, scope)
        if intent is None and snapshot.has_gated_members:
            intent = last_asked(snapshot, workload, scope, cluster.priorities(), defaults)
            snapshot = replace(snapshot, withdrawn=True)
        gang = None
        if intent is not None:
            asked = of_its_scheduler(intent, snapshot, defaults)
            snapshot = replace(snapshot, asked_class=asked.priority_class if asked.prioritise_pods else "")
            intent = class_of_pods(asked, [member.pod for member in snapshot.members], cluster.priorities())
            # A plain pod, which speaks for its gang, has been given already what it gets.
            pod_defaults = NOTHING_ADDED if kind is PLAIN_POD else cluster.added.of(snapshot.key.namespace)
            sorting = _sorting(workload, asked, intent, snapshot, cluster.priorities())
            gang = gang_of(workload, sorting, cluster.priorities(), pod_defaults)
    except InvalidObjectError as problem:
        return replace(snapshot, error=str(problem))
    if gang is not None and kind is PLAIN_POD:
        first = sorted(snapshot.members, key=lambda member: age(member.pod))[: gang.min_member]
        # They need not be alike: what those ask for that are there says more than one of them; of those that crashed
        # it says nothing, and their places are kept.
        kept = granted(terms) if (terms := written_spec_of(snapshot)) else {}
        gang = replace(gang, min_resources=largest(total(member.requests for member in first), kept))
        try:
            check_few(gang.min_resources, "its pods")
        except InvalidObjectError as problem:
            return replace(snapshot, error=str(problem))
    snapshot = replace(snapshot, workload=workload, intent=intent, gang=gang)
    return with_kueue(snapshot, kind, decoded, cluster, defaults) if gang is not None else snapshot


def _speaker(snapshot: GangSnapshot, decoded: Decoded) -> Decoded:
    """The object that sets the gang's size and queue: the workload; for a plain gang that waits, one of its pods.

    Its maker may be edited to have it start at all, and a StatefulSet then replaces its pods one by one, each when the
    one before is ready: so the youngest pod of the maker of the oldest one says it.
    """
    maker = decoded.metadata.controller
    if snapshot.kind is not PLAIN_POD or maker is None or snapshot.marked_for or snapshot.open:
        return decoded
    made = (member.pod for member in snapshot.members if member.pod.metadata.controller == maker)
    return max(made, key=age, default=decoded)


def _sorting(
    workload: Workload, asked: Intent, lowered: Intent, snapshot: GangSnapshot, priorities: Mapping[str, int]
) -> Intent:
    """The intent by whose class the roles are sorted that name none, as they were when the webhook saw their pods.

    A template with a low class lowers the class of its gang, but not that of other roles' pods.
    """
    named = {role.name for role in workload.roles if role.template.spec.priority_class_name}
    if not named or lowered is asked:
        return lowered
    return class_of_pods(asked, [member.pod for member in snapshot.members if member.role not in named], priorities)


def _from_here(workload: Workload, snapshot: GangSnapshot) -> Workload:
    """The workload as a gang that starts now: a workload that comes in waves has the roles that are left to do.

    An admitted gang keeps the roles with which it was admitted, also when its first wave is over. Where nothing is done
    any more, its operator has begun again: it is a gang that starts now as soon as only new pods are there.
    """
    wave = snapshot.pod_group.spec.min_task_member if snapshot.pod_group else {}
    if not workload.remaining_roles:
        from_new_pods = bool(snapshot.members) and not snapshot.open
        if from_new_pods or not wave or not workload.kind.in_waves or snapshot.marked_for != snapshot.uid:
            return workload
        return replace(workload, roles=_of_wave(workload.roles, wave))
    if snapshot.marked_for != snapshot.uid and all(member.gated for member in snapshot.members):
        return replace(workload, roles=workload.remaining_roles)
    left = {role.name: role.replicas for role in workload.remaining_roles}
    roles = [replace(role, done=role.replicas - left[role.name]) for role in workload.roles]
    return replace(workload, roles=_of_wave(roles, wave) if wave else tuple(roles))


def _of_wave(roles: Collection[RoleSpec], wave: Collection[str]) -> tuple[RoleSpec, ...]:
    """The roles of a gang that was admitted for a wave with these roles first."""
    begun = {role.group for role in roles if role.name in wave and role.group}
    return tuple(
        role.of_wave(now=role.name in wave or role.group in begun, joins=role.name not in wave) for role in roles
    )


def _rest_of_job(workload: Workload, snapshot: GangSnapshot, cluster: Cluster) -> Workload:
    """A plain gang as one that starts now: of no more pods than its Job has left to complete.

    An admitted gang keeps the minimum with which it was admitted. Of pods of several makers, and where more have
    succeeded than the Job said it wants, it is not known how many are to come.
    """
    pod = snapshot.decoded
    completions, job = (completions_of(pod), pod.metadata.controller) if isinstance(pod, Pod) else (None, None)
    if completions is None or job is None:
        return workload
    if {member.pod.metadata.controller for member in snapshot.members} != {job}:
        return workload
    there = (one for one in cluster.pods_of(snapshot.key) if one.metadata.controller == job)
    done = sum(one.status.phase == "Succeeded" and not one.metadata.deletion_timestamp for one in there)
    granted_ = (
        snapshot.pod_group.spec.min_task_member.values()
        if snapshot.pod_group and snapshot.marked_for == snapshot.uid
        else ()
    )
    least = max(completions - done, sum(granted_))
    return of_size(workload, least) if 0 < done < completions and least < workload.roles[0].minimum else workload


def last_asked(
    snapshot: GangSnapshot, workload: Workload, scope: IntentScope, priorities: Mapping[str, int], defaults: Defaults
) -> Intent:
    """The intent for which the held pods of a workload that asks for nothing any more were made.

    The pods name scheduler and class, which cannot be changed there. The queue is the queue of the PodGroup, unless
    the workload itself names another queue: then the gang waits in that queue.
    """
    pods = [member.pod for member in snapshot.members if member.gated]
    own = named_queue(workload, scope)
    of_group = snapshot.pod_group.spec.queue if snapshot.pod_group else ""
    classes = {pod.spec.priority_class_name for pod in pods}
    named = (pod.spec.scheduler_name for pod in pods)
    scheduler = next((name for name in named if name in defaults.schedulers), defaults.scheduler)
    return Intent(
        scheduler=scheduler,
        gang_scheduler=defaults.schedulers[scheduler],
        queue=(own[1] if own else "") or of_group or gang_pods.queue_named_by(pods) or defaults.queue,
        priority_class=min(classes, key=lambda name: (priority_value(name, priorities), name), default=""),
        paths={"queue": own[0]} if own else {},
        prioritise_pods=True,
        topology=workload.topology,
    )


def of_its_scheduler(intent: Intent, snapshot: GangSnapshot, defaults: Defaults) -> Intent:
    """The intent with the scheduler for which the gang's PodGroup was made: a workload keeps it for its life.

    Pods cannot change theirs, and two schedulers place no gang together. Raises InvalidObjectError where its pods name
    different ones all the same: they came while the webhook could not tell.
    """
    if snapshot.ours and not snapshot.stale and snapshot.pod_group is not None:
        product = snapshot.pod_group.scheduler
        kept = next((one for one in defaults.schedulers.values() if one.product == product), None)
        if kept is not None and intent.gang_scheduler.product != product:
            intent = replace(intent, scheduler=kept.name, gang_scheduler=kept)
    others = sorted({member.pod.spec.scheduler_name for member in snapshot.members} - {intent.scheduler})
    if others and snapshot.has_gated_members:
        problem = f"pods of the gang are for {others[0]}, and others for {intent.scheduler}; delete its pods"
        raise InvalidObjectError("spec.schedulerName", problem)
    scheduler = intent.gang_scheduler
    if scheduler.counts_living and any(
        member.gated and not scheduler.bound_to(member.pod) for member in snapshot.members
    ):
        problem = f"the apiserver dropped it: it needs the feature gate GenericWorkload and {scheduler.api_version}"
        raise InvalidObjectError("spec.schedulingGroup", problem)
    return intent


def class_of_pods(intent: Intent, pods: Sequence[Pod], priorities: Mapping[str, int]) -> Intent:
    """The intent with no higher class than its pods got, where the workload as a whole names one.

    A pod keeps the class of its template, and no label changes the class of an existing pod: otherwise a user whose
    quota allows few pods of a class, or none, could name that class in a label and put the whole gang first.
    """
    numbered = [pod.spec for pod in pods if pod.spec.priority is not None]
    lowest = min(numbered, key=lambda spec: (spec.priority or 0, spec.priority_class_name), default=None)
    if lowest is None or not intent.prioritise_pods:
        return intent
    if priority_value(intent.priority_class, priorities) <= (lowest.priority or 0):
        return intent
    return replace(intent, priority_class=lowest.priority_class_name)
