"""The owners of a workload: the objects that its user wrote, where people look first to see why it waits.

Only the stores are read: an owner of a kind that muster does not watch is known by its owner reference alone, and the
owners above it are not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from muster.model.names import is_object_name
from muster.model.objects import ObjectMeta, OwnerReference
from muster.observe.cluster import Cluster
from muster.observe.view import Above
from muster.workloads import PLAIN_POD, Decoded, Kind, kind_of_owner
from muster.workloads.ray_parents import RayJob

# Plain pods of one name may have several makers, a Job for each role; more than these need not be told.
_MOST_MAKERS = 4
# What the apiserver never lets grow longer in objects of its own, and a forged reference may: events repeat it.
_LONGEST = {"api_version": 317, "kind": 63, "uid": 128}


def above(cluster: Cluster, kind: Kind, decoded: Decoded, members: Iterable[ObjectMeta]) -> Above:
    """What stands above the workload, whose pods have the metadata `members`."""
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
