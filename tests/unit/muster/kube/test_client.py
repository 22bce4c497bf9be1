import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from hack.testbed.waiting import PATIENCE
from muster.kube.client import Client
from muster.kube.config import ConfigError, Connection
from muster.kube.errors import ApiError, Unreachable, WatchIdle
from muster.kube.transport import _CONNECTIONS
from muster.model.resource import POD_GROUPS, PODS, QUEUES
from tests.support.cases import cases
from tests.support.faults.apiserver import (
    Answer,
    FaultyApiserver,
    event,
    eventually,
    failure,
    hang,
    html,
    listing,
    manifest,
    reply,
    reset,
    stream,
)
from tests.support.faults.loop_clock import LoopClock

OK = reply({"ok": True})


async def drain(client: Client, *, silence: float = 30.0, max_line: int = 2**23) -> None:
    async with client.watch(PODS, resource_version="1", silence=silence, max_line=max_line) as lines:
        async for _ in lines:
            pass


async def test_warnings_are_told_who_asked_for_them(server: FaultyApiserver, client: Client) -> None:
    """As the apiserver writes them, each in a header of its own; what is no warning of Kubernetes is left alone."""
    told: list[str] = []

    async def warning(request: web.Request) -> web.StreamResponse:
        answer = await OK(request)
        for text in ('299 - "no \\"x\\" here"', '299 muster "second"', "110 - stale"):
            answer.headers.add("Warning", text)
        return answer

    server.on("GET", warning)
    await client.get(PODS, "p", "ns")
    client.on_warning(told.append)
    await client.get(PODS, "p", "ns")
    assert told == ['no "x" here', "second"]


@cases(
    "fault",
    ("429 without Retry-After", failure(429, "TooManyRequests")),
    ("500", failure(500, "InternalError")),
    ("503", failure(503, "ServiceUnavailable")),
    ("502 from a load balancer", html(502)),
    ("connection reset", reset),
)
async def test_reads_are_tried_again(server: FaultyApiserver, client: Client, fault: Answer) -> None:
    """A fault that passes is not seen by the caller of a repeatable request."""
    server.on("GET", fault, fault, OK)
    assert await client.get(PODS, "p", "ns") == b'{"ok": true}'
    assert len(server.requests) == 3


@cases(
    "fault",
    ("500", failure(500, "InternalError")),
    ("502 from a load balancer", html(502)),
    ("connection reset", reset),
)
@cases(
    "call",
    ("create", lambda client: client.create(PODS, {}, "ns")),
    ("json patch", lambda client: client.json_patch(PODS, "p", [], "ns")),
)
async def test_what_may_have_happened_is_not_repeated(
    server: FaultyApiserver, client: Client, fault: Answer, call: Callable[[Client], Awaitable[bytes]]
) -> None:
    """After a lost answer a create or a JSON patch may have taken effect: the caller must look."""
    server.on("POST", fault)
    server.on("PATCH", fault)
    with pytest.raises(ApiError):
        await call(client)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_is_obeyed_for_every_request(server: FaultyApiserver, client: Client, status: int) -> None:
    """The server says when; it has not touched the request, so a create is repeated too."""
    server.on("POST", failure(status, Retry_After="1"), OK)
    await client.create(PODS, {}, "ns", deadline=60)
    first, second = server.requests
    assert second.at - first.at >= 1


async def test_a_retry_after_beyond_the_deadline_is_the_answer_at_once(server: FaultyApiserver, client: Client) -> None:
    """Nobody waits for a moment that will be too late."""
    server.on("GET", failure(429, "TooManyRequests", Retry_After="6000"))
    with pytest.raises(ApiError) as caught:
        await asyncio.wait_for(client.get(PODS, "p", "ns", deadline=600), PATIENCE)
    assert (caught.value.status, caught.value.retry_after) == (429, 6000)


async def test_a_deadline_covers_all_attempts(server: FaultyApiserver, client: Client) -> None:
    """However many faults there are, the caller has an answer in time, and it names the last fault."""
    clock, away = LoopClock(), failure(503, "ServiceUnavailable", "etcd is away")

    async def slow(request: web.Request) -> web.StreamResponse:
        clock.forward(400)
        return await away(request)

    server.on("GET", away, slow)
    with pytest.raises(ApiError, match="etcd is away"):
        await client.get(PODS, "p", "ns", deadline=1000)
    assert len(server.requests) == 4


async def test_a_silent_server_is_unreachable_after_the_deadline(server: FaultyApiserver, client: Client) -> None:
    """Accepted and never answered is an error, not a wait."""
    server.on("GET", hang)
    with pytest.raises(Unreachable, match=r"no answer in 0\.1 s"):
        await client.get(PODS, "p", "ns", deadline=0.1)


async def test_a_refused_connection_is_unreachable_also_for_creates() -> None:
    """Nothing was sent, so it is tried until the deadline, and then said."""
    async with Client(Connection("http://127.0.0.1:9"), user_agent="t") as client:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9") as caught:
            await asyncio.wait_for(client.create(PODS, {}, "ns", deadline=0.5), PATIENCE)
    assert caught.value.status == 0


@pytest.mark.parametrize("status", [400, 403, 404, 409, 410, 422])
async def test_a_refusal_is_the_answer(server: FaultyApiserver, client: Client, status: int) -> None:
    """What would be refused again is not asked again."""
    server.on("PUT", failure(status, "Reason", "because"))
    with pytest.raises(ApiError, match=f"{status} Reason: because"):
        await client.replace(PODS, "p", {}, "ns")
    assert len(server.requests) == 1


async def test_a_page_of_a_portal_is_no_object(server: FaultyApiserver, client: Client) -> None:
    """Status 200 does not make HTML an answer of the apiserver."""
    server.on("GET", html(200))
    with pytest.raises(ApiError, match="not a Kubernetes answer"):
        await client.get(PODS, "p", "ns")


async def test_redirects_are_not_followed(server: FaultyApiserver, client: Client) -> None:
    """The token goes to the configured server only."""
    server.on("GET", reply({}, 302, Location="http://127.0.0.1:9/"))
    with pytest.raises(ApiError) as caught:
        await client.get(PODS, "p", "ns")
    assert caught.value.status == 302


async def test_what_is_sent(server: FaultyApiserver, client: Client) -> None:
    """Methods, paths, parameters and types are those of the Kubernetes API; a write says how long it may last."""
    for kind in ("POST", "PUT", "PATCH", "DELETE", "LIST"):
        server.on(kind, OK)
    await client.create(POD_GROUPS, {"a": 1}, "ns", field_manager="muster")
    await client.replace(POD_GROUPS, "g", {"a": 2}, "ns")
    await client.apply(QUEUES, "q", {"a": 3}, field_manager="muster")
    await client.json_patch(PODS, "p", [{"op": "test"}], "ns")
    await client.merge_patch(PODS, "p", {"a": None}, "ns", dry_run=True)
    await client.strategic_merge_patch(PODS, "p", {}, "ns")
    await client.delete(PODS, "p", "ns", uid="u1", resource_version="7")
    await client.list_page(PODS, label_selector="a=b,c", continue_="tok/en=")
    for request in server.requests[:-1]:
        assert 1000 < int(request.query.pop("timeout").removesuffix("ms")) <= 10000
    sent = [
        (request.kind, request.path, request.query, request.headers.get("Content-Type"), request.body)
        for request in server.requests
    ]
    group = "/apis/scheduling.volcano.sh/v1beta1/namespaces/ns/podgroups"
    pod = "/api/v1/namespaces/ns/pods/p"
    assert sent == [
        ("POST", group, {"fieldManager": "muster"}, "application/json", {"a": 1}),
        ("PUT", f"{group}/g", {}, "application/json", {"a": 2}),
        (
            "PATCH",
            "/apis/scheduling.volcano.sh/v1beta1/queues/q",
            {"fieldManager": "muster", "force": "true"},
            "application/apply-patch+yaml",
            {"a": 3},
        ),
        ("PATCH", pod, {}, "application/json-patch+json", [{"op": "test"}]),
        ("PATCH", pod, {"dryRun": "All"}, "application/merge-patch+json", {"a": None}),
        ("PATCH", pod, {}, "application/strategic-merge-patch+json", {}),
        (
            "DELETE",
            pod,
            {},
            "application/json",
            {
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "propagationPolicy": "Background",
                "preconditions": {"uid": "u1", "resourceVersion": "7"},
            },
        ),
        (
            "LIST",
            "/api/v1/pods",
            {"labelSelector": "a=b,c", "limit": "500", "continue": "tok/en="},
            None,
            None,
        ),
    ]
    assert server.requests[0].headers["User-Agent"] == "muster-test"


async def test_deleting_what_is_gone_is_a_success(server: FaultyApiserver, client: Client) -> None:
    """But another object of the same name is a conflict."""
    server.on("DELETE", failure(404, "NotFound"), failure(409, "Conflict"))
    await client.delete(PODS, "p", "ns")
    with pytest.raises(ApiError) as caught:
        await client.delete(PODS, "p", "ns", uid="other")
    assert caught.value.conflict


async def test_a_rejected_token_is_renewed_once(server: FaultyApiserver) -> None:
    """After a 401 the credentials are asked for again; a second 401 is the answer."""
    asked: list[bool] = []

    async def login(rejected: bool) -> str:
        asked.append(rejected)
        return f"Bearer token-{len(asked)}\n"

    server.on("GET", failure(401, "Unauthorized"), OK, failure(401, "Unauthorized"))
    async with server.client(Connection(server.url, login=login)) as client:
        await client.get(PODS, "p", "ns")
        assert [request.headers["Authorization"] for request in server.requests] == ["Bearer token-1", "Bearer token-2"]
        with pytest.raises(ApiError, match="401"):
            await client.get(PODS, "p", "ns")
    assert asked == [False, True, True]


async def test_a_rejected_watch_is_opened_with_new_credentials(server: FaultyApiserver) -> None:
    """A token that was rotated away costs neither the watch nor a list."""
    tokens = iter(["Bearer old", "Bearer new"])

    async def login(_: bool) -> str:
        return next(tokens)

    server.on("WATCH", failure(401, "Unauthorized"), stream(event("ADDED", manifest("a", 2))))
    async with server.client(Connection(server.url, login=login)) as client:
        await drain(client)
    assert [request.headers["Authorization"] for request in server.requests] == ["Bearer old", "Bearer new"]


async def test_nothing_is_sent_after_the_deadline(server: FaultyApiserver) -> None:
    """A process that stood still between its decision to write and the write itself does not go on with it."""
    stands_still_for = 0.0

    async def login(_: bool) -> str:
        until = time.monotonic() + stands_still_for
        while time.monotonic() < until:
            pass
        return "Bearer t"

    server.on("POST", OK)
    connection = Connection(server.url, login=login)
    async with server.client(connection) as client:
        await client.create(PODS, {"first": 1}, "ns")
        connection.expire("Bearer t")
        stands_still_for = 0.3
        with pytest.raises(Unreachable):
            await client.create(PODS, {"second": 2}, "ns", deadline=0.2)
        await client.create(PODS, {"third": 3}, "ns")
    assert [request.body for request in server.requests] == [{"first": 1}, {"third": 3}]


async def test_nothing_is_sent_when_the_machine_wakes_after_the_deadline(
    server: FaultyApiserver, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop's clock stood still while it slept; that of the lease went on, and another leads by now."""
    server.on("GET", hang)
    server.on("DELETE", OK)
    reads = [asyncio.create_task(client.get(PODS, f"p-{one}", "ns", deadline=300)) for one in range(_CONNECTIONS)]
    await eventually(lambda: len(server.seen("GET")) == _CONNECTIONS)
    write = asyncio.create_task(client.delete(PODS, "p", "ns", deadline=10))
    await asyncio.sleep(0)
    now = time.clock_gettime
    monkeypatch.setattr(time, "clock_gettime", lambda clock: now(clock) + 3600)
    for read in reads:
        read.cancel()
    with pytest.raises(Unreachable, match="too late to send"):
        await write
    assert server.seen("DELETE") == []


async def test_credentials_that_cannot_be_had_are_an_api_error(server: FaultyApiserver) -> None:
    """An exec plugin that fails is retried like a network that fails, for creates too, and never crashes a loop."""

    async def login(_: bool) -> str:
        raise ConfigError("plugin says no")

    async with server.client(Connection(server.url, login=login)) as client:
        with pytest.raises(Unreachable, match="plugin says no"):
            await client.get(PODS, "p", "ns", deadline=0.1)

    refusals = [ConfigError("plugin says no")]

    async def late(_: bool) -> str:
        if refusals:
            raise refusals.pop()
        return "Bearer t"

    server.on("POST", OK)
    async with server.client(Connection(server.url, login=late)) as client:
        await client.create(PODS, {}, "ns")
    assert len(server.requests) == 1


async def test_a_watch_gives_its_whole_lines(server: FaultyApiserver, client: Client) -> None:
    """Lines cut anywhere by the network arrive whole, and half a line at the end not at all."""
    line = event("ADDED", manifest("a", 2))
    server.on("WATCH", stream(line[:7], line[7:] + line, b'{"type": "ADD'))
    async with client.watch(PODS, resource_version="1", timeout_seconds=7) as lines:
        got = [part async for part in lines]
    assert got == [line.strip(), line.strip()]
    assert server.requests[0].query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "1",
        "timeoutSeconds": "7",
    }


async def test_a_watch_of_a_large_object(server: FaultyApiserver, client: Client) -> None:
    """Five MiB in one line pass, the limit does not."""
    line = event("ADDED", manifest("a", 2, data="x" * (5 * 2**20)))
    server.on("WATCH", stream(line))
    async with client.watch(PODS, resource_version="1") as lines:
        assert [len(part) async for part in lines] == [len(line) - 1]
    with pytest.raises(ApiError, match="OversizedLine"):
        await drain(client, max_line=2**20)


@cases(
    "answer, silence, reason",
    ("reset in the middle", stream(b"\n", then=reset), 60, "Unreachable"),
    ("reset before an answer", reset, 60, "Unreachable"),
    ("no answer", hang, 0.1, "Timeout"),
)
async def test_a_broken_watch_is_unreachable(
    server: FaultyApiserver, client: Client, answer: Answer, silence: float, reason: str
) -> None:
    """Whatever breaks it, the watcher gets one typed error, soon."""
    server.on("WATCH", answer)
    with pytest.raises(Unreachable) as caught:
        await asyncio.wait_for(drain(client, silence=silence), PATIENCE)
    assert caught.value.reason == reason


async def test_a_watch_that_falls_silent_is_left(server: FaultyApiserver, client: Client) -> None:
    """It began well; but nobody can tell a kind in which nothing happens from a connection that is dead."""
    clock = LoopClock()
    server.on("WATCH", stream(event("ADDED", manifest("a", 2)), then=hang))
    async with client.watch(PODS, resource_version="1", silence=90) as lines:
        await anext(lines)
        clock.forward(91)
        with pytest.raises(WatchIdle):
            await anext(lines)


async def test_a_refused_watch_says_why(server: FaultyApiserver, client: Client) -> None:
    """The status of the answer is an error before the first line, and is not retried here."""
    server.on("WATCH", failure(410, "Expired"))
    with pytest.raises(ApiError) as caught:
        await drain(client)
    assert caught.value.gone
    assert len(server.requests) == 1


async def test_leaving_a_watch_closes_its_connection(server: FaultyApiserver, client: Client) -> None:
    """No connection stays behind that nobody reads."""
    server.on("WATCH", stream(event("ADDED", manifest("a", 2)), then=hang))
    async with client.watch(PODS, resource_version="1") as lines:
        async for _ in lines:
            break
    connector = client._transport._session.connector
    assert connector is not None
    await eventually(lambda: not connector._acquired)


async def test_leaving_a_watch_waits_for_no_goodbye(server: FaultyApiserver, client: Client) -> None:
    """An orderly end would wait for a server that may be gone."""
    server.on("WATCH", stream(event("ADDED", manifest("a", 2)), then=hang))
    async with client.watch(PODS, resource_version="1") as lines:
        await anext(lines)
        (connection,) = client._transport._session.connector._acquired  # type: ignore[union-attr]
        transport = connection.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        # What is left to be sent keeps a transport open that is only closed.
        transport.write(b" " * 2**24)
    assert transport.get_write_buffer_size() == 0


async def test_a_connection_is_kept_for_the_next_gang_but_not_until_an_apiserver_ends_it(
    server: FaultyApiserver, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An apiserver ends it after 90 seconds, and what is sent in that moment is lost."""
    used = []

    async def noted(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        used.append(request.transport.get_extra_info("peername"))
        return await OK(request)

    server.on("GET", noted)
    passed = 0.0
    monkeypatch.setattr("aiohttp.connector.monotonic", lambda: time.monotonic() + passed)
    for seconds in (0, 50, 80):
        passed += seconds
        await client.get(PODS, "p", "ns")
    assert used[0] == used[1] != used[2]


async def test_the_server_may_stand_behind_a_path(server: FaultyApiserver) -> None:
    """Rancher serves clusters below /k8s/clusters/ID."""
    server.on("LIST", reply(listing(1)))
    async with server.client(Connection(f"{server.url}/k8s/clusters/c-1/")) as client:
        await client.list_page(PODS)
    assert server.requests[0].path == "/k8s/clusters/c-1/api/v1/pods"
