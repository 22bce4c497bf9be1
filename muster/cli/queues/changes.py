"""The changes while `muster watch` runs: gangs that came, went and changed, and the connection lost and found."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from muster.cli.page.state import PageState
from muster.cli.queues.entries import reservations_of
from muster.cli.queues.gangs import workload_of
from muster.cli.snapshot import LedgerSnapshot
from muster.model.names import STATE
from muster.queueing.verdicts import planned

_KEPT = 200
_RETRY = "watch.retry"


class Happened(NamedTuple):
    """Something that has happened: when (seconds of the wall clock), and what."""

    at: float
    what: str


class Changes:
    """The last things that have happened, the youngest first; `now` gives the wall clock.

    A lost connection is noted once, and its return once: the reflector of each kind notices both.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._happened: deque[Happened] = deque(maxlen=_KEPT)
        self._states: Mapping[str, str] | None = None
        self._snapshot: LedgerSnapshot | None = None
        self._silent = False
        self.lost = False

    def last(self, count: int) -> list[Happened]:
        """The youngest things, that many at most."""
        return [one for one, _ in zip(self._happened, range(count), strict=False)]

    def seen(self, state: PageState) -> None:
        """Note what is another than before."""
        if state.troubles:
            self._lose(state.troubles[0])
        elif self.lost:
            self.lost = False
            self._note("connected again")
        if bool(state.silent) != self._silent:
            self._silent = bool(state.silent)
            self._note(state.silent or "a controller of muster is alive again")
        if state.snapshot is not self._snapshot:
            self._snapshot = state.snapshot
            self._compare(_states(state.snapshot, whole=state.visible.whole))

    def logged(self, event: str, message: str) -> None:
        """Note a warning of the log."""
        if event == _RETRY:
            self._lose(message)
        else:
            self._note(message)

    def _lose(self, why: str) -> None:
        if not self.lost:
            self.lost = True
            self._note(f"connection lost: {why}")

    def _compare(self, now: Mapping[str, str]) -> None:
        before, self._states = self._states, now
        if before is None:
            return
        for gang in sorted({*before, *now}):
            old, new = before.get(gang), now.get(gang)
            if old != new:
                change = f"{new} (new)" if old is None else f"{old} -> {new}" if new is not None else "gone"
                self._note(f"{gang}: {change}")

    def _note(self, what: str) -> None:
        self._happened.appendleft(Happened(self._now(), what))


def _states(snapshot: LedgerSnapshot, *, whole: bool) -> dict[str, str]:
    """The reported state of each gang, and the start of its reservation, by its namespace and workload."""
    planned_starts = {one.order.key.gang: planned(one) for one in (reservations_of(snapshot) if whole else {}).values()}
    states = {}
    for key, view in snapshot.views.items():
        state = view.pod_group.metadata.annotations.get(STATE) if view.pod_group is not None else None
        if state:
            workload, start = workload_of(view) or f"podgroup/{key.name}", planned_starts.get(key)
            states[f"{key.namespace} {workload}"] = f"{state}, {start}" if start else state
    return states
