"""Objects that are created all the time while something happens to muster, and what became of each call."""

import itertools
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from hack.testbed import Testbed, TestbedError, wait_for
from hack.testbed.api import Api
from muster.model.names import GATE
from tests.support.cluster.background import Meanwhile

ENOUGH = 15
"""So often is everything created, at least, before, during and after what a test says fails no creation."""
_PAUSE_SECONDS = 0.2
_PATHS = {"Pod": "/api/v1/namespaces/{}/pods", "RayCluster": "/apis/ray.io/v1/namespaces/{}/rayclusters"}


class Creation(NamedTuple):
    """One call: when it began (RFC 3339, and monotonic), how long it took (seconds), what was asked for, the answer.

    `turn` tells which of the objects it was, `held` whether muster's gate is on it; `error` is what was wrong, or "".
    """

    at: str
    began: float
    seconds: float
    kind: str
    turn: int
    name: str
    held: bool
    error: str


class Creations(Meanwhile):
    """As long as the block lasts, creates these objects in turn, each time by a new name; `dry_run` keeps none."""

    def __init__(
        self, testbed: Testbed, namespace: str, manifests: Sequence[dict[str, Any]], *, dry_run: bool = False
    ) -> None:
        super().__init__()
        self._api = testbed.api()
        self._namespace = namespace
        self._manifests = manifests
        self._options = "?dryRun=All" if dry_run else ""
        self.record: list[Creation] = []

    def rounds(self, start: float = 0.0, end: float = float("inf")) -> int:
        """How often each of the objects, at least, was created between these moments."""
        turns = [one.turn for one in self.record if start <= one.began and one.began + one.seconds <= end]
        return min(turns.count(turn) for turn in range(len(self._manifests)))

    def go_on(self, rounds: int = ENOUGH) -> None:
        """Wait until each of the objects was created so often from now on."""
        now = time.monotonic()
        wait_for(f"{rounds} rounds of creations", lambda: self.rounds(now) >= rounds)

    def held(self, turn: int) -> list[bool]:
        """Whether muster's gate was on what was made, of one of the objects, one time after the other."""
        return [one.held for one in self.record if one.turn == turn]

    def failures(self) -> list[Creation]:
        """The calls that failed."""
        return [one for one in self.record if one.error]

    def remove(self) -> None:
        """Delete what was made and kept: some hundreds of pods fill the nodes on which others are to run."""
        Api.each(
            lambda one: self._api.delete(f"{_PATHS[one.kind].format(self._namespace)}/{one.name}", missing_ok=True),
            [one for one in self.record if not one.error],
        )

    def write(self, path: Path) -> None:
        """Write the record, a JSON object per line."""
        path.write_text("".join(json.dumps(one._asdict()) + "\n" for one in self.record))

    def _work(self) -> None:
        for number in itertools.count():
            for turn, manifest in enumerate(self._manifests):
                self._create(manifest, turn, number)
            if self._ended.wait(_PAUSE_SECONDS):
                return

    def _create(self, manifest: dict[str, Any], turn: int, number: int) -> None:
        name = f"stream-{turn}-{number}"
        named = {**manifest, "metadata": {**manifest["metadata"], "name": name}}
        at, started, held, wrong = datetime.now(UTC), time.monotonic(), False, ""
        try:
            made = self._api.create(_PATHS[manifest["kind"]].format(self._namespace) + self._options, named)
            held = GATE in {gate["name"] for gate in made["spec"].get("schedulingGates", [])}
        except TestbedError as error:
            wrong = str(error)
        seconds = time.monotonic() - started
        self.record.append(Creation(at.isoformat(), started, seconds, manifest["kind"], turn, name, held, wrong))
