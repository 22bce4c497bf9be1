"""Times as in objects (RFC 3339, UTC) and as seconds of the wall clock; and durations."""

import re
from datetime import UTC, datetime
from math import ceil
from operator import le

# No number of more digits: annotations may have thousands, which neither `int` nor `float` takes.
_DURATION = re.compile(r"(?:(\d{1,18})h)?(?:(\d{1,18})m)?(?:(\d{1,18})s)?")

_MOST_DURATIONS = 32

# The last minute of the year 9999: a time limit may be as many seconds as a user writes.
_LAST = 253_402_300_740


def seconds_of(text: str) -> float | None:
    """Return the seconds since 1970 of a time as the apiserver writes it; None if the text is no time."""
    try:
        moment = datetime.fromisoformat(text)
        # In another zone it may lie before the year 1 or after 9999, where it is no time that anything can show.
        return moment.astimezone(UTC).timestamp() if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def text_of(seconds: float) -> str:
    """Return the time in the apiserver's form, to the microsecond."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def stamp_of(seconds: float) -> str:
    """Return the time in the apiserver's form, to the next second."""
    return datetime.fromtimestamp(min(ceil(seconds), _LAST), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def minute_of(seconds: float) -> str:
    """Return the minute by which a time has come, for sentences: `2026-11-28 14:05 UTC`."""
    return datetime.fromtimestamp(min(ceil(seconds / 60) * 60, _LAST), UTC).strftime("%Y-%m-%d %H:%M UTC")


def duration_of(text: str) -> float | None:
    """Return the seconds of a duration such as 30s, 10m or 1h30m; None if the text is none."""
    match = _DURATION.fullmatch(text) if text and text.isascii() else None
    if match is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(hours * 3600 + minutes * 60 + seconds)


def duration_text(seconds: float) -> str:
    """Return the duration as `duration_of` reads it, to the second: 90 is 1m30s."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = (f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number)
    return "".join(parts) or "0s"


def durations_of(text: str) -> tuple[float, ...]:
    """Return the seconds of durations between spaces, none shorter than the one before; () for any other text."""
    found = [duration_of(part) or 0.0 for part in text.split(" ", _MOST_DURATIONS)]
    return tuple(found) if found[0] > 0 and all(map(le, found, found[1:])) else ()
