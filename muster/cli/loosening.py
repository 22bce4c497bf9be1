"""Loosens PodGroups that would hold pods for ever once muster is uninstalled.

If only a part of a gang was created while muster was installed, the scheduler never sees the complete gang. Pods that
were created while no controller ran name a PodGroup that does not exist. Neither would ever start.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from muster.cli.output import say
from muster.kube.burst import burst
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.model.names import GANG, GROUP_NAME, MANAGED_BY, MUSTER, QUEUE_LABEL, TASK_SPEC, WORKLOAD
from muster.model.objects import InvalidObjectError, OwnerReference, Pod, PodGroup, decode
from muster.model.texts import printable
from muster.observe.resources import pod_groups_of
from muster.schedulers import gang_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from muster.kube.client import Client
    from muster.kube.resource import Resource
    from muster.schedulers import GangScheduler

__all__ = ["is_whole", "loosen", "substitute"]


async def loosen(client: Client, pods: Iterable[Pod], schedulers: Mapping[str, GangScheduler]) -> bool:
    """Let each gang with an unplaced pod start with its existing pods; prints each change and each failure.

    Complete gangs stay gangs: the scheduler starts them together. Pods of other schedulers are left alone. Gives
    whether nothing failed that may succeed when it is tried again.
    """
    pods = list(pods)
    done = [
        await _loosen(client, [pod for pod in pods if pod.spec.scheduler_name == name], scheduler)
        for name, scheduler in schedulers.items()
    ]
    return all(done)


async def _loosen(client: Client, pods: Iterable[Pod], scheduler: GangScheduler) -> bool:
    resource = pod_groups_of(scheduler)
    gangs: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        name = pod.metadata.annotations.get(GROUP_NAME)
        if name and GANG in pod.metadata.labels and pod.living:
            gangs[pod.metadata.namespace, name].append(pod)
    waiting = {key: members for key, members in gangs.items() if not all(pod.spec.node_name for pod in members)}
    if not waiting:
        return True
    try:
        listed = await list_objects(client, resource, scheduler.pod_groups)
    except ApiError as error:
        print(
            f"muster withdraw: cannot list PodGroups: {error}; incomplete gangs keep waiting for the scheduler",
            file=sys.stderr,
        )
        # Without its CRD there is no PodGroup, and none can be made.
        return error.not_found
    groups = {(group.metadata.namespace, gang_name(group)): group for group in listed}

    async def put_right(key: tuple[str, str]) -> bool:
        namespace, name = key
        group, members = groups.get(key), waiting[key]
        if group is not None and is_whole(group, members):
            return True
        try:
            if group is not None and await _loosened(client, resource, scheduler, group):
                say(f"{namespace}/{name}: some of its pods are missing; it starts with the existing ones")
            else:
                await client.create(resource, substitute(scheduler, namespace, name, members), namespace)
                say(f"{namespace}/{name}: created the missing PodGroup of its pods")
        except ApiError as error:
            # A namespace that terminates deletes the pods as well, or has: then it is not found.
            if not (error.already_exists or error.namespace_terminating or error.not_found):
                print(f"muster withdraw: podgroup {namespace}/{name}: {printable(str(error))}", file=sys.stderr)
                return False
        return True

    return all(await burst(put_right, sorted(waiting)))


async def _loosened(client: Client, resource: Resource, scheduler: GangScheduler, group: PodGroup) -> bool:
    """Let the PodGroup's pods start without the missing ones; False where it has been deleted meanwhile."""
    try:
        await client.merge_patch(resource, group.metadata.name, {"spec": scheduler.loosened}, group.metadata.namespace)
    except ApiError as error:
        if error.not_found:
            return False
        raise
    return True


def is_whole(group: PodGroup, members: Sequence[Pod]) -> bool:
    """Whether these pods satisfy minMember and minTaskMember of the PodGroup."""
    roles = Counter(pod.metadata.annotations.get(TASK_SPEC, "") for pod in members)
    return len(members) >= group.spec.min_member and all(
        roles[role] >= count for role, count in group.spec.min_task_member.items()
    )


def substitute(scheduler: GangScheduler, namespace: str, name: str, members: Sequence[Pod]) -> dict[str, Any]:
    """A PodGroup with minMember 1 for pods that name a missing one; their workload owns it."""
    queues = (pod.metadata.labels.get(QUEUE_LABEL) for pod in members)
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": {MANAGED_BY: MUSTER}}
    owners = {owner.uid: owner for pod in members for owner in _owners(pod)}
    metadata["ownerReferences"] = [
        {"apiVersion": one.api_version, "kind": one.kind, "name": one.name, "uid": one.uid} for one in owners.values()
    ]
    made = scheduler.loose(next((queue for queue in queues if queue), "default"), metadata)
    # What binds a pod cannot be changed. Of pods without a workload it has no UID, unlike the name that `loose` gives.
    if bound := next(filter(None, map(scheduler.bound_to, members)), ""):
        made["metadata"] = {**made["metadata"], "name": bound}
    return made


def _owners(pod: Pod) -> list[OwnerReference]:
    meta = pod.metadata
    if WORKLOAD in meta.annotations:
        try:
            return [decode(meta.annotations[WORKLOAD].encode(), OwnerReference)]
        except (InvalidObjectError, msgspec.DecodeError):
            pass
    return [meta.controller] if meta.controller else [OwnerReference("v1", "Pod", meta.name, meta.uid)]
