"""How soon a workload has its pods again after an outage of the webhook, counted in the controller's own nudges.

Not in seconds: a busy machine is slow at everything. Operators that would wait for minutes are seen to be woken.
"""

from datetime import datetime, timedelta
from itertools import pairwise

from muster.model.names import NUDGE
from muster.model.resource import PODS, Resource
from tests.support.cluster.recorder import Manifest
from tests.support.cluster.scene import Scene

# docs/runbook.md says 5 seconds, which are two: the controller waits 2 between two, and an operator makes a pod in
# less than one. These are for an operator that has to wait for a core, and far from what it would wait by itself.
_SOON = 20
# As controller/touches.py has it: after so long the first; the next when this share of the time has passed, in seconds.
_FIRST, _SHARE, _SHORTEST = 5.0, 1 / 16, 2.0
# For a controller that has to wait for a core.
_LATE = 1.0


def nudges(scene: Scene, kind: Resource, name: str) -> dict[str, int]:
    """The nudges of a workload, by their times, and the resource versions from which they stood there."""
    found: dict[str, int] = {}
    for seen in scene.recorder.history(kind):
        at = seen.object["metadata"].get("annotations", {}).get(NUDGE)
        if seen.name == name and at:
            found.setdefault(at, seen.version)
    return found


def version_now(scene: Scene) -> int:
    """The resource version of this moment."""
    return int(scene.api.get(f"{PODS.path(scene.namespace)}?limit=1")["metadata"]["resourceVersion"])


def assert_soon(scene: Scene, kind: Resource, name: str, back: int, new: set[str], *, long: bool) -> None:
    """The first of these new pods (UIDs) came within some nudges of version `back`, from which on reviews are answered.

    After a `long` outage it came by a nudge, one of a moment before it was over perhaps: the operator would have waited
    for longer than there are between two, and nobody nudges a workload that has its pods.
    """
    scene.recorder.settle()
    came = min(seen.version for seen in scene.recorder.history(PODS) if _uid(seen.object) in new)
    before = sorted(version for version in nudges(scene, kind, name).values() if version < came)
    meanwhile = [version for version in before if version > back]
    assert len(meanwhile) <= _SOON, f"{name} had a pod again after {len(meanwhile)} nudges"
    assert before or not long, f"{name} had a pod again without a nudge"


def assert_steady(scene: Scene, kind: Resource, name: str, since: int) -> None:
    """By the times that it wrote, the controller nudged this workload no more often, from a version on, than is said.

    How late a nudge is says how busy the machine is.
    """
    stamps = [datetime.fromisoformat(at) for at, version in nudges(scene, kind, name).items() if version > since]
    lacking = stamps[0] - timedelta(seconds=_FIRST)
    for one, following in pairwise(stamps):
        wanted = max(_SHORTEST, (one - lacking).total_seconds() * _SHARE)
        gap = (following - one).total_seconds()
        assert gap >= wanted - _LATE, f"{name} was nudged {gap} s after {one}, and not after {wanted}"


def _uid(item: Manifest) -> str:
    return str(item["metadata"]["uid"])
