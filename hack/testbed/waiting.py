"""The one way in which the testbed and its tests wait: for a condition, with a deadline, never for a while.

A deadline ends a wait for what never comes. How long things take differs by machine and by what else runs there, and a
deadline that is far away costs nothing where things work.
"""

import time
from collections.abc import Callable
from typing import TypeVar

from hack.testbed.errors import TestbedError

_T = TypeVar("_T")
PATIENCE = 300.0
"""Seconds that any one step may take, on a machine that is slow, small or busy too: all deadlines are made of this."""
# Of what it has waited so far, and seconds.
_SHARE, _SHORTEST, _LONGEST = 0.05, 0.05, 0.5


def wait_for(
    description: str, condition: Callable[[], _T], timeout: float = PATIENCE, *, interval: float | None = None
) -> _T:
    """Call `condition` until its answer is true and return that answer.

    `timeout` and `interval`, between two calls, are seconds. Without an interval the longer it has waited the longer it
    pauses: most conditions are a question to an apiserver, and a twentieth of a wait is not missed. Raises TestbedError
    with the description and the last answer (or the last error, when the condition itself failed with one of ours or
    of the network) at the deadline.
    """
    began = time.monotonic()
    deadline = began + timeout
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
        pause = min(max(_SHORTEST, (time.monotonic() - began) * _SHARE), _LONGEST)
        time.sleep(pause if interval is None else interval)
