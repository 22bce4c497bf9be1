"""The Secret and the two webhook configurations, as an apiserver would keep them, for tests of certificates."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import json
import ssl
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import jsonpatch
from aiohttp import web
from cryptography.x509 import Certificate

from muster.kube.errors import ApiError
from muster.model.resource import Resource
from muster.process.certificates import Certificates, KeyPair, authorities_in
from tests.support.manifests.observed import JSON, as_client
from webhook.certificates.authority import CertificateManager, RotationTiming
from webhook.certificates.bundles import CONFIGURATIONS, CertificateEvents
from webhook.certificates.source import MountedCertificates
from webhook.server.listener import Listener

NAMES = ["muster-webhook.muster-system.svc", "muster-webhook.muster-system", "muster-webhook"]
BOTH = tuple(resource.plural for resource in CONFIGURATIONS)
SECRET = "muster-webhook-tls"  # noqa: S105 - the name of one


@dataclass
class Time:
    """The apiserver's clock, and that of the process, in which only differences count."""

    # Not at the end of an hour, in which the same would be said a second time.
    now: dt.datetime = field(
        default_factory=lambda: dt.datetime.now(dt.UTC).replace(minute=20, second=0, microsecond=0)
    )
    monotonic: float = 0.0

    def passes(self, **by: float) -> None:
        """Let time pass on both."""
        delta = dt.timedelta(**by)
        self.now += delta
        self.monotonic += delta.total_seconds()


def configuration(*bundles: str | None) -> JSON:
    """A webhook configuration with a webhook for each CA bundle; None has none."""
    return {
        "metadata": {"name": "muster", "resourceVersion": "1"},
        "webhooks": [
            {
                "name": f"w{index}.muster.dev",
                "clientConfig": {"service": {"name": "s"}, **({} if bundle is None else {"caBundle": bundle})},
            }
            for index, bundle in enumerate(bundles)
        ],
    }


@dataclass
class Places:
    """An apiserver with these objects; `fails` has errors by verb, which come before anything is done."""

    objects: dict[str, JSON]
    time: Time = field(default_factory=Time)
    fails: dict[str, list[Exception]] = field(default_factory=dict)
    writes: list[str] = field(default_factory=list)
    events: list[JSON] = field(default_factory=list)
    asked_about: int = 0
    reads: Counter[str] = field(default_factory=Counter)

    @classmethod
    def as_installed(cls, data: JSON | None = None) -> Places:
        """As helm leaves it: the Secret without data, no bundles."""
        secret: JSON = {"metadata": {"name": SECRET, "resourceVersion": "1", "uid": "u"}, "type": "Opaque"}
        if data is not None:
            secret["data"] = data
        return cls({"secrets": secret, BOTH[0]: configuration(None, None), BOTH[1]: configuration(None)})

    def now(self) -> dt.datetime:
        """The apiserver's clock."""
        return self.time.now

    async def get(self, resource: Resource, name: str, namespace: str | None = None) -> bytes:
        """Read one of the three."""
        assert (name, namespace) in {(SECRET, "muster-system"), ("muster", None)}
        self.reads[resource.plural] += 1
        self._fail("get")
        if resource.plural not in self.objects:
            raise ApiError(404, "NotFound", name)
        return json.dumps(self.objects[resource.plural]).encode()

    async def replace(self, resource: Resource, name: str, body: JSON, namespace: str) -> bytes:
        """Write the Secret, unless it changed meanwhile."""
        assert (name, namespace) == (SECRET, "muster-system")
        self._fail("replace")
        if body["metadata"]["resourceVersion"] != self.objects[resource.plural]["metadata"]["resourceVersion"]:
            raise ApiError(409, "Conflict", "changed meanwhile")
        self._put(resource.plural, body)
        return b"{}"

    async def json_patch(self, resource: Resource, name: str, operations: list[JSON]) -> bytes:
        """Change a configuration."""
        assert name == "muster"
        self._fail("json_patch")
        try:
            changed = jsonpatch.apply_patch(self.objects[resource.plural], operations)
        except jsonpatch.JsonPatchTestFailed as error:
            raise ApiError(422, "Invalid", "the test did not hold") from error
        self._put(resource.plural, changed)
        return b"{}"

    async def create(
        self, resource: Resource, body: JSON, namespace: str, *, deadline: float, dry_run: bool = False
    ) -> bytes:
        """Take an event, or ask a webhook about it."""
        del deadline
        assert (resource.plural, namespace) == ("events", "muster-system")
        if dry_run:
            self.asked_about += 1
            self._fail("ask")
            return b"{}"
        self._fail("create")
        if body["metadata"]["name"] in {event["metadata"]["name"] for event in self.events}:
            raise ApiError(409, "AlreadyExists", "said before")
        self.events.append(body)
        return b"{}"

    def _put(self, plural: str, body: JSON) -> None:
        self.writes.append(plural)
        body["metadata"]["resourceVersion"] = str(int(body["metadata"]["resourceVersion"]) + 1)
        self.objects[plural] = body

    def _fail(self, verb: str) -> None:
        if self.fails.get(verb):
            raise self.fails[verb].pop(0)

    # What people and tests do to it, and look for in it

    def set_data(self, data: JSON | None) -> None:
        """Somebody writes the Secret."""
        secret = {**self.objects["secrets"], "data": data}
        if data is None:
            del secret["data"]
        self._put("secrets", secret)

    def ask(self, what: str) -> None:
        """Somebody annotates the Secret."""
        secret: JSON = json.loads(json.dumps(self.objects["secrets"]))
        secret["metadata"].setdefault("annotations", {})["muster.dev/rotate"] = what
        self._put("secrets", secret)

    def asked(self) -> str | None:
        """What the annotation says."""
        found: str | None = self.objects["secrets"]["metadata"].get("annotations", {}).get("muster.dev/rotate")
        return found

    @property
    def held(self) -> Certificates:
        """What the Secret holds."""
        return _certificates(*self.objects["secrets"]["data"].items())

    def bundles(self) -> list[frozenset[Certificate]]:
        """The authorities that each webhook of both configurations has."""
        return [
            authorities_in(base64.b64decode(webhook["clientConfig"].get("caBundle", "")))
            for plural in BOTH
            if plural in self.objects
            for webhook in self.objects[plural]["webhooks"]
        ]

    def reasons(self) -> list[str]:
        """The reasons of the events."""
        return [event["reason"] for event in self.events]

    def notes(self, reason: str) -> list[str]:
        """What the events with that reason say."""
        return [event["note"] for event in self.events if event["reason"] == reason]


@cache
def _certificates(*data: tuple[str, str]) -> Certificates:
    return Certificates.from_secret(dict(data))


def trust(places: Places, timing: RotationTiming | None = None, **more: Any) -> CertificateManager:  # noqa: ANN401
    """A replica."""
    client = as_client(places)
    return CertificateManager(
        client,
        CertificateEvents(client, "muster-system", SECRET, "pod"),
        "muster",
        timing=timing or RotationTiming(),
        **{"names": NAMES, **more},
    )


def held_and_trusted(places: Places) -> bool:
    """Whether every webhook has all authorities of the Secret."""
    return all(set(places.held.authorities) <= bundle for bundle in places.bundles())


def served(one: CertificateManager) -> KeyPair:
    pair = one._serving.pair
    assert pair is not None
    return pair


GARBAGE = dict.fromkeys(("ca.crt", "ca.key", "tls.crt", "tls.key"), "Z2FyYmFnZQ==")


async def started(places: Places, terms: RotationTiming | None = None) -> CertificateManager:
    """A replica that has taken its first steps."""
    one = trust(places, terms)
    await rounds(places, one)
    assert one.ready
    return one


async def rounds(places: Places, *replicas: CertificateManager, count: int = 6, seconds: float = 11) -> None:
    """Let replicas look again and again, and time pass."""
    for _ in range(count):
        for one in replicas:
            with suppress(ApiError):
                await one.reconcile(places.time.monotonic)
        places.time.passes(seconds=seconds)


async def nothing(_: web.BaseRequest) -> web.Response:
    """Nobody asks."""
    return web.Response()


@asynccontextmanager
async def listening(one: CertificateManager | MountedCertificates) -> AsyncIterator[int]:
    """The webhook's own listener with that certificate, on the port that this gives."""
    listener = Listener(nothing, lambda: one.context)
    _, port = await listener.start("127.0.0.1", 0)
    try:
        yield port
    finally:
        await listener.drain(0)


async def presented(port: int) -> bytes:
    """The certificate that a client with SNI is shown."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=NAMES[0])
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    # An orderly end of TLS waits for the other side; it must not outlive the test.
    writer.transport.abort()
    return ssl.DER_cert_to_PEM_cert(shown).encode()
