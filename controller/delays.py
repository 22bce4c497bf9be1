"""The clock, and two delays: before a changed gang is reconciled, and before evicted pods are replaced.

The time of a reconcile grows with the pods of the gang, and each pod changes several times until it runs: a gang of
4,000 would be reconciled 20,000 times, for minutes of a core. So a large gang is left alone for a moment after each
reconcile, unless the pod that completes it has come. A gang of any size that never stops changing is reconciled many
times in a row, and then a few times a second (`Pace`).

An operator replaces an evicted pod at once. Volcano's capacity plugin may then find that pod's queue further below its
share than the queue for which it made room, give the room back, and evict again, without end. So a replacement waits
until other gangs had the time to take the room, and as long as one of them still waits for a node: the scheduler, or
the whole machine, may be slow. Pods that the gang cannot run without do not wait, unless they are evicted again as soon
as they are there (`Evictions`).
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.cluster.cluster import Cluster
from muster.kube.store import Change
from muster.model.names import GANG, GROUP_NAME
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.model.times import seconds_of
from muster.planning.messages import EvictionReport
from muster.planning.snapshot import Pause
from muster.queueing.ledger import GangKey
from muster.resources.amounts import Resources, total
from muster.resources.pod_requests import pod_requests


class Clock:
    """The time, in seconds."""

    def __init__(self) -> None:
        self._begin = self.wall() - self.monotonic()

    def now(self) -> float:
        """Return the time of day as the term began, carried on by a clock that never leaps."""
        return self._begin + self.monotonic()

    def monotonic(self) -> float:
        """Return the time of a clock that never leaps."""
        return time.monotonic()

    def wall(self) -> float:
        """Return the time of day, with which times that others have written are compared."""
        return time.time()


# Pods of a gang that is reconciled whenever something changes.
_SMALL = 50
# Seconds for each pod, some twenty times what it adds to a reconcile; and at most.
_EACH, _LONGEST = 0.0002, 0.5
# Seconds between two reconciles of a gang that changes all the time, after so many in a row.
_BETWEEN, _IN_A_ROW = 0.2, 100
# As many gangs are remembered before those are forgotten that were not reconciled for so long.
_REMEMBERED = 1_000


class _Looked(NamedTuple):
    until: float
    needed: int


class Pace:
    """For how long changes of gangs can wait; `now` never goes back."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._looked: dict[GangKey, _Looked] = {}
        # When each would be at rest, had its reconciles come one by one.
        self._at_rest: dict[GangKey, float] = {}

    @property
    def gangs(self) -> int:
        """Of how many large gangs something is remembered."""
        return len(self._looked)

    def record(self, key: GangKey, pods: int, now: float, *, needed: int = 0) -> None:
        """Note a reconcile of a gang with so many pods; `needed` is how many it waits for, or 0."""
        if len(self._at_rest) >= _REMEMBERED:
            self._at_rest = {one: rest for one, rest in self._at_rest.items() if rest > now}
        self._at_rest[key] = max(self._at_rest.get(key, now), now) + _BETWEEN
        if max(pods, needed) < _SMALL:
            self._looked.pop(key, None)
        else:
            self._looked[key] = _Looked(now + min(pods * _EACH, _LONGEST), needed)

    def delay(self, key: GangKey, now: float) -> float:
        """The seconds for which a change of the gang can wait."""
        last = self._looked.get(key)
        busy = self._at_rest.get(key, now) - now - _BETWEEN * _IN_A_ROW
        if last is None or (last.needed and len(self._cluster.pods_of(key)) >= last.needed):
            return max(0.0, busy)
        return max(0.0, last.until - now, busy)

    def forget(self, key: GangKey) -> None:
        """Drop what is remembered of a gang that is gone; how often it was reconciled may be another's of its name."""
        self._looked.pop(key, None)


# Seconds, after an evicted pod has gone; Volcano looks at everything once a second. Where that was too short for a
# scheduler that is slow, and it evicts again, twice as long, up to so many seconds.
_FIRST_WAIT, _LONGEST_WAIT = 5.0, 320.0
# Seconds, after these, for which it waits for an admitted gang that has no node; then that gang lacks something else.
_LONGEST_FOR_OTHERS, _LOOK_AGAIN = 60.0, 1.0
# Seconds for which pods on the way out are waited for: one may end for an hour, or never, where its node is lost.
_LONGEST_FOR_LEAVING = 60.0
# A gang that lost nothing for so many seconds begins with the first wait again.
_CALM = 600.0


# Seconds without an eviction after which those before are reported: the scheduler evicts several pods for one gang, and
# says for which a moment later. And at most, where evictions go on.
_TOGETHER, _LONGEST_TOGETHER = 2.0, 10.0
# Seconds for which a gang counts as the one for which a node was made free.
_NOMINATED = 60.0


class Loss(NamedTuple):
    """The pods that a gang lost to its scheduler, what they requested, and the gangs that get their nodes."""

    pods: tuple[Pod, ...]
    requests: Resources
    claimants: tuple[GangKey, ...]


@dataclass(slots=True)
class _Evicted:
    """One gang's evictions: the evicted pods that still run, since when, and until when replacements wait.

    `hurried` are the UIDs of replacements that did not wait; `again` tells that one of these was evicted as well.
    `lost` are the evicted pods that were not reported yet, by UID: the first and the last since `lost_at`.
    """

    hurried: set[str] = field(default_factory=set)
    again: bool = False
    leaving: set[str] = field(default_factory=set)
    lost: dict[str, tuple[Pod, Resources]] = field(default_factory=dict)
    lost_at: tuple[float, float] = (0.0, 0.0)
    since: float = 0.0
    wait: float = 0.0
    until: float = 0.0

    def lose(self, change: Change[Pod], now: float) -> None:
        """Note a pod that is evicted now, for the next report."""
        if change.old is None or not _evicted(change.old):
            self.lost_at = self.lost_at[0] if self.lost else now, now
            pod = change.object
            self.lost[pod.metadata.uid] = pod, {}
            with suppress(InvalidObjectError):
                # Counted one by one: thousands may be evicted at once.
                self.lost[pod.metadata.uid] = pod, pod_requests(pod.spec, status=pod.status)

    def drop(self, reported: EvictionReport) -> None:
        """Take out the pods that a former leader has reported, and those that were deleted before one of them."""
        named = [uid for uid, (pod, _) in self.lost.items() if pod.metadata.name in reported.names]
        last = max((_deleted(self.lost.pop(uid)) for uid in named), default="")
        others = sorted(self.lost, key=lambda uid: _deleted(self.lost[uid]))
        unnamed = reported.number - len(reported.names)
        for place, uid in enumerate(others):
            if place < unnamed or _deleted(self.lost[uid]) < last:
                del self.lost[uid]


class Evictions:
    """The gangs that have just lost pods to the scheduler; `now` never goes back, in seconds."""

    def __init__(self) -> None:
        self._gangs: dict[GangKey, _Evicted] = {}
        self._unplaced: set[GangKey] = set()
        # By node: the gang for which its scheduler makes it free, and since when.
        self._nominated: dict[str, tuple[GangKey, float]] = {}

    @property
    def gangs(self) -> int:
        """Of how many gangs evictions are known."""
        return len(self._gangs)

    def unplaced(self, key: GangKey, *, waits: bool) -> None:
        """Note whether an admitted gang waits for its first node: the room may have been made for it."""
        (self._unplaced.add if waits else self._unplaced.discard)(key)

    def take_over(
        self, key: GangKey, pods: Iterable[Pod], reported: EvictionReport, *, now: float, wall: float
    ) -> Iterator[None]:
        """See the pods of a gang as a new leader finds them, in steps; the losses that were `reported` are done with.

        A report names some of its pods. The others are those that were deleted first.
        """
        # A gang may have thousands of pods, and what was evicted is deleted at once.
        for pod in [pod for pod in pods if pod.metadata.deletion_timestamp or pod.status.nominated_node_name]:
            ends = seconds_of(pod.metadata.deletion_timestamp)
            # A pod whose node is lost may never end.
            if ends is None or wall < ends + _LONGEST_FOR_LEAVING:
                self.note(Change("added", None, pod), now)
            yield
        if known := self._gangs.get(key):
            known.drop(reported)

    def note(self, change: Change[Pod], now: float) -> None:
        """See a pod come, change or go."""
        pod = change.object
        self._nominate(pod, now)
        if GANG not in pod.metadata.labels:
            return
        uid = pod.metadata.uid
        if not _evicted(pod):
            if change.new is None and (of := self._gangs.get(_gang(pod))) is not None:
                # However long a gang is never calm, of pods that are gone nothing is kept.
                of.hurried.discard(uid)
            return
        known = self._gangs.setdefault(_gang(pod), _Evicted())
        known.lose(change, now)
        if not known.leaving and now >= known.until:
            again = known.wait and now < known.until + _CALM
            known.wait = min(2 * known.wait, _LONGEST_WAIT) if again else _FIRST_WAIT
            if not again:
                known.hurried, known.again = set(), False
        known.again = known.again or uid in known.hurried
        if change.new is None:
            known.leaving.discard(uid)
            known.hurried.discard(uid)
        elif uid in known.leaving:
            # What else happens to it while it ends prolongs nothing.
            return
        elif pod.metadata.deletion_timestamp:
            known.leaving.add(uid)
            known.since = now
        known.until = now + known.wait

    def _nominate(self, pod: Pod, now: float) -> None:
        # Other gangs of the scheduler, too, such as a Job of Volcano's.
        if not pod.status.nominated_node_name or pod.spec.node_name or not _gang(pod).name:
            return
        if len(self._nominated) >= _REMEMBERED:
            self._nominated = {node: one for node, one in self._nominated.items() if now < one[1] + _NOMINATED}
        self._nominated[pod.status.nominated_node_name] = _gang(pod), now

    def loss(self, key: GangKey, now: float) -> Loss | float | None:
        """The loss of the gang since the last call; the seconds until it is known; None for no loss."""
        known = self._gangs.get(key)
        if known is None or not known.lost:
            return None
        first, last = known.lost_at
        if (left := min(first + _LONGEST_TOGETHER, last + _TOGETHER) - now) > 0:
            return left
        pods, requests = zip(*known.lost.values(), strict=True)
        known.lost = {}
        named = (self._nominated.get(pod.spec.node_name, (key, 0.0)) for pod in pods)
        claimants = sorted({of for of, at in named if of != key and now < at + _NOMINATED})
        return Loss(pods, total(requests), tuple(claimants))

    def wait(self, key: GangKey, now: float) -> float:
        """Seconds for which the gang's new members are to wait, as far as that is known now; 0 for not at all."""
        known = self._gangs.get(key)
        if known is None:
            return 0.0
        waits = known.leaving and now < known.since + _LONGEST_FOR_LEAVING
        left = known.wait if waits else known.until - now
        if -_LONGEST_FOR_OTHERS < left <= 0 and any(other != key for other in self._unplaced):
            return _LOOK_AGAIN
        return max(0.0, left)

    def pause(self, key: GangKey, now: float) -> Pause:
        """The new members of the gang that are to wait now."""
        if self.wait(key, now) <= 0:
            return Pause.NONE
        return Pause.ALL if self._gangs[key].again else Pause.SURPLUS

    def opened(self, key: GangKey, uids: Iterable[str], now: float) -> None:
        """Note which members of the gang have just been opened: during a pause these are the ones that did not wait."""
        if self.pause(key, now) is not Pause.NONE:
            self._gangs[key].hurried.update(uids)

    def forget(self, key: GangKey) -> None:
        """Drop what is known of a gang that is gone."""
        self._gangs.pop(key, None)
        self._unplaced.discard(key)


def _gang(pod: Pod) -> GangKey:
    return GangKey(pod.metadata.namespace, pod.metadata.annotations.get(GROUP_NAME, ""))


def _deleted(lost: tuple[Pod, Resources]) -> str:
    return lost[0].metadata.deletion_timestamp or ""


def _evicted(pod: Pod) -> bool:
    """True if a scheduler evicts the pod for others, by the condition that Volcano and kube-scheduler write."""
    return any(
        one.type == "DisruptionTarget" and one.status == "True" and one.reason == "PreemptionByScheduler"
        for one in pod.status.conditions
    )
