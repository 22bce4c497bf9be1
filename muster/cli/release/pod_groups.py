"""PodGroups that would hold pods for ever without a controller: makes the missing ones, and loosens others.

Pods that were created while no controller ran name a PodGroup that does not exist, and their scheduler passes over
them. If only a part of a gang was created while muster was installed, the scheduler never sees the complete gang.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from muster.cli.ui import complain, print_line
from muster.cluster.served import choose_versions
from muster.kube.client import Client
from muster.kube.concurrency import burst
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.model.names import GANG, GROUP_NAME, MANAGED_BY, MUSTER, TASK_SPEC, WORKLOAD, queue_named
from muster.model.objects import InvalidObjectError, OwnerReference, PodGroup, decode
from muster.model.pods import Pod
from muster.model.resource import Resource
from muster.schedulers import GangScheduler, gang_name


async def loosen(client: Client, pods: Iterable[Pod], schedulers: Mapping[str, GangScheduler]) -> bool:
    """Let each gang with an unplaced pod start with its existing pods; prints each change and each failure.

    Complete gangs stay gangs: the scheduler starts them together. Pods of other schedulers are left alone. Gives
    whether nothing failed that may succeed when it is tried again.
    """
    return await _Repair(client, "withdraw", loosens=True).all(pods, schedulers)


async def make_missing(
    client: Client,
    pods: Iterable[Pod],
    schedulers: Mapping[str, GangScheduler],
    *,
    namespace: str | None,
    dry_run: bool,
) -> bool:
    """Make the PodGroups that unplaced pods lack, and print which gangs their scheduler holds back.

    `namespace` is that of the pods, None for all. Gives and prints what `loosen` does.
    """
    repair = _Repair(client, "release", namespace=namespace, dry_run=dry_run)
    return await repair.all(pods, schedulers)


@dataclass(frozen=True, slots=True)
class _Repair:
    """The repair of the PodGroups of unplaced pods by a command."""

    client: Client
    command: str
    namespace: str | None = None
    loosens: bool = False
    dry_run: bool = False

    async def all(self, pods: Iterable[Pod], schedulers: Mapping[str, GangScheduler]) -> bool:
        """True if nothing failed that may succeed when it is tried again."""
        pods = list(pods)
        done = [
            await self._of(scheduler, [pod for pod in pods if pod.spec.scheduler_name == name])
            for name, scheduler in schedulers.items()
        ]
        strange = {} if self.loosens else _waiting(pod for pod in pods if pod.spec.scheduler_name not in schedulers)
        for (namespace, name), members in sorted(strange.items()):
            scheduler = members[0].spec.scheduler_name
            complain(
                self.command,
                f'{namespace}/{name}: its PodGroup is not known: "{scheduler}" is no scheduler of muster here',
            )
        return all(done) and not strange

    async def _of(self, scheduler: GangScheduler, pods: Iterable[Pod]) -> bool:
        waiting = _waiting(pods)
        if not waiting:
            return True
        lists = partial(list_objects, namespace=self.namespace) if self.namespace else list_objects
        try:
            await choose_versions(self.client, [scheduler])
            listed = await lists(self.client, scheduler.resource, scheduler.pod_groups)
        except ApiError as error:
            complain(
                self.command,
                f"cannot list PodGroups: {error}; pods keep waiting that lack theirs, or a part of their gang",
            )
            # Without its CRD there is no PodGroup, and none can be made; that must not keep muster from being removed.
            return error.not_found and self.loosens
        groups = {(group.metadata.namespace, gang_name(group)): group for group in listed}

        async def put_right(key: tuple[str, str]) -> bool:
            return await self._put_right(scheduler, *key, waiting[key], groups.get(key))

        return all(await burst(put_right, sorted(waiting)))

    async def _put_right(
        self, scheduler: GangScheduler, namespace: str, name: str, members: Sequence[Pod], group: PodGroup | None
    ) -> bool:
        """True if the gang's PodGroup is as it should be by now."""
        if group is not None and is_whole(group, members):
            return True
        resource, gang = scheduler.resource, f"{namespace}/{name}"
        if group is not None and not self.loosens:
            count = f"{len(members)} of {group.spec.min_member}"
            print_line(f"{gang}: its scheduler waits for the rest of its pods: {count} are there")
            return True
        try:
            if group is not None and await _loosened(self.client, resource, scheduler, group):
                print_line(f"{gang}: some of its pods are missing; it starts with the existing ones")
            else:
                body = substitute(scheduler, namespace, name, members)
                await self.client.create(resource, body, namespace, dry_run=self.dry_run)
                would = "the missing PodGroup of its pods would be created"
                print_line(f"{gang}: {would if self.dry_run else 'created the missing PodGroup of its pods'}")
        except ApiError as error:
            # A namespace that terminates deletes the pods as well, or has: then it is not found.
            if not (error.already_exists or error.namespace_terminating or error.not_found):
                skipped = "" if self.loosens else "; its scheduler passes over its pods without it"
                complain(self.command, f"podgroup {gang}: {error}{skipped}")
                return False
        return True


def _waiting(pods: Iterable[Pod]) -> dict[tuple[str, str], list[Pod]]:
    """The living pods of gangs that are not all placed, by namespace and name of the gang."""
    gangs: dict[tuple[str, str], list[Pod]] = defaultdict(list)
    for pod in pods:
        name = pod.metadata.annotations.get(GROUP_NAME)
        if name and GANG in pod.metadata.labels and pod.living:
            gangs[pod.metadata.namespace, name].append(pod)
    return {key: members for key, members in gangs.items() if not all(pod.spec.node_name for pod in members)}


async def _loosened(client: Client, resource: Resource, scheduler: GangScheduler, group: PodGroup) -> bool:
    """Let the PodGroup's pods start without the missing ones; False if it has been deleted."""
    try:
        await client.merge_patch(
            resource, group.metadata.name, {"spec": scheduler.relaxed_patch}, group.metadata.namespace
        )
    except ApiError as error:
        if error.not_found:
            return False
        raise
    return True


def is_whole(group: PodGroup, members: Sequence[Pod]) -> bool:
    """True if these pods satisfy minMember and minTaskMember of the PodGroup."""
    roles = Counter(pod.metadata.annotations.get(TASK_SPEC, "") for pod in members)
    return len(members) >= group.spec.min_member and all(
        roles[role] >= count for role, count in group.spec.min_task_member.items()
    )


def substitute(scheduler: GangScheduler, namespace: str, name: str, members: Sequence[Pod]) -> dict[str, Any]:
    """A PodGroup with minMember 1 for pods that name a missing one; their workload owns it."""
    queues = (queue_named(pod.metadata.labels, pod.metadata.annotations) for pod in members)
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, "labels": {MANAGED_BY: MUSTER}}
    owners = {owner.uid: owner for pod in members for owner in _owners(pod)}
    metadata["ownerReferences"] = [
        {"apiVersion": one.api_version, "kind": one.kind, "name": one.name, "uid": one.uid} for one in owners.values()
    ]
    made = scheduler.relaxed_pod_group(next((queue for queue in queues if queue), "default"), metadata)
    # What binds a pod cannot be changed. The name that `relaxed_pod_group` gives has a UID,
    # and that of pods without a workload has none.
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
