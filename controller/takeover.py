"""Taking over: everything that is in the cluster enters the ledger before the first decision.

Tens of thousands of gangs take seconds, in which the lease has to be renewed and the watches go on: it is done step by
step, and what changes between two steps enters once more. It has ended when nothing is left that the ledger shows
otherwise than the stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from controller.gangs import enter
from controller.term import Term
from muster.cluster.observe import read_ahead
from muster.cluster.stores import gang_of_group
from muster.model.objects import PodGroup
from muster.queueing.ledger import GangKey


class Takeover:
    """The beginning of a leader's term."""

    def __init__(self, term: Term) -> None:
        self._term = term
        # In the order in which they came; a dict, so that each is there once.
        self._left: dict[GangKey, None] = {}
        self._many: list[Iterator[GangKey | None]] = []

    def touched(self, key: GangKey) -> None:
        """Enter a gang once more that has changed after it was entered."""
        if self._term.taking_over:
            self._left[key] = None

    def touched_many(self, keys: Iterable[GangKey | None]) -> None:
        """As `touched`, for all of these; None stands for a gang that is not concerned."""
        self._many.append(iter(keys))

    def steps(self, groups: Iterable[PodGroup]) -> Iterator[None]:
        """Enter everything, no more than one queue or gang in a step, and of a large gang some pods.

        `groups` are all PodGroups as listed since the lease is held: the watch may not have shown yet what the former
        leader wrote last.
        """
        term = self._term
        term.taking_over = True
        for name in [queue.metadata.name for queue in term.cluster.queues]:
            # Between two steps the watch may show a newer one, or none.
            queue = term.cluster.queues.get("", name)
            if queue is not None:
                term.admission.set_queue(queue)
                # The PodGroups of waiting gangs may state the numbers of an earlier moment.
                term.admission.refresh(name)
            yield
        for group in groups:
            key = gang_of_group(group)
            term.expectations.begin(key, group)
            self._left[key] = None
            yield
        for key in term.cluster.each_gang():
            self._left[key] = None
            yield
        while self._left or self._many:
            if self._many:
                yield from self._noted(self._many.pop())
            else:
                key = next(iter(self._left))
                yield from read_ahead(key, term.cluster)
                # What changed since then is entered with it.
                del self._left[key]
                enter(term, key)
                term.workqueue.add(key)
                yield
        term.taking_over = False

    def _noted(self, keys: Iterator[GangKey | None]) -> Iterator[None]:
        for key in keys:
            if key is not None:
                self._left[key] = None
            yield
