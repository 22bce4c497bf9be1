"""A large review is thought about in a thread: it holds up nobody else, and is given up in time."""

import asyncio
import json
import threading
from contextlib import AsyncExitStack
from dataclasses import replace

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from hack.testbed.ports import free_port
from muster.process.health import serve_health
from muster.process.logs import review_uid
from muster.validation.context import Context
from muster.validation.workload import Verdict, judge
from muster.workloads import Decoded, Kind
from tests.support.faults.apiserver import eventually
from tests.support.faults.loop_clock import LoopClock
from tests.support.manifests.observed import as_json, pod_group, ray_cluster
from tests.support.webhook.admission_reviews import review
from tests.unit.webhook.server.test_listener import LIMITS, SOON, House, allowed, head, house

WORKLOADS = "/validate/workloads"
SMALL = as_json(review(ray_cluster())).encode()
LARGE = as_json(review(ray_cluster(annotations={"a": "x" * 2**19}))).encode()


async def _busy(served: House, *, until: bool) -> None:
    await eventually(lambda: served.limits.of("workloads").worker._free.locked() is until)


@pytest.fixture
def thinking(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Until it is set, a workload is thought about."""
    ends = threading.Event()

    def slow(kind: Kind, decoded: Decoded, context: Context) -> Verdict:
        ends.wait(SOON)
        return judge(kind, decoded, context)

    monkeypatch.setattr("webhook.reviews.workloads.judge", slow)
    return ends


async def test_small_reviews_and_probes_are_answered_before_a_large_one_that_came_earlier(
    thinking: threading.Event,
) -> None:
    """The order of the answers, whatever the machine."""
    port = free_port()
    async with (
        house() as served,
        served.peer() as large,
        served.peer() as small,
        serve_health("127.0.0.1", port, ready=dict, registry=CollectorRegistry()),
        aiohttp.ClientSession() as session,
    ):
        await large.send(head(len(LARGE), WORKLOADS) + LARGE)
        answer = asyncio.create_task(large.answer())
        await _busy(served, until=True)
        assert allowed(await small.ask())
        async with session.get(f"http://127.0.0.1:{port}/healthz") as probe:
            assert probe.status == 200
        assert not answer.done()
        thinking.set()
        assert (await answer)[0] == 200


async def test_large_reviews_of_one_kind_leave_room_for_those_of_another(thinking: threading.Event) -> None:
    """PodGroups pass unseen where nobody answers: whoever keeps workloads coming would let his into any queue."""
    group = pod_group("mine", ours=False, queue="theirs", annotations={"a": "x" * 2**19})
    group.update(apiVersion="scheduling.volcano.sh/v1beta1", kind="PodGroup")
    asked = as_json(review(group)).encode()
    async with AsyncExitStack() as stack:
        served = await stack.enter_async_context(house())
        peers = [await stack.enter_async_context(served.peer()) for _ in range(13)]
        for peer in peers[:-1]:
            await peer.send(head(len(LARGE), WORKLOADS) + LARGE)
        await _busy(served, until=True)
        status, _, body = await peers[-1].ask(asked, "/validate/podgroups")
        assert (status, json.loads(body)["response"]["status"]["reason"]) == (200, "QueueNotFound")
        thinking.set()


async def test_reviews_of_one_kind_leave_room_for_those_of_another(thinking: threading.Event) -> None:
    """Also small ones."""
    async with house(limits=replace(LIMITS, reviews=1)) as served, served.peer() as one, served.peer() as other:
        await one.send(head(len(LARGE), WORKLOADS) + LARGE)
        await _busy(served, until=True)
        async with served.peer() as more:
            assert (await more.ask(SMALL, WORKLOADS))[0] == 429
        assert allowed(await other.ask())
        thinking.set()


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

    monkeypatch.setattr("webhook.reviews.workloads.judge", slow)
    hurried, clock = f"{WORKLOADS}?timeout=50s", LoopClock()
    async with house() as served, served.peer() as first, served.peer() as second, served.peer() as small:
        answers = [asyncio.create_task(peer.ask(LARGE, hurried)) for peer in (first, second)]
        await _busy(served, until=True)
        assert allowed(await small.ask())
        await eventually(lambda: threads and served.limits.of("workloads").worker._free._waiters)
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
