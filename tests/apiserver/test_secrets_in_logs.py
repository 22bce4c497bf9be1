"""Both processes at level debug, with faults on the way to the apiserver: no line of their logs holds key or token."""

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from hack.testbed import Testbed
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from muster.model.resource import LEASES, SECRETS
from tests.support.cluster.desk import PATIENCE
from tests.support.faults.apiserver import FaultyApiserver, cut, eventually, failure, html, reset

pytestmark = pytest.mark.part("processes")

_SECRET = SECRETS.path("muster-system", "muster-webhook-tls")
_LEASE = LEASES.path("muster-system", "muster-controller")
_PIECE = 24


async def _rest(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """An answer that lost its beginning on the way: what comes first is the middle of an object, a Secret's data."""
    lost = 500
    async for chunk in chunks:
        left = chunk[max(lost, chunk.find(b'"data":{')) :]
        if left:
            yield left
        lost = max(0, lost - len(chunk))


def _pieces(texts: Iterable[str]) -> set[str]:
    """Every part of so many characters, by steps of eight: whoever logs more of it than three of these is found."""
    return {text[at : at + _PIECE] for text in texts for at in range(0, len(text) - _PIECE, 8)}


def _secrets(calls: Api) -> list[str]:
    """What the Secret holds, encoded and as it is; certificates too, which are no secret."""
    data: dict[str, str] = calls.done("GET", _SECRET)["data"]
    return [*data.values(), *(line for text in data.values() for line in base64.b64decode(text).decode().splitlines())]


def _touched() -> dict[str, object]:
    """A patch that changes nothing but an annotation, each time another."""
    return {"metadata": {"annotations": {"tests.muster.dev/touched": str(time.monotonic_ns())}}}


async def test_no_line_holds_a_key_or_a_token(
    bare: Testbed, webhook: MusterInstall, calls: Api, tmp_path: Path
) -> None:
    """Through every fault, a rotation, and the Secret emptied."""
    webhook.stop_webhooks()
    secrets, tokens, processes = _secrets(calls), [], []
    async with FaultyApiserver.in_front_of(bare) as proxy:
        for program, start in (("webhook", webhook.start_webhook), ("controller", webhook.start_controller)):
            tokens.append(webhook.programs[program].token)
            processes.append(start(webhook.through(program, proxy.url, tmp_path), "--log-level=debug"))
        await asyncio.to_thread(webhook.wait_ready, PATIENCE)

        def leads() -> bool:
            return any(one.path == _LEASE for one in proxy.seen("PUT"))

        await eventually(leads, PATIENCE)
        for kind in ("WATCH", "LIST", "GET"):
            for fault in (proxy.spoiled(_rest), proxy.spoiled(cut(0)), failure(503), html(502), reset):
                proxy.on(kind, fault)
                before = len(proxy.seen(kind))
                proxy.drop()
                for again in range(1, 4):
                    # So that the Secret itself comes by a watch that spoils it.
                    await asyncio.to_thread(calls.done, "PATCH", _SECRET, _touched(), patch="merge")
                    await eventually(lambda kind=kind, seen=before + again: len(proxy.seen(kind)) > seen, PATIENCE)  # type: ignore[misc]
                proxy.on(kind)
        patch = {"metadata": {"annotations": {"muster.dev/rotate": "serving"}}}
        await asyncio.to_thread(calls.done, "PATCH", _SECRET, patch, patch="merge")
        await eventually(lambda: _secrets(calls)[3] != secrets[3], PATIENCE)
        secrets += _secrets(calls)
        await asyncio.to_thread(calls.done, "PATCH", _SECRET, {"data": None}, patch="merge")
        await eventually(lambda: calls.done("GET", _SECRET).get("data"), PATIENCE)
        secrets += _secrets(calls)
        for process in processes:
            await asyncio.to_thread(process.stop)
    webhook.webhooks.clear()
    webhook.controllers.clear()
    webhook.free_lease()
    logs = [process.log.read_text() for process in processes]
    assert all("DEBUG" in log or "debug" in log for log in logs), "they did not say all that they can"
    pieces = _pieces([*secrets, *tokens])
    told = [line for log in logs for line in log.splitlines() if any(piece in line for piece in pieces)]
    assert told == []
