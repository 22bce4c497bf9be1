"""What the webhook knows of the cluster: its own watches, and one direct read of what is quicker than they are."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from muster.admission import Context
from muster.gang import priority_values
from muster.kube.errors import ApiError
from muster.kube.reflector import Reflector
from muster.kube.resource import PRIORITY_CLASSES, QUEUES, Resource
from muster.kube.store import Store
from muster.kube.workloads import resource_of
from muster.objects import InvalidObjectError, PriorityClass, Queue, decode
from muster.queues import QueueView, read_queue
from muster.workloads import GANG_KINDS, Decoded, Kind

if TYPE_CHECKING:
    from muster.intent import Defaults, Intent
    from muster.kube.client import Client
    from muster.objects import OwnerReference

__all__ = ["Knowledge"]

T = TypeVar("T")

logger = logging.getLogger(__name__)


class Knowledge:
    """The workloads, queues and priority classes of the cluster.

    A direct read may take `read_seconds`, which is to be well below what the apiserver grants the webhook.
    """

    def __init__(self, client: Client, defaults: Defaults, read_seconds: float = 2.0) -> None:
        self._client = client
        self._defaults = defaults
        self._read_seconds = read_seconds
        self._workloads: dict[Kind, Store[Decoded]] = {kind: Store() for kind in GANG_KINDS}
        self._queues: Store[Queue] = Store()
        self._priorities: Store[PriorityClass] = Store()

    def reflectors(self) -> list[Reflector[Decoded] | Reflector[Queue] | Reflector[PriorityClass]]:
        """What keeps the stores up to date; each must run for as long as the process."""
        return [
            *(Reflector(self._client, resource_of(kind), kind.decoded, self._workloads[kind]) for kind in GANG_KINDS),
            Reflector(self._client, QUEUES, Queue, self._queues),
            Reflector(self._client, PRIORITY_CLASSES, PriorityClass, self._priorities),
        ]

    @property
    def synced(self) -> bool:
        """Whether everything was listed once."""
        return self._queues.synced and self._priorities.synced and all(s.synced for s in self._workloads.values())

    async def workload(
        self,
        kind: Kind,
        namespace: str,
        owner: OwnerReference,
        *,
        fresh: bool = False,
    ) -> Decoded | None:
        """The workload that owns a pod, or None when it is gone; `fresh` reads it whatever the watch has shown.

        Raises ApiError when the watch has not seen it and the apiserver does not answer: then nobody can say whether
        the pod belongs to a gang, and the pod must not be created.
        """
        known = self._workloads[kind].get(namespace, owner.name)
        if fresh or known is None or known.metadata.uid != owner.uid:
            known = await self._read(resource_of(kind), owner.name, kind.decoded, namespace)
        return known if known is not None and known.metadata.uid == owner.uid else None

    async def context(self, intent: Intent | None) -> Context:
        """What the rules need to judge a workload of that intent.

        Its queue and its class may have been applied a moment before it, so what the watch has not seen is read once.
        Raises ApiError when the apiserver does not answer that.
        """
        view: QueueView | None = None
        priorities = self.priorities()
        if intent is not None:
            view = self._view(self._queues.get("", intent.queue) or await self._read(QUEUES, intent.queue, Queue))
            name = intent.priority_class
            if name and name not in priorities:
                found = await self._read(PRIORITY_CLASSES, name, PriorityClass)
                priorities |= {name: found.value} if found else {}
        return Context(
            queue=lambda name: view if view is not None and view.name == name else None,
            priorities=priorities,
            defaults=self._defaults,
        )

    def priorities(self) -> dict[str, int]:
        """The values of the PriorityClasses by name; under "" what a pod without a class gets."""
        return priority_values(self._priorities)

    async def _read(self, resource: Resource, name: str, type_: type[T], namespace: str | None = None) -> T | None:
        try:
            return decode(await self._client.get(resource, name, namespace, deadline=self._read_seconds), type_)
        except ApiError as error:
            if error.not_found:
                return None
            raise

    def _view(self, queue: Queue | None) -> QueueView | None:
        try:
            if queue is None:
                return None
            name = queue.metadata.name
            return read_queue(queue, leaf=all(other.spec.parent != name for other in self._queues))
        except InvalidObjectError as error:
            logger.warning("queue %s cannot be read: %s", queue.metadata.name if queue else "", error)
            return None
