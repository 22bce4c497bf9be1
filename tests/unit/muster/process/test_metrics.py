"""What both processes tell Prometheus alike."""

import asyncio

import aiohttp
from prometheus_client import CollectorRegistry, Counter, generate_latest

import muster
from hack.testbed.ports import free_port
from muster.kube.reflector import Reflector, Watched
from muster.kube.store import Store
from muster.model.objects import Queue
from muster.model.resource import QUEUES
from muster.process.health import serve_health
from muster.process.metrics import Watches, new_registry
from muster.workloads.kubeflow import MPI_JOB_V1
from muster.workloads.mpi import MPI_JOB
from tests.support.manifests.observed import as_client, as_json, queue


def test_a_registry_says_what_runs() -> None:
    registry = new_registry("webhook")
    labels = {"component": "webhook", "version": muster.__version__, "revision": "unknown"}
    assert registry.get_sample_value("muster_build_info", labels) == 1
    cpu = registry.get_sample_value("process_cpu_seconds_total")
    assert cpu is not None
    assert cpu > 0


class OneList:
    """An apiserver with a readable queue and one that is not; a watch of it ends at once."""

    async def list_page(self, *_: object, **__: object) -> bytes:
        """The one page."""
        items = [queue("good"), {"metadata": {"name": "bad"}, "spec": {"capability": 1}}]
        return as_json({"metadata": {"resourceVersion": "1"}, "items": items}).encode()

    def watch(self, *_: object, **__: object) -> None:
        """Refuse."""
        raise RuntimeError("no watch here")


async def test_watches_are_read_from_their_own_statistics() -> None:
    """Also what was skipped as malformed, which nobody would notice otherwise."""
    registry = CollectorRegistry()
    reflector = Reflector(as_client(OneList()), Watched(QUEUES, Queue, Store()))
    Watches([reflector], registry)
    running = asyncio.create_task(reflector.run())
    await reflector.wait_synced(10)
    running.cancel()

    def value(name: str) -> float | None:
        return registry.get_sample_value(f"muster_watch_{name}", {"resource": "queues.scheduling.volcano.sh"})

    assert value("objects") == 1
    assert value("malformed_objects_total") == 1
    assert value("lists_total") == 1
    assert value("absent") == 0


async def test_metrics_are_served_beside_the_probes() -> None:
    registry, port = CollectorRegistry(), free_port()
    Counter("muster_test", "For a test.", registry=registry).inc(3)
    async with (
        serve_health("127.0.0.1", port, ready=dict, registry=registry),
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{port}/metrics") as answer,
    ):
        assert answer.headers["Content-Type"].startswith("text/plain")
        assert "muster_test_total 3.0" in (await answer.text()).splitlines()


def test_two_versions_of_a_kind_are_one_resource() -> None:
    """Prometheus refuses a page with the same series twice; a cluster serves one version of MPIJob."""
    registry = CollectorRegistry()
    kinds = (MPI_JOB, MPI_JOB_V1)
    Watches(
        [Reflector(as_client(OneList()), Watched(kind.resource, kind.decoded, Store())) for kind in kinds], registry
    )
    text = generate_latest(registry).decode()
    assert text.count('muster_watch_objects{resource="mpijobs.kubeflow.org"}') == 1
