"""Long work on the event loop, in slices: between two of them the lease is renewed, and all else has its turn."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["SLICE", "in_slices"]

SLICE = 0.01
"""Seconds of a core; with the chart's request of 100m, and no more than that, a tenth of a second."""


async def in_slices(steps: Iterable[object], used: Callable[[], float] = time.thread_time) -> None:
    """Take the steps one after the other, none of them long; `used` gives the thread's CPU seconds so far.

    The wall clock would cut the same work into other slices wherever the machine is busy.
    """
    until = used() + SLICE
    for _ in steps:
        if used() >= until:
            await asyncio.sleep(0)
            until = used() + SLICE
