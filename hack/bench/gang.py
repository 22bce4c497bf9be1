"""From the last created pod of a gang until all its gates are open, and as many raw patches.

On a control plane of its own: etcd, kube-apiserver, muster's webhook and controller; no operator, scheduler or kubelet.
The bench makes the pods itself, as an operator would, and deletes those of a gang as soon as all its gates are open.

- Gangs of 50, 500 and 1,000 pods, in turn with as many raw patches of equal pods by the same client, as many at once.
  The time ends when the bench's watch shows the last open gate. The goal: within 1.1 of raw patches.
- The replacement of a pod of a gang of 50 that runs, from its creation to its open gate.
"""

import argparse
import asyncio
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from statistics import median
from typing import Any

from hack.bench.control_plane import RAY_CLUSTERS, prepare
from hack.bench.harness import Table, options
from hack.testbed import Testbed
from hack.testbed.muster import install
from muster.kube.burst import CONCURRENT
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.reflector import Reflector
from muster.kube.store import Change, Store
from muster.model.names import GANG, GATE, QUEUE_LABEL
from muster.model.pods import Pod
from muster.model.resource import PODS, QUEUES, Resource

_SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
_NAMESPACE = "bench"
_RAW_GATE = "hack.muster.dev/raw"
_SECONDS = 600.0
_CALL = 60.0
_REPLACED, _REPLACEMENTS = 50, 20  # pods


def _template(name: str) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "64Mi"}
    return {"spec": {"containers": [{"name": name, "image": "none", "resources": {"requests": requests}}]}}


def _cluster(name: str, queue: str, pods: int) -> dict[str, Any]:
    workers = {"groupName": "workers", **dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), pods - 1)}
    return {
        "apiVersion": RAY_CLUSTERS.api_version,
        "kind": RAY_CLUSTERS.kind,
        "metadata": {"name": name, "labels": {QUEUE_LABEL: queue}},
        "spec": {
            "headGroupSpec": {"rayStartParams": {}, "template": _template("head")},
            "workerGroupSpecs": [{**workers, "rayStartParams": {}, "template": _template("worker")}],
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

    def __init__(self, client: Client) -> None:
        self.client = client
        self.pods: Store[Pod] = Store()
        self._gated: dict[str, set[str]] = defaultdict(set)
        self._opened: asyncio.Queue[str] = asyncio.Queue()
        self._sample: dict[str, Any] = {}
        self.pods.subscribe(self._changed)

    def _changed(self, change: Change[Pod]) -> None:
        pod = change.object
        gang = pod.metadata.labels.get(GANG)
        if not gang:
            return
        if change.new is not None and pod.gated(GATE):
            self._gated[gang].add(pod.metadata.name)
        elif pod.metadata.name in self._gated[gang]:
            self._gated[gang].discard(pod.metadata.name)
            if not self._gated[gang] and change.new is not None:
                self._opened.put_nowait(gang)

    async def _many(self, calls: Iterable[Awaitable[object]]) -> None:
        """Make all these calls, as many at once as muster does."""
        limit = asyncio.Semaphore(CONCURRENT)

        async def one(call: Awaitable[object]) -> None:
            async with limit:
                await call

        await asyncio.gather(*(one(call) for call in calls))

    async def _create(self, pods: Iterable[dict[str, Any]]) -> None:
        await self._many(self.client.create(PODS, pod, _NAMESPACE, deadline=_CALL) for pod in pods)

    async def _cluster(self, name: str, queue: str, pods: int) -> dict[str, Any]:
        data = await self.client.create(RAY_CLUSTERS, _cluster(name, queue, pods), _NAMESPACE, deadline=_CALL)
        created: dict[str, Any] = json.loads(data)
        return created

    async def _queue(self, name: str) -> None:
        manifest = {
            "apiVersion": QUEUES.api_version,
            "kind": QUEUES.kind,
            "metadata": {"name": name},
            "spec": {"weight": 1, "capability": {"cpu": "10000"}},
        }
        await self.client.apply(QUEUES, name, manifest, field_manager="bench")
        await self.client.merge_patch(QUEUES, name, {"status": {"state": "Open"}}, subresource="status")

    async def _next_opened(self) -> str:
        return await asyncio.wait_for(self._opened.get(), _SECONDS)

    async def gang(self, name: str, pods: int) -> float:
        """Seconds from the last pod of a gang to its last open gate."""
        await self._cleaned()
        await self._queue(name)
        cluster = await self._cluster(name, name, pods)
        await self._create(_pod(cluster, number) for number in range(pods))
        started = time.perf_counter()
        await self._next_opened()
        seconds = time.perf_counter() - started
        self._sample = json.loads(await self.client.get(PODS, f"{name}-1", _NAMESPACE, deadline=_CALL))
        await self._remove(cluster)
        return seconds

    async def replacements(self) -> list[float]:
        """Seconds from the creation of a pod that replaces another one to its open gate."""
        await self._queue("replaced")
        cluster = await self._cluster("replaced", "replaced", _REPLACED)
        members = [_pod(cluster, number) for number in range(_REPLACED + _REPLACEMENTS)]
        await self._create(members[:_REPLACED])
        await self._next_opened()
        seconds = []
        for dead, new in zip(members[1:], members[_REPLACED:], strict=False):
            await self.client.delete(PODS, dead["metadata"]["name"], _NAMESPACE, deadline=_CALL)
            # As operators do: they see the deletion before they make another one.
            await asyncio.sleep(0.1)
            await self.client.create(PODS, new, _NAMESPACE, deadline=_CALL)
            started = time.perf_counter()
            await self._next_opened()
            seconds.append(time.perf_counter() - started)
        await self._remove(cluster)
        return seconds

    async def raw(self, name: str, pods: int) -> float:
        """Seconds for as many raw patches that open the gate of pods as large as those of the last gang."""
        await self._cleaned()
        names = [f"{name}-{number}" for number in range(pods)]
        account = json.loads(await self.client.get(_SERVICE_ACCOUNTS, "default", _NAMESPACE, deadline=_CALL))
        owner = {"apiVersion": "v1", "kind": "ServiceAccount", "name": "default", "uid": account["metadata"]["uid"]}
        owner |= {"controller": True, "blockOwnerDeletion": True}
        await self._create(self._raw(one, owner) for one in names)
        patch = {"spec": {"schedulingGates": [{"$patch": "delete", "name": _RAW_GATE}]}}
        call = self.client.strategic_merge_patch
        started = time.perf_counter()
        await self._many(call(PODS, one, patch, _NAMESPACE, deadline=_CALL) for one in names)
        seconds = time.perf_counter() - started
        await self._many(self.client.delete(PODS, one, _NAMESPACE, deadline=_CALL) for one in names)
        return seconds

    def _raw(self, name: str, owner: dict[str, Any]) -> dict[str, Any]:
        """A pod as large as a gang's, for the same scheduler, that muster does not manage."""
        meta = self._sample["metadata"]
        more = {key: {f"raw-{name}": text for name, text in meta[key].items()} for key in ("labels", "annotations")}
        return {
            **self._sample,
            "metadata": {"name": name, **more, "ownerReferences": [owner]},
            "spec": {**self._sample["spec"], "schedulingGates": [{"name": _RAW_GATE}]},
        }

    async def _cleaned(self) -> None:
        """Wait until no pod of the bench is left."""
        async with asyncio.timeout(_SECONDS):
            while any(pod.metadata.namespace == _NAMESPACE for pod in self.pods):  # noqa: ASYNC110 - others' state
                await asyncio.sleep(0.05)

    async def _remove(self, cluster: dict[str, Any]) -> None:
        """Delete a workload and its pods."""
        name = cluster["metadata"]["name"]
        await self.client.delete(RAY_CLUSTERS, name, _NAMESPACE, deadline=_CALL)
        members = [pod.metadata.name for pod in self.pods if pod.metadata.labels.get(GANG) == f"ray-{name}-pg"]
        await self._many(self._gone(one) for one in members)

    async def _gone(self, pod: str) -> None:
        # The garbage collector deletes them as well.
        with suppress(ApiError):
            await self.client.delete(PODS, pod, _NAMESPACE, deadline=_CALL)


@asynccontextmanager
async def _bench(testbed: Testbed) -> AsyncIterator[_Bench]:
    async with await Client.connect(kubeconfig=str(testbed.kubeconfig), user_agent="bench") as client:
        bench = _Bench(client)
        watching = asyncio.create_task(Reflector(client, PODS, Pod, bench.pods).run())
        try:
            yield bench
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)


async def _run(testbed: Testbed, given: argparse.Namespace) -> None:
    async with _bench(testbed) as bench:
        table = Table("seconds", "median", "least", "most", "of raw")
        for pods in given.sizes:
            ours, raw = [], []
            for turn in range(given.rounds):
                # Each is first in turn: what one leaves to be cleaned up costs the other.
                if turn % 2:
                    raw.append(await bench.raw(f"raw-{pods}-{turn}", pods))
                ours.append(await bench.gang(f"gang-{pods}-{turn}", pods))
                if not turn % 2:
                    raw.append(await bench.raw(f"raw-{pods}-{turn}", pods))
            table.row(f"raw patches of {pods} pods", median(raw), min(raw), max(raw), 1)
            table.row(f"a gang of {pods}", median(ours), min(ours), max(ours), median(ours) / median(raw))
        replaced = await bench.replacements()
        table.row("a replacement", median(replaced), min(replaced), max(replaced), "")


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    given = options(argv, __doc__, sizes=[50, 500, 1000], rounds=6)
    with Testbed.start(parts=(), progress=print) as testbed:
        prepare(testbed, [_NAMESPACE])
        for part in ("kube-scheduler", "kwok"):
            testbed.stop_part(part)
        values = {"image.repository": "muster", "webhook.shutdownDelaySeconds": "0"}
        muster = install(testbed, values=values, webhooks=1, controllers=1)
        muster.wait_ready(90)
        asyncio.run(_run(testbed, given))
