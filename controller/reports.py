"""Says why: the gang's state as annotations of its PodGroup, and events on the workload where people look first."""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from muster.kube.errors import ApiError
from muster.kube.resource import EVENTS, POD_GROUPS
from muster.names import ADMITTED, MESSAGE, STATE
from muster.objects import PodGroup, decode
from muster.reasons import State

if TYPE_CHECKING:
    from controller.view import View
    from controller.writer import Writer

__all__ = ["Reporter"]

logger = logging.getLogger(__name__)

LEDGER_MANAGER = "muster-ledger"
_WARNINGS = frozenset(
    {
        State.EXCEEDS_CAPABILITY,
        State.QUEUE_NOT_FOUND,
        State.QUEUE_CLOSED,
        State.INVALID,
        State.FOREIGN_POD_GROUP,
    },
)
# The same state with other numbers is worth an event only so often, in seconds; the annotation always has the latest.
_EVENT_INTERVAL = 30.0
_LONGEST_NOTE = 1024  # bytes


@dataclass(slots=True)
class _Last:
    state: str
    message: str
    event_at: float


class Reporter:
    """Writes marks, states and events; `instance` names this process in events."""

    def __init__(self, writer: Writer, instance: str) -> None:
        self._writer = writer
        self._instance = instance
        self._last: dict[str, _Last] = {}

    async def mark(self, view: View, admitted: str, state: State, message: str) -> PodGroup:
        """Write `muster.dev/admitted` (the workload's UID, or "" for not admitted) together with the state.

        Gives the PodGroup as it is then. Raises ApiError, also when the PodGroup was replaced meanwhile.
        """
        group = view.pod_group
        if group is None:
            raise ValueError(f"{view.key} has no PodGroup to mark")
        annotations = {STATE: str(state), MESSAGE: message}
        if admitted:
            annotations[ADMITTED] = admitted
        body: dict[str, Any] = {
            "apiVersion": POD_GROUPS.api_version,
            "kind": POD_GROUPS.kind,
            # With the UID the apply can neither make a new PodGroup nor touch another of the same name.
            "metadata": {
                "name": group.metadata.name,
                "namespace": group.metadata.namespace,
                "uid": group.metadata.uid,
                "annotations": annotations,
            },
        }
        return decode(await self._writer.apply(POD_GROUPS, body, field_manager=LEDGER_MANAGER), PodGroup)

    async def report(self, view: View, admitted: str, state: State, message: str, now: float) -> PodGroup | None:
        """Bring annotations and events up to date; nothing is written when nothing changed. Gives the PodGroup."""
        group = view.pod_group
        if group is not None and view.ours:
            annotations = group.metadata.annotations
            said = (annotations.get(ADMITTED, ""), annotations.get(STATE), annotations.get(MESSAGE))
            if said != (admitted, str(state), message):
                group = await self.mark(view, admitted, state, message)
        await self.tell(view, state, message, now)
        return group

    def forget(self, uid: str) -> None:
        """Drop what was said of a workload that is gone."""
        self._last.pop(uid, None)

    async def tell(self, view: View, state: State, message: str, now: float) -> None:
        """Write an event on the workload, unless this was said before; `now` is seconds of a monotonic clock."""
        if view.decoded is None or view.kind is None:
            return
        meta = view.decoded.metadata
        last = self._last.get(meta.uid)
        if last is None and view.pod_group is not None:
            # After a restart the annotations remember what was said before.
            before = view.pod_group.metadata.annotations
            if (before.get(STATE), before.get(MESSAGE)) == (str(state), message):
                last = _Last(str(state), message, now)
        if (
            last is not None
            and last.state == state
            and (last.message == message or now < last.event_at + _EVENT_INTERVAL)
        ):
            self._last[meta.uid] = _Last(str(state), message, last.event_at)
            return
        self._last[meta.uid] = _Last(str(state), message, now)
        logger.info("%s %s: %s", view.key, state, message)
        event = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {"name": f"{meta.name[:200]}.{uuid.uuid4().hex[:16]}", "namespace": meta.namespace},
            "eventTime": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "reportingController": "muster.dev/controller",
            "reportingInstance": self._instance,
            "action": "GangScheduling",
            "reason": str(state),
            "type": "Warning" if state in _WARNINGS else "Normal",
            "note": message.encode()[:_LONGEST_NOTE].decode(errors="ignore"),
            "regarding": {
                "apiVersion": f"{view.kind.group}/{view.kind.versions[0]}",
                "kind": view.kind.kind,
                "namespace": meta.namespace,
                "name": meta.name,
                "uid": meta.uid,
            },
        }
        try:
            await self._writer.create(EVENTS, event)
        except ApiError as error:
            # An event is a courtesy; scheduling must not wait for it.
            logger.warning("%s: no event written: %s", view.key, error)
