"""Bodies that are refused, or whose sender goes away: nothing of them stays, and nobody waits for them."""

import asyncio
import gc
import logging
import tracemalloc

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

from tests.support.cases import cases
from tests.support.webhook.admission_reviews import knowing
from tests.unit.webhook.server.test_listener import QUICK, SOON, head, house
from webhook.metrics import ReviewMetrics
from webhook.server.app import make_handler
from webhook.server.limits import Limits, ReviewLimits

LARGE = 3 * 2**20
OF_UNKNOWN_LENGTH = head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
BEYOND_ALL = 7 * 2**20 + 1


@cases(
    "sent, status",
    ("its sender goes away", head(2 * LARGE) + b" " * LARGE, None),
    ("slow", head(2 * LARGE) + b" " * LARGE, 408),
    ("too large", OF_UNKNOWN_LENGTH + b"%x\r\n" % BEYOND_ALL + b" " * BEYOND_ALL, 413),
)
async def test_a_body_is_let_go_at_once(sent: bytes, status: int | None, caplog: pytest.LogCaptureFixture) -> None:
    """What only the cycle collector frees would fill the memory before that comes by."""
    # A test's log keeps errors, and they what they are about.
    caplog.set_level(logging.ERROR)
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        async with house(limits=Limits(decision_seconds=QUICK if status == 408 else SOON)) as served:
            for _ in range(3):
                async with served.peer() as peer:
                    await peer.send(sent)
                    if status is None:
                        peer.writer.close()
                        assert await peer.closed()
                    else:
                        assert (await peer.answer())[0] == status
        assert tracemalloc.get_traced_memory()[0] < LARGE
    finally:
        tracemalloc.stop()
        gc.enable()


class Line(asyncio.Transport):
    """A transport that leads nowhere."""

    def close(self) -> None:
        """Be closed."""


async def test_who_goes_away_before_its_body_is_waited_for_holds_no_place() -> None:
    registry = CollectorRegistry()
    intake = ReviewLimits(Limits())
    connection = web.Server(make_handler(knowing().cache, ReviewMetrics(registry), intake))()
    connection.connection_made(Line())
    await asyncio.sleep(0)
    connection.data_received(head(100))
    # The server has the head, and its handler has not begun.
    await asyncio.sleep(0)
    connection.connection_lost(None)
    await asyncio.sleep(0)
    assert intake.reviews == 0
    assert registry.get_sample_value("muster_webhook_errors_total", {"webhook": "pods", "code": "499"}) == 1
