"""The workload behind a gang, the owner of its pods, and rivals for the same PodGroup name."""

from __future__ import annotations

from collections.abc import Iterable

from muster.model.names import GANG, GANG_SIZE, GATE
from muster.model.objects import Pod, PodGroup
from muster.observe.cluster import Cluster
from muster.queueing.ledger import GangKey
from muster.workloads import PLAIN_POD, Decoded, Kind, owner_of
from muster.workloads.plain import run_of


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
