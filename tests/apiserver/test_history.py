"""The run times of former gangs in the ConfigMaps that the chart makes, with the rights that the chart gives."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from controller.apiserver import Writer
from controller.history import HistoryStore
from hack.testbed import wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.gangs.accounts import Accounts, Scope
from muster.gangs.history import History, lineage_of
from muster.gangs.start_errors import StartErrors
from muster.kube.client import Client
from muster.model.names import QUEUE_LABEL, RUNS_ABOUT
from muster.model.resource import CONFIG_MAPS, POD_GROUPS, QUEUES
from muster.model.times import duration_text
from muster.queueing.past_use import PastUse
from tests.support.cluster.desk import PATIENCE, Desk
from tests.support.manifests.applied import pytorch_job, queue

HOUR = 3600.0
LINEAGES = [lineage_of(f"team-{number}", "RayCronJob", "nightly") for number in range(24)]


def held() -> tuple[Accounts, PastUse]:
    """A queue of five CPUs that has held them for an hour."""
    accounts, past = Accounts(()), PastUse()
    accounts.add(Scope("", "q", "team", "Job/a"), 0, HOUR, held={"cpu": 5.0})
    for now in (1.0, 1.0 + HOUR):
        past.advance(now, [("q", HOUR, {"cpu": 5 * 10**9})])
    return accounts, past


@asynccontextmanager
async def leading(
    muster: MusterInstall, folder: Path, records: tuple[Accounts, PastUse] | None = None
) -> AsyncIterator[tuple[HistoryStore, History]]:
    """The history as a new leader has it, by the token of the controller, with these `records`."""
    accounts, past = records or (Accounts(()), PastUse())
    kubeconfig = muster.through("controller", muster.testbed.server, folder).partition("=")[2]
    async with await Client.connect(kubeconfig=kubeconfig, user_agent="muster-test") as client:
        writer = Writer(client, lambda: 60.0)
        history, name = History(), f"{muster.release}-history"
        store = HistoryStore(
            client,
            writer,
            namespace=muster.namespace,
            name=name,
            parts={"runs": history, "use": accounts, "past": past},
            starts=StartErrors(),
        )
        await store.read()
        yield store, history


async def test_a_leader_goes_on_with_what_the_one_before_it_wrote(
    webhook_of_session: MusterInstall, calls: Api, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is spoiled is lost, and written again."""
    muster = webhook_of_session
    async with leading(muster, tmp_path, held()) as (first, history):
        assert not any(history.estimates(one, "q") for one in LINEAGES)
        for lineage in LINEAGES:
            for hours in (1, 2, 9):
                history.record(lineage, "q", hours * HOUR)
        await first.write()
    accounts, past = records = Accounts(()), PastUse()
    async with leading(muster, tmp_path, records) as (_, history):
        assert [row.held for _, row in accounts.rows()] == [{"cpu": 5 * HOUR}]
        assert past.of("q") == {"cpu": 25 * 10**8}
        assert {history.estimates(one, "q") for one in LINEAGES} == {history.estimates(LINEAGES[0], "q")} != {()}
    path = CONFIG_MAPS.path(muster.namespace, "muster-history")
    assert "nightly" not in calls.get(path)["data"]["runs"]
    calls.merge(path, {"data": {"runs": '{"team": 1}'}})
    assert not caplog.records
    async with leading(muster, tmp_path) as (second, history):
        assert [record.__dict__["event"] for record in caplog.records] == ["history.lost"]
        assert not any(history.estimates(one, "q") for one in LINEAGES)
        history.record(LINEAGES[0], "q", HOUR)
        await second.write()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "team" not in calls.get(path)["data"]["runs"]


async def test_a_gang_of_a_known_lineage_says_how_long_it_runs(
    desk: Desk, webhook: MusterInstall, tmp_path: Path
) -> None:
    """Written by the controller itself, by what a leader before it has left."""
    lineage = lineage_of(desk.namespace, "PyTorchJob", "gang")
    async with leading(webhook, tmp_path) as (store, history):
        for hours in (1, 2, 9):
            history.record(lineage, desk.namespace, hours * HOUR)
        await store.write()
        expected = " ".join(map(duration_text, history.estimates(lineage, desk.namespace)))
    desk.create(queue(desk.namespace, cpu="100"))
    made = desk.create(pytorch_job("gang-7").workers(1).label(QUEUE_LABEL, desk.namespace).manifest())
    for role in ("master", "worker"):
        desk.create(desk.member(made, role))
    process = webhook.start_controller()
    path = POD_GROUPS.path(desk.namespace, "gang-7")

    def said() -> str:
        answer = desk.api("GET", path)
        return str(answer.body["metadata"].get("annotations", {}).get(RUNS_ABOUT, "")) if answer.ok else ""

    try:
        wait_for("the estimates", said, PATIENCE)
        assert said() == expected
    finally:
        webhook.controllers.remove(process)
        process.stop()
        desk.delete(QUEUES, desk.namespace)
