"""Connections over real TLS: who is slow, silent, too large or too many hurts nobody else, and an end is orderly."""

import asyncio
import datetime as dt
import json
import logging
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from prometheus_client import CollectorRegistry

from hack.testbed import waiting
from muster.model.resource import Resource
from muster.process.certificates import issue, server_context
from tests.support.cases import cases
from tests.support.faults.apiserver import eventually
from tests.support.faults.loop_clock import LoopClock
from tests.support.manifests.observed import JSON, as_json, pod, ray_cluster, ray_owner
from tests.support.webhook.admission_reviews import Reader, knowing, review
from webhook.metrics import ReviewMetrics
from webhook.server.app import make_handler
from webhook.server.limits import Limits, ReviewLimits
from webhook.server.listener import Listener, Patience

HOST = "muster-webhook.muster-system.svc"
CERTIFICATES = issue([HOST], dt.datetime.now(dt.UTC))
OWNER = ray_owner(controller=True)
MEMBER = pod("", owner=OWNER, labels={"ray.io/cluster": "demo", "ray.io/group": "workers"}, schedulerName="")
BODY = as_json(review(MEMBER)).encode()
# For what must happen, and for who is impatient in a test; seconds.
SOON, QUICK = waiting.PATIENCE, 0.1
# For who may take his time: a busy machine is none of what is tested.
LIMITS, PATIENCE = Limits(decision_seconds=600), Patience(handshake=600, head=600, idle=6000, age=6000)


@dataclass
class Slow(Reader):
    """An apiserver that answers when it is told to; `asked` is released once for every read."""

    asked: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    async def get(
        self, resource: Resource, name: str, namespace: str | None = None, *, deadline: float = 10.0
    ) -> bytes:
        """Wait, then read."""
        self.asked.release()
        await self.answers.wait()
        return await super().get(resource, name, namespace, deadline=deadline)


def client_context() -> ssl.SSLContext:
    authority = CERTIFICATES.authorities[0].public_bytes(Encoding.PEM).decode()
    context = ssl.create_default_context(cadata=authority)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@dataclass
class Peer:
    """A client's connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, text: bytes) -> None:
        """Write, and wait until it is gone."""
        self.writer.write(text)
        await self.writer.drain()

    async def ask(self, body: bytes = BODY, path: str = "/mutate/pods") -> tuple[int, dict[str, str], bytes]:
        """Send a review and read its answer, as `answer`."""
        await self.send(head(len(body), path) + body)
        return await self.answer()

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the next answer."""
        async with asyncio.timeout(SOON):
            text = (await self.reader.readuntil(b"\r\n\r\n")).decode()
            status, *lines = text.strip().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            body = await self.reader.readexactly(int(headers["Content-Length"]))
        return int(status.split()[1]), headers, body

    async def closed(self) -> bool:
        """Wait until the server has closed it, having said no more."""
        async with asyncio.timeout(SOON):
            try:
                return await self.reader.read(1) == b""
            except ConnectionResetError:
                return True


def head(length: int, path: str = "/mutate/pods") -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Host: {HOST}", "Content-Type: application/json", f"Content-Length: {length}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@dataclass
class House:
    """A server on a port of this machine."""

    listener: Listener
    limits: ReviewLimits
    port: int

    @asynccontextmanager
    async def peer(
        self, context: ssl.SSLContext | None = None, *, connected: socket.socket | None = None
    ) -> AsyncIterator[Peer]:
        """A connection to it."""
        connected = connected or socket.create_connection(("127.0.0.1", self.port))
        connected.setblocking(False)
        reader, writer = await asyncio.open_connection(
            sock=connected, ssl=context or client_context(), server_hostname=HOST
        )
        try:
            yield Peer(reader, writer)
        finally:
            writer.transport.abort()


@asynccontextmanager
async def house(
    reader: Reader | None = None,
    *,
    limits: Limits | None = None,
    patience: Patience | None = None,
    connections: int = 256,
) -> AsyncIterator[House]:
    reader = reader or Reader()
    reader.objects["rayclusters/demo"] = ray_cluster()
    reviews = ReviewLimits(limits or LIMITS)
    handler = make_handler(knowing(reader).cache, ReviewMetrics(CollectorRegistry()), reviews)
    context = server_context(CERTIFICATES.pair)
    listener = Listener(handler, lambda: context, connections=connections, patience=patience or PATIENCE)
    _, port = await listener.start("127.0.0.1", 0)
    try:
        yield House(listener, reviews, port)
    finally:
        await listener.drain(0)


def owing(served: House) -> int:
    """How many connections owe the head of a request."""
    return sum(one.waiting_since < float("inf") for one in served.listener._connections)


def allowed(answer: tuple[int, dict[str, str], bytes]) -> bool:
    status, _, body = answer
    found: JSON = json.loads(body) if status == 200 else {"response": {"allowed": False}}
    return bool(found["response"]["allowed"])


async def test_a_connection_serves_one_review_after_the_other() -> None:
    async with house() as served, served.peer() as peer:
        for _ in range(3):
            answer = await peer.ask()
            assert allowed(answer)
            assert "Connection" not in answer[1]


@cases(
    "most, version",
    ("the best there is", ssl.TLSVersion.MAXIMUM_SUPPORTED, "TLSv1.3"),
    ("1.2", ssl.TLSVersion.TLSv1_2, "TLSv1.2"),
)
async def test_tls_is_1_3_where_the_client_has_it(most: ssl.TLSVersion, version: str) -> None:
    context = client_context()
    context.maximum_version = most
    async with house() as served, served.peer(context) as peer:
        assert peer.writer.get_extra_info("ssl_object").version() == version


async def test_older_tls_is_refused() -> None:
    context = client_context()
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with house() as served:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            async with served.peer(context):
                pass


async def test_http_2_is_not_spoken() -> None:
    """The apiserver does not either (to webhooks); what is not there has no floods of resets."""
    context = client_context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    async with house() as served, served.peer(context) as peer:
        assert peer.writer.get_extra_info("ssl_object").selected_alpn_protocol() in (None, "http/1.1")
        await peer.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        assert (await peer.answer())[0] == 400


async def test_who_opens_a_connection_and_says_nothing_is_shown_out() -> None:
    async with house(patience=replace(PATIENCE, idle=QUICK)) as served, served.peer() as peer:
        assert await peer.closed()


async def test_a_head_that_does_not_end_is_shown_out_also_on_a_kept_connection() -> None:
    clock = LoopClock()
    async with house(patience=replace(PATIENCE, head=5)) as served, served.peer() as peer:
        assert allowed(await peer.ask())
        await peer.send(b"POST /mutate/pods HTTP/1.1\r\nHost: ")
        await eventually(lambda: owing(served) == 1)
        clock.forward(10)
        assert await peer.closed()


async def test_a_handshake_that_does_not_end_is_cut_off() -> None:
    async with house(patience=replace(PATIENCE, handshake=QUICK)) as served:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        async with asyncio.timeout(SOON):
            assert await reader.read() == b""
        writer.close()


async def test_a_connection_that_is_idle_stays() -> None:
    """Apiservers expect theirs to be there for 90 seconds, those too that they opened and did not need then."""
    clock = LoopClock()
    patience = replace(PATIENCE, head=5)
    async with house(patience=patience) as served, served.peer() as kept, served.peer() as spare, served.peer() as owes:
        assert allowed(await kept.ask())
        await owes.send(b"POST /mutate/pods HTTP/1.1\r\n")
        await eventually(lambda: owing(served) == 1)
        clock.forward(10)
        assert await owes.closed()
        assert allowed(await kept.ask())
        assert allowed(await spare.ask())


async def test_a_connection_is_not_kept_for_ever() -> None:
    """Else a replica that comes later is asked nothing; but it ends with an answer, for a call on it must not fail."""
    clock = LoopClock()
    async with house(patience=replace(PATIENCE, age=300)) as served, served.peer() as old:
        status, headers, _ = await old.ask()
        assert (status, headers.get("Connection")) == (200, None)
        clock.forward(301)
        async with served.peer() as young:
            status, headers, body = await old.ask()
            assert (status, headers["Connection"]) == (200, "close")
            assert json.loads(body)["response"]["allowed"]
            assert await old.closed()
            assert [(await young.ask())[1].get("Connection") for _ in range(2)] == [None, None]


async def test_before_the_end_each_connection_ends_with_its_next_answer_and_new_ones_do_not_stay() -> None:
    """An idle connection that is asked on just as the end closes it would fail a call: few are to be left then."""
    clock = LoopClock()
    async with house() as served, served.peer() as idle:
        assert allowed(await idle.ask())
        ending = asyncio.create_task(served.listener.drain(SOON, after=SOON))
        await asyncio.sleep(0)
        assert served.listener.serving
        answer = await idle.ask()
        assert allowed(answer)
        assert answer[1]["Connection"] == "close"
        assert await idle.closed()
        async with served.peer() as late:
            status, headers, _ = await late.ask()
            assert (status, headers.get("Connection")) == (200, None)
            clock.forward(1)
            status, headers, _ = await late.ask()
            assert (status, headers["Connection"]) == (200, "close")
        assert not ending.done()
        ending.cancel()


async def test_a_body_that_does_not_come_is_408_and_closed() -> None:
    async with house(limits=Limits(decision_seconds=QUICK)) as served, served.peer() as peer:
        await peer.send(head(len(BODY)) + BODY[:100])
        status, headers, text = await peer.answer()
        assert (status, headers["Connection"]) == (408, "close")
        assert text == b"the body did not come within 0.1 s\n"
        assert served.limits.reviews == 0


async def test_a_large_body_is_refused_before_it_comes() -> None:
    async with house() as served, served.peer() as peer:
        await peer.send(head(7 * 2**20 + 1))
        status, headers, _ = await peer.answer()
        assert (status, headers["Connection"]) == (413, "close")


async def test_few_large_bodies_are_taken_at_once_and_small_ones_beside_them() -> None:
    async with house(limits=replace(LIMITS, large_reviews=2)) as served:
        large = as_json(review(pod("", owner=OWNER, annotations={"a": "x" * 2**20}))).encode()
        async with served.peer() as first, served.peer() as second, served.peer() as third, served.peer() as small:
            for peer in (first, second):
                await peer.send(head(len(large)) + large[:-1])
            while served.limits.reviews < 2:
                # Each of these is served meanwhile.
                assert allowed(await small.ask())
            status, headers, _ = await third.ask(large)
            assert (status, headers["Retry-After"]) == (429, "1")
            for peer in (first, second):
                await peer.send(large[-1:])
                assert allowed(await peer.answer())


async def test_who_says_nothing_gives_way_before_who_is_idle_the_oldest_first() -> None:
    async with house(connections=3) as served, served.peer() as kept:
        assert allowed(await kept.ask())
        silent = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(2)]
        async with served.peer() as later:
            assert allowed(await later.ask())
            assert allowed(await kept.ask())
            async with asyncio.timeout(SOON):
                assert await silent[0][0].read() == b""
            async with served.peer() as last:
                assert allowed(await last.ask())
                assert allowed(await kept.ask())
                async with asyncio.timeout(SOON):
                    assert await silent[1][0].read() == b""
                assert served.listener.connections == 3
        for _, writer in silent:
            writer.close()


async def test_when_all_have_asked_the_one_that_is_idle_for_longest_gives_way() -> None:
    async with house(connections=2) as served, served.peer() as first:
        assert allowed(await first.ask())
        async with served.peer() as second:
            assert allowed(await second.ask())
            assert allowed(await first.ask())
            async with served.peer() as third:
                assert await second.closed()
                assert allowed(await third.ask())


async def test_a_rush_of_more_than_there_may_be_is_served_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody who has just come is closed for another who comes."""
    # On a busy machine these clients of ours would have been silent for that moment.
    for seconds in ("_SILENT_SECONDS", "_UNPROVEN_SECONDS", "_IDLE_SECONDS"):
        monkeypatch.setattr(f"webhook.server.listener.{seconds}", SOON)
    async with house(connections=3) as served:
        answers = await asyncio.gather(*(ask_once(served) for _ in range(30)))
    assert all(allowed(answer) for answer in answers)


async def test_silent_connections_keep_nobody_out() -> None:
    async with house(connections=40) as served:
        silent = [await asyncio.open_connection("127.0.0.1", served.port) for _ in range(120)]
        async with asyncio.timeout(SOON), served.peer() as peer:
            assert allowed(await peer.ask())
            assert served.listener.connections <= 40
        for _, writer in silent:
            writer.transport.abort()


@cases(
    "sent",
    ("no HTTP", b"GARBAGE \x00\xff secret words\r\n\r\n"),
    ("a negative length", b"POST /mutate/pods HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
    ("two lengths", head(5)[:-4] + b"\r\nContent-Length: 6\r\n\r\nsecret"),
    ("a length, and chunks", head(5)[:-4] + b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("a long line", b"POST /" + b"secret" * 5000 + b" HTTP/1.1\r\n\r\n"),
)
async def test_what_is_no_http_is_400_and_neither_echoed_nor_logged(
    sent: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with house() as served, served.peer() as peer:
        await peer.send(sent)
        status, _, text = await peer.answer()
        assert (status, text) == (400, b"not understood\n")
        assert await peer.closed()
    assert "secret" not in caplog.text


async def test_at_the_end_what_is_under_way_is_answered_and_told_to_close(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhook.server.listener._LAST_REQUEST_SECONDS", SOON)
    slow = Slow()
    async with house(slow) as served, served.peer() as busy, served.peer() as idle:
        slow.answers.set()
        assert allowed(await idle.ask())
        slow.answers.clear()
        await busy.send(head(len(BODY)) + BODY)
        await slow.asked.acquire()
        await slow.asked.acquire()
        ending = asyncio.create_task(served.listener.drain(SOON))
        await asyncio.sleep(0)
        assert not served.listener.serving
        slow.answers.set()
        answer = await busy.answer()
        assert allowed(answer)
        assert answer[1]["Connection"] == "close"
        # Who asks once more on a kept connection is answered as well.
        answer = await idle.ask()
        assert allowed(answer)
        assert answer[1]["Connection"] == "close"
        async with asyncio.timeout(SOON):
            await ending
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", served.port)


async def test_at_the_end_who_is_let_in_by_the_kernel_is_served() -> None:
    async with house() as served:
        # Connected, and not yet accepted: the server gets no turn in between.
        waiting = [socket.create_connection(("127.0.0.1", served.port)) for _ in range(5)]
        connecting = [asyncio.create_task(ask_once(served, one)) for one in waiting]
        await served.listener.drain(SOON)
        assert [allowed(answer) for answer in await asyncio.gather(*connecting)] == [True] * 5


async def ask_once(served: House, connected: socket.socket | None = None) -> tuple[int, dict[str, str], bytes]:
    async with served.peer(connected=connected) as peer:
        return await peer.ask()


async def test_at_the_end_nobody_is_waited_for_too_long() -> None:
    """Neither for a decision nor for a client that dawdles with its body, its head or its handshake."""
    slow = Slow()
    async with house(slow) as served, served.peer() as busy, served.peer() as body, served.peer() as asks:
        _, shaking = await asyncio.open_connection("127.0.0.1", served.port)
        await busy.send(head(len(BODY)) + BODY)
        await slow.asked.acquire()
        await body.send(head(len(BODY)) + BODY[:9])
        await asks.send(b"POST /")
        async with asyncio.timeout(SOON):
            await served.listener.drain(QUICK)
        for peer in (busy, body, asks):
            assert await peer.closed()
        shaking.transport.abort()
