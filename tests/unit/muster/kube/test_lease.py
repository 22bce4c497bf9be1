"""A leader and its lease, with an apiserver that fails in every way."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import web

from hack.testbed.waiting import PATIENCE
from muster.kube.client import Client
from muster.kube.lease import LeaseElector, LeaseLost, LeaseTiming
from muster.kube.transport import _CONNECTIONS
from muster.model.resource import PODS
from tests.support.cases import cases
from tests.support.faults.apiserver import Answer, FaultyApiserver, eventually, failure, hang, html, reset

# No busy machine loses it.
TIMING = LeaseTiming(lease=120.0, renew=60.0, retry=0.1)
# For who is to lose it; the margin is for a busy machine.
SHORT = LeaseTiming(lease=60.0, renew=0.5, retry=0.05)
# For who is told to end while it waits for an answer.
UNHURRIED = LeaseTiming(lease=120.0, renew=60.0, retry=30.0)


@dataclass
class Leases:
    """The one lease of an apiserver, with optimistic concurrency; `fault` answers in its place."""

    stored: dict[str, Any] | None = None
    fault: Answer | None = None
    holders: list[str] = field(default_factory=list)

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
        if self.fault is not None:
            return await self.fault(request)
        if request.method == "GET":
            if self.stored is None:
                return await failure(404, "NotFound")(request)
            return web.json_response(self.stored)
        body = json.loads(await request.read())
        if request.method == "POST" and self.stored is not None:
            return await failure(409, "AlreadyExists")(request)
        if request.method == "PUT" and self.stored is None:
            return await failure(404, "NotFound")(request)
        if self.stored and body["metadata"]["resourceVersion"] != self.stored["metadata"]["resourceVersion"]:
            return await failure(409, "Conflict")(request)
        self.put(body)
        return web.json_response(self.stored)

    def put(self, body: dict[str, Any]) -> None:
        """Store it under a new resource version."""
        version = int(self.stored["metadata"]["resourceVersion"]) + 1 if self.stored else 1
        self.stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(version)}}
        self.holders.append(body["spec"]["holderIdentity"])

    @property
    def holder(self) -> str:
        """Who holds it now."""
        return str(self.stored["spec"]["holderIdentity"]) if self.stored else ""


@pytest.fixture
def leases(server: FaultyApiserver) -> Leases:
    leases = Leases()
    for kind in ("GET", "POST", "PUT"):
        server.on(kind, leases)
    return leases


def elector(client: Client, identity: str = "me", timing: LeaseTiming = TIMING) -> LeaseElector:
    return LeaseElector(client, namespace="ns", name="muster", identity=identity, timing=timing)


@dataclass
class Work:
    """What a leader does: nothing, until it is stopped; `stubborn` does not stop."""

    elector: LeaseElector
    stubborn: bool = False
    started: bool = False
    running: bool = False

    async def __call__(self) -> None:
        """Work until stopped."""
        self.started = self.running = True
        try:
            await asyncio.Event().wait()
        finally:
            if self.stubborn:
                await asyncio.Event().wait()
            self.running = False


@asynccontextmanager
async def leading(elector: LeaseElector) -> AsyncIterator[tuple[asyncio.Task[None], Work]]:
    """Lead, and be cancelled at the end."""
    work = Work(elector)
    task = asyncio.create_task(elector.run(work))
    try:
        await eventually(lambda: work.started)
        yield task, work
    finally:
        task.cancel()
        await asyncio.wait({task})


async def test_leads_renews_and_releases_on_cancellation(client: Client, leases: Leases) -> None:
    """A SIGTERM leaves the lease to nobody, so that the next replica need not wait."""
    mine = elector(client)
    assert not mine.is_valid()
    async with leading(mine) as (task, work):
        await eventually(lambda: leases.holders.count("me") >= 3)
        assert mine.is_valid()
        assert UNHURRIED.margin < mine.alone_for() <= UNHURRIED.lease
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not work.running
    assert leases.holder == ""
    assert (mine.is_valid(), mine.alone_for()) == (False, 0.0)


async def test_a_lease_that_was_won_at_the_last_moment_is_given_back(
    client: Client, leases: Leases, server: FaultyApiserver
) -> None:
    """Told to end between its claim and the answer, it does not leave the others to wait for a lease of nobody."""

    async def takes_and_keeps_silent(request: web.Request) -> web.StreamResponse:
        await leases(request)
        return await hang(request)

    server.on("POST", takes_and_keeps_silent)
    mine = elector(client, timing=UNHURRIED)
    running = asyncio.create_task(mine.run(Work(mine)))
    await eventually(lambda: leases.holder == "me")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert leases.holder == ""


async def test_the_next_leader_takes_over_at_once_after_a_release(client: Client, leases: Leases) -> None:
    """And the transition is counted."""
    async with leading(elector(client, "first")):
        second = elector(client, "second")
        waiting = asyncio.create_task(second.run(Work(second)))
        await eventually(lambda: second.holder == "first")
        assert not second.is_valid()
    await eventually(second.is_valid)
    assert leases.stored is not None
    assert leases.stored["spec"]["leaseTransitions"] == 1
    waiting.cancel()
    await asyncio.wait({waiting})


async def test_a_leader_that_vanished_is_replaced_after_its_lease(client: Client, leases: Leases) -> None:
    """Even when its clock was an hour ahead."""
    leases.put(
        {
            "metadata": {"name": "muster"},
            "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 1, "renewTime": "2099-01-01T00:00:00.000000Z"},
        }
    )
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with leading(elector(client)):
        assert loop.time() - began >= 1.0
        assert leases.holder == "me"


@cases(
    "fault",
    ("503", failure(503, "ServiceUnavailable")),
    ("502 from a load balancer", html(502)),
    ("a portal's page", html(200)),
    ("accepts and never answers", hang),
    ("resets every connection", reset),
    ("403", failure(403, "Forbidden")),
)
async def test_work_is_stopped_before_another_may_begin(client: Client, leases: Leases, fault: Answer) -> None:
    """Whatever keeps the renewals away: the work has ended when the trust has, and LeaseLost says why."""
    mine = elector(client, timing=SHORT)
    async with leading(mine) as (task, work):
        loop = asyncio.get_running_loop()
        await eventually(lambda: "me" in leases.holders)
        leases.fault = fault
        began = loop.time()
        with pytest.raises(LeaseLost, match=r"ns/muster: not renewed in 0\.5 s"):
            await asyncio.wait_for(task, PATIENCE)
        assert loop.time() - began < SHORT.lease
        assert not work.running
        assert not mine.is_valid()


async def test_a_slow_answer_does_not_keep_the_lease_from_the_next_leader(client: Client, leases: Leases) -> None:
    """Its release may take longer than a renewal: nobody tries it again, and the next one would wait for all of it."""
    loop = asyncio.get_running_loop()

    async def slow(request: web.Request) -> web.StreamResponse:
        await eventually(lambda: loop.time() > until)
        leases.fault = None
        return await leases(request)

    async with leading(elector(client)):
        until = loop.time() + 2 * TIMING.retry
        leases.fault = slow
    assert leases.holder == ""


def slowed(leases: Leases, seconds: float = 3 * TIMING.retry) -> Answer:
    """The lease, with answers that take so long, by default longer than the time between two attempts."""
    loop = asyncio.get_running_loop()

    async def slow(request: web.Request) -> web.StreamResponse:
        until = loop.time() + seconds
        await eventually(lambda: loop.time() > until)
        leases.fault = None
        try:
            return await leases(request)
        finally:
            leases.fault = slow

    return slow


async def test_a_slow_apiserver_is_waited_for(client: Client, leases: Leases) -> None:
    """Renewals that take longer than the time between two of them are renewals."""
    loop = asyncio.get_running_loop()
    mine = elector(client)
    async with leading(mine):
        leases.fault = slowed(leases)
        ends = mine.remaining() + loop.time()
        await eventually(lambda: mine.remaining() + loop.time() > ends + 2 * TIMING.retry)


async def test_a_slow_apiserver_gets_a_leader(client: Client, leases: Leases) -> None:
    """Who leads there goes on; when that replica ends, another must be able to begin."""
    leases.fault = slowed(leases)
    async with leading(elector(client)) as (task, _):
        assert leases.holder == "me"
        assert not task.done()


async def test_who_leads_by_slow_answers_goes_on_by_them(client: Client, leases: Leases) -> None:
    """A renewal gets as much time as the lease was won with, though less than half of its term is left."""
    timing = LeaseTiming(lease=6.0, renew=4.0, retry=0.8)
    leases.fault = slowed(leases, 1.3)
    async with leading(elector(client, timing=timing)) as (task, _):
        renewals = leases.holders.count("me")
        await eventually(lambda: task.done() or leases.holders.count("me") > renewals + 2)
        assert not task.done()


async def test_a_short_fault_is_survived(client: Client, leases: Leases, server: FaultyApiserver) -> None:
    """A leader goes on when a renewal succeeds in time."""
    async with leading(elector(client)) as (task, work):
        leases.fault = reset
        count = len(server.requests)
        await eventually(lambda: len(server.requests) > count + 1)
        leases.fault = None
        renewals = leases.holders.count("me")
        await eventually(lambda: leases.holders.count("me") > renewals + 2)
        assert work.running
        assert not task.done()


async def test_a_lease_taken_by_another_ends_the_term(client: Client, leases: Leases) -> None:
    """Somebody forced it: no discussion, and no release of what is not ours."""
    async with leading(elector(client)) as (task, _):
        assert leases.stored is not None
        leases.put({**leases.stored, "spec": {**leases.stored["spec"], "holderIdentity": "thief"}})
        with pytest.raises(LeaseLost, match="taken by thief"):
            await asyncio.wait_for(task, PATIENCE)
    assert leases.holder == "thief"


async def test_a_touched_or_deleted_lease_is_kept(client: Client, leases: Leases) -> None:
    """A label or an owner written by somebody stays, and does not end the term; nor does a deletion."""
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u", "blockOwnerDeletion": True}
    theirs = {"labels": {"a": "b"}, "ownerReferences": [owner], "finalizers": ["example.com/f"]}
    async with leading(elector(client)) as (task, _):
        assert leases.stored is not None
        leases.put({**leases.stored, "metadata": {**leases.stored["metadata"], **theirs}})
        before = len(leases.holders)
        await eventually(lambda: len(leases.holders) > before + 2)
        assert {name: leases.stored["metadata"][name] for name in theirs} == theirs
        leases.stored = None
        await eventually(lambda: leases.holder == "me")
        assert not task.done()


async def test_a_leader_whose_writes_are_all_held_up_renews_its_lease(
    client: Client, leases: Leases, server: FaultyApiserver
) -> None:
    """By a webhook of others, say: each has a connection until its deadline, and more wait for one than there are."""
    server.on("PATCH", hang)
    async with leading(elector(client)):
        await eventually(lambda: leases.holder == "me")
        calls = (client.merge_patch(PODS, f"p-{one}", {}, "ns", deadline=300.0) for one in range(100))
        patches = [asyncio.create_task(call) for call in calls]
        await eventually(lambda: len(server.seen("PATCH")) == _CONNECTIONS)
        before = len(leases.holders)
        await eventually(lambda: len(leases.holders) > before + 2)
        for patch in patches:
            patch.cancel()
        await asyncio.wait(patches)


async def test_a_deleted_lease_makes_no_second_leader(client: Client, leases: Leases, server: FaultyApiserver) -> None:
    """Who led goes on, and makes it again; nobody else begins meanwhile."""
    leases.put({"metadata": {}, "spec": {"holderIdentity": "other", "leaseDurationSeconds": 120}})
    mine = elector(client)
    waiting = asyncio.create_task(mine.run(Work(mine)))
    await eventually(lambda: mine.holder == "other")
    leases.stored = None
    looked = len(server.requests)
    await eventually(lambda: len(server.requests) > looked + 3)
    assert leases.holders == ["other"]
    waiting.cancel()
    await asyncio.wait({waiting})


@cases("ending, raises", ("work is over", "returns", None), ("work crashes", "crashes", RuntimeError))
async def test_a_term_ends_with_its_work(
    client: Client, leases: Leases, ending: str, raises: type[Exception] | None
) -> None:
    """A dead leader does not go on holding the lease."""

    async def lead() -> None:
        if ending == "crashes":
            raise RuntimeError("crash")

    call: Callable[[], Awaitable[None]] = lead
    running = elector(client).run(call)
    if raises is None:
        await running
    else:
        with pytest.raises(raises, match="crash"):
            await running
    assert leases.holder == ""


async def test_work_that_does_not_stop_is_told(client: Client, leases: Leases) -> None:
    """The lease is not released under it, and the caller learns that only ending the process will help."""
    mine = elector(client, timing=replace(SHORT, lease=1.0))
    work = Work(mine, stubborn=True)
    task = asyncio.create_task(mine.run(work))
    await eventually(lambda: work.started)
    leases.fault = reset
    with pytest.raises(LeaseLost, match="the work did not stop"):
        await asyncio.wait_for(task, PATIENCE)
    assert leases.holder == "me"
    for stuck in asyncio.all_tasks() - {asyncio.current_task()}:
        stuck.cancel()
