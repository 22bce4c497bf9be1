"""Memory that both processes keep of one workload, compared with the whole; the goal is below 100 kB for 1.5 MB.

Each row is a shape of manifest, in three sizes. The columns are kB of the manifest, of the whole decoded workload, of
what a store keeps of it, and of the answers that a webhook keeps in addition once a pod of each role has come; then
milliseconds of CPU: to decode the whole, and to decode the kept part. The kB are tracemalloc's, and the same in every
run; no cluster is needed.
"""

import gc
import json
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from hack.bench.harness import Table, milliseconds, options
from muster.gangs.gang import gang_of
from muster.gangs.intent import Defaults, find_intent
from muster.kube.store import Store
from muster.model.keep import Keep
from muster.model.objects import decode
from muster.model.projection import Projection
from muster.workloads.ray import RAY_CLUSTER, RayCluster
from webhook.reviews.cluster_cache import GangTemplate
from webhook.reviews.pods import without_requests

_JSON = dict[str, Any]
# So many are kept at once, and the mean of them is printed.
_WORKLOADS = 5
_ROUNDS = 5


def _environment(count: int) -> _JSON:
    requests = {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}
    environment = [{"name": f"VARIABLE_{number}", "value": "v" * 60} for number in range(count)]
    return {"name": "ray", "env": environment, "resources": {"requests": requests, "limits": requests}}


def _few_large(size: int) -> _JSON:
    return _cluster([[_environment(size // 390)] for _ in range(4)])


def _many_small(size: int) -> _JSON:
    # A template of 4.4 kB: in 1.5 MB nearly as many as muster reads.
    return _cluster([[_environment(43)] for _ in range(size // 4_400)])


def _containers(size: int) -> _JSON:
    """One pod of thousands of containers, each with a resource that no other one has."""
    return _cluster([[_asking(number, f"{'x' * 200}.example.com/{number}") for number in range(size // 320)]])


def _amounts(size: int) -> _JSON:
    """The same with one resource, in thousands of amounts."""
    return _cluster([[{**_asking(number, "cpu"), "name": "c" * 240} for number in range(size // 320)]])


def _asking(number: int, resource: str) -> _JSON:
    return {"name": f"container-{number}", "resources": {"requests": {resource: f"{number % 4000}m"}}}


def _labels(size: int) -> _JSON:
    cluster = _few_large(10_000)
    cluster["metadata"]["labels"] |= {
        f"example.com/a-label-that-muster-never-read-{number}": "v" * 60 for number in range(size // 115)
    }
    return cluster


def _cluster(groups: list[list[_JSON]]) -> _JSON:
    def template(containers: list[_JSON]) -> _JSON:
        return {"template": {"spec": {"containers": containers}}}

    workers = [{"groupName": f"group-{number}", "replicas": 2, **template(one)} for number, one in enumerate(groups)]
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"namespace": "team", "labels": {"volcano.sh/queue-name": "q"}},
        "spec": {"headGroupSpec": template([{"name": "head"}]), "workerGroupSpecs": workers},
    }


def _seen(manifest: _JSON, number: int) -> bytes:
    meta = {**manifest["metadata"], "name": f"w{number}", "uid": f"uid-{number}", "resourceVersion": "1"}
    return json.dumps({**manifest, "metadata": meta}, separators=(",", ":")).encode()


def _bytes(make: Callable[[], object]) -> float:
    """Bytes of the result that stay after a collection."""
    gc.collect()
    # The collection after looks at what was made alone.
    gc.freeze()
    tracemalloc.start()
    made = make()
    gc.collect()
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    del made
    return taken / _WORKLOADS


def _stored(texts: list[bytes], read: Callable[[bytes], RayCluster]) -> Store[RayCluster]:
    store: Store[RayCluster] = Store()
    for text in texts:
        store.apply("added", read(text))
    return store


def _answers(store: Store[RayCluster]) -> list[GangTemplate]:
    found = []
    for cluster in store:
        if cluster.spec.too_much:
            continue
        workload = RAY_CLUSTER.read(cluster)
        intent = find_intent(workload, Defaults())
        if intent is None:
            raise AssertionError("the cluster of the benchmark asks for nothing")
        template = GangTemplate(intent, without_requests(gang_of(workload, intent, {})))
        for role in workload.roles:
            template.member(role.name)
        found.append(template)
    return found


def _whole(text: bytes) -> RayCluster:
    return decode(text, RayCluster)


_PROJECTION = Projection(RayCluster, Keep.COPIED)


class Kept(NamedTuple):
    """Bytes of a manifest, and of the kept part of one workload of that shape."""

    manifest: int
    whole: float
    kept: float
    answers: float


SHAPES: dict[str, Callable[[int], _JSON]] = {
    "four large templates": _few_large,
    "many templates": _many_small,
    "one pod, many names of resources": _containers,
    "one pod, many amounts of one": _amounts,
    "labels": _labels,
}
"""Manifests of about so many bytes."""


def measured(manifest: _JSON) -> Kept:
    """Give the bytes, which tracemalloc counts."""
    texts = [_seen(manifest, number) for number in range(_WORKLOADS)]
    # The caches of the process are filled, and are no workload's.
    store = _stored(texts, _PROJECTION.decode)
    _answers(store)
    return Kept(
        len(texts[0]),
        _bytes(lambda: _stored(texts, _whole)),
        _bytes(lambda: _stored(texts, _PROJECTION.decode)),
        _bytes(lambda: _answers(store)),
    )


def main(argv: Sequence[str]) -> None:
    """Measure and print."""
    given = options(argv, __doc__, bytes=[100_000, 500_000, 1_500_000])
    table = Table("kB, and ms", "manifest", "whole", "kept", "answers", "whole", "kept")
    for title, shape in SHAPES.items():
        for size in given.bytes:
            manifest = shape(size)
            text = _seen(manifest, 0)
            times = (
                min(milliseconds(partial(read, text)) for _ in range(_ROUNDS)) for read in (_whole, _PROJECTION.decode)
            )
            table.row(title, *(one / 1e3 for one in measured(manifest)), *times)
