"""Writes for a gang that the apiserver does not take: when the gang leaves its line for them, and for how long.

A gang that cannot get its PodGroup, its mark or its gates written would keep its place, or its room, from all others.
What is refused is refused again, so that one attempt is enough; what fails (a 5xx, a conflict, no answer) mostly works
soon, and is tried some times first. While the apiserver fails for all gangs, all leave their lines; the first of them
whose write is taken brings back the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

import msgspec

from muster.kube.errors import ApiError
from muster.model.objects import PodGroup
from muster.observe.pod_groups import desired
from muster.observe.view import View

# Attempts of a write that fails; in each the client tries again for up to ten seconds.
_ATTEMPTS = 3
# Seconds until it is tried again after that; doubled each time, up to so many.
_FIRST, _LONGEST = 30.0, 120.0


class Part(Enum):
    """What is written for a gang."""

    POD_GROUP = auto()
    MARK = auto()
    GATE = auto()


@dataclass(slots=True)
class Refused:
    """The last write that was not taken, until it is; times are monotonic.

    `about` is what it was refused for: with another PodGroup, or without that pod, the next attempt may succeed.
    `words` name the object and quote the apiserver. A gang with an `until` stands in no line; it is when the write is
    tried again. `fails` tells that the apiserver did not refuse it, and may fail for others, too.
    """

    part: Part | None = None
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
        return self.until is not None and (self.part is not Part.MARK or self.until > now)

    def note(self, part: Part, about: object, words: str, error: ApiError, now: float) -> None:
        """It was not taken, the first time or again."""
        if part is not self.part:
            self.times = self.failures = 0
        self.part, self.about, self.words = part, about, words
        self.failures += 1
        self.fails = not error.refused or error.conflict
        if not self.fails or self.failures >= _ATTEMPTS:
            self.until = now + min(_FIRST * 2.0**self.times, _LONGEST)
            self.times = min(self.times + 1, 10)

    def taken(self, part: Part) -> None:
        """A write of this part was taken."""
        if part is self.part:
            self.part, self.about, self.words, self.until, self.fails = None, None, "", None, False
            self.times = self.failures = 0

    def come_back(self) -> None:
        """The gang stands in line again, and the write is tried in its turn."""
        self.until = None

    def shown(self, view: View) -> None:
        """The gang as it is there now."""
        match self.part:
            case Part.MARK if version_of(view.pod_group) != self.about:
                self.come_back()
            case Part.POD_GROUP if manifest_of(view) != self.about:
                self.come_back()
            case Part.GATE if all(member.pod.metadata.uid != self.about for member in view.members):
                self.come_back()


def version_of(group: PodGroup | None) -> str:
    """The version of a PodGroup, "" of none."""
    return group.metadata.resource_version if group is not None else ""


def manifest_of(view: View) -> bytes:
    """What the workload says in the gang's PodGroup, to compare."""
    return b"" if view.gang is None else msgspec.json.encode(desired(view, admitted=False).manifest)
