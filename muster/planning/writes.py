"""Writes for a gang that the apiserver does not take, and writes that others undo: when each is tried again."""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import msgspec

from muster.kube.errors import ApiError
from muster.model.objects import PodGroup
from muster.planning.pod_group import desired
from muster.planning.snapshot import GangSnapshot

# Attempts of a write that fails; in each the client tries again for up to ten seconds.
_ATTEMPTS = 3
# Seconds until it is tried again after that; doubled each time, up to so many.
_FIRST_RETRY, _LONGEST_RETRY = 30.0, 120.0


class WrittenPart(Enum):
    """The writes for a gang."""

    POD_GROUP = auto()
    MARK = auto()
    GATE = auto()


@dataclass(slots=True)
class RejectedWrite:
    """The last write that was not taken, until it is; times are monotonic.

    `about` is what it was refused for: with another PodGroup, or without that pod, the next attempt may succeed.
    `words` name the object and quote the apiserver. A gang with an `until` stands in no line; it is when the write is
    tried again. `fails` tells that the apiserver did not refuse it, and may fail for others, too.
    """

    part: WrittenPart | None = None
    about: object = None
    words: str = ""
    until: float | None = None
    fails: bool = False
    times: int = 0
    failures: int = 0

    def wait(self, now: float) -> float:
        """Seconds for which nothing is tried."""
        return max(0.0, self.until - now) if self.until is not None else 0.0

    def out(self, now: float) -> bool:
        """True if the gang stands in no line: nor does it while the write is tried, where that needs no room."""
        return self.until is not None and (self.part is not WrittenPart.MARK or self.until > now)

    def note(self, part: WrittenPart, about: object, words: str, error: ApiError, now: float) -> None:
        """It was not taken, the first time or again."""
        if part is not self.part:
            self.times = self.failures = 0
        self.part, self.about, self.words = part, about, words
        self.failures += 1
        self.fails = not error.refused or error.conflict
        if not self.fails or self.failures >= _ATTEMPTS:
            self.until = now + min(_FIRST_RETRY * 2.0**self.times, _LONGEST_RETRY)
            self.times = min(self.times + 1, 10)

    def taken(self, part: WrittenPart) -> None:
        """A write of this part was taken."""
        if part is self.part:
            self.part, self.about, self.words, self.until, self.fails = None, None, "", None, False
            self.times = self.failures = 0

    def come_back(self) -> None:
        """The gang stands in line again, and the write is tried in its turn."""
        self.until = None

    def shown(self, snapshot: GangSnapshot) -> None:
        """The gang as it is there now."""
        match self.part:
            case WrittenPart.MARK if version_of(snapshot.pod_group) != self.about:
                self.come_back()
            case WrittenPart.POD_GROUP if manifest_of(snapshot) != self.about:
                self.come_back()
            case WrittenPart.GATE if all(member.pod.metadata.uid != self.about for member in snapshot.members):
                self.come_back()


def version_of(group: PodGroup | None) -> str:
    """The version of a PodGroup, "" of none."""
    return group.metadata.resource_version if group is not None else ""


def manifest_of(snapshot: GangSnapshot) -> bytes:
    """The PodGroup by the workload alone, to compare."""
    return b"" if snapshot.gang is None else msgspec.json.encode(desired(snapshot, admitted=False).manifest)


# What others change back is written again after so many seconds at first, doubled each time, up to so many.
_FIRST_DELAY, _LONGEST_DELAY = 1.0, 300.0
# A PodGroup that was left in peace for so many seconds is mended at once again.
_CALM = 600.0


@dataclass(slots=True)
class Repairs:
    """The delay before others' changes are overwritten once more; seconds of one clock.

    The first time at once. Two that write against each other would otherwise go on as fast as the apiserver can.
    """

    _written: int = 0
    _times: int = 0
    _until: float = 0.0

    def wait(self, manifest: dict[str, Any], now: float) -> float:
        """Seconds until this manifest may be written."""
        return max(0.0, self._until - now) if _digest(manifest) == self._written else 0.0

    def note(self, manifest: dict[str, Any], now: float) -> None:
        """It is being written."""
        digest = _digest(manifest)
        if digest != self._written or now > self._until + _CALM:
            self._written, self._times, self._until = digest, 0, now
            return
        self._until = now + min(_FIRST_DELAY * 2.0**self._times, _LONGEST_DELAY)
        self._times = min(self._times + 1, 10)


def _digest(manifest: dict[str, Any]) -> int:
    return hash(msgspec.json.encode(manifest))
