"""Processor time on a machine of any speed: what a test allows grows with what the same work takes here and now."""

import time

# Of the thread's processor, for the work below, where the bounds were set.
_REFERENCE = 0.004


def paced(seconds: float) -> float:
    """Return as much processor time as so many seconds were where the bounds were set; not less on a faster machine.

    To be asked after what is measured: a neighbour on the same core makes both slower.
    """
    return seconds * max(1.0, max(_taken() for _ in range(3)) / _REFERENCE)


def _taken() -> float:
    before = time.thread_time()
    texts = {f"{number}": [number] for number in range(20_000)}
    sum(map(len, texts.values()))
    return time.thread_time() - before
