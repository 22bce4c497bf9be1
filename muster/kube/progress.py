"""The progress of a reflector, and its next step after a fault: resume or list again, now or later.

Pure: its caller passes in the events, with the time where time matters.
"""

import random

from muster.kube.backoff import Backoff
from muster.kube.errors import ApiError, Unreachable

# Failed resumptions after which the resource version itself is doubted.
_RESUMPTIONS = 5
# A watch that ends sooner, in seconds, is a fault and must not be reopened in a busy loop.
_SHORTEST_WATCH = 1.0
# Seconds. The apiserver asks for a few; the maintenance page of a load balancer names an hour, and may be over soon.
_LONGEST_ASKED = 60.0


class Progress:
    """State of one reflector. `resource_version` is where the next watch begins; "" means that a list comes first.

    `doubtful` is True if the cluster may have been restored from a backup: `compare` comes before the next watch.
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
        """Note a whole list of this version."""
        self.resource_version = resource_version
        self.doubtful = False
        self._absences = 0

    def opened(self, now: float) -> None:
        """Note that the apiserver has opened a watch."""
        self._opened_at = now
        self._moved = False

    def moved(self, resource_version: str) -> None:
        """Note an event or a bookmark of the watch: everything up to this version is known."""
        self._moved = True
        self.resource_version = resource_version or self.resource_version

    def closed(self, now: float) -> bool:
        """Note the end of a watch, whatever ended it. True if it lasted.

        If it did, or sent anything, faults are forgotten.
        """
        lasted = now - self._opened_at >= _SHORTEST_WATCH
        if self._moved or lasted:
            self._backoff.reset()
            self._expired = False
        return lasted

    def silent(self) -> None:
        """Note that the watch sent nothing for too long, which is no fault."""
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
        """Note a 404 while the store has `held` objects. Return the seconds until the next attempt; None to doubt it.

        With objects at hand a single 404 may be a confused proxy; forgetting them all would be a costly mistake.
        """
        self._absences += 1
        if self._absences == 1 and held:
            return None
        self.resource_version = ""
        self._backoff.reset()
        return self._absent_retry * (1 + 0.1 * random.random())  # noqa: S311 - not a secret

    def failed(self, error: ApiError) -> float:
        """Note a fault, and return the seconds until the next attempt."""
        self.doubtful = True
        # Our version stays valid only if the server was overloaded or unreachable.
        resume = (error.overloaded or isinstance(error, Unreachable)) and self._backoff.failures < _RESUMPTIONS
        if error.gone or not resume:
            self.resource_version = ""
        delay = max(self._backoff.next(), min(error.retry_after or 0.0, _LONGEST_ASKED))
        if error.gone and not self._expired:
            # Usual after an outage: the server is back, and the store must not stay stale for the delay of the outage.
            self._expired = True
            return 0.0
        return delay
