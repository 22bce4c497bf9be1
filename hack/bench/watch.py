"""Memory for watched pods, and the time until they are known.

Starts a bare control plane with gated pods of about 13 kB, and watches them in a fresh process as the controller does.
Prints the resident memory of that process: before the reflector starts, with all pods in the store, after a whole
relist, and after one event for each pod; and its highest until then. There is no goal: docs/operations.md plans by it.
"""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

from hack.bench.harness import Table, options, say
from hack.testbed import Nodes, Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.costs import resident
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.kube.store import Store
from muster.model.pods import Pod
from muster.model.resource import PODS

_THREADS, _PATIENCE = 8, 600.0
_NAMESPACE = "default"
_WATCHING = "watching"


def pod(number: int) -> dict[str, Any]:
    """A worker as KubeRay makes it, of about 13 kB when the apiserver has added its part."""
    environment = [{"name": f"RAY_VARIABLE_{index}", "value": "v" * 60} for index in range(36)]
    container = {
        "name": "ray-worker",
        "image": "rayproject/ray:2.52.0",
        "env": environment,
        "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "1", "memory": "2Gi"}},
    }
    probes = {
        "readinessProbe": {"exec": {"command": ["bash", "-c", "wget " + "x" * 300]}},
        "livenessProbe": {"exec": {"command": ["bash", "-c", "wget " + "x" * 300]}},
    }
    labels = {"ray.io/cluster": f"cluster-{number // 50}", "ray.io/group": "workers", "ray.io/node-type": "worker"}
    gang = f"ray-cluster-{number // 50}-pg"
    return {
        "metadata": {
            "name": f"cluster-{number // 50}-workers-{number}",
            "labels": {**labels, "muster.dev/gang": gang, "app.kubernetes.io/name": "kuberay"},
            "annotations": {"scheduling.k8s.io/group-name": gang, "ray.io/ft-enabled": "false"},
        },
        "spec": {
            "schedulerName": "volcano",
            "schedulingGates": [{"name": "muster.dev/gang"}],
            "initContainers": [{**container, "name": "wait-gcs-ready", "env": environment[:10]}],
            "containers": [{**container, **probes}],
        },
    }


async def _watch(kubeconfig: str, count: int) -> None:
    async with await Client.connect(kubeconfig=kubeconfig, user_agent="muster-bench") as client:
        size = len(await client.list_page(PODS, limit=1))
        table = Table("MB resident", "now", "at most")

        def row(title: str) -> None:
            table.row(title, resident(os.getpid()), resident(os.getpid(), "VmHWM"))

        store: Store[Pod] = Store()
        row("before")
        started = time.monotonic()
        async with _watching(client, store):
            say(f"{len(store):,} of {count:,} pods", {"bytes each": size, "s until known": time.monotonic() - started})
            row("with the store")
        async with _watching(client, store) as reflector:
            row("after a relist")
            print(_WATCHING, flush=True)
            while reflector.statistics().events < count:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.1)
            row("after an event for each")


@asynccontextmanager
async def _watching(client: Client, store: Store[Pod]) -> AsyncIterator[Reflector[Pod]]:
    reflector = Reflector(client, PODS, Pod, store, field_selector="spec.schedulerName=volcano")
    running = asyncio.create_task(reflector.run())
    await reflector.wait_synced(_PATIENCE)
    yield reflector
    running.cancel()
    await asyncio.wait({running})


async def _measure(testbed: Testbed, api: Api, count: int) -> None:
    argv = [sys.executable, "-m", "hack.bench.watch", str(testbed.kubeconfig), str(count)]
    child = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    if child.stdout is None:
        raise AssertionError("no pipe")
    async for line in child.stdout:
        if line.decode().strip() == _WATCHING:
            await asyncio.to_thread(_touch, api, count)
        else:
            print(line.decode().rstrip(), flush=True)
    if await child.wait():
        raise SystemExit("the watching process failed")


def create(api: Api, count: int, make: Callable[[int], dict[str, Any]] = pod) -> None:
    """Create so many pods."""
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(lambda number: api.create(PODS.path(_NAMESPACE), make(number)), range(count)))


def _touch(api: Api, count: int) -> None:
    def touch(number: int) -> None:
        name = pod(number)["metadata"]["name"]
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {"touched": "1"}}}
        api.apply(PODS.path(_NAMESPACE, name), manifest)

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(touch, range(count)))


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    given = options(argv, __doc__, pods=5000)
    with Testbed.start(parts=(), nodes=Nodes(count=1), progress=print) as testbed:
        api = testbed.api()
        account = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/default"
        wait_for("the ServiceAccount", lambda: api.get(account))
        create(api, given.pods)
        asyncio.run(_measure(testbed, api, given.pods))


if __name__ == "__main__":
    asyncio.run(_watch(sys.argv[1], int(sys.argv[2])))
