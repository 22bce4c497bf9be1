"""The form of an Event (events.k8s.io/v1)."""

import uuid
from dataclasses import asdict, dataclass
from typing import Any

from muster.model.resource import EVENTS
from muster.model.times import text_of

_LONGEST_NOTE = 1024  # bytes; the apiserver refuses more
_LONGEST_NAME = 200  # characters of the object's name in that of its event


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class EventSource:
    """The reporter of events: the `controller`, which stands for all its replicas, the `instance`, and its `action`."""

    controller: str
    instance: str
    action: str

    def event(
        self, regarding: Regarding, reason: str, note: str, *, warning: bool, seconds: float, suffix: str = ""
    ) -> dict[str, Any]:
        """Return an event of this moment (`seconds` since 1970); `suffix` makes its name, and is random when empty."""
        about = asdict(regarding)
        return {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                # No part of a name may end with a hyphen, or be empty, wherever a long one is cut.
                "name": f"{regarding.name[:_LONGEST_NAME].rstrip('-.')}.{suffix or uuid.uuid4().hex[:16]}",
                "namespace": regarding.namespace,
            },
            "eventTime": text_of(seconds),
            "reportingController": self.controller,
            "reportingInstance": self.instance,
            "action": self.action,
            "reason": reason,
            "type": "Warning" if warning else "Normal",
            "note": note.encode()[:_LONGEST_NOTE].decode(errors="ignore"),
            "regarding": {"apiVersion": about.pop("api_version"), **about},
        }
