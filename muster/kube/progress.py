"""How far a reflector has come, and what it does after a fault: go on from there, or list again; now, or later.

Pure: what happened is told to it, with the time where time matters.
"""

from __future__ import annotations

import random

from muster.kube.backoff import Backoff
from muster.kube.errors import ApiError, Unreachable

# After so many resumptions in vain the resource version itself is doubted.
_RESUMPTIONS = 5
# A watch that ends sooner, in seconds, is a fault and must not be reopened in a busy loop.
_SHORTEST_WATCH = 1.0
# Seconds. The apiserver asks for a few; the maintenance page of a load balancer names an hour, and may be over soon.
_LONGEST_ASKED = 60.0


class Progress:
    """State of one reflector. `resource_version` is where the next watch begins; "" means that a list comes first.

    `doubtful` says that the cluster may have gone back to a backup meanwhile: `compare` comes before the next watch.
    `absent_retry` is the seconds after which a kind that is not served is asked for again. Times are seconds of one
    monotonic clock.
    """

    def __init__(self, backoff: Backoff, absent_retry: float) -> None:
        self.resource_version = ""
        self.doubtful = False
        self._backoff = backoff
        self._absent_retry = absent_retry
        self._absences = 0
        self._expired = False
        self._opened_at = 0.0
        self._moved = False

    @property
    def absent(self) -> bool:
        """True if the apiserver did not serve this kind when last asked."""
        return self._absences > 0

    def listed(self, resource_version: str) -> None:
        """A whole list of this version is in."""
        self.resource_version = resource_version
        self.doubtful = False
        self._absences = 0

    def opened(self, now: float) -> None:
        """The apiserver gives a watch."""
        self._opened_at = now
        self._moved = False

    def moved(self, resource_version: str) -> None:
        """The watch has told what happened up to this version: an event that was taken in, or a bookmark."""
        self._moved = True
        self.resource_version = resource_version or self.resource_version

    def closed(self, now: float) -> bool:
        """A watch that was given is over, however it ended. Whether it lasted.

        If it did, or told anything, faults are forgotten.
        """
        lasted = now - self._opened_at >= _SHORTEST_WATCH
        if self._moved or lasted:
            self._backoff.reset()
            self._expired = False
        return lasted

    def silent(self) -> None:
        """The watch gave nothing for too long, which is no fault."""
        self.doubtful = True

    def compare(self, current: str) -> None:
        """Give up our version when the cluster's is older: its etcd was restored from a backup.

        A watch from the future is no error to the apiserver, it is only silent. Versions are ordered numbers
        (KEP-5504); others are left alone.
        """
        if current.isdecimal() and self.resource_version.isdecimal() and int(current) < int(self.resource_version):
            self.resource_version = ""
        self.doubtful = False

    def missing(self, held: int) -> float | None:
        """Take a 404, holding so many objects. The seconds until the kind is asked for again, or None: do not believe.

        With objects at hand a single 404 may be a confused proxy; forgetting them all would be a costly mistake.
        """
        self._absences += 1
        if self._absences == 1 and held:
            return None
        self.resource_version = ""
        self._backoff.reset()
        return self._absent_retry * (1 + 0.1 * random.random())  # noqa: S311 - not a secret

    def failed(self, error: ApiError) -> float:
        """Take a fault, and give the seconds until the next attempt."""
        self.doubtful = True
        # Only an overloaded or unreachable server leaves our version as good as it was.
        resume = (error.overloaded or isinstance(error, Unreachable)) and self._backoff.failures < _RESUMPTIONS
        if error.gone or not resume:
            self.resource_version = ""
        delay = max(self._backoff.next(), min(error.retry_after or 0.0, _LONGEST_ASKED))
        if error.gone and not self._expired:
            # Usual after an outage: the server is back, and the store must not stay stale for the delay of the outage.
            self._expired = True
            return 0.0
        return delay
