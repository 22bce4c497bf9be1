"""Open pages hear of changes, and there is a bound on how many are open."""

import asyncio
from contextlib import suppress

import aiohttp
import pytest

from hack.testbed.waiting import PATIENCE
from muster.cli.page import server
from muster.cli.page.state import PageState
from muster.cli.snapshot import ClusterSnapshot, LedgerSnapshot, in_background
from muster.cluster.cluster import Cluster
from muster.workloads import kind_of
from tests.support.cli.page import served
from tests.support.controller.stores import filled, workload_store
from tests.support.faults.apiserver import eventually
from tests.support.manifests.gangs import gangs, limited
from tests.support.manifests.observed import made, ray_cluster


def cluster() -> Cluster:
    workloads, pods, groups = gangs(["wait"])
    return filled(workloads=workloads, pods=pods, groups=groups, queues=[limited("q", cpu="1")])


async def renewed(state: PageState) -> None:
    """One more board."""
    await state.refresh()


async def heard(answer: aiohttp.ClientResponse) -> list[str]:
    """The lines up to the next blank one."""
    lines = []
    async with asyncio.timeout(PATIENCE):
        while line := (await answer.content.readline()).decode().rstrip("\n"):
            lines.append(line)
    return lines


async def test_a_page_hears_at_once_that_it_is_old_and_then_of_each_change() -> None:
    async with served(cluster()) as page, page.session.get(page.url("events?since=0")) as answer:
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["Content-Security-Policy"]
        assert await heard(answer) == ["event: changed", "data: 1"]
        await page.state.refresh()
        assert await heard(answer) == ["event: changed", "data: 2"]


async def test_a_page_that_is_up_to_date_hears_nothing_new() -> None:
    async with served(cluster()) as page, page.session.get(page.url("events?since=1")) as answer:
        assert await heard(answer) == [": nothing new"]
        await page.state.refresh()
        assert await heard(answer) == ["event: changed", "data: 2"]


async def test_a_change_in_the_cluster_becomes_a_revision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.cli.page.state._PAUSE", 0.01)
    async with served(cluster()) as page, page.session.get(page.url("events?since=1")) as answer:
        await heard(answer)
        new = ray_cluster(name="more", uid="uid-more")
        kind = kind_of(new["apiVersion"], new["kind"])
        assert kind is not None
        workload_store(page.state.visible.cluster, kind).apply("added", made(kind.decoded, new))
        page.following.changed.set()
        assert await heard(answer) == ["event: changed", "data: 2"]
        _, text, _ = await page.get()
    assert "ray-more-pg" in text


async def test_while_a_board_is_made_the_last_one_is_shown_as_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 5,000 gangs that takes seconds, and pages are asked for meanwhile."""
    begun, ended = asyncio.Event(), asyncio.Event()
    async with served(cluster()) as page:
        state, last = page.state, page.state.board.now
        whole = ClusterSnapshot.ledger_snapshot_in_slices

        async def slowly(visible: ClusterSnapshot, now: float) -> LedgerSnapshot:
            begun.set()
            await ended.wait()
            return await whole(visible, now)

        monkeypatch.setattr(ClusterSnapshot, "ledger_snapshot_in_slices", slowly)
        assert state.as_of > last
        async with in_background(renewed(state)):
            await begun.wait()
            assert state.as_of == last
            ended.set()
            await eventually(lambda: state.board.now > last)
        assert state.as_of > state.board.now


async def test_what_goes_wrong_inside_is_told_and_the_page_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("muster.cli.page.state._PAUSE", 0.01)

    async def fails(_: float) -> None:
        raise ValueError("inner")

    async with served(cluster()) as page:
        with monkeypatch.context() as broken:
            broken.setattr("muster.cli.snapshot.ClusterSnapshot.ledger_snapshot_in_slices", lambda _, now: fails(now))
            page.following.changed.set()
            await eventually(lambda: page.state.troubles)
            _, text, _ = await page.get()
        page.following.changed.set()
        await eventually(lambda: not page.state.troubles)
    assert "internal error" in text
    assert "ray-wait-pg" in text
    assert "inner" not in text


async def test_one_listener_too_many_asks_again_later_and_who_leaves_makes_room() -> None:
    async with served(cluster()) as page:
        most = server.MOST
        answers = [await page.session.get(page.url("events?since=0")) for _ in range(most)]
        async with page.session.get(page.url("events")) as refused:
            assert (refused.status, refused.headers["Retry-After"]) == (503, "10")
            assert "pages are open already" in await refused.text()
        answers[0].close()
        await eventually(lambda: page.listeners.open < most)
        async with page.session.get(page.url("events?since=0")) as let_in:
            assert let_in.status == 200
            assert await heard(let_in) == ["event: changed", "data: 1"]
        for answer in answers:
            answer.close()


async def test_no_other_site_takes_a_place() -> None:
    async with served(cluster()) as page:
        status, _, _ = await page.get("events", Origin="http://evil.example")
        assert (status, page.listeners.open) == (403, 0)


async def test_the_end_of_the_command_ends_the_stream() -> None:
    async with aiohttp.ClientSession() as session:
        async with served(cluster()) as page:
            answer = await session.get(page.url("events?since=0"))
            await heard(answer)
        with suppress(aiohttp.ClientError):
            assert await heard(answer) == []
        answer.close()
