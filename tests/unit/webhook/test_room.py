"""Who keeps a place among the connections: those that send reviews, whatever others send."""

import asyncio
from contextlib import AsyncExitStack

from tests.support.cases import cases
from tests.support.faults.loop_clock import LoopClock
from tests.unit.webhook.server.test_listener import BODY, HOST, SOON, House, Peer, allowed, head, house

_PLACES = 4


async def _peers(served: House, stack: AsyncExitStack, many: int) -> list[Peer]:
    return [await stack.enter_async_context(served.peer()) for _ in range(many)]


@cases(
    "sent, status",
    ("no review", head(2) + b"{}", 400),
    ("no path", head(len(BODY), "/elsewhere") + BODY, 404),
    ("no method", f"GET /mutate/pods HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode(), 405),
    ("no JSON", head(2).replace(b"application/json", b"text/plain") + b"{}", 415),
)
async def test_what_no_apiserver_asks_ends_its_connection(sent: bytes, status: int) -> None:
    """Each was a sign of life: 256 connections that sent `{}` twice a second left none to the apiserver."""
    async with house() as served, served.peer() as peer:
        await peer.send(sent)
        answer = await peer.answer()
        assert (answer[0], answer[1]["Connection"]) == (status, "close")
        assert await peer.closed()


async def test_a_review_that_is_to_come_again_keeps_its_connection() -> None:
    """The apiserver comes on it a second later."""
    async with house() as served, served.peer() as peer, AsyncExitStack() as stack:
        slots = served.limits.of("pods")
        for _ in range(slots.limits.reviews):
            stack.enter_context(slots.slot(large=False, seconds=SOON))
        status, headers, _ = await peer.ask()
        assert (status, headers.get("Connection")) == (429, None)
        await stack.aclose()
        assert allowed(await peer.ask())


async def test_who_never_sent_a_review_goes_before_who_has() -> None:
    """However long the apiserver's connection has been idle, and however young the others are."""
    clock = LoopClock()
    async with house(connections=_PLACES) as served, served.peer() as apiserver, AsyncExitStack() as stack:
        assert allowed(await apiserver.ask())
        clock.forward(50)
        await _peers(served, stack, 2 * _PLACES)
        assert allowed(await apiserver.ask())


async def test_who_never_sent_a_review_has_a_part_of_the_places_only() -> None:
    async with house(connections=_PLACES) as served, AsyncExitStack() as stack:
        await _peers(served, stack, 3)
        assert not served.listener._has_room()
        (one, *_) = served.listener._connections
        one.authenticated_by_review = True
        assert served.listener._has_room()


async def test_reviews_that_keep_coming_on_all_connections_keep_nobody_out() -> None:
    """Whoever reaches the port can send a review; that each has sent one half a second ago leaves room for the next."""
    clock = LoopClock()
    async with house(connections=_PLACES) as served, AsyncExitStack() as stack:
        for _ in range(_PLACES):
            (peer,) = await _peers(served, stack, 1)
            assert allowed(await peer.ask())
        assert served.listener.connections == _PLACES
        clock.forward(0.5)
        assert served.listener._has_room()
        async with asyncio.timeout(SOON), served.peer() as new:
            assert allowed(await new.ask())
