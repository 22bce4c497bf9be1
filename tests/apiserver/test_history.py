"""The run times of former gangs in the ConfigMaps that the chart makes, with the rights that the chart gives."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from controller.fenced_writes import Writer
from controller.history import HistoryStore
from muster.gangs.history import SHARDS, History, lineage_of
from muster.kube.client import Client
from muster.kube.resource import CONFIG_MAPS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    import pytest

    from hack.testbed.api import Api
    from hack.testbed.muster import MusterInstall

HOUR = 3600.0
LINEAGES = [lineage_of(f"team-{number}", "RayCronJob", "nightly") for number in range(3 * SHARDS)]


@asynccontextmanager
async def leading(muster: MusterInstall, folder: Path) -> AsyncIterator[tuple[HistoryStore, History]]:
    """The history as a new leader has it, by the token of the controller."""
    kubeconfig = muster.through("controller", muster.testbed.server, folder).partition("=")[2]
    async with await Client.connect(kubeconfig=kubeconfig, user_agent="muster-test") as client:
        writer = Writer(client, lambda: 60.0)
        store = HistoryStore(client, writer, namespace=muster.namespace, name=f"{muster.release}-history")
        await store.read()
        assert store.history is not None
        yield store, store.history


async def test_a_leader_goes_on_with_what_the_one_before_it_wrote(
    webhook_of_session: MusterInstall, calls: Api, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is spoiled is lost, and written again."""
    muster = webhook_of_session
    async with leading(muster, tmp_path) as (first, history):
        assert not any(history.estimates(one, "q") for one in LINEAGES)
        for lineage in LINEAGES:
            for hours in (1, 2, 9):
                history.record(lineage, "q", hours * HOUR)
        await first.write(history)
    async with leading(muster, tmp_path) as (_, history):
        assert {history.estimates(one, "q") for one in LINEAGES} == {history.estimates(LINEAGES[0], "q")} != {()}
    maps = [calls.get(CONFIG_MAPS.path(muster.namespace, f"muster-history-{number}")) for number in range(SHARDS)]
    assert "nightly" not in "".join(one["data"]["runs"] for one in maps)
    calls.merge(CONFIG_MAPS.path(muster.namespace, "muster-history-0"), {"data": {"runs": '{"team": 1}'}})
    assert not caplog.records
    async with leading(muster, tmp_path) as (second, history):
        assert [record.__dict__["event"] for record in caplog.records] == ["history.lost"]
        lost = [one for one in LINEAGES if not history.estimates(one, "another")]
        known = [one for one in LINEAGES if history.estimates(one, "another")]
        assert {int(one.namespace[0], 16) % SHARDS for one in lost} == {0}
        assert known
        for lineage in lost:
            history.record(lineage, "q", HOUR)
        await second.write(history)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "team" not in calls.get(CONFIG_MAPS.path(muster.namespace, "muster-history-0"))["data"]["runs"]
