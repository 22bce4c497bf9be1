"""Log lines: one per record, for people or for machines, each with its event and the review that it is about.

Every call names its event (`extra={"event": "lease.acquired"}`), which stays when the message changes;
docs/observability.md lists them. A line holds its message and fields alone: never a body, never a Secret. Names come
from the makers of objects, so control characters in them are written as escapes, and no name can forge a line. The
lines of a traceback for people are indented.
"""

import json
import logging
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar

LEVELS = ("debug", "info", "warning", "error")

# The UID of the admission review that this task works on, "" for none.
review_uid: ContextVar[str] = ContextVar("review_uid", default="")

# A UID has 36 characters; a longer text must not fill the logs.
_LONGEST_UID = 64
_ESCAPES = {code: f"\\x{code:02x}" for code in (*range(32), 127, 0x85)} | {0x2028: "\\u2028", 0x2029: "\\u2029"}


class _Formatter(logging.Formatter):
    """Common parts of both forms: the time in UTC, and the parts of a record as safe text."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    @staticmethod
    def uid() -> str:
        return review_uid.get()[:_LONGEST_UID]

    @staticmethod
    def event(record: logging.LogRecord) -> str:
        """Return the name of the event; "" for a line of a library."""
        return str(getattr(record, "event", ""))

    def trace(self, record: logging.LogRecord) -> str:
        return self.formatException(record.exc_info) if record.exc_info else ""


class _Console(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        uid = self.uid()
        about = f" [{uid}]" if uid else ""
        event = f" {event}" if (event := self.event(record)) else ""
        text = f"{record.levelname} {record.name}{event}{about}: {record.getMessage()}".translate(_ESCAPES)
        # The message of an error may contain text of users: indented, none of its lines looks like a record.
        trace = "".join(f"\n  {line.translate(_ESCAPES)}" for line in self.trace(record).split("\n") if line)
        return f"{self.formatTime(record)} {text}{trace}"


class _Json(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": self.event(record),
            "message": record.getMessage(),
            "uid": self.uid(),
            "trace": self.trace(record),
        }
        return json.dumps({name: text for name, text in line.items() if text})


FORMATS: dict[str, Callable[[], logging.Formatter]] = {"console": _Console, "json": _Json}


def configure_logging(level: str, form: str = "console") -> None:
    """Write records of that level and above to standard error, in one of FORMATS."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FORMATS[form]())
    logging.basicConfig(handlers=[handler], force=True)
    set_level(level)


def set_level(level: str) -> None:
    """Write records of that level (one of LEVELS) and above from now on; raises ValueError for any other word."""
    if level not in LEVELS:
        raise ValueError(f'log level "{level}" is not known; use {", ".join(LEVELS[:-1])} or {LEVELS[-1]}')
    logging.getLogger().setLevel(level.upper())
