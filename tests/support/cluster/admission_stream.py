"""Admission calls that go on while something happens to muster, each on record."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from hack.testbed import TestbedError, wait_for
from muster.names import GANG, GANG_SIZE, GATE
from tests.support.cluster.background import Meanwhile

if TYPE_CHECKING:
    from hack.testbed import Testbed
    from hack.testbed.api import Api

__all__ = ["ENOUGH", "Call", "Stream", "admitted"]

ENOUGH = 50
"""So many calls to muster, at least, before, during and after what a test says loses none: one in twenty would show."""
_PAUSE_SECONDS = 0.02
_PATIENCE = 180.0


def admitted(api: Api, *, gang: bool) -> str:
    """Create a pod, without keeping it, that is of a gang or a plain one; return what was wrong, "" if nothing."""
    about: dict[str, Any] = {"labels": {GANG: "probe"}, "annotations": {GANG_SIZE: "1"}} if gang else {}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "probe-", **about},
        "spec": {"containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}]},
    }
    try:
        made = api.create("/api/v1/namespaces/default/pods?dryRun=All", pod)
    except TestbedError as error:
        return str(error)
    gates = [gate["name"] for gate in made["spec"].get("schedulingGates", [])]
    return "" if gates == ([GATE] if gang else []) else f"gates {gates}"


class Call(NamedTuple):
    """One creation: when it began and ended (monotonic seconds), whether of a gang's pod, and what was wrong, or ""."""

    began: float
    ended: float
    gang: bool
    wrong: str


class Stream(Meanwhile):
    """As long as the block lasts, creates a pod of a gang, for which muster is called, and a plain one, in turn.

    One after the other: the apiserver keeps one connection then, and all calls go to the replica at its end.
    """

    def __init__(self, testbed: Testbed) -> None:
        super().__init__()
        self._api = testbed.api()
        self.record: list[Call] = []

    @property
    def failures(self) -> list[str]:
        """What went wrong so far."""
        return [f"{'gang' if call.gang else 'plain'}: {call.wrong}" for call in self.record if call.wrong]

    def calls(self, start: float = 0.0, end: float = float("inf")) -> int:
        """How often muster was asked, in a call that began and ended between these moments."""
        return sum(call.gang and start <= call.began and call.ended <= end for call in self.record)

    def go_on(self, calls: int = ENOUGH) -> None:
        """Wait until muster was asked so often from now on."""
        now = time.monotonic()
        wait_for(f"{calls} calls", lambda: self.calls(now) >= calls, _PATIENCE)

    def _work(self) -> None:
        while not self._ended.wait(_PAUSE_SECONDS):
            for gang in (True, False):
                began = time.monotonic()
                wrong = admitted(self._api, gang=gang)
                self.record.append(Call(began, time.monotonic(), gang, wrong))
