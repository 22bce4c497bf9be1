"""Puts a view of one gang together from the stores; no decision is made here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from operator import attrgetter

from muster.cluster.cluster import Cluster
from muster.cluster.kueue import admitter_of, with_kueue
from muster.cluster.owners import above, age, belongs, follows, on_hold_by, owned, rivals_of, workload_behind
from muster.cluster.requested import class_of_pods, last_asked, of_its_scheduler
from muster.cluster.terminating import ends_soon, gone_by, leaving, requests_of
from muster.gangs.gang import gang_of
from muster.gangs.intent import Defaults, Intent, IntentScope, find_intent, is_managed, may_have_unmanaged_pods
from muster.gangs.roles import Gang
from muster.model.modes import gate_mode
from muster.model.names import (
    GANG,
    GANG_SIZE,
    GATE,
    queue_named,
)
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.planning.expectations import NOTHING_WRITTEN, Expectations
from muster.planning.pod_group import newer
from muster.planning.readiness import unready
from muster.planning.record import granted, terms_of
from muster.planning.run_times import with_limits
from muster.planning.snapshot import GangSnapshot, Member, Pause
from muster.queueing.ledger import GangKey
from muster.queueing.queue_tree import labels_of
from muster.resources.amounts import check_few, largest, total
from muster.resources.pod_defaults import NOTHING_ADDED
from muster.resources.pod_requests import check_size
from muster.workloads import PLAIN_POD, Decoded, Kind, RoleSpec, Workload, owner_of
from muster.workloads.plain import completions_of, of_size, run_of

# Pods that are read before others get their turn: some ten milliseconds.
_AT_ONCE = 500
_NAME = attrgetter("pod.metadata.name")


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

    `now` is of the wall clock. `believed` and `pause` as the view has them.
    """
    opened, group = expects.opened, newer(cluster.pod_group(key), expects.written)
    snapshot, others = _seen(GangSnapshot(key, group, (), believed=believed), cluster, defaults, opened)
    finished = _finished(snapshot, others)
    gone = leaving(cluster, others, now)
    own, left, former = _no_members(snapshot, others, gone, opened, now)
    placed = _placed(snapshot, others, gone)
    # All at once: to copy a view takes as long as to read a pod.
    return replace(
        snapshot,
        gang=_with_done(snapshot, finished),
        terms=expects.terms_for(snapshot.decoded),
        pause=pause,
        priorities=cluster.priorities(),
        namespace=labels_of(cluster.namespace(key.namespace)),
        elastic_quotas=defaults.elastic_quotas,
        away=cluster.away,
        ended=tuple(snapshot.kind.role_of(pod) or "" for pod in finished) if snapshot.kind else (),
        follows=bool(snapshot.kind and snapshot.decoded and follows(cluster, snapshot.kind, snapshot.decoded)),
        leaving=requests_of(cluster, own),
        leaving_queue=_queue_of(own),
        leaving_until=gone_by(own),
        left=requests_of(cluster, left),
        former=requests_of(cluster, former),
        former_queue=_queue_of((*former, *left)),
        former_until=gone_by((*former, *left)),
        placed=requests_of(cluster, placed),
        running=requests_of(cluster, [one for one in (*own, *left, *former, *placed) if one.running]),
    )


def read_ahead(key: GangKey, cluster: Cluster) -> Iterator[None]:
    """Read the pods of a large gang for the first time, in steps: `observe` has little left to do then.

    What cannot be read is told of by `observe`.
    """
    pods = cluster.pods_of(key)
    if len(pods) <= _AT_ONCE:
        return
    with suppress(Exception):
        found = workload_behind(key, cluster, filter(_labelled, pods), cluster.pod_group(key))
        if found is None:
            return
        kind, decoded = found
        for begin in range(0, len(pods), _AT_ONCE):
            _members(cluster, kind, decoded, pods[begin : begin + _AT_ONCE], ())
            yield


def _no_members(
    snapshot: GangSnapshot, others: Iterable[Pod], gone: Iterable[Pod], opened: Collection[str], now: float
) -> tuple[list[Pod], list[Pod], list[Pod]]:
    """The labelled pods, no members, that hold room: those that end soon, those that left it, and former ones."""
    own, left, former = [], [], []
    foreign = snapshot.pod_group is not None and not snapshot.ours
    ending = {pod.metadata.uid for pod in gone}
    for pod in others:
        ends = pod.metadata.uid in ending
        if GANG not in pod.metadata.labels or not (ends or (pod.living and not _held(pod, opened))):
            continue
        soon = ends and ends_soon(pod, now)
        if ends and _own(snapshot, pod) and (foreign or soon):
            own.append(pod)
        elif not foreign and (_own(snapshot, pod) or _was_member(snapshot, pod, soon=soon)):
            left.append(pod)
        else:
            former.append(pod)
    return own, left, former


def _was_member(snapshot: GangSnapshot, pod: Pod, *, soon: bool) -> bool:
    """True if a pod that belongs to something else by now was made for this workload: since that is there.

    Plain pods are a gang whatever makes them. Where the age of a pod is not known it was a member of an admitted gang,
    unless it ends `soon`.
    """
    made = pod.metadata.creation_timestamp
    if snapshot.kind is PLAIN_POD or snapshot.decoded is None:
        return True
    if not made:
        return snapshot.marked_for == snapshot.uid and not soon
    return made >= snapshot.decoded.metadata.creation_timestamp


def _finished(snapshot: GangSnapshot, others: Iterable[Pod]) -> list[Pod]:
    """The workload's pods that have ended, and stay."""
    if snapshot.decoded is None:
        return []
    ended = [pod for pod in others if not pod.metadata.deletion_timestamp and not pod.living]
    return _of_this_run(ended, snapshot, snapshot.decoded)


def _placed(snapshot: GangSnapshot, others: Iterable[Pod], gone: Iterable[Pod]) -> list[Pod]:
    """The pods with nodes that others bound to the PodGroup."""
    if snapshot.pod_group is None:
        return []
    # One that has no node yet may never get one, and would keep room from others for ever.
    bound = [*(pod for pod in others if pod.living), *gone]
    return [pod for pod in bound if pod.spec.node_name and GANG not in pod.metadata.labels]


def _of_this_run(pods: list[Pod], snapshot: GangSnapshot, decoded: Decoded) -> list[Pod]:
    """The pods that are the workload's; plain ones are of what makes the living ones, and of no former run."""
    if snapshot.kind is not PLAIN_POD:
        return [pod for pod in pods if owned(pod, decoded)]
    makers = {member.pod.metadata.controller for member in snapshot.members}
    return [pod for pod in pods if GANG_SIZE in pod.metadata.annotations and pod.metadata.controller in makers]


def _with_done(snapshot: GangSnapshot, finished: Iterable[Pod]) -> Gang | None:
    """The gang, which knows which of its pods a Job does not make again, as it does those that have failed."""
    if snapshot.gang is None or snapshot.kind is None or not snapshot.kind.pods_of_jobs:
        return snapshot.gang
    done = Counter(snapshot.kind.role_of(pod) for pod in finished if pod.status.phase == "Succeeded")
    if not done:
        return snapshot.gang
    roles = tuple(replace(role, done=max(role.done, done[role.name])) for role in snapshot.gang.roles)
    return replace(snapshot.gang, roles=roles)


def _queue_of(pods: Iterable[Pod]) -> str:
    """The queue that the first of these names, "" where none does."""
    return next(filter(None, (queue_named(pod.metadata.labels, pod.metadata.annotations) for pod in pods)), "")


def _own(snapshot: GangSnapshot, pod: Pod) -> bool:
    """True if a pod belongs to the workload, or to a workload that is gone."""
    mine = snapshot.decoded is None or belongs(pod, snapshot.decoded)
    return mine and GANG in pod.metadata.labels


def _seen(
    empty: GangSnapshot, cluster: Cluster, defaults: Defaults, opened: Collection[str]
) -> tuple[GangSnapshot, list[Pod]]:
    """The gang, and those of the pods bound to its PodGroup that are no members; `empty` is the view without pods."""
    key, group, pods = empty.key, empty.pod_group, cluster.pods_of(empty.key)
    found = workload_behind(key, cluster, filter(_labelled, pods), group)
    if found is None:
        snapshot = replace(empty, members=tuple(_orphans(cluster, list(filter(_labelled, pods)), opened)))
        return snapshot, [pod for pod in pods if not _labelled(pod)]
    kind, decoded = found
    members, others, error = _members(cluster, kind, decoded, pods, opened)
    rest = [pod for pod in others if _labelled(pod) and not belongs(pod, decoded)]
    snapshot = replace(
        empty,
        members=tuple(members),
        kind=kind,
        decoded=decoded,
        error=error,
        next_run=tuple(pod for pod in rest if kind is PLAIN_POD and run_of(pod) and _held(pod, opened)),
        rivals=tuple(rivals_of(key, cluster, [pod for pod in rest if _wants_the_name(pod, kind)])),
        gate=gate_mode(cluster.namespace(key.namespace).annotations, defaults.gate),
        above=above(cluster, kind, decoded, (member.pod.metadata for member in members)),
        on_hold_by=on_hold_by(cluster, kind, decoded, (member.pod.metadata for member in members)),
    )
    speaks, scope = _speaker(snapshot, decoded), cluster.scope_of(kind, decoded)
    asks = is_managed(speaks.metadata, kind.policy(speaks), scope) or snapshot.holds
    unmanaged: Iterable[Pod] = ()
    # Of a workload that is none of muster's business thousands of pods may come and go.
    if (asks or group is not None) and may_have_unmanaged_pods(decoded.metadata, cluster.namespace(key.namespace)):
        unmanaged = cluster.unmanaged_pods.of(kind, decoded.metadata)
    snapshot = replace(snapshot, admitter=admitter_of(snapshot, cluster, defaults), unmanaged_pods=tuple(unmanaged))
    if not error and asks:
        snapshot = _read(snapshot, found, cluster, defaults, speaks=speaks, scope=scope)
    return snapshot, others


def _labelled(pod: Pod) -> bool:
    """True if the pod lives and has muster's label."""
    return pod.living and GANG in pod.metadata.labels


def _members(
    cluster: Cluster, kind: Kind, decoded: Decoded, pods: list[Pod], opened: Collection[str]
) -> tuple[list[Member], list[Pod], str]:
    """The pods of a workload that have a role, by name; the others; and what is wrong with a pod's requests, or ""."""
    # Plain pods are members by their own label, whichever of them, or of their Job, speaks for the gang.
    whose = run_of(decoded) if isinstance(decoded, Pod) else decoded.metadata.uid
    members: list[Member] = []
    others: list[Pod] = []
    error = ""
    for pod in pods:
        known = cluster.members.get(pod.metadata.uid)
        if known is None or known[2].pod is not pod or known[0] is not kind or known[1] != whose:
            role = kind.role_of(pod) if _labelled(pod) and belongs(pod, decoded) else None
            if role is None:
                others.append(pod)
                continue
            try:
                check_size(pod.spec)
                known = kind, whose, Member(pod, role, cluster.requests_of(pod), pod.gated(GATE), unready(pod))
            except InvalidObjectError as problem:
                error = f"pod {pod.metadata.name}: {problem}"
                others.append(pod)
                continue
            cluster.members[pod.metadata.uid] = known
        member = known[2]
        members.append(member._replace(held=False) if member.held and pod.metadata.uid in opened else member)
    members.sort(key=_NAME)
    return members, others, error


def _read(
    snapshot: GangSnapshot,
    found: tuple[Kind, Decoded],
    cluster: Cluster,
    defaults: Defaults,
    *,
    speaks: Decoded,
    scope: IntentScope,
) -> GangSnapshot:
    """The view with what the workload asks for; `speaks` is the object that says so, `scope` its surroundings."""
    kind, decoded = found
    try:
        workload = _from_here(kind.read(cluster.whole(kind, speaks)), snapshot)
        workload = with_limits(_rest_of_job(workload, snapshot, cluster), snapshot)
        intent = find_intent(workload, defaults, scope)
        if intent is None and snapshot.holds:
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
        kept = granted(said) if (said := terms_of(snapshot)) else {}
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
    if snapshot.marked_for != snapshot.uid and all(member.held for member in snapshot.members):
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


def _wants_the_name(pod: Pod, kind: Kind) -> bool:
    """True if a pod of others is of a workload, or of plain pods, whose gang has the same name."""
    return owner_of(pod) is not None or (kind is not PLAIN_POD and GANG_SIZE in pod.metadata.annotations)


def _held(pod: Pod, opened: Collection[str]) -> bool:
    return pod.gated(GATE) and pod.metadata.uid not in opened


def _orphans(cluster: Cluster, pods: list[Pod], opened: Collection[str]) -> Iterable[Member]:
    """The pods of a workload that is gone: until the garbage collector takes them they use what they use."""
    for pod in pods:
        # The apiserver has checked the quantities of every pod.
        with suppress(InvalidObjectError):
            yield Member(pod, "", cluster.requests_of(pod), _held(pod, opened))
