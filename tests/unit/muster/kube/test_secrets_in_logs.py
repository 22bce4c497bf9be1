"""Whatever comes in the place of an answer about a Secret, nothing of it is logged, at any level."""

import asyncio
import datetime as dt
import json
import logging

import pytest
from aiohttp import web

from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.reflector import Reflector, Watched, WatchTimes
from muster.kube.store import Store
from muster.model.objects import LocalObject, ObjectMeta
from muster.model.resource import SECRETS
from muster.process.certificates import issue
from tests.support.cases import cases
from tests.support.faults.apiserver import Answer, FaultyApiserver, eventually, hang, listing, manifest, reply, stream

_DATA = issue(["muster-webhook.muster-system.svc"], dt.datetime.now(dt.UTC)).secret_data()
_SECRET = {**manifest("tls", 2), "data": _DATA}
# What an answer looks like of which the beginning was lost on the way.
_REST = json.dumps({"data": _DATA}).encode()


class _Secret(LocalObject, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    data: dict[str, str] = {}  # noqa: RUF012 - msgspec copies the default


def _page(status: int) -> Answer:
    """A page of something in between, which shows what it was given."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(status=status, body=_REST, content_type="text/html")

    return answer


def _quoted(text: str) -> list[str]:
    """The keys of the Secret of which the text has sixteen characters in a row."""
    return [name for name, value in _DATA.items() for at in range(0, len(value) - 16, 8) if value[at : at + 16] in text]


@cases(
    "lists, watches",
    ("a line of a watch that lost its beginning", reply(listing(1)), stream(_REST + b"\n", then=hang)),
    ("half a line", reply(listing(1)), stream(b'{"type":"ADDED","object":' + _REST[:-9] + b"\n")),
    ("a list that is answered by a page", _page(403), stream()),
    ("a list of something else", reply({"items": [_SECRET | {"data": [_DATA]}]}), stream()),
    (
        "an object that cannot be read",
        reply(listing(1)),
        stream(json.dumps({"type": "ADDED", "object": _SECRET | {"data": 1, **_DATA}}).encode() + b"\n"),
    ),
    (
        "an error that is an object",
        reply(listing(1)),
        stream(json.dumps({"type": "ERROR", "object": _SECRET}).encode() + b"\n"),
    ),
)
async def test_of_a_watched_secret(
    server: FaultyApiserver, client: Client, caplog: pytest.LogCaptureFixture, lists: Answer, watches: Answer
) -> None:
    """Every record that the faults cause, with its trace."""
    caplog.set_level(logging.DEBUG)
    server.on("LIST", lists)
    server.on("WATCH", watches)
    reflector = Reflector(
        client, Watched(SECRETS, _Secret, Store(), namespace="ns"), times=WatchTimes(retry=(0.01, 0.1))
    )
    task = asyncio.create_task(reflector.run())
    await eventually(lambda: any(record.levelno >= logging.WARNING for record in caplog.records))
    task.cancel()
    await asyncio.wait({task})
    assert _quoted(caplog.text) == []


@pytest.mark.parametrize("status", [400, 404, 413, 422, 500, 502])
@pytest.mark.parametrize("verb", ["GET", "PUT"])
async def test_of_a_secret_that_is_read_or_written(
    server: FaultyApiserver, client: Client, caplog: pytest.LogCaptureFixture, verb: str, status: int
) -> None:
    """The error that callers log, and what the client logs by itself."""
    caplog.set_level(logging.DEBUG)
    server.on(verb, _page(status))
    asked = client.get(SECRETS, "tls", "ns", deadline=1)
    if verb == "PUT":
        asked.close()
        asked = client.replace(SECRETS, "tls", _SECRET, "ns", deadline=1)
    with pytest.raises(ApiError) as refused:
        await asked
    assert refused.value.status in (status, 0)
    assert _quoted(f"{refused.value}{caplog.text}") == []
