"""Pods that the scheduler evicts for other gangs, and how long their replacements wait.

An operator replaces an evicted pod at once. Volcano's capacity plugin may then find that pod's queue further below its
share than the queue for which it made room, give the room back, and evict again, without end. So a replacement waits
until other gangs had the time to take the room, and as long as one of them still waits for a node: the scheduler, or
the whole machine, may be slow. Pods that the gang cannot run without do not wait, unless they are evicted again as soon
as they are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from muster.kube.store import Change
from muster.model.names import GANG, GROUP_NAME
from muster.model.pods import Pod
from muster.planning.snapshot import Pause
from muster.queueing.ledger import GangKey

# Seconds, after an evicted pod has gone; Volcano looks at everything once a second. Where that was too short for a
# scheduler that is slow, and it evicts again, twice as long, up to so many seconds.
_FIRST_WAIT, _LONGEST_WAIT = 5.0, 320.0
# Seconds, after these, for which it waits for an admitted gang that has no node; then that gang lacks something else.
_LONGEST_FOR_OTHERS, _LOOK_AGAIN = 60.0, 1.0
# Seconds for which pods on the way out are waited for: one may end for an hour, or never, where its node is lost.
_LONGEST_FOR_LEAVING = 60.0
# A gang that lost nothing for so many seconds begins with the first wait again.
_CALM = 600.0


@dataclass(slots=True)
class _Evicted:
    """One gang's evictions: the evicted pods that still run, since when, and until when replacements wait.

    `hurried` are the UIDs of replacements that did not wait; `again` tells that one of these was evicted as well.
    """

    hurried: set[str] = field(default_factory=set)
    again: bool = False
    leaving: set[str] = field(default_factory=set)
    since: float = 0.0
    wait: float = 0.0
    until: float = 0.0


class Evictions:
    """The gangs that have just lost pods to the scheduler; `clock` never goes back, in seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._gangs: dict[GangKey, _Evicted] = {}
        self._unplaced: set[GangKey] = set()

    @property
    def gangs(self) -> int:
        """Of how many gangs evictions are known."""
        return len(self._gangs)

    def unplaced(self, key: GangKey, *, waits: bool) -> None:
        """Note whether an admitted gang waits for its first node: the room may have been made for it."""
        (self._unplaced.add if waits else self._unplaced.discard)(key)

    def note(self, change: Change[Pod]) -> None:
        """See a pod come, change or go."""
        pod = change.object
        if GANG not in pod.metadata.labels:
            return
        uid, now = pod.metadata.uid, self._clock()
        if not _evicted(pod):
            if change.new is None and (of := self._gangs.get(_gang(pod))) is not None:
                # However long a gang is never calm, of pods that are gone nothing is kept.
                of.hurried.discard(uid)
            return
        known = self._gangs.setdefault(_gang(pod), _Evicted())
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

    def wait(self, key: GangKey) -> float:
        """Seconds for which the gang's new members are to wait, as far as that is known now; 0 for not at all."""
        known = self._gangs.get(key)
        if known is None:
            return 0.0
        now = self._clock()
        waits = known.leaving and now < known.since + _LONGEST_FOR_LEAVING
        left = known.wait if waits else known.until - now
        if -_LONGEST_FOR_OTHERS < left <= 0 and any(other != key for other in self._unplaced):
            return _LOOK_AGAIN
        return max(0.0, left)

    def pause(self, key: GangKey) -> Pause:
        """The new members of the gang that are to wait now."""
        if self.wait(key) <= 0:
            return Pause.NONE
        return Pause.ALL if self._gangs[key].again else Pause.SURPLUS

    def opened(self, key: GangKey, uids: Iterable[str]) -> None:
        """Note which members of the gang have just been opened: during a pause these are the ones that did not wait."""
        if self.pause(key) is not Pause.NONE:
            self._gangs[key].hurried.update(uids)

    def forget(self, key: GangKey) -> None:
        """Drop what is known of a gang that is gone."""
        self._gangs.pop(key, None)
        self._unplaced.discard(key)


def _gang(pod: Pod) -> GangKey:
    return GangKey(pod.metadata.namespace, pod.metadata.annotations.get(GROUP_NAME, ""))


def _evicted(pod: Pod) -> bool:
    """True if a scheduler evicts the pod for others, by the condition that Volcano and kube-scheduler write."""
    return any(
        one.type == "DisruptionTarget" and one.status == "True" and one.reason == "PreemptionByScheduler"
        for one in pod.status.conditions
    )
