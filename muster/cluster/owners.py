"""The workload behind a gang, the owners of a workload, and rivals for the same PodGroup name."""

from collections.abc import Iterable, Iterator

from muster.cluster.cluster import Cluster
from muster.model.names import GANG, GANG_SIZE, GATE, HOLD, is_object_name
from muster.model.objects import ObjectMeta, OwnerReference, PodGroup
from muster.model.pods import Pod
from muster.planning.snapshot import Above, OnHold
from muster.queueing.ledger import GangKey
from muster.workloads import PLAIN_POD, Decoded, Kind, kind_of_owner, owner_of
from muster.workloads.plain import run_of
from muster.workloads.ray import RAY_CLUSTER
from muster.workloads.ray_parents import RayJob


def workload_behind(
    key: GangKey,
    cluster: Cluster,
    pods: Iterable[Pod],
    group: PodGroup | None,
) -> tuple[Kind, Decoded] | None:
    """The workload behind the gang: the one that the PodGroup was made for, or when that is gone a living pod's.

    An owner whose gang has another name did not make it: any user may write an owner reference. A PodGroup of muster's
    without an owner is of plain pods, which speak for themselves as long as one of them lives, and so they do where
    there is no workload; else it is the one that would have a PodGroup of that name.
    """
    of_group = group.metadata.controller if group else None
    found = cluster.workload(key.namespace, of_group) if of_group is not None else None
    if found is not None and found[0].pod_group_name(found[1].metadata.name) == key.name:
        return found
    plain = _plain(key, cluster)
    if plain is not None and group is not None and of_group is None and plain[1].living:
        return PLAIN_POD, plain[1]
    for owner in map(owner_of, pods):
        found = cluster.workload(key.namespace, owner) if owner else None
        if found:
            return found
    return plain or cluster.workload_of(key)


def belongs(pod: Pod, decoded: Decoded) -> bool:
    """True if the pod belongs to the workload; plain pods belong by their own label, and to the Job that is a gang."""
    if isinstance(decoded, Pod):
        return GANG_SIZE in pod.metadata.annotations and run_of(pod) == run_of(decoded)
    return owned(pod, decoded)


def _plain(key: GangKey, cluster: Cluster) -> tuple[Kind, Pod] | None:
    """A gang of plain pods, for which the oldest of them speaks; one that has ended, when none lives any more.

    Of several whole Jobs that name one gang, the one that runs goes on, and the others wait.
    """
    bound = (pod for pod in cluster.pods_of(key) if GANG in pod.metadata.labels)
    plain = (pod for pod in bound if GANG_SIZE in pod.metadata.annotations)
    oldest = min(
        plain, key=lambda pod: (not pod.living, bool(run_of(pod)) and pod.gated(GATE), *age(pod)), default=None
    )
    return (PLAIN_POD, oldest) if oldest is not None else None


def age(pod: Pod) -> tuple[str, str]:
    """The key that sorts pods by age."""
    return pod.metadata.creation_timestamp, pod.metadata.name


def owned(pod: Pod, decoded: Decoded) -> bool:
    """True if this very workload controls the pod."""
    owner = owner_of(pod)
    return owner is not None and owner.uid == decoded.metadata.uid


def rivals_of(key: GangKey, cluster: Cluster, strangers: Iterable[Pod]) -> Iterable[tuple[Kind, Decoded]]:
    """The other owners of these pods: living workloads, each once, and for plain pods the oldest pod of each run."""
    strangers = list(strangers)
    owners = dict.fromkeys(owner for owner in map(owner_of, strangers) if owner)
    found = (cluster.workload(key.namespace, owner) for owner in owners)
    plain = {run_of(pod): pod for pod in sorted(strangers, key=age, reverse=True) if run_of(pod) or not owner_of(pod)}
    yield from (one for one in found if one is not None and not one[1].metadata.deletion_timestamp)
    yield from ((PLAIN_POD, pod) for pod in plain.values())


def follows(cluster: Cluster, kind: Kind, decoded: Decoded) -> bool:
    """True if an older RayCluster of the same RayService exists; the RayService deletes it when this one runs."""
    above, own = decoded.metadata.controller, decoded.metadata
    if kind is not RAY_CLUSTER or above is None or above.kind != "RayService":
        return False
    age = own.creation_timestamp, own.uid
    others = cluster.made_by(kind, above.uid)
    return any((one.metadata.creation_timestamp, one.metadata.uid) < age for one in others)


def asks_to_wait(metadata: ObjectMeta) -> bool:
    """True if the object has the annotation; any other value than "true" holds nothing."""
    return metadata.annotations.get(HOLD) == "true"


def on_hold_by(cluster: Cluster, kind: Kind, decoded: Decoded, members: Iterable[ObjectMeta]) -> OnHold | None:
    """The object that puts the workload on hold; `members` is the metadata of its pods. None where none does.

    The topmost owner first, which its user wrote: operators copy annotations to what they make.
    """
    if kind is PLAIN_POD:
        found = [(kind, one) for one in members]
    else:
        found = [(kind, decoded.metadata), *((of, owner.metadata) for of, owner in cluster.owners(decoded.metadata))]
    named = (OnHold(of.kind, one.namespace, one.name) for of, one in reversed(found) if asks_to_wait(one))
    return next(named, None)


# Plain pods of one name may have several makers, a Job for each role; more than these get no events.
_MOST_MAKERS = 4
# What the apiserver never lets grow longer in objects of its own, and a forged reference may: events repeat it.
_LONGEST = {"api_version": 317, "kind": 63, "uid": 128}


def above(cluster: Cluster, kind: Kind, decoded: Decoded, members: Iterable[ObjectMeta]) -> Above:
    """The owners above the workload; `members` is the metadata of its pods."""
    if kind is PLAIN_POD:
        # Plain pods speak for themselves: each names its owner.
        named = dict.fromkeys(member.controller for member in members)
        return Above(tuple(one for one in named if one is not None and tellable(one))[:_MOST_MAKERS])
    carried_on = cluster.carried_on(kind, decoded)
    since = carried_on.metadata.creation_timestamp if carried_on else ""
    makers = tuple(_makers(cluster, decoded.metadata))
    for _, owner in cluster.owners(decoded.metadata):
        if isinstance(owner, RayJob):
            return Above(makers, since, owner.time_limits, owner.spec.leaves_cluster)
    return Above(makers, since)


def _makers(cluster: Cluster, workload: ObjectMeta) -> Iterator[OwnerReference]:
    made = workload
    for _, owner in cluster.owners(workload):
        if made.controller is not None:
            yield made.controller
        made = owner.metadata
    last = made.controller
    # One of a kind that is watched, and that is not among the stores' objects, is gone, or was never there.
    if last is not None and kind_of_owner(last) is None and tellable(last):
        yield last


def tellable(owner: OwnerReference) -> bool:
    """True if an event may name the owner: a forged owner reference may hold anything."""
    return is_object_name(owner.name) and all(0 < len(getattr(owner, key)) <= most for key, most in _LONGEST.items())
