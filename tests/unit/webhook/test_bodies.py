"""Bodies that are refused, or whose sender goes away: nothing of them stays."""

from __future__ import annotations

import gc
import logging
import tracemalloc

import pytest

from tests.unit.webhook.test_listener import QUICK, SOON, head, house
from webhook.intake import Limits

LARGE = 3 * 2**20
OF_UNKNOWN_LENGTH = head(0).replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
BEYOND_ALL = 7 * 2**20 + 1


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        pytest.param(head(2 * LARGE) + b" " * LARGE, None, id="its sender goes away"),
        pytest.param(head(2 * LARGE) + b" " * LARGE, 408, id="slow"),
        pytest.param(OF_UNKNOWN_LENGTH + b"%x\r\n" % BEYOND_ALL + b" " * BEYOND_ALL, 413, id="too large"),
    ],
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
