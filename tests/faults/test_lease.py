"""Two leaders never act at once, judged by what the real apiserver recorded."""

import asyncio
import itertools
import json
import signal
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol

import pytest

from hack.testbed import Process, Testbed, wait_for
from muster.kube.client import Client
from muster.kube.errors import Unreachable
from muster.kube.lease import LeaseElector, LeaseLost, LeaseTiming
from muster.model.resource import LEASES, Resource
from tests.support.cases import cases
from tests.support.faults.apiserver import Answer, FaultyApiserver, eventually, hang, reset
from tests.support.faults.leader import CONFIG_MAPS
from tests.support.faults.things import THINGS, Things, through

# For who is to lose it; for who is stopped, so that nobody else loses it on a busy machine; and for who gives it back.
SHORT = LeaseTiming(lease=6.0, renew=4.0, retry=1.0)
TIMING = LeaseTiming(lease=20.0, renew=16.0, retry=1.0)
LONG = LeaseTiming(lease=60.0, renew=30.0, retry=1.0)
_LEASE, _THREE = "faults", ("first", "second", "third")
_CHECKOUT = Path(__file__).parents[2]
_WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"


class Leader(Protocol):
    """Starts a process that leads and writes."""

    def __call__(self, identity: str, timing: LeaseTiming, lease: str = _LEASE) -> Process:
        """Under this identity, and with these times."""


@pytest.fixture
def leader(cluster: Testbed, things: Things) -> Iterator[Leader]:
    """Start a process that leads and writes under this identity."""
    started: list[Process] = []

    def start(identity: str, timing: LeaseTiming, lease: str = _LEASE) -> Process:
        times = [str(seconds) for seconds in (timing.lease, timing.renew, timing.retry)]
        argv = [
            sys.executable,
            "-m",
            "tests.support.faults.leader",
            str(cluster.kubeconfig),
            things.namespace,
            lease,
            identity,
            *times,
        ]
        started.append(cluster.spawn(f"{things.namespace}-{identity}", argv, env={"PYTHONPATH": str(_CHECKOUT)}))
        return started[-1]

    yield start
    for process in started:
        process.kill()


@dataclass
class Record:
    """Who wrote, and who held a lease, each with the version of the cluster at that write, from real watches."""

    writes: list[tuple[int, str]] = field(default_factory=list)
    terms: list[tuple[int, str]] = field(default_factory=list)

    def count(self, identity: str) -> int:
        """How often this one wrote."""
        return sum(writer == identity for _, writer in self.writes)

    async def written(self, identity: str, often: int) -> None:
        """Wait until this one has written more often than that."""
        await eventually(lambda: self.count(identity) > often)

    def begin(self, identity: str) -> int:
        """The version at which this one took the lease."""
        return next(version for version, holder in self.terms if holder == identity)


@pytest.fixture
async def record(cluster: Testbed, things: Things) -> AsyncIterator[Record]:
    """What the apiserver tells of the namespace from now on."""
    record = Record()

    async def follow(client: Client, resource: Resource) -> None:
        version = ""
        while True:
            # An apiserver ends the watch of whoever reads too slowly; one that cannot be resumed fails here.
            async with client.watch(
                resource, namespace=things.namespace, resource_version=version, timeout_seconds=900
            ) as lines:
                async for line in lines:
                    item = json.loads(line)["object"]
                    version = item["metadata"]["resourceVersion"]
                    if resource == LEASES and "spec" in item:
                        record.terms.append((int(version), item["spec"].get("holderIdentity", "")))
                    elif "by" in item.get("data", {}):
                        record.writes.append((int(version), item["data"]["by"]))

    async with await Client.connect(kubeconfig=str(cluster.kubeconfig), user_agent="judge") as client:
        following = [asyncio.create_task(follow(client, resource)) for resource in (LEASES, CONFIG_MAPS)]
        yield record
        assert not any(task.done() for task in following), "the record has a gap"
        for task in following:
            task.cancel()
        await asyncio.wait(following)


async def test_a_stopped_leader_writes_nothing_when_it_wakes(record: Record, leader: Leader) -> None:
    """SIGSTOP amid its writes for longer than the lease, another leads, SIGCONT: the first begins no write any more.

    One write may come late: that which it was handing to the kernel, with its time looked at, when it was stopped.
    Three side by side, each with a lease of its own and stopped at another place.
    """
    stopped: dict[str, Process] = {}
    for lease in _THREE:
        old = leader(f"{lease}-old", TIMING, lease)
        await record.written(f"{lease}-old", 100)
        old.signal(signal.SIGSTOP)
        stopped[lease] = old
    for lease in _THREE:
        leader(f"{lease}-new", TIMING, lease)
    for lease, old in stopped.items():
        new = f"{lease}-new"
        await record.written(new, 50)
        old.signal(signal.SIGCONT)
        await asyncio.to_thread(wait_for, "it to end", partial(_ended, old))
        await record.written(new, record.count(new) + 100)
        takeover = record.begin(new)
        late = [version for version, writer in record.writes if writer == f"{lease}-old" and version > takeover]
        assert len(late) <= 1
        assert "lease" in old.log.read_text().splitlines()[-1], "it ended because it had lost the lease"


def _ended(process: Process) -> bool:
    return not process.alive()


async def test_a_leader_that_ends_gives_its_lease_back(record: Record, leader: Leader) -> None:
    """SIGTERM amid its writes: nothing is written after the lease is nobody's, and the next one need not wait."""
    first = leader("first", LONG)
    await record.written("first", 100)
    first.signal(signal.SIGTERM)
    await eventually(lambda: not first.alive() and record.terms[-1][1] == "")
    released = record.terms[-1][0]
    leader("second", LONG)
    await record.written("second", 0)
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
async def standing(client: Client, things: Things, identity: str) -> AsyncIterator[tuple[asyncio.Task[None], Term]]:
    """Stand for leader until the test is over."""
    elector = LeaseElector(client, namespace=things.namespace, name="faults", identity=identity, timing=SHORT)
    term = Term()
    running = asyncio.create_task(elector.run(term))
    try:
        yield running, term
    finally:
        running.cancel()
        await asyncio.wait({running})


@cases("fault", ("accepts and never answers", hang), ("resets every connection", reset))
async def test_work_has_ended_when_another_begins(
    cluster: Testbed, proxy: FaultyApiserver, things: Things, fault: Answer
) -> None:
    """A leader that is cut off from the apiserver stops by itself before the other may take the lease."""
    async with (
        through(proxy, cluster) as way,
        await Client.connect(kubeconfig=str(cluster.kubeconfig), user_agent="other") as other,
        standing(way, things, "cut-off") as (first, work),
    ):
        await eventually(lambda: work.began)
        async with standing(other, things, "other") as (_, next_work):
            for kind in ("GET", "POST", "PUT"):
                proxy.on(kind, fault)
            with pytest.raises(LeaseLost, match="not renewed in 4 s"):
                await first
            await eventually(lambda: next_work.began)
            assert work.ended < next_work.began


async def test_a_write_that_could_not_be_done_in_time_is_not_done_later(
    cluster: Testbed, proxy: FaultyApiserver, things: Things
) -> None:
    """The apiserver is told how long a write may take: held up, here by a webhook, it gives up when its writer does."""
    calls, name = things.api, things.namespace
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
            "timeoutSeconds": 3,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        calls.done("POST", _WEBHOOKS, {"metadata": {"name": name}, "webhooks": [webhook]})
        deaf.setblocking(False)
        numbers, called = itertools.count(), []

        def held_up() -> bool:
            things.make(f"probe-{next(numbers)}")
            with suppress(BlockingIOError):
                called.append(deaf.accept())
            return bool(called)

        await asyncio.to_thread(wait_for, "the webhook to be called", held_up)
        async with through(proxy, cluster) as client:
            manifest = {"apiVersion": THINGS.api_version, "kind": THINGS.kind, "metadata": {"name": "late"}}
            with pytest.raises(Unreachable):
                await client.create(THINGS, manifest, name, deadline=1)
        # Begun after it and held up as long: by its end the other would be there.
        await asyncio.to_thread(things.make, "after")
        calls.done("DELETE", f"{_WEBHOOKS}/{name}")
        assert calls("GET", THINGS.path(name, "late")).status == 404
        for connection, _ in called:
            connection.close()
