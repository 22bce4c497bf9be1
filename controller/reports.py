"""Reports: the gang's state as annotations of its PodGroup, and events on the workload where people look first.

What its user wrote may be another object, from which the workload was made: that gets the events as well. The same
message is never repeated; the same state with other numbers is reported less and less often.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from controller.apiserver import Writer
from controller.events import GANG_AT_ONCE, GANG_PER_SECOND, Announcer
from muster.cluster.cluster import Cluster
from muster.kube.backoff import Rate
from muster.kube.events import Regarding
from muster.model.gang_states import GangState
from muster.model.names import MANAGED_BY, MESSAGE, MUSTER, STATE
from muster.model.objects import ObjectMeta, PodGroup, decode
from muster.planning.expectations import Expectations
from muster.planning.messages import kept_class, not_ready, notes, still_held, to_a_maker, to_a_rival
from muster.planning.snapshot import Above, AdmissionRecord, GangSnapshot
from muster.queueing.ledger import GangKey
from muster.queueing.verdicts import no_such_queue
from muster.schedulers import scheduler_of_group
from muster.workloads import Kind

logger = logging.getLogger(__name__)

LEDGER_MANAGER = "muster-ledger"
_WARNINGS = frozenset(
    {
        GangState.EXCEEDS_CAPABILITY,
        GangState.EXCEEDS_ELASTIC_QUOTA,
        GangState.EXCEEDS_KUEUE_QUOTA,
        GangState.QUEUE_NOT_FOUND,
        GangState.QUEUE_CLOSED,
        GangState.QUEUE_NOT_LEAF,
        GangState.DEADLINE_PASSED,
        GangState.UNSCHEDULABLE,
        GangState.INVALID,
        GangState.FOREIGN_POD_GROUP,
        GangState.DEADLINE_NEAR,
        GangState.REQUEUED,
        GangState.STILL_HELD,
        GangState.NOT_READY,
        GangState.RUNS_LONGER,
        GangState.EVICTED,
    },
)
# The same state with other numbers is worth an event after so many seconds, then after twice as many, and so on; the
# annotation always has the latest.
_SHORTEST_INTERVAL, _LONGEST_INTERVAL = 30.0, 600.0
# What muster leaves to others is none of its gangs.
_OF_OTHERS = frozenset({GangState.EXTERNAL, GangState.NOT_MANAGED})


@dataclass(slots=True)
class _LastReport:
    """The last event on a gang: when, and how long the same state stays unsaid."""

    state: str = ""
    message: str = ""
    at: float = 0.0
    interval: float = _SHORTEST_INTERVAL
    budget: Rate = field(default_factory=lambda: Rate(GANG_PER_SECOND, GANG_AT_ONCE))

    def due(self, state: GangState, message: str, now: float) -> float | None:
        """The seconds until this may be reported: 0.0 for now, which counts as done; None if it was the last."""
        if self.state == state:
            if self.message == message:
                return None
            if now < self.at + self.interval:
                return self.at + self.interval - now
        if wait := self.budget.take(now):
            return wait
        self.interval = min(2 * self.interval, _LONGEST_INTERVAL) if self.state == state else _SHORTEST_INTERVAL
        self.state, self.message, self.at = str(state), message, now
        return 0.0


def annotations_of(record: AdmissionRecord, state: GangState, message: str) -> dict[str, str]:
    """The decision and its reason, as annotations of the gang's PodGroup."""
    return {**record.annotations, STATE: str(state), MESSAGE: message}


def annotations_match(snapshot: GangSnapshot, record: AdmissionRecord, state: GangState, message: str) -> bool:
    """True if the gang's PodGroup records this decision, and its reason."""
    group = snapshot.pod_group
    if group is None or group.metadata.labels.get(STATE) != state:
        return False
    annotations = group.metadata.annotations
    return snapshot.record == record and (annotations.get(STATE), annotations.get(MESSAGE)) == (str(state), message)


class Reporter:
    """Writes marks and states, and has `announcer` write events."""

    def __init__(self, writer: Writer, announcer: Announcer, cluster: Cluster) -> None:
        self._writer = writer
        self._announcer = announcer
        self._cluster = cluster
        self._last: dict[str, _LastReport] = {}
        self._shut_out: set[GangKey] = set()
        self._rivals: dict[GangKey, dict[str, tuple[Kind, ObjectMeta]]] = {}
        # By gang, and by the UID of its workload: queue and state of the gangs whose state is on no PodGroup; and
        # the same of those that are reconciled now.
        self._groupless: dict[GangKey, Mapping[str, tuple[str, str]]] = {}
        self._found: dict[GangKey, dict[str, tuple[str, str]]] = {}

    @property
    def reported(self) -> int:
        """Of how many objects the last report is known."""
        return len(self._last)

    def groupless(self) -> Mapping[tuple[str, str], int]:
        """The number of gangs with their state in events alone, by queue and state; any thread may ask."""
        return Counter(one for found in list(self._groupless.values()) for one in found.values())

    @contextmanager
    def collecting(self, key: GangKey) -> Iterator[None]:
        """Collect the states that are reported of the gang; after an error before any report the last ones hold."""
        found = self._found[key] = {}
        try:
            yield
        except BaseException:
            found = found or dict(self._groupless.get(key, {}))
            raise
        finally:
            del self._found[key]
            if found:
                self._groupless[key] = found
            else:
                self._groupless.pop(key, None)

    async def record(self, snapshot: GangSnapshot, record: AdmissionRecord, state: GangState, message: str) -> PodGroup:
        """Write what was decided together with the state and the sentence for people.

        Gives the PodGroup as it is then. Raises ApiError, also when the PodGroup was replaced.
        """
        group = snapshot.pod_group
        if group is None:
            raise ValueError(f"{snapshot.key} has no PodGroup to mark")
        resource, annotations = scheduler_of_group(group).resource, annotations_of(record, state, message)
        owned = group.metadata.applied_by(LEDGER_MANAGER).metadata.get("f:annotations") or {}
        # An apply takes away what its manager owns; a mark of another manager is made empty.
        gone = [key for key in snapshot.record.annotations if key not in annotations] if owned else []
        others = {key: "" for key in gone if f"f:{key}" not in owned}
        body: dict[str, Any] = {
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            # With the UID the apply can neither make a new PodGroup nor touch another of the same name.
            "metadata": {
                "name": group.metadata.name,
                "namespace": group.metadata.namespace,
                "uid": group.metadata.uid,
                # By labels alone `kubectl get podgroups` selects; muster's own may have been taken off.
                "labels": {MANAGED_BY: MUSTER, STATE: str(state)},
                "annotations": {**others, **annotations},
            },
        }
        return decode(await self._writer.apply(resource, body, field_manager=LEDGER_MANAGER), type(group))

    def report_rivals(self, snapshot: GangSnapshot, now: float, *, shut_out: bool) -> None:
        """Tell the other workloads whose pods are bound to the gang's PodGroup that it is not theirs.

        A PodGroup of others that is `shut_out` names a queue that does not exist for its namespace.
        """
        self._report_shut_out(snapshot, shut_out=shut_out)
        # The reports of rivals that are gone are dropped here; those of one whose pods come and go are kept.
        rivals = {decoded.metadata.uid: (kind, decoded.metadata) for kind, decoded in snapshot.rivals}
        for uid, (kind, meta) in self._rivals.pop(snapshot.key, {}).items():
            if uid not in rivals and self._cluster.has(kind, meta):
                rivals[uid] = kind, meta
            elif uid not in rivals:
                self.forget(uid)
        if rivals:
            self._rivals[snapshot.key] = rivals
        if not snapshot.ours:
            return
        for kind, decoded in snapshot.rivals:
            rival = replace(snapshot, pod_group=None, kind=kind, decoded=decoded, above=Above(), intent=None)
            self.report(rival, GangState.FOREIGN_POD_GROUP, to_a_rival(snapshot), now)

    def _report_shut_out(self, snapshot: GangSnapshot, *, shut_out: bool) -> None:
        """Report, once, a foreign PodGroup in a queue that does not exist for its namespace.

        No webhook saw it, or none answered: the apiserver lets PodGroups in then. Logs are for the administrator of the
        queue.
        """
        group = snapshot.pod_group
        if not shut_out or group is None:
            self._shut_out.discard(snapshot.key)
        elif snapshot.key not in self._shut_out:
            self._shut_out.add(snapshot.key)
            queue = group.queue
            logger.warning(
                "%s: its PodGroup names queue %s, which does not exist for its namespace",
                snapshot.key,
                queue,
                extra={"event": "podgroup.queue"},
            )
            about = _regarding(group)
            fact = no_such_queue(queue, snapshot.key.namespace)
            message = f"{fact}; name another one: no room is kept for this PodGroup"
            self._announcer.add(about, str(GangState.QUEUE_NOT_FOUND), message, warning=True)

    def report_notes(self, snapshot: GangSnapshot, expects: Expectations, unready: Mapping[str, str]) -> bool:
        """Report once what is to be known in addition to the state; True if the gang's message changes with it.

        That held pods keep what they were made for, or made with, and that pods are not ready for too long: `unready`
        has the reasons by UID.
        """
        if snapshot.withdrawn and not expects.withdrawn:
            self.emit(snapshot, GangState.STILL_HELD, still_held(snapshot))
        if (kept := kept_class(snapshot)) and kept != expects.kept_class:
            self.emit(snapshot, GangState.STILL_HELD, kept)
        words = not_ready(snapshot, unready) if snapshot.gang is not None else ""
        if words and not expects.not_ready:
            self.emit(snapshot, GangState.NOT_READY, words)
        before, expects.withdrawn, expects.kept_class, expects.not_ready = (
            expects.notes,
            snapshot.withdrawn,
            kept,
            words,
        )
        if expects.evicted and not (snapshot.short or snapshot.unplaced or snapshot.has_gated_members):
            expects.evicted = ""
        expects.notes = notes(snapshot) + "".join(f"; {one}" for one in (words, expects.evicted) if one)
        return expects.notes != before

    def forget(self, uid: str) -> None:
        """Drop the last report on a workload that is gone."""
        self._last.pop(uid, None)

    def report(self, snapshot: GangSnapshot, state: GangState, message: str, now: float) -> float | None:
        """Report it on the workload, its PodGroup and its makers, unless it was reported before.

        `now` is of a monotonic clock. Returns the seconds until it may be reported where that is later, else None.
        """
        if snapshot.decoded is None or snapshot.kind is None:
            return None
        meta, group = snapshot.decoded.metadata, snapshot.pod_group
        found = self._found.get(snapshot.key)
        if found is not None and (group is None or not snapshot.ours) and state not in _OF_OTHERS:
            found[meta.uid] = (snapshot.intent.queue if snapshot.intent is not None else "", str(state))
        last = self._last.get(meta.uid)
        if last is None:
            # After a restart the annotations have the last report; the same state with other numbers waits.
            before = group.metadata.annotations if group is not None else {}
            known = before.get(STATE) == str(state)
            last = self._last[meta.uid] = (
                _LastReport(str(state), before.get(MESSAGE, ""), now) if known else _LastReport()
            )
        due = last.due(state, message, now)
        if due == 0.0:
            self.emit(snapshot, state, message)
        return due or None

    def report_eviction(self, snapshot: GangSnapshot, message: str, now: float) -> None:
        """Write the events on an eviction, as often as the gang's budget allows; `now` is of a monotonic clock."""
        last = self._last.get(snapshot.decoded.metadata.uid) if snapshot.decoded is not None else None
        if last is None or not last.budget.take(now):
            self.emit(snapshot, GangState.EVICTED, message)

    def emit(self, snapshot: GangSnapshot, state: GangState, message: str) -> None:
        """Write events on the workload, its PodGroup and its makers, whatever was reported before."""
        if snapshot.decoded is None or snapshot.kind is None:
            return
        meta, group = snapshot.decoded.metadata, snapshot.pod_group
        logger.info("%s %s: %s", snapshot.key, state, message, extra={"event": "gang.state"})
        api_version = snapshot.kind.resource.api_version
        about = [Regarding(api_version, snapshot.kind.kind, meta.namespace, meta.name, meta.uid)]
        if group is not None and snapshot.ours:
            about.append(_regarding(group))
        warning = state in _WARNINGS
        for one in about:
            self._announcer.add(one, str(state), message, warning=warning)
        for maker in snapshot.above.makers:
            one = Regarding(maker.api_version, maker.kind, snapshot.key.namespace, maker.name, maker.uid)
            self._announcer.add_for_maker(one, str(state), to_a_maker(snapshot, message), warning=warning)


def _regarding(group: PodGroup) -> Regarding:
    resource, own = scheduler_of_group(group).resource, group.metadata
    return Regarding(resource.api_version, resource.kind, own.namespace, own.name, own.uid)
