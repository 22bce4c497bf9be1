"""How long to wait before the next attempt: exponential, capped, jittered. Pure: it never sleeps and reads no clock."""

from __future__ import annotations

import random

__all__ = ["Backoff"]


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
        """Count one more failure and give the seconds to wait after it."""
        delay = self._delay
        self._delay = min(self._cap, self._delay * self._factor)
        self.failures += 1
        return delay * (1 + self._jitter * self._random.random())

    def reset(self) -> None:
        """Begin again at the base, after a success."""
        self._delay = self._base
        self.failures = 0
