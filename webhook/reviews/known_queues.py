"""The queues as the webhook knows them: its watch, and one direct read of what is quicker than that."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from muster.gangs.intent import Defaults
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.listing import list_all
from muster.kube.reflector import Reflector
from muster.kube.store import Change, Store
from muster.model.objects import InvalidObjectError, ObjectMeta, PodGroup, Queue, decode
from muster.observe.queues import view_of
from muster.observe.resources import pod_groups_of, queues_of
from muster.queueing.queue_tree import Place, QueueTree, labels_of
from muster.queueing.queue_view import ROOT
from muster.resources.amounts import Resources, parse_resources
from webhook.reviews.reads import Reads
from webhook.server.deadlines import in_time

logger = logging.getLogger(__name__)

# Queues that make a ring have no top.
_DEEPEST_QUEUE = 100


class KnownQueues:
    """The tree of queues, what they hold, and their PodGroups; a list of these may take `read_seconds`."""

    def __init__(self, client: Client, reads: Reads, defaults: Defaults, read_seconds: float) -> None:
        self._client = client
        self._reads = reads
        self._read_seconds = read_seconds
        self._source = defaults.queue_source
        self._schedulers = list(defaults.schedulers.values())
        self._store: Store[Queue] = Store()
        self._tree = QueueTree()
        self._store.subscribe(self._changed)

    def reflector(self) -> Reflector[Queue]:
        """What keeps them up to date; it must run for as long as the process."""
        return Reflector(self._client, queues_of(self._source), self._source.decoded, self._store)

    @property
    def seen(self) -> QueueTree:
        """Those that the watch has seen."""
        return self._tree

    async def tree(self, *names: str) -> QueueTree:
        """All queues, these and all above them among them where they exist: what the watch has not seen is read once.

        Raises ApiError when the apiserver does not answer that.
        """
        tree = self._tree
        for name in names:
            for _ in range(_DEEPEST_QUEUE):
                view = tree.get(name)
                if view is None and name and (name != ROOT or not self._store.synced):
                    view = view_of(await self._reads.object_of(queues_of(self._source), name, self._source.decoded))
                    tree = tree.having(view) if view else tree
                if view is None:
                    break
                name = view.parent  # noqa: PLW2901 - the way up
        return tree

    async def place(self, queue: str, namespace: ObjectMeta) -> Place | None:
        """The queue, where there is one of that name for the namespace; raises ApiError as `tree` does."""
        return (await self.tree(queue)).place(queue, labels_of(namespace))

    def held(self, queue: str) -> Resources:
        """What the pods of a queue hold by Volcano's count; nothing where it has not counted."""
        known = self._store.get("", queue)
        try:
            return parse_resources(known.status.allocated, path="status.allocated") if known else {}
        except InvalidObjectError:
            return {}

    async def pod_groups(self, *queues: str) -> list[PodGroup] | None:
        """The PodGroups of these queues, read now; None where the apiserver does not give them in time.

        They are not watched: only a change of a queue asks for them, and a cluster has many.
        """

        def of_queues(type_: type[PodGroup], raw: bytes) -> PodGroup | None:
            try:
                group = decode(raw, type_)
            except InvalidObjectError:
                return None
            return group if group.spec.queue in queues else None

        found: list[PodGroup] = []
        try:
            async with in_time(), asyncio.timeout(self._read_seconds):
                for scheduler in self._schedulers:
                    read, resource = partial(of_queues, scheduler.pod_groups), pod_groups_of(scheduler)
                    try:
                        found += (await list_all(self._client, resource, read, deadline=self._read_seconds)).items
                    except ApiError as error:
                        # Of a kind that the cluster does not serve there are none.
                        if not error.not_found:
                            raise
                return found
        except (ApiError, TimeoutError) as error:
            logger.warning(
                "cannot list the PodGroups of queue %s: %s",
                queues[0],
                str(error) or "it took too long",
                extra={"event": "review.queue"},
            )
            return None

    def _changed(self, change: Change[Queue]) -> None:
        view = view_of(change.new)
        if view is None:
            self._tree.drop(change.object.metadata.name)
        else:
            self._tree.set(view)
