"""The Secret, what is served, and what the apiserver trusts, kept in step."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import logging
import ssl
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import jsonpatch
import pytest

import webhook.trust
from muster.kube.errors import ApiError, Unreachable
from tests.unit.builders import JSON, as_client
from webhook.certificates import Certificates, issue
from webhook.trust import Trust

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from muster.kube.resource import Resource

NAMES = ["muster-webhook.muster-system.svc", "muster-webhook.muster-system", "muster-webhook"]
BOTH = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")


def configuration(*bundles: str | None) -> JSON:
    """A webhook configuration with a webhook for each CA bundle; None has none."""
    return {
        "metadata": {"name": "muster"},
        "webhooks": [
            {
                "name": f"w{index}.muster.dev",
                "clientConfig": {"service": {"name": "s"}, **({} if bundle is None else {"caBundle": bundle})},
            }
            for index, bundle in enumerate(bundles)
        ],
    }


@dataclass
class Cluster:
    """The Secret and the two configurations; `fails` has errors by verb, `rival` a Secret that wins the first race."""

    objects: dict[str, JSON] = field(default_factory=dict)
    fails: dict[str, list[Exception]] = field(default_factory=dict)
    rival: JSON | None = None
    writes: list[str] = field(default_factory=list)
    turns: int = 0
    turned: asyncio.Event = field(default_factory=asyncio.Event)

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> bytes:
        """Read one of the three."""
        self.turns += 1
        self.turned.set()
        assert (name, namespace) in {("muster-webhook-tls", "muster-system"), ("muster", None)}
        self._fail("get")
        if resource.plural not in self.objects:
            raise ApiError(404, "NotFound", name)
        return json.dumps(self.objects[resource.plural]).encode()

    async def replace(self, resource: Resource, name: str, body: JSON, namespace: str) -> bytes:
        """Write the Secret, unless it changed meanwhile."""
        assert (name, namespace) == ("muster-webhook-tls", "muster-system")
        self.writes.append(resource.plural)
        self._fail("replace")
        present = self.objects[resource.plural]
        if self.rival is not None:
            present, self.rival = self.rival, None
            self.objects[resource.plural] = present
        if body["metadata"]["resourceVersion"] != present["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "changed meanwhile")
        self.objects[resource.plural] = body
        return b"{}"

    async def json_patch(self, resource: Resource, name: str, operations: list[JSON]) -> bytes:
        """Change a configuration."""
        assert name == "muster"
        self.writes.append(resource.plural)
        self._fail("json_patch")
        self.objects[resource.plural] = jsonpatch.apply_patch(self.objects[resource.plural], operations)
        return b"{}"

    def _fail(self, verb: str) -> None:
        if self.fails.get(verb):
            raise self.fails[verb].pop(0)

    def bundles(self, plural: str) -> list[str | None]:
        """The authorities of a configuration's webhooks."""
        return [webhook["clientConfig"].get("caBundle") for webhook in self.objects[plural]["webhooks"]]


def cluster(data: JSON | None = None) -> Cluster:
    """As helm leaves it: the Secret without data, no bundles."""
    secret: JSON = {"metadata": {"name": "muster-webhook-tls", "resourceVersion": "1"}, "type": "Opaque"}
    if data is not None:
        secret["data"] = data
    return Cluster({"secrets": secret, BOTH[0]: configuration(None, None), BOTH[1]: configuration(None)})


def trust(of: Cluster) -> Trust:
    return Trust(
        as_client(of),
        namespace="muster-system",
        secret="muster-webhook-tls",  # noqa: S106 - the name of a Secret
        service="muster-webhook",
        configuration="muster",
    )


def in_secret(of: Cluster) -> Certificates:
    found = Certificates.from_secret(of.objects["secrets"]["data"])
    assert found is not None
    return found


def bundle(of: Cluster) -> str:
    return base64.b64encode(in_secret(of).ca_certificate).decode()


@asynccontextmanager
async def running(one: Trust, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    """The loop at work, without its waits."""
    monkeypatch.setattr(webhook.trust, "_CHECK_SECONDS", 0.0)
    monkeypatch.setattr(webhook.trust, "_RETRY_SECONDS", 0.0)
    task = asyncio.create_task(one.run())
    try:
        yield
        assert not task.done()
    finally:
        task.cancel()


async def turns(of: Cluster, count: int = 12) -> None:
    """Let the loop read that many things more."""
    until = of.turns + count
    async with asyncio.timeout(5):
        while of.turns < until:
            of.turned.clear()
            await of.turned.wait()


async def test_the_empty_secret_is_filled_served_and_trusted(monkeypatch: pytest.MonkeyPatch) -> None:
    api = cluster()
    one = trust(api)
    async with running(one, monkeypatch):
        await turns(api)
    assert in_secret(api).usable(NAMES, dt.datetime.now(dt.UTC))
    assert api.bundles(BOTH[0]) == [bundle(api)] * 2
    assert api.bundles(BOTH[1]) == [bundle(api)]
    assert one.ready
    assert one.loaded.is_set()


def test_before_anything_was_read_it_is_not_ready() -> None:
    assert not trust(cluster()).ready


async def test_what_else_is_in_the_secret_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    api = cluster()
    api.objects["secrets"]["metadata"]["labels"] = {"a": "b"}
    async with running(trust(api), monkeypatch):
        await turns(api)
    assert api.objects["secrets"]["metadata"]["labels"] == {"a": "b"}
    assert api.objects["secrets"]["type"] == "Opaque"


async def test_nothing_is_written_again_when_all_is_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    api = cluster()
    async with running(trust(api), monkeypatch):
        await turns(api, 30)
    assert api.writes == ["secrets", *BOTH]


async def test_a_second_replica_takes_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    api = cluster(issue(NAMES, dt.datetime.now(dt.UTC)).secret_data())
    async with running(trust(api), monkeypatch):
        await turns(api)
    assert api.writes == list(BOTH)


async def test_of_two_that_fill_the_secret_at_once_the_first_counts(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Losing the race is no trouble worth a warning."""
    api = cluster()
    winner = issue(NAMES, dt.datetime.now(dt.UTC))
    api.rival = {"metadata": {"name": "muster-webhook-tls", "resourceVersion": "2"}, "data": winner.secret_data()}
    async with running(trust(api), monkeypatch):
        await turns(api)
    assert in_secret(api) == winner
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert api.bundles(BOTH[0]) == [base64.b64encode(winner.ca_certificate).decode()] * 2


@pytest.mark.parametrize(
    "data",
    [
        pytest.param({"tls.crt": "Z2FyYmFnZQ=="}, id="incomplete"),
        pytest.param(dict.fromkeys(("ca.crt", "ca.key", "tls.crt", "tls.key"), "Z2FyYmFnZQ=="), id="garbage"),
        pytest.param(issue(["other.ns.svc"], dt.datetime.now(dt.UTC)).secret_data(), id="for another service"),
        pytest.param(
            issue(NAMES, dt.datetime.now(dt.UTC) - dt.timedelta(days=300)).secret_data(), id="about to expire"
        ),
    ],
)
async def test_a_secret_that_does_not_serve_is_renewed(data: JSON, monkeypatch: pytest.MonkeyPatch) -> None:
    api = cluster(data)
    async with running(trust(api), monkeypatch):
        await turns(api)
    assert in_secret(api).usable(NAMES, dt.datetime.now(dt.UTC))


async def test_a_bundle_that_somebody_overwrote_is_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """`helm upgrade`, or a GitOps tool that puts back what it rendered."""
    api = cluster()
    async with running(trust(api), monkeypatch):
        await turns(api)
        api.objects[BOTH[0]]["webhooks"][1]["clientConfig"]["caBundle"] = "Cg=="
        del api.objects[BOTH[1]]["webhooks"][0]["clientConfig"]["caBundle"]
        await turns(api)
    assert api.bundles(BOTH[0]) == [bundle(api)] * 2
    assert api.bundles(BOTH[1]) == [bundle(api)]


async def test_a_missing_configuration_makes_it_not_ready_until_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """An administrator takes it away in an emergency: that is not undone, and nothing else stops."""
    api = cluster()
    gone = api.objects.pop(BOTH[1])
    one = trust(api)
    async with running(one, monkeypatch):
        await turns(api)
        assert not one.ready
        assert one.loaded.is_set()
        assert api.bundles(BOTH[0]) == [bundle(api)] * 2
        api.objects[BOTH[1]] = gone
        await turns(api)
        assert one.ready


async def test_a_missing_configuration_does_not_keep_the_other_from_being_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = cluster()
    del api.objects[BOTH[0]]
    async with running(trust(api), monkeypatch):
        await turns(api)
    assert api.bundles(BOTH[1]) == [bundle(api)]


async def test_a_configuration_that_vanishes_makes_it_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    api = cluster()
    one = trust(api)
    async with running(one, monkeypatch):
        await turns(api)
        del api.objects[BOTH[0]]
        await turns(api)
    assert not one.ready


@pytest.mark.parametrize("verb", ["get", "replace", "json_patch"])
async def test_an_apiserver_that_fails_is_asked_again(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    api = cluster()
    api.fails[verb] = [Unreachable("silent"), ApiError(403, "Forbidden", "no"), ApiError(500, "", "broken")]
    one = trust(api)
    async with running(one, monkeypatch):
        await turns(api, 30)
    assert one.ready


async def test_a_renewed_secret_is_served_by_the_context_that_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another replica renewed it: new connections get the new certificate, the listening socket stays."""
    api = cluster()
    one = trust(api)
    async with running(one, monkeypatch):
        await one.loaded.wait()
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0, ssl=one.context)
        async with server:
            port = server.sockets[0].getsockname()[1]
            before = await presented(port)
            renewed = issue(NAMES, dt.datetime.now(dt.UTC))
            api.objects["secrets"]["data"] = renewed.secret_data()
            await turns(api)
            after = await presented(port)
    assert before != after
    assert after == renewed.certificate


async def test_a_certificate_is_renewed_while_it_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may live longer than its certificate."""
    api = cluster()
    one = trust(api)
    async with running(one, monkeypatch):
        await turns(api)
        first = in_secret(api)
        later = dt.datetime.now(dt.UTC) + dt.timedelta(days=300)
        monkeypatch.setattr(webhook.trust, "_now", lambda: later)
        await turns(api)
    assert in_secret(api) != first
    assert in_secret(api).usable(NAMES, later)
    assert api.bundles(BOTH[1]) == [bundle(api)]


async def presented(port: int) -> bytes:
    """The certificate that a client with SNI is shown."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=NAMES[0])
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return ssl.DER_cert_to_PEM_cert(shown).encode()


def test_there_is_nothing_to_serve_before_it_is_loaded() -> None:
    with pytest.raises(RuntimeError, match="no certificate yet"):
        _ = trust(cluster()).context
