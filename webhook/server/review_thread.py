"""Long decisions beside the event loop: a large review is thought about in a thread, small ones go on meanwhile.

One thread: Python runs one at a time anyway, and the first of several is done sooner that way. What the loop does
meanwhile costs more: each time it wakes up it waits for the interpreter, up to 5 ms (sys.getswitchinterval), so that a
small review takes some 8 ms on average instead of less than one; and for as long as a call into C does not let go,
which was up to 0.3 s beside a body of 3 MiB.

What runs here sees nothing that the loop may change meanwhile: only what has been gathered before, and frozen objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import ParamSpec, TypeVar

from webhook.server.deadlines import in_time

P = ParamSpec("P")
T = TypeVar("T")


class ReviewThread:
    """The thread. It cannot be ended: what a caller gives up on runs to its end, and keeps others out until then.

    So there is never more than one step under way, and those that wait hold a place of the large reviews.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="large-review")
        self._free = asyncio.Semaphore(1)

    async def run(self, step: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        """What the step returns or raises, called in the thread when that is free; TimeoutError when it is late."""
        async with in_time():
            await self._free.acquire()
            return await self._submit(step, *args, **options)

    def _submit(self, step: Callable[P, T], *args: P.args, **options: P.kwargs) -> asyncio.Future[T]:
        loop = asyncio.get_running_loop()

        def free(_: Future[T]) -> None:
            # The loop may have ended before the thread.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(self._free.release)

        # With the context, so that its log lines say which review they are about.
        work = self._thread.submit(copy_context().run, partial(step, *args, **options))
        work.add_done_callback(free)
        return asyncio.wrap_future(work)


# What the review of this task may use; a small one is done sooner where it is.
offered: ContextVar[ReviewThread | None] = ContextVar("beside", default=None)


async def in_review_thread(step: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
    """The result of a step of a review that neither waits nor looks at anything that changes."""
    thread = offered.get()
    return step(*args, **options) if thread is None else await thread.run(step, *args, **options)
