"""Queues as the watch shows them, read for the rules; problems of a Queue are logged."""

from __future__ import annotations

import logging

from muster.model.objects import InvalidObjectError, Queue
from muster.queueing.queue_view import QueueView, read_queue

logger = logging.getLogger(__name__)


def view_of(queue: Queue | None) -> QueueView | None:
    """The queue by itself; None where it is gone or cannot be read: nothing new starts there."""
    if queue is None:
        return None
    name = queue.metadata.name
    try:
        view = read_queue(queue)
    except InvalidObjectError as error:
        logger.warning(
            "cannot read queue %s; nothing new starts there: %s", name, error, extra={"event": "queue.unreadable"}
        )
        return None
    for problem in view.problems:
        logger.warning("queue %s: %s; %s", name, problem, problem.effect, extra={"event": "queue.problem"})
    return view
