"""How often a reconciler looks at its gangs."""

from typing import Any

import pytest

from controller import term
from muster.cluster.observe import observe
from muster.planning.snapshot import GangSnapshot
from muster.queueing.ledger import GangKey
from tests.support.controller.harness import Harness


async def touches_and_looks(
    harness: Harness, key: GangKey, monkeypatch: pytest.MonkeyPatch, seconds: int = 8
) -> set[tuple[int, int]]:
    """How many touches one reconcile of the gang sends, and how often it looks at it, in each of so many seconds."""
    seen: list[GangKey] = []

    def counting(one: GangKey, *args: Any, **options: Any) -> GangSnapshot:  # noqa: ANN401 - whatever is observed
        seen.append(one)
        return observe(one, *args, **options)

    monkeypatch.setattr(term, "observe", counting)
    counted = set()
    for _ in range(seconds):
        seen.clear()
        harness.now += 1
        first = len(harness.client.writes)
        await harness.reconciler.reconcile(key)
        touches = [write for write in harness.client.writes[first:] if write.verb == "annotate"]
        counted.add((len(touches), seen.count(key)))
    return counted
