import asyncio
from typing import Any

import msgspec
import pytest
from aiohttp import web

from muster.kube.client import MAX_PAGE_BYTES, Client
from muster.kube.errors import ApiError, Unreachable
from muster.kube.listing import Pages, list_all, list_into
from muster.model.resource import PODS
from tests.support.cases import cases
from tests.support.faults.apiserver import FaultyApiserver, failure, html, listing, manifest, reply
from tests.support.faults.loop_clock import LoopClock

FIRST = reply(listing(5, manifest("a", 1), continue_="more"))
EXPIRED = failure(410, "Expired")


def name(raw: bytes) -> str | None:
    found: dict[str, Any] = msgspec.json.decode(raw)
    return str(found["metadata"]["name"])


async def test_all_pages_are_one_list(server: FaultyApiserver, client: Client) -> None:
    """Each page is asked for with the token of the one before; all are one list."""
    server.on("LIST", FIRST, reply(listing(5, manifest("b", 2))))
    assert await list_all(client, PODS, name, namespace="ns", field_selector="f=1", page=1) == ["a", "b"]
    wanted = {"limit": "1", "fieldSelector": "f=1"}
    assert [request.query for request in server.requests] == [wanted, {**wanted, "continue": "more"}]


async def test_what_cannot_be_read_is_left_out(server: FaultyApiserver, client: Client) -> None:
    """The caller decides what it can use."""
    server.on("LIST", reply(listing(5, manifest("a", 1), manifest("b", 2))))
    listed = await list_all(client, PODS, lambda raw: name(raw) if b'"b"' in raw else None)
    assert listed == ["b"]


async def test_pages_of_large_objects_are_smaller(server: FaultyApiserver, client: Client) -> None:
    """Memory holds a page: of large objects so many fewer are asked for, and of usual ones soon as many as before."""
    large = "x" * (MAX_PAGE_BYTES // 5)
    objects = [{**manifest(f"o-{number}", number), "large": large if number < 8 else ""} for number in range(80)]

    async def page(request: web.Request) -> web.StreamResponse:
        first, limit = int(request.query.get("continue", "0")), int(request.query["limit"])
        rest = str(first + limit) if first + limit < len(objects) else ""
        return await reply(listing(5, *objects[first : first + limit], continue_=rest))(request)

    server.on("LIST", page)
    pages = Pages(64)
    assert len(await list_all(client, PODS, name, page=pages)) == 80
    assert [int(request.query["limit"]) for request in server.requests][:4] == [64, 16, 4, 4]
    assert pages.size == 64


async def test_an_object_larger_than_a_page_is_the_callers(server: FaultyApiserver, client: Client) -> None:
    server.on("LIST", reply(listing(5, {**manifest("a", 1), "large": "x" * MAX_PAGE_BYTES})))
    with pytest.raises(ApiError, match="the answer is longer than"):
        await list_all(client, PODS, name)


async def test_each_page_is_given_on_when_it_is_there(server: FaultyApiserver, client: Client) -> None:
    """What begins anew begins with an empty whole."""
    wholes: list[list[str]] = []

    def whole() -> list[str]:
        wholes.append([])
        return wholes[-1]

    async def look(request: web.Request) -> web.StreamResponse:
        assert wholes == [["a"]]
        return await EXPIRED(request)

    server.on("LIST", FIRST, look, reply(listing(9, manifest("b", 2))))
    assert await list_into(whole, client, PODS, name) == (["b"], "9")
    assert wholes == [["a"], ["b"]]


async def test_an_expired_page_restarts_the_list(server: FaultyApiserver, client: Client) -> None:
    """What the first pages said belongs to a version that nobody remembers."""
    server.on("LIST", FIRST, EXPIRED, reply(listing(9, manifest("b", 2), continue_="b")), reply(listing(9)))
    assert await list_all(client, PODS, name) == ["b"]
    assert [request.query.get("continue") for request in server.requests] == [None, "more", None, "b"]


async def test_a_list_that_always_expires_is_asked_for_all_at_once(server: FaultyApiserver, client: Client) -> None:
    """Whoever is too slow for the pages twice would be for ever."""
    server.on("LIST", FIRST, EXPIRED, FIRST, EXPIRED)
    server.on("GET", reply(listing(9, manifest("b", 2))))
    assert await list_all(client, PODS, name) == ["b"]
    assert "limit" not in server.seen("GET")[0].query


@cases(
    "answer, error",
    ("410 of the first page", failure(410, "Expired"), "410 Expired"),
    ("403", failure(403, "Forbidden"), "403 Forbidden"),
    ("a portal's page", html(200), "not a Kubernetes answer"),
)
async def test_other_faults_are_the_callers(server: FaultyApiserver, client: Client, answer: Any, error: str) -> None:  # noqa: ANN401
    """Only an expired page can be helped here."""
    server.on("LIST", answer)
    with pytest.raises(ApiError, match=error):
        await list_all(client, PODS, name)


async def test_json_that_is_no_list_is_an_error(server: FaultyApiserver, client: Client) -> None:
    """It never counts as an empty one."""
    server.on("LIST", reply({"items": 5}))
    with pytest.raises(Unreachable, match="not a list"):
        await list_all(client, PODS, name)


async def test_pages_that_do_not_come_in_time_become_smaller_until_they_do(
    server: FaultyApiserver, client: Client
) -> None:
    """A slow way carries eight objects within the deadline: the list comes in more pages, until the way is quick."""
    clock, pages, objects = LoopClock(), Pages(64), [manifest(f"o-{number}", number) for number in range(100)]
    seconds_each = 7.0

    async def slow(request: web.Request) -> web.StreamResponse:
        first, limit = int(request.query.get("continue", "0")), int(request.query["limit"])
        clock.forward(min(limit, len(objects) - first) * seconds_each)
        rest = str(first + limit) if first + limit < len(objects) else ""
        return await reply(listing(5, *objects[first : first + limit], continue_=rest))(request)

    server.on("LIST", slow)
    for _ in range(2):
        with pytest.raises(Unreachable, match="no answer in 60 s"):
            await list_all(client, PODS, name, page=pages)
    assert len(await list_all(client, PODS, name, page=pages)) == 100
    assert [int(request.query["limit"]) for request in server.requests][:4] == [64, 16, 4, 4]
    seconds_each = 0.001
    assert len(await list_all(client, PODS, name, page=pages)) == 100
    assert pages.size == 64


async def test_a_gentle_list_rests_as_long_as_it_asks(server: FaultyApiserver, client: Client) -> None:
    """But never long: the version of a list's pages is forgotten after minutes."""
    clock, now, asked = LoopClock(), asyncio.get_running_loop().time, list[float]()

    async def page(request: web.Request) -> web.StreamResponse:
        asked.append(now())
        number = len(asked)
        clock.forward(0.03 if number == 1 else 40)
        more = "" if number == 3 else str(number)
        return await reply(listing(5, manifest(f"o-{number}", number), continue_=more))(request)

    server.on("LIST", page)
    found, _ = await list_into(list[str], client, PODS, name, gently=True)
    assert found == ["o-1", "o-2", "o-3"]
    assert {request.query["limit"] for request in server.requests} == {"25"}
    assert asked[1] - asked[0] >= 2 * 0.03
    assert 40.1 <= asked[2] - asked[1] < 80


async def test_a_gentle_page_that_does_not_come_in_time_is_smaller_the_next_time(
    server: FaultyApiserver, client: Client
) -> None:
    """Smaller than it was, and not than it might have been."""
    clock, pages = LoopClock(), Pages(500)

    async def late(request: web.Request) -> web.StreamResponse:
        clock.forward(61)
        return await FIRST(request)

    server.on("LIST", late, reply(listing(9)))
    with pytest.raises(Unreachable, match="no answer in 60 s"):
        await list_into(list[str], client, PODS, name, gently=True, page=pages)
    await list_into(list[str], client, PODS, name, gently=True, page=pages)
    assert [request.query["limit"] for request in server.requests] == ["25", "6"]


async def test_a_gentle_list_that_expires_is_gentle_no_more(server: FaultyApiserver, client: Client) -> None:
    """It was too slow for its pages."""
    server.on("LIST", FIRST, EXPIRED, reply(listing(9, manifest("b", 2))))
    assert await list_into(list[str], client, PODS, name, gently=True) == (["b"], "9")
    assert [request.query["limit"] for request in server.requests] == ["25", "25", "500"]
