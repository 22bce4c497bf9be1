"""A leader's memory of a gang: its writes, its decision, its reports, and since when a state has lasted.

Nothing here is needed after a restart. It bridges the moments in which the cluster is ahead of its watches, and tells
muster's own writes from changes that others made to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import NamedTuple

from muster.admitters import Admitter
from muster.gangs.history import Lineage
from muster.gangs.start_errors import PlannedStart
from muster.model.gang_states import BEFORE_ADMISSION
from muster.model.names import MESSAGE, STATE
from muster.model.objects import OwnerReference, PodGroup, PodGroupSpec
from muster.model.pods import Pod
from muster.model.times import seconds_of, text_of
from muster.planning.candidate import gang_and_intent, needed, passed_since, requested
from muster.planning.opening import being_opened
from muster.planning.pod_group import newer
from muster.planning.record import admitted_for, units_of, with_need, without_units
from muster.planning.snapshot import AdmissionRecord, GangSnapshot, Member
from muster.planning.writes import RejectedWrite, Repairs
from muster.queueing.ledger import Candidate, GangKey
from muster.resources.amounts import total
from muster.workloads import Decoded

# Seconds after which a PodGroup that was written, and that the watch does not show, is gone again.
_WATCH_PATIENCE = 5.0
# Seconds without another open pod after which no user is taken to be opening a gang, pod by pod.
_OPENING = 5.0


SILENCE = 5.0
"""Seconds for which a gang may lack pods before it is reported."""
DOUBLINGS = 6
"""The number of doublings of the time after which a gang without nodes gives its claim back."""


class Runs(NamedTuple):
    """An admitted gang: the UID of its workload, its lineage and queue, since when it runs, and what made it."""

    uid: str
    lineage: Lineage
    queue: str
    since: float
    maker: OwnerReference | None


def _by(snapshot: GangSnapshot) -> str:
    """The admitter of the gang, as its mark names it."""
    return "" if snapshot.admitter is Admitter.LEDGER else str(snapshot.admitter)


@dataclass(slots=True)
class Expectations:
    """A leader's memory of one gang."""

    workload: str = ""
    """The UID of the workload that was seen last."""
    unplaced_since: float = 0.0
    """Since when no member has had a node (wall clock, seconds): infinity while one has, 0 where none ever had.

    Of a gang that another leader admitted the pods tell it, at the first look."""
    waiting: dict[str, float] = field(default_factory=dict)
    """Since when each open member has been without a node, by UID."""
    record: AdmissionRecord = field(default_factory=AdmissionRecord)
    """The decision of this leader; the PodGroup may have that of a former one (`GangSnapshot.record`)."""
    written: PodGroup | None = None
    """The PodGroup as the last write left it; None where the watch has caught up."""
    written_spec: PodGroupSpec | None = None
    """The spec that muster wrote last into the PodGroup."""
    units: frozenset[str] | None = None
    """The units beyond its minimum that are being opened (`muster.planning.opening`); None before the first look."""
    opened: set[str] = field(default_factory=set)
    """UIDs of pods whose gates were opened, and that the watch may still show as held."""
    tried: set[str] = field(default_factory=set)
    """UIDs of pods whose gates were being opened when a write failed: any of them may be open."""
    opened_elsewhere: tuple[int, float] = (0, 0.0)
    """How many members are open that muster did not open, and since when there are so many (monotonic)."""
    assembling_since: float | None = None
    """Since when pods have been missing, on a clock that never goes back; None where none is missing."""
    warned_of: float | None = None
    """The end of the time limit in the last warning (wall clock)."""
    patient_until: float | None = None
    """The end of its patience, while that is still to come (wall clock)."""
    unanswered: float = float("-inf")
    """When a write of the mark or of a gate ended that may have been carried out all the same (monotonic)."""
    unseen_since: float | None = None
    """Since when the watch has not shown a PodGroup that was written."""
    repairs: Repairs = field(default_factory=Repairs)
    """When the PodGroup's spec may be written again over others' changes."""
    words: Repairs = field(default_factory=Repairs)
    """When its annotations may be written again."""
    reported: tuple[str, str] = ("", "")
    """The last state and message that it was to say."""
    notes: str = ""
    """The notes that were last reported in addition to the state."""
    plain_pods: bool = False
    """True if the watch has shown plain pods of it: what it says of them now is not what it has not read yet."""
    withdrawn: bool = False
    """True if it was reported that held pods stay held."""
    kept_class: str = ""
    """The note that its user got on the priority class that its pods keep."""
    unready: dict[str, Unready] = field(default_factory=dict)
    """Its pods that have nodes and are not ready, by UID (`follow_unready`)."""
    not_ready: str = ""
    """The note that its user got on them."""
    evicted: str = ""
    """The report on the pods that its scheduler has evicted, until they are replaced."""
    evicted_by_kueue: frozenset[str] | None = None
    """The objects whose eviction by Kueue was reported (UIDs); None: its message has the reasons of these."""
    rejected: RejectedWrite = field(default_factory=RejectedWrite)
    """A write that the apiserver does not take."""
    requeues: int = 0
    """How often the gang gave its claim back since its pods last had nodes, as far as it matters (`DOUBLINGS`)."""
    yielded: bool = False
    """True if it gave back the room of what cannot be opened, and has none for it again yet."""
    planned: PlannedStart | None = None
    """Its start by its reservations; None for a gang that has had none."""
    runs_about: str = ""
    """The estimates of its run time, before its PodGroup says them."""
    runs: Runs | None = None
    """Its run since it was admitted, as it is recorded at its end (`controller.history`)."""

    def assembling_for(self, now: float) -> float:
        """Seconds for which the gang has lacked pods; 0 for one that has them, or is new. `now` never goes back."""
        return 0.0 if self.assembling_since is None else now - self.assembling_since

    def lacks_pods(self, now: float) -> bool:
        """True if the gang has lacked pods for longer than operators need to make them."""
        return self.assembling_for(now) >= SILENCE

    def expire_unseen_write(self, now: float, *, shown: bool) -> float:
        """Trust a written PodGroup that the watch does not show only for as long as the watch may be behind.

        Returns the seconds for which it is still trusted, 0 where there is none; `now` is monotonic.
        """
        if self.written is None or shown:
            self.unseen_since = None
            return 0.0
        if self.unseen_since is None:
            self.unseen_since = now
        left = self.unseen_since + _WATCH_PATIENCE - now
        if left <= 0:
            self.written = self.unseen_since = None
        return max(left, 0.0)

    def release_in_progress(self, snapshot: GangSnapshot, now: float) -> float:
        """Seconds for which another program may still be opening the gang; `now` is monotonic.

        `muster release` opens a gang that waits pod by pod: by the first of them it would be admitted as a gang of one.
        """
        state = snapshot.pod_group.metadata.annotations.get(STATE) if snapshot.pod_group is not None else None
        open_ = len(snapshot.open)
        waited = state in BEFORE_ADMISSION and snapshot.uid not in (snapshot.marked_for, self.record.admitted)
        if not waited or not 0 < open_ < len(snapshot.members):
            self.opened_elsewhere = (0, 0.0)
            return 0.0
        if self.opened_elsewhere[0] != open_:
            self.opened_elsewhere = open_, now
        return max(0.0, self.opened_elsewhere[1] + _OPENING - now)

    @property
    def decided(self) -> AdmissionRecord:
        """The decision, with the estimates of its run time."""
        return replace(self.record, runs_about=self.runs_about)

    @property
    def unready_since(self) -> float | None:
        """Since when a member that has a node has not been ready; None where there is none."""
        return min((one.since for one in self.unready.values()), default=None)

    def written_spec_for(self, decoded: Decoded | None) -> PodGroupSpec | None:
        """The spec that muster wrote last into the PodGroup of this workload; None for another one."""
        return self.written_spec if decoded is not None and decoded.metadata.uid == self.workload else None

    def update(self, snapshot: GangSnapshot, gated: AbstractSet[str], now: float) -> str:
        """Forget what the watch shows by now, and what was decided for a former workload of the name.

        `gated` are the UIDs of the gang's pods that the watch shows as held, `now` is the time of day. Gives the UID
        of the former workload, "" where the same one is there.
        """
        self.opened &= gated
        self.tried &= gated
        first = self.units is None
        if self.units is None:
            self.units = units_of(snapshot.record, snapshot.uid)
        self.rejected.shown(snapshot)
        open_ = (member.pod for member in snapshot.members if not member.gated and not member.pod.spec.node_name)
        self.waiting = {pod.metadata.uid: self.waiting.get(pod.metadata.uid, now) for pod in open_}
        self.unready = follow_unready(snapshot.members, self.unready, now)
        self.written = None if snapshot.pod_group is not self.written else self.written
        former = ""
        if snapshot.kind is not None:
            plain = not snapshot.kind.owns_pod_group
            self.plain_pods = plain and (self.plain_pods or bool(snapshot.members))
        if snapshot.decoded is not None and self.workload != snapshot.decoded.metadata.uid:
            if self.workload:
                self.record, self.reported, self.unplaced_since, self.runs_about = AdmissionRecord(), ("", ""), 0.0, ""
                self.rejected, self.yielded, self.planned = RejectedWrite(), False, None
                if snapshot.kind is None or snapshot.kind.owns_pod_group:
                    # Not of plain pods: another of them is the oldest now, and the gang is the same.
                    self.written_spec, self.assembling_since, self.warned_of = None, None, None
            former, self.workload = self.workload, snapshot.decoded.metadata.uid
        if not snapshot.placed_nowhere:
            self.unplaced_since = float("inf")
        elif self.unplaced_since == float("inf"):
            self.unplaced_since = now
        elif first and snapshot.uid and snapshot.marked_for == snapshot.uid:
            self.unplaced_since = nowhere_since(snapshot, now)
        return former

    def record_admission(self, snapshot: GangSnapshot, now: float) -> GangSnapshot:
        """Remember that a gang that waits is admitted now (wall clock), and for what; gives the snapshot with that."""
        if self.written_spec is not None:
            # It has room for what left it before, too.
            gang, requests = gang_and_intent(snapshot)[0], requested(snapshot)
            need = total((needed(gang, requests), snapshot.left))
            self.written_spec = with_need(self.written_spec, need, requests, gang.roles)
        by, self.yielded = _by(snapshot), False
        self.record = AdmissionRecord(
            snapshot.uid, text_of(now), admitted_for=admitted_for(self.written_spec), admitter=by
        )
        self.reported = ("", "")
        return replace(snapshot, written_spec=self.written_spec, believed=True)

    def record_running(self, snapshot: GangSnapshot, wave: Candidate | None, now: float) -> AdmissionRecord:
        """Record an admitted gang, `now` of the wall clock, and return the record.

        Its next `wave`, where that waits, may be passed as a gang may.
        """
        before = (
            snapshot.record
            if snapshot.marked_for == snapshot.uid
            else AdmissionRecord(snapshot.uid, admitter=_by(snapshot))
        )
        since, drain_after = passed_since(snapshot, self.record, wave.queue if wave else "")
        where = wave.queue if wave and since else ""
        # Without a time that can be read its minute would never be over: it begins now, and the next words say so.
        known = (snapshot.record.admitted_at, self.record.admitted_at)
        at = next((text for text in known if seconds_of(text) is not None), text_of(now))
        terms = admitted_for(self.written_spec, self.units or ())
        passed = {"passed_since": since, "passed_in": where, "drain_after": drain_after}
        self.record = replace(before, admitted_at=at, admitted_for=terms, **passed)
        return self.record

    def yield_room(self, snapshot: GangSnapshot, now: float) -> float:
        """Give up the room of a gang whose writes are not taken: all of it where nothing is open.

        A write without an answer may have been carried out: gives the seconds until the watch would have shown that,
        and the room is kept so long. `now` is monotonic.
        """
        if (left := self.unanswered + _WATCH_PATIENCE - now) > 0:
            return left
        self.yielded = True
        self.tried.clear()
        if not snapshot.open:
            self.record_waiting(snapshot)
        return 0.0

    def record_open_units(self, snapshot: GangSnapshot, more: frozenset[str]) -> None:
        """Remember which units of an admitted gang are being opened: `more`, and those that are not all open yet."""
        roles = snapshot.gang.roles if snapshot.gang else ()
        self.units = more | being_opened(snapshot.members, roles, self.units or ()).keys()

    def record_unmanaged(self, snapshot: GangSnapshot) -> AdmissionRecord:
        """Record a gang whose workload is left alone, and return the record.

        What it was admitted for is kept while any of it runs: it may come back into muster's hands, and as no more.
        """
        marks = (self.record, snapshot.record) if snapshot.uid and snapshot.open else ()
        self.record = without_units(
            next((record for record in marks if record.admitted == snapshot.uid), AdmissionRecord())
        )
        if self.record == AdmissionRecord():
            self.written_spec = None
        return self.record

    def record_waiting(self, snapshot: GangSnapshot) -> AdmissionRecord:
        """Record a gang that is not admitted, and return the record.

        No gang passes one that is on hold: its patience begins when it is back in line.
        """
        queue = snapshot.intent.queue if snapshot.intent else ""
        since, drain_after = passed_since(snapshot, self.record, queue if snapshot.on_hold_by is None else "")
        self.record = AdmissionRecord(
            passed_since=since,
            passed_in=queue if since else "",
            drain_after=drain_after,
            requeued_at=snapshot.record.requeued_at or self.record.requeued_at,
        )
        return self.record


class ExpectationsByGang:
    """The expectations of all gangs of a leader's term; they are made and dropped here."""

    def __init__(self) -> None:
        self._of: dict[GangKey, Expectations] = {}

    @property
    def gangs(self) -> int:
        """Of how many gangs something is remembered."""
        return len(self._of)

    def of(self, key: GangKey) -> Expectations:
        """The expectations of a gang; empty ones where there were none."""
        return self._of.setdefault(key, Expectations())

    def seen(self, key: GangKey) -> Expectations:
        """As `of`, and nothing is kept of a gang that was unknown."""
        return self._of.get(key) or Expectations()

    def begin(self, key: GangKey, group: PodGroup) -> None:
        """Start with the PodGroup as it was listed, the younger one of two; the watch may be behind it.

        Its state and message count as reported: messages of thousands of gangs are refreshed in their turn.
        """
        if newer(self.seen(key).written, group) is not group:
            return
        annotations = group.metadata.annotations
        self._of[key] = Expectations(written=group, reported=(annotations.get(STATE, ""), annotations.get(MESSAGE, "")))

    def record_bypass(self, key: GangKey, queue: str, now: float, drain_after: str) -> None:
        """Note that a smaller gang passed this one in the queue, `now` of the wall clock; the first time counts.

        The queue drains for it after `drain_after`, where that is known and the queue does not say.
        """
        expects = self.of(key)
        if expects.record.passed_in != queue:
            passed = {"passed_since": text_of(now), "passed_in": queue, "drain_after": drain_after}
            expects.record = replace(expects.record, **passed)

    def forget(self, key: GangKey, *, ending: bool) -> Expectations:
        """Drop and return the expectations of a gang that is gone; pods that the watch still shows as held stay known.

        While some of its pods are still `ending`, it stays known that this leader sees plain pods go.
        """
        expects = self._of.pop(key, Expectations())
        seen_go = ending and expects.plain_pods
        if expects.opened or seen_go:
            self._of[key] = Expectations(opened=expects.opened, plain_pods=seen_go)
        return expects


def nowhere_since(snapshot: GangSnapshot, now: float) -> float:
    """Since when no member of a gang has had a node, as far as its pods show a leader that sees it first.

    Pods that were made after its admission came in the place of others, which may have run until then. Where none are
    left, the last may just have gone. In seconds of the wall clock, as `now` is.
    """
    if snapshot.open:
        return min(map(_made, snapshot.open))
    return max(map(_made, snapshot.members), default=now)


def _made(member: Member) -> float:
    return seconds_of(member.pod.metadata.creation_timestamp) or 0.0


NOTHING_WRITTEN = Expectations()
"""For a gang on whose objects this process has written nothing; all of them share it."""


# What any new pod waits for.
_USUAL = frozenset({"", "ContainerCreating", "PodInitializing"})
# Between two crashes a container may be ready, for less than the kubelet's longest delay.
_CRASHES, _CALM_AFTER_CRASH = "CrashLoopBackOff", 600.0

_UNREADY = attrgetter("unready")


class Unready(NamedTuple):
    """Since when a pod has not been ready, when it was last seen so, and why (seconds of one clock)."""

    since: float
    seen: float
    reason: str


def unready(pod: Pod) -> str:
    """Why a living pod with a node is not ready, in the kubelet's word; "" for any other pod."""
    status = pod.status
    if not pod.spec.node_name or not pod.living:
        return ""
    statuses = (*status.init_container_statuses, *status.container_statuses)
    waiting = [one.state.waiting.reason for one in statuses if one.state.waiting is not None]
    ready = next((one.status for one in status.conditions if one.type == "Ready"), "")
    reason = next((one for one in waiting if one not in _USUAL), "")
    return reason or ("not started" if waiting else "not ready" if ready == "False" else "")


def follow_unready(members: Iterable[Member], before: Mapping[str, Unready], now: float) -> dict[str, Unready]:
    """The pods that are not ready, by UID, as they are now; those that crash stay so for a while when they run."""
    found = {}
    for member in filter(_UNREADY, members):
        uid = member.pod.metadata.uid
        since = before[uid].since if uid in before else now
        found[uid] = Unready(since, now, member.unready)
    crashed = {uid: one for uid, one in before.items() if one.reason == _CRASHES and now < one.seen + _CALM_AFTER_CRASH}
    if crashed:
        there = {member.pod.metadata.uid for member in members}
        found = {**{uid: one for uid, one in crashed.items() if uid in there}, **found}
    return found


def too_long(pods: Mapping[str, Unready], now: float, grace: float) -> dict[str, str]:
    """Why those of the pods are not ready that have not been for so many seconds."""
    return {uid: one.reason for uid, one in pods.items() if one.since + grace <= now}


def ready_in(pods: Mapping[str, Unready], now: float, grace: float) -> float | None:
    """The seconds after which `too_long` may say more, or less, without any event."""
    late = (one.since + grace for one in pods.values() if one.since + grace > now)
    calm = (one.seen + _CALM_AFTER_CRASH for one in pods.values() if one.reason == _CRASHES)
    due = min((*late, *calm), default=None)
    return None if due is None else max(due - now, 1.0)
