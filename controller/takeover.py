"""Taking office: everything that is in the cluster enters the ledger before the first decision.

Tens of thousands of gangs take seconds, in which the lease has to be renewed and the watches go on: it is done step by
step, and what changes between two steps enters once more. It has ended when nothing is left that the ledger shows
otherwise than the stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from controller.admission_queue import AdmissionQueue
from controller.memory import Memories
from muster.model.objects import PodGroup
from muster.observe.cluster import Cluster
from muster.observe.gang_keys import gang_of_group
from muster.observe.observing import read_ahead
from muster.queueing.ledger import GangKey


class Takeover:
    """The beginning of a leader's term.

    `enter` enters a gang into the ledger as the stores show it, `look_at` is called for each gang that was entered.
    """

    def __init__(
        self,
        cluster: Cluster,
        admission_queue: AdmissionQueue,
        memories: Memories,
        enter: Callable[[GangKey], None],
        look_at: Callable[[GangKey], None],
    ) -> None:
        self._cluster = cluster
        self._admission_queue = admission_queue
        self._memories = memories
        self._enter = enter
        self._look_at = look_at
        # In the order in which they came; a dict, so that each is there once.
        self._left: dict[GangKey, None] = {}
        self._many: list[Iterator[GangKey | None]] = []
        self.under_way = False

    def touched(self, key: GangKey) -> None:
        """Something has changed about this gang: what was entered of it meanwhile counts no more."""
        if self.under_way:
            self._left[key] = None

    def touched_many(self, keys: Iterable[GangKey | None]) -> None:
        """As `touched`, of all of these; None stands for one that is not concerned."""
        self._many.append(iter(keys))

    def steps(self, groups: Iterable[PodGroup]) -> Iterator[None]:
        """Enter everything, no more than one queue or gang in a step, and of a large gang some pods.

        `groups` are all PodGroups as listed since the lease is ours: the watch may not have shown yet what the leader
        before us wrote last.
        """
        self.under_way = True
        for name in [queue.metadata.name for queue in self._cluster.queues]:
            # Between two steps the watch may show a newer one, or none.
            queue = self._cluster.queues.get("", name)
            if queue is not None:
                self._admission_queue.set_queue(queue)
                # The PodGroups of those who wait may state the numbers of an earlier moment.
                self._admission_queue.refresh(name)
            yield
        for group in groups:
            key = gang_of_group(group)
            self._memories.begin(key, group)
            self._left[key] = None
            yield
        for key in self._cluster.each_gang():
            self._left[key] = None
            yield
        while self._left or self._many:
            if self._many:
                yield from self._noted(self._many.pop())
            else:
                key = next(iter(self._left))
                yield from read_ahead(key, self._cluster)
                # What changed meanwhile is entered with it.
                del self._left[key]
                self._enter(key)
                self._look_at(key)
                yield
        self.under_way = False

    def _noted(self, keys: Iterator[GangKey | None]) -> Iterator[None]:
        for key in keys:
            if key is not None:
                self._left[key] = None
            yield
