"""The webhook's command line."""

import asyncio
import base64
import datetime as dt
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from hack.testbed.ports import free_port
from hack.testbed.site import kubeconfig_text
from hack.testbed.waiting import PATIENCE
from muster.model.resource import QUEUES
from muster.process.certificates import issue
from tests.support.faults.apiserver import FaultyApiserver, failure, hang, listing, only, reply, stream
from webhook.__main__ import main

_CHECKOUT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("argument", "line"),
    [
        ("--validation=no", 'validation: "no" is not known; use one of deny, warn, off'),
        ("--validation-reason=NoPods=no", 'validation of NoPods: "no" is not known; use one of deny, warn, off'),
        ("--validation-reason=NoPod=warn", 'a reason: "NoPod" is not known; use one of Invalid, QueueNotFound, '),
    ],
)
def test_a_strictness_that_is_not_known_ends_it_with_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argument: str, line: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["muster-webhook", argument])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert f"muster-webhook: error: {line}" in capsys.readouterr().err


@asynccontextmanager
async def running(server: FaultyApiserver, folder: Path, port: int, health: int) -> AsyncIterator[None]:
    """The webhook's process, with a certificate of its own from the start."""
    certificates = issue(["muster-webhook.muster-system.svc"], dt.datetime.now(dt.UTC))
    for name, text in certificates.secret_data().items():
        (folder / name).write_bytes(base64.b64decode(text))
    (folder / "kubeconfig").write_text(kubeconfig_text(server.url, folder / "ca.crt", "token"))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "webhook", f"--kubeconfig={folder / 'kubeconfig'}", "--shutdown-delay=0"),
        *(f"--certificate-directory={folder}", "--bind-address=127.0.0.1", f"--port={port}"),
        *("--health-bind-address=127.0.0.1", f"--health-port={health}"),
        env={**os.environ, "PYTHONPATH": str(_CHECKOUT), "POD_NAME": "one", "POD_NAMESPACE": "muster-system"},
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
        assert process.returncode is None
    finally:
        process.kill()
        await process.wait()


async def listens(port: int) -> bool:
    """Whether connections are taken."""
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return False
    writer.close()
    return True


async def test_it_listens_only_when_everything_was_listed(tmp_path: Path) -> None:
    """A queue that is not known could only be unread; the certificate alone opens no door."""
    release = asyncio.Event()

    async def held(request: web.Request) -> web.StreamResponse:
        await release.wait()
        return await reply(listing(1))(request)

    port, health = free_port(), free_port()
    async with FaultyApiserver.serving() as server:
        server.on("LIST", only(QUEUES.path(), held, reply(listing(1))))
        server.on("WATCH", stream(b"\n", then=hang))
        server.on("GET", failure(404, "NotFound"))
        server.on("POST", reply({}))
        async with (
            running(server, tmp_path, port, health),
            aiohttp.ClientSession() as session,
            asyncio.timeout(PATIENCE),
        ):

            async def checks() -> dict[str, str]:
                async with session.get(f"http://127.0.0.1:{health}/readyz") as answer:
                    return dict(line.split(": ", 1) for line in (await answer.text()).splitlines())

            while not await listens(health):
                pass
            while (said := await checks())["certificate"] == "not yet" or said[
                "stores"
            ] != f"not yet: {QUEUES.full_name}":
                pass
            # This one is answered by the loop that would listen.
            async with session.get(f"http://127.0.0.1:{health}/metrics") as answer:
                assert answer.status == 200
            assert not await listens(port)
            release.set()
            while not await listens(port):
                pass
