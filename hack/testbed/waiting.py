"""The one way in which the testbed and its tests wait: for a condition, with a deadline, never for a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from hack.testbed.errors import TestbedError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["wait_for"]

_T = TypeVar("_T")


def wait_for(description: str, condition: Callable[[], _T], timeout: float, *, interval: float = 0.05) -> _T:
    """Call `condition` until its answer is true and return that answer.

    `timeout` and `interval` are seconds. Raises TestbedError with the description and the last answer (or the last
    error, when the condition itself failed with one of ours or of the network) at the deadline.
    """
    deadline = time.monotonic() + timeout
    while True:
        last: object
        try:
            answer = condition()
        except (TestbedError, OSError) as error:
            last = error
        else:
            if answer:
                return answer
            last = answer
        if time.monotonic() > deadline:
            raise TestbedError(f"waited {timeout:g} s for {description}; last seen: {last!s}")
        time.sleep(interval)
