"""Objects that are created all the time while something happens to muster, and what became of each call."""

from __future__ import annotations

import itertools
import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from hack.testbed import TestbedError
from muster.names import GATE
from tests.support.cluster.background import Meanwhile

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from hack.testbed import Testbed

__all__ = ["Creation", "Creations"]

_PAUSE_SECONDS = 0.05
_PATHS = {"Pod": "/api/v1/namespaces/{}/pods", "RayCluster": "/apis/ray.io/v1/namespaces/{}/rayclusters"}


class Creation(NamedTuple):
    """One call: when it began (RFC 3339), how long it took (seconds), what was asked for, and the answer.

    `held` is whether muster's gate is on what was made; `error` is what was wrong, or "".
    """

    at: str
    seconds: float
    kind: str
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

    @property
    def count(self) -> int:
        """How many were made, or refused."""
        return len(self.record)

    def held(self, turn: int) -> list[bool]:
        """Whether muster's gate was on what was made, of one of the objects, one time after the other."""
        return [one.held for one in self.record if one.name.startswith(f"stream-{turn}-")]

    def failures(self) -> list[Creation]:
        """The calls that failed."""
        return [one for one in self.record if one.error]

    def write(self, path: Path) -> None:
        """Write the record, a JSON object per line."""
        path.write_text("".join(json.dumps(one._asdict()) + "\n" for one in self.record))

    def _work(self) -> None:
        for number in itertools.count():
            for turn, manifest in enumerate(self._manifests):
                self._create(manifest, f"stream-{turn}-{number}")
            if self._ended.wait(_PAUSE_SECONDS):
                return

    def _create(self, manifest: dict[str, Any], name: str) -> None:
        named = {**manifest, "metadata": {**manifest["metadata"], "name": name}}
        at, started, held, wrong = datetime.now(UTC), time.monotonic(), False, ""
        try:
            made = self._api.create(_PATHS[manifest["kind"]].format(self._namespace) + self._options, named)
            held = GATE in {gate["name"] for gate in made["spec"].get("schedulingGates", [])}
        except TestbedError as error:
            wrong = str(error)
        seconds = time.monotonic() - started
        self.record.append(Creation(at.isoformat(), seconds, manifest["kind"], name, held, wrong))
