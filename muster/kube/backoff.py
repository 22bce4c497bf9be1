"""Delays before the next attempt: growing ones for a single item, and a common rate for all items.

Pure: nothing here sleeps or reads a clock.
"""

import random


class Backoff:
    """Growing delays in seconds: base, base x factor, … up to `cap`, each lengthened by up to `jitter` of itself.

    Jitter keeps the replicas of a fleet from coming back all at once; it is added after the cap, so that the longest
    delay is cap x (1 + jitter). Raises ValueError when base, cap or factor make no growing sequence.
    """

    def __init__(
        self,
        base: float,
        cap: float,
        *,
        factor: float = 2.0,
        jitter: float = 0.5,
        random: random.Random = random.Random(),  # noqa: B008, S311 - one shared source is meant; nothing here is a secret
    ) -> None:
        if not 0 < base <= cap or factor < 1 or jitter < 0:
            raise ValueError(f"no growing delays: base {base}, cap {cap}, factor {factor}, jitter {jitter}")
        self._base = base
        self._cap = cap
        self._factor = factor
        self._jitter = jitter
        self._random = random
        self._delay = base
        self.failures = 0

    def next(self) -> float:
        """Count one more failure and return the seconds to wait after it."""
        delay = self._delay
        self._delay = min(self._cap, self._delay * self._factor)
        self.failures += 1
        return delay * (1 + self._jitter * self._random.random())

    def reset(self) -> None:
        """Begin again at the base, after a success."""
        self._delay = self._base
        self.failures = 0


class Rate:
    """Bounds how often something happens: `burst` times at once, `per_second` times a second in the long run.

    Times are seconds of any one clock that never goes back. Raises ValueError when nothing could ever happen.
    """

    def __init__(self, per_second: float, burst: int) -> None:
        if per_second <= 0 or burst < 1:
            raise ValueError(f"no rate: {per_second} a second, burst {burst}")
        self._interval = 1 / per_second
        self._tolerance = (burst - 1) * self._interval
        self._due = float("-inf")

    def reserve(self, now: float) -> float:
        """Take the next free moment, which cannot be given back, and return the seconds until it."""
        self._due = max(self._due, now)
        delay = max(0.0, self._due - self._tolerance - now)
        self._due += self._interval
        return delay
