"""Pods that came without muster: made before it, before their workload was labelled, or past its webhook.

As long as one of them lives its workload is left alone, and new pods pass untouched: a gate cannot be added to a pod
that exists, and a gang that runs in part already is none. Webhook and controller both watch these pods, so that the
first needs no read for a new pod and both say the same. What muster made carries its label and is never among them.
"""

from __future__ import annotations

from collections.abc import Callable

from muster.kube.store import Change, Store
from muster.model.names import GANG
from muster.model.objects import ObjectMeta, OwnerReference
from muster.model.pods import Pod
from muster.model.resource import JOBS
from muster.queueing.ledger import GangKey
from muster.workloads import GANG_KINDS, Kind, kind_of_owner

UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector for pods that may still run: pods of finished jobs stay for long, and there may be many."""

_OF_JOBS = [kind for kind in GANG_KINDS if kind.pods_of_jobs]


class UnmanagedPods:
    """The living pods of workloads that do not carry muster's label, in one store for each label selector."""

    def __init__(self) -> None:
        labels = sorted({kind.pod_label for kind in GANG_KINDS})
        self.stores: dict[str, Store[Pod]] = {f"{label},!{GANG}": Store() for label in labels}
        for store in self.stores.values():
            store.index("gang", _gangs)

    def of(self, kind: Kind, workload: ObjectMeta) -> list[Pod]:
        """The pods of a workload, by name."""
        stores = [store for store in self.stores.values() if len(store)]
        if not stores:
            return []
        key = GangKey(workload.namespace, kind.pod_group_name(workload.name))
        found = [pod for store in stores for pod in store.by_index("gang", key)]
        own = [pod for pod in found if _belongs(pod, kind, workload)]
        return sorted(own, key=lambda pod: pod.metadata.name)

    def subscribe(self, gang: Callable[[GangKey], None]) -> None:
        """Tell `gang` of every gang that a change concerns."""

        def changed(change: Change[Pod]) -> None:
            before, now = (_says(pod) for pod in (change.old, change.new))
            if before != now:
                # What a kubelet says of it again and again tells nothing about its gang.
                for key in {*before[0], *now[0]}:
                    gang(key)

        for store in self.stores.values():
            store.subscribe(changed)


def _gangs(pod: Pod) -> set[GangKey]:
    """The gangs that would have it as a living member, had it come by muster."""
    owner, labels = pod.metadata.controller, pod.metadata.labels
    if owner is None or not pod.living:
        return set()
    kind = kind_of_owner(owner)
    if kind is not None:
        named = [(kind, owner.name)]
    else:
        named = [(one, labels.get(one.pod_label, "")) for one in _OF_JOBS] if _is_job(owner) else []
    return {
        GangKey(pod.metadata.namespace, one.pod_group_name(name)) for one, name in named if name and one.role_of(pod)
    }


def _says(pod: Pod | None) -> tuple[set[GangKey], object]:
    """The gangs that would have it as a member, and all that counts of it there."""
    if pod is None or not (keys := _gangs(pod)):
        return set(), None
    meta = pod.metadata
    return keys, (meta.uid, meta.controller, meta.labels, meta.annotations, pod.spec)


def _belongs(pod: Pod, kind: Kind, workload: ObjectMeta) -> bool:
    """True if the pod belongs to this very workload.

    A pod that a Job controls names its workload in a label only, without a UID; a pod that is older than the workload
    belongs to a former workload. No new Job of the same name can be made before the old one is gone.
    """
    owner = pod.metadata.controller
    if owner is None or not (kind.pods_of_jobs and _is_job(owner)):
        return owner is not None and owner.uid == workload.uid
    # The apiserver writes these times, all in one format.
    named = pod.metadata.labels.get(kind.pod_label) == workload.name
    return named and pod.metadata.creation_timestamp >= workload.creation_timestamp


def _is_job(owner: OwnerReference) -> bool:
    return (owner.group, owner.kind) == (JOBS.group, JOBS.kind)
