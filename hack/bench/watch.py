"""What a watch of many pods costs: `python -m hack.bench.watch [COUNT]`.

Starts a bare control plane, creates COUNT (5,000) gated pods of about 13 kB in it, and watches them in a fresh process
as the controller does. Prints the seconds until the store is synced, and the resident memory of that process in MB:
before the reflector starts, with all pods in the store, at its highest, after a whole relist, and after one event each.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from hack.bench.usage import resident
from hack.testbed import Nodes, Testbed, wait_for
from muster.kube.client import Client
from muster.kube.reflector import Reflector
from muster.kube.resource import PODS
from muster.kube.store import Store
from muster.model.objects import Pod

if TYPE_CHECKING:
    from collections.abc import Callable

    from hack.testbed.api import Api

__all__ = ["pod"]

_COUNT, _THREADS, _PATIENCE = 5000, 8, 600.0
_NAMESPACE = "default"


def pod(number: int) -> dict[str, Any]:
    """Give a worker as KubeRay makes it, of about 13 kB when the apiserver has added its part."""
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


def _resident(field: str = "VmRSS") -> float:
    return resident(os.getpid(), field)


async def _watch(kubeconfig: str, count: int) -> None:
    async with await Client.connect(kubeconfig=kubeconfig, user_agent="muster-bench") as client:
        body = await client.list_page(PODS, limit=1)
        store: Store[Pod] = Store()
        reflector = Reflector(client, PODS, Pod, store, field_selector="spec.schedulerName=volcano")
        begin, started = _resident(), time.monotonic()
        running = asyncio.create_task(reflector.run())
        await reflector.wait_synced(_PATIENCE)
        seconds = time.monotonic() - started
        if len(store) != count:
            raise AssertionError(f"{len(store)} pods of {count}")
        print(f"bytes of one pod           {len(body)}")
        print(f"seconds until synced       {seconds:.2f}")
        print(f"MB before                  {begin:.1f}")
        print(f"MB with the store          {_resident():.1f}  (+{_resident() - begin:.1f})")
        print(f"MB at the highest          {_resident('VmHWM'):.1f}  (+{_resident('VmHWM') - begin:.1f})")
        running.cancel()
        await asyncio.wait({running})
        again = Reflector(client, PODS, Pod, store, field_selector="spec.schedulerName=volcano")
        running = asyncio.create_task(again.run())
        await again.wait_synced(_PATIENCE)
        print(f"MB after a relist          {_resident():.1f}  (+{_resident() - begin:.1f})")
        print(f"MB at the highest          {_resident('VmHWM'):.1f}  (+{_resident('VmHWM') - begin:.1f})", flush=True)
        print("watching", flush=True)
        while again.statistics().events < count:  # noqa: ASYNC110 - a bench may look now and then
            await asyncio.sleep(0.1)
        print(f"MB after an event for each {_resident():.1f}  (+{_resident() - begin:.1f})")
        running.cancel()
        await asyncio.wait({running})


async def _measure(testbed: Testbed, api: Api, count: int) -> None:
    argv = [sys.executable, "-m", "hack.bench.watch", "--watch", str(testbed.kubeconfig), str(count)]
    child = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    if child.stdout is None:
        raise AssertionError("no pipe")
    async for line in child.stdout:
        if line.strip() == b"watching":
            await asyncio.to_thread(_touch, api, count)
        else:
            print(line.decode().rstrip(), flush=True)
    if await child.wait():
        raise SystemExit("the watching process failed")


def _each(work: Callable[[int], object], count: int) -> None:
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(work, range(count)))


def _touch(api: Api, count: int) -> None:
    def touch(number: int) -> None:
        name = pod(number)["metadata"]["name"]
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": {"touched": "1"}}}
        api.apply(PODS.path(_NAMESPACE, name), manifest)

    _each(touch, count)


def main(count: int) -> None:
    """Measure and print."""
    with Testbed.start(parts=(), nodes=Nodes(count=1), progress=print) as testbed:
        api = testbed.api()
        account = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts/default"
        wait_for("the ServiceAccount", lambda: api.get(account), 60)
        _each(lambda number: api.create(PODS.path(_NAMESPACE), pod(number)), count)
        asyncio.run(_measure(testbed, api, count))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--watch"]:
        asyncio.run(_watch(sys.argv[2], int(sys.argv[3])))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else _COUNT)
