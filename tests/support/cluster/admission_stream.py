"""Admission calls that go on while something happens to muster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hack.testbed import TestbedError
from muster.names import GANG, GANG_SIZE, GATE
from tests.support.cluster.background import Meanwhile

if TYPE_CHECKING:
    from hack.testbed import Testbed
    from hack.testbed.api import Api

__all__ = ["Stream", "admitted"]

_PAUSE_SECONDS = 0.02


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


class Stream(Meanwhile):
    """As long as the block lasts, creates pods of gangs and plain pods in turn; what went wrong is in `failures`."""

    def __init__(self, testbed: Testbed) -> None:
        super().__init__()
        self._api = testbed.api()
        self.calls = 0
        self.failures: list[str] = []

    def _work(self) -> None:
        while not self._ended.wait(_PAUSE_SECONDS):
            for gang in (True, False):
                if wrong := admitted(self._api, gang=gang):
                    self.failures.append(f"{'gang' if gang else 'plain'}: {wrong}")
                self.calls += 1
