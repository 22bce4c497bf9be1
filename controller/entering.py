"""Entering many gangs into the ledger: at the beginning of a term, and when the queue comes for which they wait.

No object is known on which this fails. Where a defect makes it fail on one, no leader could take office any more, or a
queue would stay closed, and all other gangs would pay for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from controller.admission_queue import AdmissionQueue
from controller.memory import Memories
from muster.observe.cluster import Cluster
from muster.observe.pod_groups import newer
from muster.queueing.ledger import GangKey

logger = logging.getLogger(__name__)


class Entering:
    """Enters one gang after another with `enter`, and keeps the place of one for which that fails."""

    def __init__(
        self,
        cluster: Cluster,
        admission_queue: AdmissionQueue,
        memories: Memories,
        enter: Callable[[GangKey], object],
    ) -> None:
        self._cluster = cluster
        self._admission_queue = admission_queue
        self._memories = memories
        self._enter = enter

    def enter(self, key: GangKey) -> None:
        """Enter the gang as the stores show it.

        Where that fails it holds what its PodGroup asks for, for it may be running, until a reconcile of it succeeds.
        """
        try:
            self._enter(key)
        except Exception:
            logger.exception(
                "internal error: %s cannot be read; it keeps what its PodGroup asks for, and no more of it starts",
                key,
                extra={"event": "gang.unread"},
            )
            self._admission_queue.keep(key, newer(self._cluster.pod_group(key), self._memories.seen(key).written))
