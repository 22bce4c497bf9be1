"""Delays before the next attempt: growing ones for a single item, and a common rate for all items.

Pure: nothing here sleeps or reads a clock.
"""

import random


class Backoff:
    """Growing delays in seconds: base, twice the base, … up to `cap`, each lengthened by up to `jitter` of itself.

    Jitter keeps the replicas of a fleet from coming back all at once; it is added after the cap, so that the longest
    delay is cap x (1 + jitter).
    """

    def __init__(
        self,
        base: float,
        cap: float,
        *,
        jitter: float = 0.5,
        random: random.Random = random.Random(),  # noqa: B008, S311 - one shared source is meant; nothing here is a secret
    ) -> None:
        self._base = base
        self._cap = cap
        self._jitter = jitter
        self._random = random
        self._delay = base
        self.failures = 0

    def next(self) -> float:
        """Count one more failure and return the seconds to wait after it."""
        delay = self._delay
        self._delay = min(self._cap, 2 * self._delay)
        self.failures += 1
        return delay * (1 + self._jitter * self._random.random())

    def reset(self) -> None:
        """Begin again at the base, after a success."""
        self._delay = self._base
        self.failures = 0


class Rate:
    """Bounds how often something happens: `burst` times at once, `per_second` times a second in the long run.

    Times are seconds of any one clock that never goes back.
    """

    def __init__(self, per_second: float, burst: int) -> None:
        self._interval = 1 / per_second
        self._tolerance = (burst - 1) * self._interval
        self._due = float("-inf")

    def unused(self, now: float) -> bool:
        """True if nothing has happened for so long that the whole burst may happen again."""
        return self._due <= now

    def take(self, now: float) -> float:
        """Return 0.0 when it may happen now, which counts as done; else the seconds until it may."""
        delay = max(0.0, self._due - self._tolerance - now)
        if not delay:
            self.reserve(now)
        return delay

    def reserve(self, now: float) -> float:
        """Take the next free moment, which cannot be given back, and return the seconds until it."""
        self._due = max(self._due, now)
        delay = max(0.0, self._due - self._tolerance - now)
        self._due += self._interval
        return delay
