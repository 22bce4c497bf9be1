"""PodGroups that would go on holding pods when muster is gone, as they have to be then.

A gang of which a part was made while muster was there, and the rest after it, would never be whole for its scheduler;
and pods that were made while no controller ran are bound to a PodGroup that nobody has made. Neither would ever start.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from muster.kube.burst import burst
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.kube.resource import POD_GROUPS
from muster.model.names import GANG, GROUP_NAME, MANAGED_BY, MUSTER, QUEUE_LABEL, TASK_SPEC, WORKLOAD
from muster.model.objects import InvalidObjectError, OwnerReference, Pod, PodGroup, decode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from muster.kube.client import Client

__all__ = ["is_whole", "loosen", "substitute"]

_LOOSE = {"spec": {"minMember": 1, "minTaskMember": None, "minResources": None}}


async def loosen(client: Client, pods: Iterable[Pod]) -> None:
    """Let every gang with a pod that has no node start with what is there of it; says what was done, and what was not.

    Gangs that are whole stay gangs: their scheduler starts them together, as it would have.
    """
    gangs: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        name = pod.metadata.annotations.get(GROUP_NAME)
        if name and GANG in pod.metadata.labels and pod.living:
            gangs[pod.metadata.namespace, name].append(pod)
    waiting = {key: members for key, members in gangs.items() if not all(pod.spec.node_name for pod in members)}
    if not waiting:
        return
    try:
        listed = await list_objects(client, POD_GROUPS, PodGroup)
    except ApiError as error:
        print(f"muster withdraw: PodGroups: {error}; the pods wait for their scheduler", file=sys.stderr)
        return
    groups = {(group.metadata.namespace, group.metadata.name): group for group in listed}

    async def put_right(key: tuple[str, str]) -> None:
        namespace, name = key
        group, members = groups.get(key), waiting[key]
        try:
            if group is None:
                await client.create(POD_GROUPS, substitute(name, members), namespace)
                print(f"{namespace}/{name}: its pods had no PodGroup, and have one now")
            elif not is_whole(group, members):
                await client.merge_patch(POD_GROUPS, name, _LOOSE, namespace)
                print(f"{namespace}/{name}: not all of its pods are there; it starts with those that are")
        except ApiError as error:
            # In a namespace that is being deleted the pods go as well.
            if not (error.already_exists or error.namespace_terminating):
                print(f"muster withdraw: podgroup {namespace}/{name}: {error}", file=sys.stderr)

    await burst(put_right, sorted(waiting))


def is_whole(group: PodGroup, members: Sequence[Pod]) -> bool:
    """Whether the scheduler finds all that the PodGroup asks for among these pods."""
    roles = Counter(pod.metadata.annotations.get(TASK_SPEC, "") for pod in members)
    return len(members) >= group.spec.min_member and all(
        roles[role] >= count for role, count in group.spec.min_task_member.items()
    )


def substitute(name: str, members: Sequence[Pod]) -> dict[str, Any]:
    """A PodGroup that holds nobody back, for pods that are bound to one of that name; it goes with their workload."""
    queues = (pod.metadata.labels.get(QUEUE_LABEL) for pod in members)
    metadata: dict[str, Any] = {"name": name, "labels": {MANAGED_BY: MUSTER}}
    owners = {owner.uid: owner for pod in members for owner in _owners(pod)}
    metadata["ownerReferences"] = [
        {"apiVersion": one.api_version, "kind": one.kind, "name": one.name, "uid": one.uid} for one in owners.values()
    ]
    return {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": metadata,
        "spec": {"minMember": 1, "queue": next((queue for queue in queues if queue), "default")},
    }


def _owners(pod: Pod) -> list[OwnerReference]:
    meta = pod.metadata
    if WORKLOAD in meta.annotations:
        try:
            return [decode(meta.annotations[WORKLOAD].encode(), OwnerReference)]
        except (InvalidObjectError, msgspec.DecodeError):
            pass
    return [meta.controller] if meta.controller else [OwnerReference("v1", "Pod", meta.name, meta.uid)]
