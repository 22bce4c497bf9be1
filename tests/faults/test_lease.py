"""Two leaders never act at once, judged by what the real apiserver recorded."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from muster.kube.client import Client
from muster.kube.errors import Unreachable
from muster.kube.lease import LeaseElector, LeaseLost, LeaseTiming
from muster.kube.resource import LEASES, Resource
from tests.faults.leader import CONFIG_MAPS
from tests.faults.things import THINGS, Namespace, through
from tests.faulty import FaultyApiserver, eventually, hang, reset

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from hack.testbed import Process, Testbed
    from tests.faulty import Answer

PATIENCE = 90.0
TIMING = LeaseTiming(lease=6.0, renew=4.0, retry=1.0)
_CHECKOUT = Path(__file__).parents[2]
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


@pytest.fixture
def leader(cluster: Testbed, namespace: Namespace) -> Iterator[Callable[[str], Process]]:
    """Start a process that leads and writes under this identity."""
    started: list[Process] = []

    def start(identity: str) -> Process:
        times = [str(seconds) for seconds in (TIMING.lease, TIMING.renew, TIMING.retry)]
        argv = [sys.executable, "-m", "tests.faults.leader", str(cluster.kubeconfig), namespace.name, identity, *times]
        started.append(cluster.spawn(f"{namespace.name}-{identity}", argv, env={"PYTHONPATH": str(_CHECKOUT)}))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@dataclass
class Record:
    """Who wrote, and who held the lease, each with the version of the cluster at that write, from real watches."""

    writes: list[tuple[int, str]] = field(default_factory=list)
    terms: list[tuple[int, str]] = field(default_factory=list)

    def count(self, identity: str) -> int:
        """How often this one wrote."""
        return sum(writer == identity for _, writer in self.writes)

    @property
    def holder(self) -> str:
        """Who holds the lease; "" is nobody."""
        return self.terms[-1][1] if self.terms else ""

    def begin(self, identity: str) -> int:
        """The version at which this one took the lease."""
        return next(version for version, holder in self.terms if holder == identity)


@pytest.fixture
async def record(cluster: Testbed, namespace: Namespace) -> AsyncIterator[Record]:
    """What the apiserver tells of the namespace from now on."""
    record = Record()

    async def follow(client: Client, resource: Resource) -> None:
        async with client.watch(resource, namespace=namespace.name, resource_version="", timeout_seconds=900) as lines:
            async for line in lines:
                item = json.loads(line)["object"]
                version = int(item["metadata"]["resourceVersion"])
                if resource == LEASES and "spec" in item:
                    record.terms.append((version, item["spec"].get("holderIdentity", "")))
                elif "by" in item.get("data", {}):
                    record.writes.append((version, item["data"]["by"]))

    async with await Client.connect(kubeconfig=str(cluster.kubeconfig), user_agent="judge") as client:
        following = [asyncio.create_task(follow(client, resource)) for resource in (LEASES, CONFIG_MAPS)]
        yield record
        assert not any(task.done() for task in following), "the record has a gap"
        for task in following:
            task.cancel()
        await asyncio.wait(following)


@pytest.mark.parametrize("attempt", range(3))
async def test_a_stopped_leader_writes_nothing_when_it_wakes(
    record: Record, leader: Callable[[str], Process], attempt: int
) -> None:
    """SIGSTOP amid its writes for longer than the lease, another leads, SIGCONT: the first begins no write any more.

    One write may come late: that which it was handing to the kernel, with its time looked at, when it was stopped.
    """
    del attempt  # each stops it at another place
    old = leader("old")
    await eventually(lambda: record.count("old") > 100, PATIENCE)
    old.signal(signal.SIGSTOP)
    leader("new")
    await eventually(lambda: record.count("new") > 50, PATIENCE)
    old.signal(signal.SIGCONT)
    await eventually(lambda: not old.alive(), PATIENCE)
    seen = record.count("new")
    await eventually(lambda: record.count("new") > seen + 100, PATIENCE)
    takeover = record.begin("new")
    assert len([version for version, writer in record.writes if writer == "old" and version > takeover]) <= 1
    assert "lease" in old.log.read_text().splitlines()[-1], "it ended because it had lost the lease"


async def test_a_leader_that_ends_gives_its_lease_back(record: Record, leader: Callable[[str], Process]) -> None:
    """SIGTERM amid its writes: nothing is written after the lease is nobody's, and the next one need not wait."""
    first = leader("first")
    await eventually(lambda: record.count("first") > 100, PATIENCE)
    first.signal(signal.SIGTERM)
    await eventually(lambda: not first.alive() and record.holder == "", PATIENCE)
    released = record.terms[-1][0]
    leader("second")
    await eventually(lambda: record.count("second") > 0, PATIENCE)
    assert max(version for version, writer in record.writes if writer == "first") < released


@dataclass
class Term:
    """The work of a leader: nothing, but when it began and ended."""

    began: float = 0.0
    ended: float = 0.0

    async def __call__(self) -> None:
        """Work until stopped."""
        loop = asyncio.get_running_loop()
        self.began = loop.time()
        try:
            await asyncio.Event().wait()
        finally:
            self.ended = loop.time()


@asynccontextmanager
async def standing(
    client: Client, namespace: Namespace, identity: str
) -> AsyncIterator[tuple[asyncio.Task[None], Term]]:
    """Stand for leader until the test is over."""
    elector = LeaseElector(client, namespace=namespace.name, name="faults", identity=identity, timing=TIMING)
    term = Term()
    running = asyncio.create_task(elector.run(term))
    try:
        yield running, term
    finally:
        running.cancel()
        await asyncio.wait({running})


@pytest.mark.parametrize(
    "fault",
    [pytest.param(hang, id="accepts and never answers"), pytest.param(reset, id="resets every connection")],
)
async def test_work_has_ended_when_another_begins(
    cluster: Testbed, proxy: FaultyApiserver, namespace: Namespace, fault: Answer
) -> None:
    """A leader that is cut off from the apiserver stops by itself before the other may take the lease."""
    async with (
        through(proxy, cluster) as way,
        await Client.connect(kubeconfig=str(cluster.kubeconfig), user_agent="other") as other,
        standing(way, namespace, "cut-off") as (first, work),
    ):
        await eventually(lambda: work.began, PATIENCE)
        async with standing(other, namespace, "other") as (_, next_work):
            for kind in ("GET", "POST", "PUT"):
                proxy.on(kind, fault)
            with pytest.raises(LeaseLost, match="not renewed in 4 s"):
                await first
            await eventually(lambda: next_work.began, PATIENCE)
            assert work.ended < next_work.began


async def test_a_write_that_could_not_be_done_in_time_is_not_done_later(
    cluster: Testbed, proxy: FaultyApiserver, namespace: Namespace
) -> None:
    """The apiserver is told how long a write may take: held up, here by a webhook, it gives up when its writer does."""
    calls, name = namespace.calls, namespace.name
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        webhook = {
            "name": "deaf.faults.example.com",
            "clientConfig": {"url": f"https://127.0.0.1:{deaf.getsockname()[1]}/"},
            "rules": [
                {
                    "apiGroups": [THINGS.group],
                    "apiVersions": ["*"],
                    "resources": [THINGS.plural],
                    "operations": ["CREATE"],
                }
            ],
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": name}},
            "failurePolicy": "Ignore",
            "timeoutSeconds": 5,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        calls.done("POST", _WEBHOOKS, {"metadata": {"name": name}, "webhooks": [webhook]})
        loop = asyncio.get_running_loop()
        numbers = iter(range(100))

        def held_up() -> bool:
            before = loop.time()
            namespace.create(f"probe-{next(numbers)}")
            return loop.time() - before > 4

        while not await asyncio.to_thread(held_up):
            pass
        async with through(proxy, cluster) as client:
            manifest = {"apiVersion": THINGS.api_version, "kind": THINGS.kind, "metadata": {"name": "late"}}
            with pytest.raises(Unreachable):
                await client.create(THINGS, manifest, name, deadline=1)
        # Begun after it and held up as long: by its end the other would be there.
        await asyncio.to_thread(namespace.create, "after")
        calls.done("DELETE", f"{_WEBHOOKS}/{name}")
        assert calls("GET", THINGS.path(name, "late")).status == 404
