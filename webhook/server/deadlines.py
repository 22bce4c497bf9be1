"""By when a review is to be answered: whoever waits for something meanwhile waits until then at most.

A deadline around the whole review would cost a fifth of a decision that waits for nothing, as nearly all do.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar

# By the event loop's clock; a connection's next review has the same context.
_answer_by: ContextVar[float | None] = ContextVar("answer_by", default=None)


def answer_within(seconds: float) -> None:
    """The review of this task is to be answered so many seconds from now."""
    _answer_by.set(asyncio.get_running_loop().time() + seconds)


def in_time() -> asyncio.Timeout:
    """A context that raises TimeoutError where its body waits for longer than the review may; outside of one it may."""
    return asyncio.timeout_at(_answer_by.get())
