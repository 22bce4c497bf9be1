"""Concurrent calls to the apiserver, with a bound on their number.

The client obeys the apiserver's own limits (429); this only bounds the number of concurrent calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

CONCURRENT = 32

T = TypeVar("T")
R = TypeVar("R")


async def burst(call: Callable[[T], Awaitable[R]], items: Iterable[T]) -> list[R]:
    """Call it for every item, begun in this order, and return the results. Raises the first failure after all calls."""
    limit = asyncio.Semaphore(CONCURRENT)

    async def one(item: T) -> R:
        async with limit:
            return await call(item)

    results = await asyncio.gather(*(one(item) for item in items), return_exceptions=True)
    done = [result for result in results if not isinstance(result, BaseException)]
    failures = [result for result in results if isinstance(result, BaseException)]
    results.clear()
    if failures:
        try:
            raise failures[0]
        finally:
            failures.clear()  # the traceback of the raised error holds this frame
    return done
