"""The pods of a gang: its members, those that have left it, and those that are being deleted.

A pod that is being deleted holds its quota until it is gone. Its containers run for as long as their grace period
lasts. On a node that is not Ready no kubelet ends them, so that such a pod may stay for ever: there it counts until the
time at which it should be gone. A replacement runs with it only if it ends soon.
"""

from collections.abc import Collection, Iterable
from contextlib import suppress
from operator import attrgetter

from muster.cluster.cluster import Cluster
from muster.cluster.owners import belongs, owned
from muster.model import names
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.model.times import seconds_of
from muster.planning.candidate import GONE_IN
from muster.planning.expectations import unready
from muster.planning.snapshot import GangSnapshot, Member
from muster.resources.amounts import Resources, total
from muster.resources.pod_requests import check_size
from muster.workloads import PLAIN_POD, Decoded, Kind, owner_of
from muster.workloads.plain import run_of

# Seconds after which nodes are looked at again on which pods should be gone, and are not.
_LOOK_AGAIN = 15.0
# Seconds before and after the time at which a pod should be gone in which it does not keep its replacement waiting.
_SOON = 600.0
_NAME = attrgetter("pod.metadata.name")


def leaving(cluster: Cluster, pods: Iterable[Pod], now: float) -> list[Pod]:
    """The pods among these that still hold quota; `now` in seconds of the wall clock."""
    deleted = [pod for pod in pods if pod.metadata.deletion_timestamp]
    return [pod for pod in deleted if _leaves(pod) and not (_due(pod) <= now and _lost(cluster, pod.spec.node_name))]


def look_again_in(pods: Iterable[Pod], now: float) -> float | None:
    """The seconds after which one of these may stop counting without any event."""
    due = [_due(pod) for pod in pods if pod.metadata.deletion_timestamp and _leaves(pod)]
    return max(min(one if one < now + _SOON else one - _SOON for one in due) - now, _LOOK_AGAIN) if due else None


def ends_soon(pod: Pod, now: float) -> bool:
    """True if a pod that is being deleted is gone in ten minutes, or should have been for no longer than that.

    Without a grace period only the second is known.
    """
    longer = pod.metadata.deletion_grace_period_seconds is not None and _due(pod) - now > _SOON
    return not longer and now - _due(pod) <= _SOON


def gone_by(pods: Iterable[Pod]) -> float | None:
    """The time at which the last of these pods is gone (wall clock, seconds); None if one is not being deleted."""
    pods = list(pods)
    if not pods or not all(pod.metadata.deletion_timestamp for pod in pods):
        return None
    return max(map(_due, pods)) + GONE_IN


def requests_of(cluster: Cluster, pods: Iterable[Pod]) -> Resources:
    """The requests of these pods together."""
    asked = []
    for pod in pods:
        with suppress(InvalidObjectError):  # the apiserver has checked the quantities of every pod
            asked.append(cluster.requests_of(pod))
    return total(asked)


def _leaves(pod: Pod) -> bool:
    """True if it is being deleted and has not left its node yet."""
    leaves = pod.metadata.deletion_timestamp and pod.spec.node_name
    return bool(leaves) and not pod.finished


def _due(pod: Pod) -> float:
    return seconds_of(pod.metadata.deletion_timestamp) or 0.0


def _lost(cluster: Cluster, name: str) -> bool:
    """True if the node is not Ready, or gone; where nodes may not be read it is taken for Ready."""
    if not cluster.nodes.synced:
        return False
    node = cluster.nodes.get("", name)
    return node is None or not node.ready


def other_holders(
    snapshot: GangSnapshot, others: Iterable[Pod], gone: Iterable[Pod], opened: Collection[str], now: float
) -> tuple[list[Pod], list[Pod], list[Pod]]:
    """The labelled pods, no members, that hold room: those that end soon, those that left it, and former ones."""
    own, left, former = [], [], []
    foreign = snapshot.pod_group is not None and not snapshot.ours
    ending = {pod.metadata.uid for pod in gone}
    for pod in others:
        ends = pod.metadata.uid in ending
        if names.GANG not in pod.metadata.labels or not (ends or (pod.living and not is_held(pod, opened))):
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


def finished_pods(snapshot: GangSnapshot, others: Iterable[Pod]) -> list[Pod]:
    """The workload's pods that have ended, and stay."""
    if snapshot.decoded is None:
        return []
    ended = [pod for pod in others if not pod.metadata.deletion_timestamp and not pod.living]
    return _of_this_run(ended, snapshot, snapshot.decoded)


def placed_pods(snapshot: GangSnapshot, others: Iterable[Pod], gone: Iterable[Pod]) -> list[Pod]:
    """The pods with nodes that others bound to the PodGroup."""
    if snapshot.pod_group is None:
        return []
    # One that has no node yet may never get one, and would keep room from others for ever.
    bound = [*(pod for pod in others if pod.living), *gone]
    return [pod for pod in bound if pod.spec.node_name and names.GANG not in pod.metadata.labels]


def _of_this_run(pods: list[Pod], snapshot: GangSnapshot, decoded: Decoded) -> list[Pod]:
    """The pods that are the workload's; plain ones are of what makes the living ones, and of no former run."""
    if snapshot.kind is not PLAIN_POD:
        return [pod for pod in pods if owned(pod, decoded)]
    makers = {member.pod.metadata.controller for member in snapshot.members}
    return [pod for pod in pods if names.GANG_SIZE in pod.metadata.annotations and pod.metadata.controller in makers]


def queue_named_by(pods: Iterable[Pod]) -> str:
    """The queue that the first of these names, "" where none does."""
    return next(filter(None, (names.queue_named(pod.metadata.labels, pod.metadata.annotations) for pod in pods)), "")


def _own(snapshot: GangSnapshot, pod: Pod) -> bool:
    """True if a pod belongs to the workload, or to a workload that is gone."""
    mine = snapshot.decoded is None or belongs(pod, snapshot.decoded)
    return mine and names.GANG in pod.metadata.labels


def labelled(pod: Pod) -> bool:
    """True if the pod lives and has muster's label."""
    return pod.living and names.GANG in pod.metadata.labels


def read_members(
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
            role = kind.role_of(pod) if labelled(pod) and belongs(pod, decoded) else None
            if role is None:
                others.append(pod)
                continue
            try:
                check_size(pod.spec)
                known = kind, whose, Member(pod, role, cluster.requests_of(pod), pod.gated(names.GATE), unready(pod))
            except InvalidObjectError as problem:
                error = f"pod {pod.metadata.name}: {problem}"
                others.append(pod)
                continue
            cluster.members[pod.metadata.uid] = known
        member = known[2]
        members.append(member._replace(gated=False) if member.gated and pod.metadata.uid in opened else member)
    members.sort(key=_NAME)
    return members, others, error


def wants_the_name(pod: Pod, kind: Kind) -> bool:
    """True if a pod of others is of a workload, or of plain pods, whose gang has the same name."""
    return owner_of(pod) is not None or (kind is not PLAIN_POD and names.GANG_SIZE in pod.metadata.annotations)


def is_held(pod: Pod, opened: Collection[str]) -> bool:
    """True if muster's gate is on the pod, and it is none of those that were `opened`."""
    return pod.gated(names.GATE) and pod.metadata.uid not in opened


def orphans(cluster: Cluster, pods: list[Pod], opened: Collection[str]) -> Iterable[Member]:
    """The pods of a workload that is gone: until the garbage collector takes them they use what they use."""
    for pod in pods:
        # The apiserver has checked the quantities of every pod.
        with suppress(InvalidObjectError):
            yield Member(pod, "", cluster.requests_of(pod), is_held(pod, opened))
