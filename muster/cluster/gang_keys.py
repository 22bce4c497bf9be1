"""Which gang an object is about."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from muster.model.names import GROUP_NAME, is_object_name
from muster.model.objects import PodGroup
from muster.model.pods import Pod
from muster.queueing.ledger import GangKey
from muster.schedulers import gang_name
from muster.workloads import GANG_KINDS, Decoded, Kind, kind_of_owner


def gangs_of_pod(pod: Pod) -> Iterable[GangKey]:
    """The gang to whose PodGroup a pod is bound; none where the annotation holds no name that an object can have."""
    group = pod.metadata.annotations.get(GROUP_NAME, "")
    return (GangKey(pod.metadata.namespace, group),) if is_object_name(group) else ()


def gang_of_group(group: PodGroup) -> GangKey:
    """The gang of a PodGroup."""
    return GangKey(group.metadata.namespace, gang_name(group))


def gang_of_workload(kind: Kind) -> Callable[[Decoded], Iterable[GangKey]]:
    """Gives the gang of each workload of that kind, where it has one of its own."""

    def gang(workload: Decoded) -> Iterable[GangKey]:
        meta = workload.metadata
        above = kind_of_owner(meta.controller)
        # The pods of a JobSet that a TrainJob controls are the TrainJob's gang.
        return () if above in GANG_KINDS else (GangKey(meta.namespace, kind.pod_group_name(meta.name)),)

    return gang
