"""The controller's picture of the cluster: one store per kind, and who to tell when something changes."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from muster.gang import priority_values
from muster.intent import Defaults
from muster.kube.errors import ApiError
from muster.kube.reflector import Reflector
from muster.kube.resource import POD_GROUPS, PODS, PRIORITY_CLASSES, QUEUES
from muster.kube.store import Change, Store
from muster.kube.workloads import resource_of
from muster.ledger import GangKey
from muster.names import GROUP_NAME
from muster.objects import InvalidObjectError, LocalObject, Pod, PodGroup, PriorityClass, Queue, decode
from muster.workloads import GANG_KINDS, Decoded, Kind, kind_of_owner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from muster.kube.client import Client
    from muster.objects import OwnerReference

__all__ = ["Cluster"]

logger = logging.getLogger(__name__)


class _ListMeta(LocalObject, frozen=True):
    continue_: str = msgspec.field(default="", name="continue")


class _PodGroupPage(LocalObject, frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: tuple[msgspec.Raw, ...] = ()


class Cluster:
    """Pods of gangs, PodGroups, workloads, queues and priority classes, as the watches last said."""

    def __init__(self) -> None:
        self.pods: Store[Pod] = Store()
        self.pod_groups: Store[PodGroup] = Store()
        self.queues: Store[Queue] = Store()
        self.priority_classes: Store[PriorityClass] = Store()
        self._workloads: dict[Kind, Store[Decoded]] = {kind: Store() for kind in GANG_KINDS}
        self.pods.index("gang", _gangs_of_pod)

    def reflectors(self, client: Client) -> list[Reflector[Any]]:
        """What keeps the stores up to date; each must run for as long as the process."""
        return [
            # The scheduler's own pods and those of other makers, which take room as well; a cluster has many more.
            Reflector(client, PODS, Pod, self.pods, field_selector=f"spec.schedulerName={Defaults().scheduler}"),
            Reflector(client, POD_GROUPS, PodGroup, self.pod_groups),
            Reflector(client, QUEUES, Queue, self.queues),
            Reflector(client, PRIORITY_CLASSES, PriorityClass, self.priority_classes),
            *(Reflector(client, resource_of(kind), kind.decoded, self._workloads[kind]) for kind in GANG_KINDS),
        ]

    @property
    def synced(self) -> bool:
        """Whether everything was listed once."""
        stores: list[Store[Any]] = [self.pods, self.pod_groups, self.queues, self.priority_classes]
        return all(store.synced for store in (*stores, *self._workloads.values()))

    async def wait_synced(self, poll: float = 0.05) -> None:
        """Wait until everything was listed once: before that, what is missing may only be unread."""
        while not self.synced:  # noqa: ASYNC110 - seven stores, once in the life of the process
            await asyncio.sleep(poll)

    @staticmethod
    async def list_pod_groups(client: Client) -> list[PodGroup]:
        """All PodGroups as they are now, not as the watch last said. Raises ApiError."""
        groups: list[PodGroup] = []
        continue_ = ""
        while True:
            try:
                page = decode(await client.list_page(POD_GROUPS, continue_=continue_), _PodGroupPage)
            except ApiError as error:
                if error.not_found:
                    return groups
                raise
            for item in page.items:
                try:
                    groups.append(decode(item, PodGroup))
                except InvalidObjectError as error:
                    # One broken object must not keep every leader from leading.
                    logger.warning("a PodGroup is passed over: %s", error)
            continue_ = page.metadata.continue_
            if not continue_:
                return groups

    def subscribe(self, *, gang: Callable[[GangKey], None], queue: Callable[[Change[Queue]], None]) -> None:
        """Tell `gang` of every gang that a change touches, and `queue` of the queues themselves."""

        def pod_changed(change: Change[Pod]) -> None:
            for pod in (change.old, change.new):
                for key in _gangs_of_pod(pod) if pod else ():
                    gang(key)

        def group_changed(change: Change[PodGroup]) -> None:
            meta = change.object.metadata
            gang(GangKey(meta.namespace, meta.name))

        def priorities_changed(_: Change[PriorityClass]) -> None:
            for key in self.gangs():
                gang(key)

        self.pods.subscribe(pod_changed)
        self.pod_groups.subscribe(group_changed)
        self.priority_classes.subscribe(priorities_changed)
        self.queues.subscribe(queue)
        for kind, store in self._workloads.items():
            store.subscribe(_workload_changed(kind, gang))

    def gangs(self) -> set[GangKey]:
        """All gangs that have a PodGroup or a pod."""
        keys = {GangKey(group.metadata.namespace, group.metadata.name) for group in self.pod_groups}
        return keys.union(*(_gangs_of_pod(pod) for pod in self.pods))

    def pods_of(self, key: GangKey) -> list[Pod]:
        """The pods that are bound to the PodGroup, whoever bound them."""
        return self.pods.by_index("gang", key)

    def pod_group(self, key: GangKey) -> PodGroup | None:
        """The PodGroup of that name."""
        return self.pod_groups.get(key.namespace, key.name)

    def workload(self, namespace: str, owner: OwnerReference) -> tuple[Kind, Decoded] | None:
        """The workload that an owner reference means: same name and same UID."""
        kind = kind_of_owner(owner)
        found = self._workloads[kind].get(namespace, owner.name) if kind else None
        return (kind, found) if kind and found and found.metadata.uid == owner.uid else None

    def priorities(self) -> dict[str, int]:
        """The values of the PriorityClasses by name; under "" what a pod without a class gets."""
        return priority_values(self.priority_classes)


def _gangs_of_pod(pod: Pod) -> Iterable[GangKey]:
    group = pod.metadata.annotations.get(GROUP_NAME)
    return (GangKey(pod.metadata.namespace, group),) if group else ()


def _workload_changed(kind: Kind, gang: Callable[[GangKey], None]) -> Callable[[Change[Decoded]], None]:
    def changed(change: Change[Decoded]) -> None:
        meta = change.object.metadata
        gang(GangKey(meta.namespace, kind.pod_group_name(meta.name)))

    return changed
