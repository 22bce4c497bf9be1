"""Which workloads end by themselves, and which run until they are deleted.

A gang that waits for quota of the former starts some day; whether the latter give quota back is unknown.
"""

from __future__ import annotations

from muster.model.objects import Pod
from muster.observe.cluster import Cluster
from muster.observe.view import View
from muster.workloads import Decoded, Kind
from muster.workloads.ray import RAY_CLUSTER


def lasts(view: View) -> bool:
    """True if the gang goes on until it is deleted: a service, or a RayCluster that no RayJob made and deletes.

    A workload of an unknown kind counts as one that lasts, except for Volcano's own jobs.
    """
    if view.decoded is None or view.kind is None:
        owner = view.group_owner
        return owner is None or owner.kind != "Job"
    if view.kind is RAY_CLUSTER:
        above = view.decoded.metadata.controller
        return above is None or above.kind != "RayJob" or view.above.leaves
    return isinstance(view.decoded, Pod) and view.decoded.spec.restart_policy in ("", "Always")


def follows(cluster: Cluster, kind: Kind, decoded: Decoded) -> bool:
    """True if an older RayCluster of the same RayService exists; the RayService deletes it when this one runs."""
    above, own = decoded.metadata.controller, decoded.metadata
    if kind is not RAY_CLUSTER or above is None or above.kind != "RayService":
        return False
    age = own.creation_timestamp, own.uid
    others = cluster.made_by(kind, above.uid)
    return any((one.metadata.creation_timestamp, one.metadata.uid) < age for one in others)
