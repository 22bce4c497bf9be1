"""Admission calls that go on while something happens to muster, each on record."""

import time
from collections.abc import Callable
from typing import NamedTuple

from hack.testbed import PATIENCE, Testbed, TestbedError, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import gates_of_a_new_pod
from muster.model.names import GATE
from tests.support.cluster.background import Meanwhile

ENOUGH = 100
"""So many calls to muster, at least, before and after what a test says loses none: one in forty would show.

How many come in between depends on the machine.
"""
CONNECTIONS = 8
"""So many calls at once, so that some are always at each replica; the apiserver keeps a connection for each."""
# Seconds: some forty calls a second, where what fails or does not is seen without one under way at every moment.
_PAUSE = 0.2
# Every so many calls one is about a plain pod.
_PLAIN_EVERY = 8
# A stream is a load for the whole machine: it ends here, and says so.
_MOST_CALLS, _MOST_SECONDS = 150_000, 4 * PATIENCE


def admitted(api: Api, *, gang: bool) -> str:
    """Create a pod, without keeping it, that is of a gang or a plain one; return what was wrong, "" if nothing."""
    try:
        gates = gates_of_a_new_pod(api, gang=gang)
    except TestbedError as error:
        return str(error)
    return "" if gates == ([GATE] if gang else []) else f"gates {gates}"


class Call(NamedTuple):
    """One creation: when it began and ended (monotonic seconds), whether of a gang's pod, and what was wrong, or ""."""

    began: float
    ended: float
    gang: bool
    wrong: str


class Stream(Meanwhile):
    """As long as the block lasts, creates pods of gangs, for which muster is called, and every eighth time a plain one.

    Several at once, so that calls are under way whenever a replica ends: in each moment where `dense` says so, which
    takes all that a machine has, and otherwise with a pause of each after a call. One call at a time would hardly ever
    be, and Go's client repeats by itself what it sent on an idle connection that has ended.
    """

    def __init__(self, testbed: Testbed, dense: Callable[[], bool] = lambda: False) -> None:
        super().__init__(CONNECTIONS)
        self._api = testbed.api()
        self._numbers = iter(range(_MOST_CALLS))
        self._last = time.monotonic() + _MOST_SECONDS
        self._dense = dense
        self.record: list[Call] = []
        self._spent = False

    @property
    def failures(self) -> list[str]:
        """What went wrong so far."""
        wrong = [f"{'gang' if call.gang else 'plain'}: {call.wrong}" for call in tuple(self.record) if call.wrong]
        return wrong + (["the stream came to its end before the test"] if self._spent else [])

    def calls(self, start: float = 0.0, end: float = float("inf")) -> int:
        """How often muster was asked, in a call that began and ended between these moments."""
        return sum(call.gang and start <= call.began and call.ended <= end for call in tuple(self.record))

    def busy(self, start: float, end: float) -> float:
        """Which part of the time between these moments a call to muster was under way."""
        until, idle = start, 0.0
        for call in sorted(call for call in tuple(self.record) if call.gang and call.ended > start):
            idle += max(0.0, min(call.began, end) - until)
            until = max(until, min(call.ended, end))
        return 1 - (idle + end - until) / (end - start)

    def go_on(self, calls: int = ENOUGH) -> None:
        """Wait until muster was asked so often from now on."""
        now = time.monotonic()
        wait_for(f"{calls} calls", lambda: self.calls(now) >= calls)

    def _work(self) -> None:
        for number in self._numbers:
            if self._ended.wait(0.0 if self._dense() else _PAUSE):
                return
            if time.monotonic() > self._last:
                break
            gang = number % _PLAIN_EVERY > 0
            began = time.monotonic()
            wrong = admitted(self._api, gang=gang)
            self.record.append(Call(began, time.monotonic(), gang, wrong))
        self._spent = True
