"""A large review is thought about in a thread: it holds up nobody else, and is given up in time."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import aiohttp
from prometheus_client import CollectorRegistry

from hack.testbed.ports import free_port
from muster.admission import judge
from muster.logs import review_uid
from muster.process import serve_health
from tests.support.faults.apiserver import eventually
from tests.support.faults.loop_clock import LoopClock
from tests.support.manifests.observed import as_json, ray_cluster
from tests.support.webhook.admission_reviews import review
from tests.unit.webhook.test_listener import SOON, House, allowed, head, house

if TYPE_CHECKING:
    import pytest

    from muster.admission import Context, Verdict
    from muster.workloads import Decoded, Kind

WORKLOADS = "/validate/workloads"
# Half a second of work, and none.
MANY = [{"groupName": f"g-{n}", "template": {"spec": {"containers": [{}]}}} for n in range(8000)]
LONG = as_json(review(ray_cluster(*MANY))).encode()
LARGE = as_json(review(ray_cluster(annotations={"a": "x" * 2**19}))).encode()


async def _busy(served: House, *, until: bool) -> None:
    await eventually(lambda: served.intake.beside._free.locked() is until)


async def test_small_reviews_and_probes_are_answered_before_a_large_one_that_came_earlier() -> None:
    """The order of the answers, whatever the machine."""
    port = free_port()
    async with (
        house() as served,
        served.peer() as large,
        served.peer() as small,
        serve_health("127.0.0.1", port, ready=dict, registry=CollectorRegistry()),
        aiohttp.ClientSession() as session,
    ):
        await large.send(head(len(LONG), WORKLOADS) + LONG)
        answer = asyncio.create_task(large.answer())
        await _busy(served, until=True)
        assert allowed(await small.ask())
        async with session.get(f"http://127.0.0.1:{port}/healthz") as probe:
            assert probe.status == 200
        assert not answer.done()
        assert (await answer)[0] == 200


async def test_a_large_review_is_given_up_in_time_and_its_thread_is_the_only_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread cannot be ended: those that come meanwhile wait for it, as long as they may, and make no other."""
    ends, uids, threads = threading.Event(), [], set()

    def slow(kind: Kind, decoded: Decoded, context: Context) -> Verdict:
        uids.append(review_uid.get())
        threads.add(threading.current_thread())
        ends.wait(SOON)
        return judge(kind, decoded, context)

    monkeypatch.setattr("webhook.workloads.judge", slow)
    hurried, clock = f"{WORKLOADS}?timeout=50s", LoopClock()
    async with house() as served, served.peer() as first, served.peer() as second, served.peer() as small:
        answers = [asyncio.create_task(peer.ask(LARGE, hurried)) for peer in (first, second)]
        await _busy(served, until=True)
        assert allowed(await small.ask())
        await eventually(lambda: threads and served.intake.beside._free._waiters)
        # Less than these clients wait for.
        clock.forward(45)
        for answer in answers:
            assert (await answer)[0] == 504
        assert len(threads) == 1
        ends.set()
        await _busy(served, until=False)
        assert (await first.ask(LARGE, WORKLOADS))[0] == 200
    assert set(uids) == {"705ab4f5-6393-11e8-b7cc-42010a800002"}
    assert len(threads) == 1
    assert threading.main_thread() not in threads
