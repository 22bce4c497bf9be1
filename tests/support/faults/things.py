"""Things: a kind without a schema, so that the apiserver keeps whatever is written; and what tests do with them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from hack.testbed import Testbed
from hack.testbed.api import Api
from muster.kube.client import Client
from muster.kube.config import Connection
from muster.kube.reflector import Reflector, Watched, WatchTimes
from muster.kube.store import Change, Store
from muster.model.objects import LocalObject, ObjectMeta
from muster.model.resource import Resource
from tests.support.cluster.verbs import Verbs
from tests.support.faults.apiserver import FaultyApiserver

THINGS = Resource("faults.example.com", "v1", "things", "Thing")


class ThingSpec(LocalObject, frozen=True):
    """What a Thing is about."""

    size: int = 0


class Thing(LocalObject, frozen=True):
    """An object of the tests' own kind."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ThingSpec = ThingSpec()


def crd(resource: Resource) -> dict[str, Any]:
    """Give the CRD of a kind of which every field is kept."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": resource.full_name},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind},
            "versions": [version],
        },
    }


def watched_from_now_on(calls: Api) -> bool:
    """Whether a watch of Things that begins now is taken.

    An apiserver that has begun to serve a kind a moment ago reads it anew by itself, and until it has a watch is
    refused (429, or 410 where the list was older than what it has read).
    """
    listed = calls("GET", THINGS.path())
    if not listed.ok:
        return False
    version = listed.body["metadata"]["resourceVersion"]
    return calls("GET", f"{THINGS.path()}?watch=true&timeoutSeconds=1&resourceVersion={version}", head=True).ok


class Things(Verbs):
    """A namespace in which a test has its Things."""

    def make(self, *names: str, size: object = 1, **fields: object) -> None:
        """Make Things; the size of a sound one is a number."""
        # Discovery hears of a kind that comes and goes later than its objects can be made.
        path, kind = self.path(THINGS), {"apiVersion": THINGS.api_version, "kind": THINGS.kind}
        for name in names:
            self.api.create(path, {**kind, "metadata": {"name": name}, **fields, "spec": {"size": size}})

    def resize(self, name: str, size: object) -> None:
        """Change a Thing."""
        self.patch(THINGS, name, {"spec": {"size": size}})


@dataclass(slots=True)
class Watching:
    """A reflector at work, and every change that it told."""

    reflector: Reflector
    changes: list[tuple[str, str]] = field(default_factory=list)

    def note(self, change: Change[Thing]) -> None:
        """Keep a change in mind."""
        self.changes.append((change.kind, change.object.metadata.name))

    @property
    def sizes(self) -> dict[str, int]:
        """The store: the size of each Thing by name."""
        return {thing.metadata.name: thing.spec.size for thing in self.reflector.store}


@asynccontextmanager
async def watching(
    client: Client,
    things: Things,
    *,
    page: int = 500,
    watch_seconds: float = 300,
    silence: float = 90,
) -> AsyncIterator[Watching]:
    """Keep a store of the namespace's Things, with short delays, until the test is over."""
    store: Store[Thing] = Store()
    reflector = Reflector(
        client,
        Watched(THINGS, Thing, store, namespace=things.namespace),
        times=WatchTimes(watch=(watch_seconds, watch_seconds), silence=silence, absent=0.2, retry=(0.05, 0.5)),
        page=page,
    )
    watched = Watching(reflector)
    store.subscribe(watched.note)
    running = asyncio.create_task(reflector.run())
    try:
        yield watched
        assert not running.done(), "a reflector never ends by itself"
    finally:
        running.cancel()
        await asyncio.wait({running})
    assert store.handler_errors == 0


@asynccontextmanager
async def through(proxy: FaultyApiserver, cluster: Testbed) -> AsyncIterator[Client]:
    """Connect to the cluster by way of the proxy, as its administrator."""

    async def login(_: bool) -> str:
        return f"Bearer {cluster.admin_token}"

    async with Client(Connection(proxy.url, login=login), user_agent="muster-test") as client:
        yield client
