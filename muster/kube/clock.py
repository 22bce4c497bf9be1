"""The clocks of the client: one for the lease and for deadlines, which are compared, and the apiserver's.

The apiserver's is read from the `Date` of its answers: certificates are judged by it, and not by a pod's own clock.
"""

import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boottime() -> float:
    """Return seconds that also count while the machine is suspended, unlike Linux's monotonic clock."""
    return time.clock_gettime(_CLOCK)


class ServerClock:
    """The time at the apiserver, to about a second; this machine's time before its first answer."""

    def __init__(self) -> None:
        self._noted: tuple[str, float] | None = None

    def note_date(self, date: str | None) -> None:
        """Take the `Date` header of an answer that came just now."""
        if date:
            # Parsed when it is needed: answers are many.
            self._noted = date, time.monotonic()

    def now(self) -> datetime:
        """Return the time in UTC."""
        if self._noted is not None:
            text, at = self._noted
            try:
                parsed = parsedate_to_datetime(text)
            except ValueError:
                self._noted = None
            else:
                return parsed.replace(tzinfo=parsed.tzinfo or UTC) + timedelta(seconds=time.monotonic() - at)
        return datetime.now(UTC)
