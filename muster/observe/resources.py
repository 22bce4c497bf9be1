"""Where each kind of workload, and what they are made from, lives at the apiserver."""

from __future__ import annotations

from muster.kube.resource import Resource
from muster.model.objects import PodGroup
from muster.queueing.sources import QueueSource
from muster.schedulers import GangScheduler, scheduler_of_group
from muster.workloads import Kind, Source


def resource_of(kind: Kind) -> Resource:
    """The resource of a kind, in the version that muster reads."""
    return Resource(kind.group, kind.versions[0], kind.plural, kind.kind)


def resource_of_source(source: Source) -> Resource:
    """The resource of what workloads are made from."""
    return Resource(source.group, source.version, source.plural, source.kind, source.namespaced)


def queues_of(source: QueueSource) -> Resource:
    """The resource of queues from there."""
    return Resource(source.group, source.version, source.plural, source.kind, namespaced=False)


def pod_groups_of(scheduler: GangScheduler) -> Resource:
    """The resource of the PodGroups of a scheduler."""
    return Resource(scheduler.group, scheduler.version, "podgroups", "PodGroup")


def resource_of_group(group: PodGroup) -> Resource:
    """The resource of a PodGroup."""
    return pod_groups_of(scheduler_of_group(group))
