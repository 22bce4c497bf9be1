"""What starting gangs costs: `python -m hack.bench.gang [--sizes 50,500,1000] [--gangs 2000] [--idle 20000]`.

On a control plane of its own (etcd, kube-apiserver, muster's webhook and controller, no operator, no scheduler, no
kubelet), in one run:

- gangs of 50, 500 and 1,000 pods, from the creation of the last pod to the opening of the last gate, beside as many raw
  patches of equal pods by the same client, as many at once: in turn, and the medians;
- the replacement of a pod of a gang of 50 that runs, from its creation to the opening of its gate;
- gangs of five drained through a queue that holds some of them: gangs a second, muster's CPU seconds for a thousand
  pods, and its memory;
- gated pods of gangs of five that wait for a closed queue: what the idle controller uses of a core.

The bench makes the pods itself, as an operator would, and deletes those of a gang as soon as all its gates are open.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections import defaultdict
from contextlib import asynccontextmanager, suppress
from statistics import median
from typing import TYPE_CHECKING, Any

from hack.bench.bare import QUEUES_AND_GROUPS, bare
from hack.bench.usage import cpu_seconds, resident
from hack.testbed import Testbed
from hack.testbed.muster import MusterInstall, install
from muster.kube.burst import CONCURRENT
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.reflector import Reflector
from muster.kube.resource import PODS, QUEUES, Resource
from muster.kube.store import Change, Store
from muster.model.names import GANG, GATE, QUEUE_LABEL
from muster.model.objects import Pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterable

    from hack.testbed.process import Process

_CRDS = (
    *QUEUES_AND_GROUPS,
    ("github.com/ray-project/kuberay/ray-operator", "config/crd/bases/ray.io_rayclusters.yaml"),
    ("github.com/kubeflow/training-operator", "manifests/base/crds/kubeflow.org_pytorchjobs.yaml"),
)
_RAY_CLUSTERS = Resource("ray.io", "v1", "rayclusters", "RayCluster")
_SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_NAMESPACE = "bench"
_RAW_GATE = "hack.muster.dev/raw"
_POD_CPU = "100m"
_SECONDS = 600.0
_IDLE_SECONDS = 20.0
_QUIET = 0.01  # of a core
_REPLACED = 50  # pods
_SMALL = 5  # pods
_SMALL_CPU = 10


def _template(name: str) -> dict[str, Any]:
    container = {"name": name, "image": "none", "resources": {"requests": {"cpu": _POD_CPU, "memory": "64Mi"}}}
    return {"spec": {"containers": [container]}}


def _cluster(name: str, queue: str, pods: int) -> dict[str, Any]:
    return {
        "apiVersion": _RAY_CLUSTERS.api_version,
        "kind": _RAY_CLUSTERS.kind,
        "metadata": {"name": name, "labels": {QUEUE_LABEL: queue}},
        "spec": {
            "headGroupSpec": {"rayStartParams": {}, "template": _template("head")},
            "workerGroupSpecs": [
                {
                    "groupName": "workers",
                    "replicas": pods - 1,
                    "minReplicas": pods - 1,
                    "maxReplicas": pods - 1,
                    "rayStartParams": {},
                    "template": _template("worker"),
                }
            ],
        },
    }


def _pod(cluster: dict[str, Any], number: int) -> dict[str, Any]:
    meta = cluster["metadata"]
    role = "headgroup" if number == 0 else "workers"
    owner = {"apiVersion": cluster["apiVersion"], "kind": cluster["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{meta['name']}-{number}",
            "labels": {"ray.io/cluster": meta["name"], "ray.io/group": role, "ray.io/is-ray-node": "yes"},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": _template("worker")["spec"],
    }


class _Bench:
    """The control plane, a client of it, and what a watch shows of the pods."""

    def __init__(self, client: Client, muster: MusterInstall) -> None:
        self.client = client
        self.muster = muster
        self.pods: Store[Pod] = Store()
        self.gated: dict[str, set[str]] = defaultdict(set)
        self.opened: asyncio.Queue[str] = asyncio.Queue()
        self.sample: dict[str, Any] = {}
        self.pods.subscribe(self._changed)

    def _changed(self, change: Change[Pod]) -> None:
        pod = change.object
        gang = pod.metadata.labels.get(GANG)
        if not gang:
            return
        if change.new is not None and pod.gated(GATE):
            self.gated[gang].add(pod.metadata.name)
        elif pod.metadata.name in self.gated[gang]:
            self.gated[gang].discard(pod.metadata.name)
            if not self.gated[gang] and change.new is not None:
                self.opened.put_nowait(gang)

    async def many(self, calls: Iterable[Awaitable[object]]) -> None:
        """All of them, so many at once."""
        limit = asyncio.Semaphore(CONCURRENT)

        async def one(call: Awaitable[object]) -> None:
            async with limit:
                await call

        await asyncio.gather(*(one(call) for call in calls))

    async def cluster(self, name: str, queue: str, pods: int) -> dict[str, Any]:
        """A workload, as the apiserver has it."""
        data = await self.client.create(_RAY_CLUSTERS, _cluster(name, queue, pods), _NAMESPACE, deadline=60)
        made: dict[str, Any] = json.loads(data)
        return made

    async def queue(self, name: str, cpu: int, state: str = "Open") -> None:
        """A queue of that capability in the state that Volcano's controller would write."""
        manifest = {
            "apiVersion": QUEUES.api_version,
            "kind": QUEUES.kind,
            "metadata": {"name": name},
            "spec": {"weight": 1, "capability": {"cpu": str(cpu)}},
        }
        await self.client.apply(QUEUES, name, manifest, field_manager="bench")
        await self.client.merge_patch(QUEUES, name, {"status": {"state": state}}, subresource="status")

    async def gang(self, name: str, pods: int) -> float:
        """Seconds from the last pod of a gang to its last open gate."""
        await self._cleaned()
        await self.queue(name, 10_000)
        cluster = await self.cluster(name, name, pods)
        members = [_pod(cluster, number) for number in range(pods)]
        await self.many(self.client.create(PODS, pod, _NAMESPACE, deadline=60) for pod in members)
        started = time.perf_counter()
        await asyncio.wait_for(self.opened.get(), _SECONDS)
        seconds = time.perf_counter() - started
        self.sample = json.loads(await self.client.get(PODS, f"{name}-1", _NAMESPACE, deadline=60))
        await self.remove(cluster)
        return seconds

    async def replacements(self, times: int) -> list[float]:
        """Seconds from the creation of a pod that takes the place of another one to the opening of its gate."""
        await self.queue("replaced", 10)
        cluster = await self.cluster("replaced", "replaced", _REPLACED)
        members = [_pod(cluster, number) for number in range(_REPLACED + times)]
        await self.many(self.client.create(PODS, pod, _NAMESPACE, deadline=60) for pod in members[:_REPLACED])
        await asyncio.wait_for(self.opened.get(), _SECONDS)
        seconds = []
        for dead, new in zip(members[1:], members[_REPLACED:], strict=False):
            await self.client.delete(PODS, dead["metadata"]["name"], _NAMESPACE, deadline=60)
            # As operators do: they see the deletion before they make another one.
            await asyncio.sleep(0.1)
            await self.client.create(PODS, new, _NAMESPACE, deadline=60)
            started = time.perf_counter()
            await asyncio.wait_for(self.opened.get(), _SECONDS)
            seconds.append(time.perf_counter() - started)
        await self.remove(cluster)
        return seconds

    async def raw(self, name: str, pods: int) -> float:
        """Seconds for as many raw patches that open the gate of pods such as the last gang had."""
        await self._cleaned()
        names = [f"{name}-{number}" for number in range(pods)]
        owner = await self._owner_of_raw()
        await self.many(self.client.create(PODS, self._raw(one, owner), _NAMESPACE, deadline=60) for one in names)
        patch = {"spec": {"schedulingGates": [{"$patch": "delete", "name": _RAW_GATE}]}}
        started = time.perf_counter()
        await self.many(self.client.strategic_merge_patch(PODS, one, patch, _NAMESPACE, deadline=60) for one in names)
        seconds = time.perf_counter() - started
        await self.many(self.client.delete(PODS, one, _NAMESPACE, deadline=60) for one in names)
        return seconds

    async def _owner_of_raw(self) -> dict[str, Any]:
        account = json.loads(await self.client.get(_SERVICE_ACCOUNTS, "default", _NAMESPACE, deadline=60))
        owner = {"apiVersion": "v1", "kind": _SERVICE_ACCOUNTS.kind, "name": "default"}
        return {**owner, "uid": account["metadata"]["uid"], "controller": True, "blockOwnerDeletion": True}

    def _raw(self, name: str, owner: dict[str, Any]) -> dict[str, Any]:
        """A pod as large as one of a gang, for the same scheduler, which says nothing to muster."""
        meta = self.sample["metadata"]
        said = {key: {f"raw-{name}": text for name, text in meta[key].items()} for key in ("labels", "annotations")}
        return {
            **self.sample,
            "metadata": {"name": name, **said, "ownerReferences": [owner]},
            "spec": {**self.sample["spec"], "schedulingGates": [{"name": _RAW_GATE}]},
        }

    async def _cleaned(self) -> None:
        """Wait until no pod of the bench is left."""
        async with asyncio.timeout(_SECONDS):
            while any(pod.metadata.namespace == _NAMESPACE for pod in self.pods):  # noqa: ASYNC110 - others' state
                await asyncio.sleep(0.05)

    async def remove(self, cluster: dict[str, Any]) -> None:
        """A gang ends: its workload and its pods go."""
        name = cluster["metadata"]["name"]
        await self.client.delete(_RAY_CLUSTERS, name, _NAMESPACE, deadline=60)
        gang = f"ray-{name}-pg"
        members = [pod.metadata.name for pod in self.pods if pod.metadata.labels.get(GANG) == gang]
        await self.many(self._gone(one) for one in members)

    async def _gone(self, pod: str) -> None:
        # The garbage collector is at it as well.
        with suppress(ApiError):
            await self.client.delete(PODS, pod, _NAMESPACE, deadline=60)

    async def small(self, queue: str, gangs: int) -> dict[str, dict[str, Any]]:
        """Gangs of five pods that wait for a queue, which is closed; gives their workloads by name."""
        clusters = {}
        # In a closed queue nothing new is taken.
        await self.queue(queue, _SMALL_CPU)

        async def make(number: int) -> None:
            name = f"{queue}-{number:05}"
            clusters[name] = await self.cluster(name, queue, _SMALL)

        await self.many(make(number) for number in range(gangs))
        await self.queue(queue, _SMALL_CPU, "Closed")
        members = [_pod(cluster, number) for cluster in clusters.values() for number in range(_SMALL)]
        await self.many(self.client.create(PODS, pod, _NAMESPACE, deadline=60) for pod in members)
        return clusters

    async def idle(self, pods: int) -> None:
        """Gated pods of which none may start, and a controller that has said so to everybody."""
        clusters = await self.small("idle", pods // _SMALL)
        controller = self.muster.controllers[0]
        waited = time.perf_counter()
        while True:
            cpu, started = _cpu(controller), time.perf_counter()
            await asyncio.sleep(_IDLE_SECONDS)
            share = (_cpu(controller) - cpu) / (time.perf_counter() - started)
            passed = time.perf_counter() - waited
            if share < _QUIET or passed > _SECONDS:
                break
        print(
            f"{pods} gated pods: the idle controller uses {share:.2%} of a core, {passed:.0f} s after the last of them "
            f"was made; {_memory(controller)} MB resident"
        )
        await self.many(self.remove(cluster) for cluster in clusters.values())

    async def drain(self, gangs: int) -> None:
        """Gangs of five pods that wait for a queue, drained when it is opened; each goes as soon as it has started."""
        clusters = await self.small("drain", gangs)
        controller = self.muster.controllers[0]
        cpu, started = _cpu(controller), time.perf_counter()
        await self.queue("drain", _SMALL_CPU)
        async with asyncio.TaskGroup() as ending:
            for _ in range(gangs):
                gang = await asyncio.wait_for(self.opened.get(), _SECONDS)
                ending.create_task(self.remove(clusters[gang.removeprefix("ray-").removesuffix("-pg")]))
        seconds, cpu = time.perf_counter() - started, _cpu(controller) - cpu
        each = cpu / gangs / _SMALL
        print(
            f"{gangs} gangs of {_SMALL} drained through {_SMALL_CPU} cpu: {gangs / seconds:.1f} gangs a second; the "
            f"controller used {each * 1000:.2f} CPU seconds for 1,000 pods, {_memory(controller)} MB resident",
            flush=True,
        )


def _spread(seconds: list[float]) -> str:
    return f"{median(seconds):.3f} s ({min(seconds):.3f} to {max(seconds):.3f})"


def _cpu(process: Process) -> float:
    return cpu_seconds(process.pid)


def _memory(process: Process) -> int:
    return int(resident(process.pid))


@asynccontextmanager
async def _bench(testbed: Testbed, muster: MusterInstall) -> AsyncIterator[_Bench]:
    async with await Client.connect(kubeconfig=str(testbed.kubeconfig), user_agent="bench") as client:
        bench = _Bench(client, muster)
        watching = asyncio.create_task(Reflector(client, PODS, Pod, bench.pods).run())
        try:
            yield bench
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _run(testbed: Testbed, muster: MusterInstall, arguments: argparse.Namespace) -> None:
    async with _bench(testbed, muster) as bench:
        for pods in [int(size) for size in arguments.sizes.split(",") if size]:
            ours, raw = [], []
            for turn in range(arguments.rounds):
                # Each is first in turn: what one leaves to be cleaned up costs the other.
                if turn % 2:
                    raw.append(await bench.raw(f"raw-{pods}-{turn}", pods))
                ours.append(await bench.gang(f"gang-{pods}-{turn}", pods))
                if not turn % 2:
                    raw.append(await bench.raw(f"raw-{pods}-{turn}", pods))
            gang, patches = median(ours), median(raw)
            print(
                f"a gang of {pods}: last pod to last gate {_spread(ours)}, raw patches {_spread(raw)}, "
                f"{pods / patches:.0f} a second; ratio {gang / patches:.2f}",
                flush=True,
            )
        print(f"a replacement: creation to open gate {_spread(await bench.replacements(20))}", flush=True)
        if arguments.gangs:
            await bench.drain(arguments.gangs)
        if arguments.idle:
            await bench.idle(arguments.idle)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="hack.bench.gang", description="What starting gangs costs.")
    parser.add_argument("--sizes", default="50,500,1000", help="pods of the gangs, with commas")
    parser.add_argument("--rounds", type=int, default=6, help="how often, for the median")
    parser.add_argument(
        "--idle", type=int, default=20_000, help="how many gated pods an idle controller has; 0 for none"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a value of the chart")
    parser.add_argument("--gangs", type=int, default=2000, help="how many gangs of five to drain; 0 for none")
    arguments = parser.parse_args()
    with Testbed.start(parts=(), progress=print) as testbed:
        bare(testbed, _CRDS, _NAMESPACE)
        values = {"image.repository": "muster", "webhook.shutdownDelaySeconds": "0"}
        values |= dict(value.split("=", 1) for value in arguments.set)
        muster = install(testbed, values=values, webhooks=1, controllers=1)
        muster.wait_ready(90)
        asyncio.run(_run(testbed, muster, arguments))


if __name__ == "__main__":
    main()
