"""A work queue that records the gangs that are added."""

from muster.kube.workqueue import WorkQueue
from muster.queueing.ledger import GangKey


class RecordedQueue(WorkQueue[GangKey]):
    """A work queue that hands out nothing, and has all keys that were added."""

    def __init__(self) -> None:
        super().__init__()
        self.added_keys: list[GangKey] = []

    def add(self, key: GangKey) -> None:
        """Record the key."""
        self.added_keys.append(key)
