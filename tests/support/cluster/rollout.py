"""The phases of a rollout, from the record of its pods: when the first new one was Ready, and the last old one gone."""

from itertools import groupby
from types import TracebackType
from typing import NamedTuple, Self

from hack.testbed import wait_for
from muster.model.resource import LEASES, PODS
from tests.support.cluster.helm_release import NAMESPACE, Release, is_ready
from tests.support.cluster.recorder import Manifest, Recorder, State


class Phases(NamedTuple):
    """Monotonic seconds: `old` alone serve until `beside`, old and new together until `new`, from when on new alone."""

    beside: float
    new: float


class Rollout:
    """Records, as long as the block lasts, how the pods of a release that are here at first are replaced."""

    def __init__(self, release: Release) -> None:
        self._release = release
        self._old: dict[str, set[str]] = {}
        self.recorder = Recorder(release.testbed, NAMESPACE, (LEASES,))

    def __enter__(self) -> Self:
        self.recorder.__enter__()
        self._old = {name: set(map(_uid, self._release.pods(name))) for name in ("webhook", "controller")}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.recorder.__exit__(kind, error, trace)

    def await_end(self, component: str = "webhook") -> Phases:
        """Wait until none of a component's old pods is left, and tell when what had begun."""
        old = self._old[component]
        wait_for(f"every old {component} to be gone", lambda: old <= self._gone(component))
        seen = self._seen(component)
        ready = [state.at for state in seen if _uid(state.object) not in old and is_ready(state.object)]
        left = [state.at for state in seen if _uid(state.object) in old and state.gone]
        return Phases(min(ready), max(left))

    def is_ending(self) -> bool:
        """Whether a pod has been told to end, and is still there."""
        return any("deletionTimestamp" in pod["metadata"] for pod in self.recorder.now(PODS))

    def ends(self, component: str = "webhook") -> list[tuple[float, float]]:
        """When each of a component's old pods was told to end, and when it was gone, in monotonic seconds."""
        found: dict[str, list[float]] = {uid: [] for uid in self._old[component]}
        for state in self._seen(component):
            if "deletionTimestamp" in state.object["metadata"] and (uid := _uid(state.object)) in found:
                found[uid].append(state.at)
        return [(min(times), max(times)) for times in found.values()]

    def leaders(self) -> list[str]:
        """Whether an "old" or a "new" controller leads, each time that this changes."""
        old = self._old["controller"]
        uids = {state.name: _uid(state.object) for state in self._seen("controller")}
        holders = [state.object["spec"].get("holderIdentity") for state in self._leases()]
        return [
            word
            for word, _ in groupby(
                "old" if uids[holder.partition("_")[0]] in old else "new" for holder in holders if holder
            )
        ]

    def transitions(self) -> int:
        """How often the Lease says that it changed hands."""
        counts = [state.object["spec"].get("leaseTransitions", 0) for state in self._leases()]
        return int(counts[-1] - counts[0])

    def _leases(self) -> list[State]:
        return [state for state in self.recorder.history(LEASES) if state.name == "muster-controller"]

    def _gone(self, component: str) -> set[str]:
        return {_uid(state.object) for state in self._seen(component) if state.gone}

    def _seen(self, component: str) -> list[State]:
        return [
            state
            for state in self.recorder.history(PODS)
            if state.object["metadata"].get("labels", {}).get("app.kubernetes.io/component") == component
        ]


def _uid(pod: Manifest) -> str:
    return str(pod["metadata"]["uid"])
