"""Two replicas of the webhook, of which one hears nothing any more: its watches are open and silent.

What it has not been shown it reads, so that no pod comes out otherwise than by the other replica; what it was shown and
has changed since it cannot know, and then a whole workload is left alone and never a part of one held.
"""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.muster import MusterInstall
from hack.testbed.process import Process
from muster.model.names import GANG, GATE, GROUP_NAME, QUEUE_LABEL
from muster.model.resource import QUEUES
from tests.support.cluster.desk import PATIENCE, Desk, Manifest, open_desk
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.reviews import reviews
from tests.support.faults.apiserver import FaultyApiserver, nothing
from tests.support.manifests.applied import queue, ray_cluster
from tests.support.manifests.members import PLAIN, WITH_WORKLOAD
from tests.support.manifests.owner_chains import member

# Of a watch that is opened anew when it has been silent, the cut connection's rest is for the garbage collector.
pytestmark = [
    pytest.mark.part("processes"),
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in.*(_SelectorTransport|socket):pytest.PytestUnraisableExceptionWarning"
    ),
]


# Pods of a workload, so many that hardly ever all of their calls meet the same replica.
_AT_ONCE = 16
# As /proc/net/tcp writes it.
_ESTABLISHED = "01"


@pytest.fixture
def desk(bare: Testbed, calls: Api, every_kind: None) -> Iterator[Desk]:
    """A namespace, and a queue of its name."""
    del every_kind
    with open_desk(bare, calls, "lagging") as opened:
        opened.create(queue(opened.namespace, cpu="100"))
        yield opened
        opened.delete(QUEUES, opened.namespace)


@asynccontextmanager
async def _deaf(bare: Testbed, webhook: MusterInstall, folder: Path) -> AsyncIterator[Process]:
    """One replica more, ready, which is shown nothing after its first lists; what it reads itself it gets."""
    async with FaultyApiserver.in_front_of(bare) as proxy:
        proxy.on("WATCH", proxy.spoiled(nothing))
        process = webhook.start_webhook(webhook.through("webhook", proxy.url, folder))
        try:
            await asyncio.to_thread(webhook.wait_ready, PATIENCE)
            yield process
        finally:
            webhook.webhooks.remove(process)
            await asyncio.to_thread(process.stop)


@contextmanager
def _standing_still(processes: Iterable[Process]) -> Iterator[None]:
    """Meanwhile the apiserver needs a connection for each call, and the kernel gives each to one of them by chance.

    Else it would go on with those that it has, which may all be to the same one.
    """
    for process in processes:
        process.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            process.signal(signal.SIGCONT)


def _connections(service: Manifest) -> int:
    """How many connections there are to a Service, accepted or not, by the kernel's table."""
    address = socket.inet_aton(service["clusterIP"])[::-1].hex().upper()
    local = f"{address}:{service['ports'][0]['port']:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()]
    return sum(row[1] == local and row[3] == _ESTABLISHED for row in rows)


def _worker(cluster: Manifest, group: str = "worker") -> Manifest:
    name = cluster["metadata"]["name"]
    return member(cluster, {"ray.io/cluster": name, "ray.io/group": group, "ray.io/node-type": "worker"})


def _held(pod: Manifest) -> bool:
    return {"name": GATE} in pod["spec"].get("schedulingGates", [])


async def test_replica_that_hears_nothing_holds_new_members_of_every_kind(
    bare: Testbed, webhook: MusterInstall, desk: Desk, tmp_path: Path
) -> None:
    """It alone serves. Namespaces are the only thing here that it was ever shown."""
    webhook.stop_webhooks()
    lane = desk.namespace

    def check() -> None:
        for chain in (*WITH_WORKLOAD, *PLAIN):
            one = chain.made(desk.create, chain.title.lower().replace(" ", "-"), {QUEUE_LABEL: lane})
            pod = desk.create(one.pod())
            assert _held(pod), chain.title
            assert pod["spec"]["schedulerName"] == "volcano", chain.title
            assert pod["metadata"]["labels"] == {**one.labels, GANG: one.group, QUEUE_LABEL: lane}
            assert pod["metadata"]["annotations"][GROUP_NAME] == one.group

    async with _deaf(bare, webhook, tmp_path) as replica:
        await asyncio.to_thread(check)
        assert reviews(webhook, "pods", replica) >= len(WITH_WORKLOAD) + len(PLAIN)


async def test_what_has_changed_behind_its_back_is_read_where_it_can_be_seen(
    bare: Testbed, calls: Api, webhook: MusterInstall, desk: Desk, tmp_path: Path
) -> None:
    """A workload of a former one's name, a role that is new, a queue that is new."""
    lane = desk.namespace
    labelled = ray_cluster("again").label(QUEUE_LABEL, lane).workers(1)
    desk.create(labelled.manifest())
    grown = desk.create(ray_cluster("grown").label(QUEUE_LABEL, lane).workers(1).manifest())
    late = f"{lane}-late"
    webhook.stop_webhooks()

    def check() -> None:
        calls.done("DELETE", RAY_CLUSTERS.path(lane, "again"))
        anew = desk.create(ray_cluster("again").label(QUEUE_LABEL, late).workers(1).manifest())
        pod = desk.create(_worker(anew))
        assert (_held(pod), pod["metadata"]["labels"][QUEUE_LABEL]) == (True, late)
        groups = ray_cluster("grown").workers(1).workers(1, group="more").manifest()["spec"]["workerGroupSpecs"]
        calls.done("PATCH", RAY_CLUSTERS.path(lane, "grown"), {"spec": {"workerGroupSpecs": groups}}, patch="merge")
        assert _held(desk.create(_worker(grown, "more")))

    async with _deaf(bare, webhook, tmp_path):
        calls.done("POST", QUEUES.path(), queue(late, cpu="100"))
        try:
            await asyncio.to_thread(check)
        finally:
            calls.done("DELETE", QUEUES.path(name=late))


async def test_with_one_replica_behind_every_pod_comes_out_the_same_whoever_is_asked(
    bare: Testbed, calls: Api, webhook: MusterInstall, desk: Desk, tmp_path: Path
) -> None:
    """Both serve at one address, and both are asked about the pods of workloads of a moment ago."""
    lane = desk.namespace
    (other,) = webhook.webhooks

    async with _deaf(bare, webhook, tmp_path) as deaf:
        both = (deaf, other)
        before = {process.pid: reviews(webhook, "pods", process) for process in both}
        service = calls.done("GET", f"/api/v1/namespaces/{webhook.namespace}/services/muster-webhook")["spec"]
        pods: list[Manifest] = []

        def ask() -> bool:
            cluster = desk.create(ray_cluster(f"c{len(pods)}").label(QUEUE_LABEL, lane).workers(_AT_ONCE).manifest())
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                with _standing_still(both):
                    made = [pool.submit(desk.create, _worker(cluster)) for _ in range(_AT_ONCE)]
                    wait_for("a connection for each", lambda: _connections(service) >= _AT_ONCE, PATIENCE)
                pods.extend(one.result() for one in made)
            return all(reviews(webhook, "pods", process) - before[process.pid] >= _AT_ONCE for process in both)

        await asyncio.to_thread(wait_for, "both to have been asked", ask, PATIENCE)
    assert [pod["metadata"]["name"] for pod in pods if not _held(pod)] == []


async def test_workload_that_one_replica_takes_for_nobody_s_is_left_alone_by_both(
    bare: Testbed, calls: Api, webhook: MusterInstall, desk: Desk, tmp_path: Path
) -> None:
    """It was labelled behind that replica's back: its pod passes, and the other lets the next ones pass."""
    webhook.stop_webhooks()
    lane = desk.namespace
    silent = desk.create(ray_cluster("silent").workers(2).manifest())
    async with _deaf(bare, webhook, tmp_path):
        label = {"metadata": {"labels": {QUEUE_LABEL: lane}}}
        await asyncio.to_thread(calls.done, "PATCH", RAY_CLUSTERS.path(lane, "silent"), label, patch="merge")
        passed = await asyncio.to_thread(desk.create, _worker(silent))
    assert not _held(passed)
    webhook.start_webhook()
    webhook.wait_ready(PATIENCE)
    assert not _held(desk.create(_worker(silent)))
