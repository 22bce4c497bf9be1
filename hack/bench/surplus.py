"""What is said of pods for which there is no room: `python -m hack.bench.surplus [--pods 1000,4000,16000]`.

An elastic gang runs with its head in a queue with room for one pod more. Its workers come in twenty steps until so many
are there, and after each step all that is due is written. Prints the bytes of the longest write of its PodGroup, of the
longest note of an event, and of all the writes: pods are counted, and three are named, so that the number of pods
changes none of them.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import msgspec

from hack.bench.many import One, filled, leader, queue
from hack.bench.writes import work
from muster.model.names import GATE
from muster.model.objects import Pod, convert
from muster.process.lifecycle import spare_collector
from muster.workloads.ray import RAY_CLUSTER

_STEPS = 20
# As KubeRay names them.
_NAME = "raycluster-demo-gpu-group-worker-{:05}"
_ONE = One(0, "q0", 1000, admitted=True)


def _cluster(most: int) -> Any:  # noqa: ANN401 - as the kind decodes it
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(_ONE.cluster))
    made["spec"]["enableInTreeAutoscaling"] = True
    made["spec"]["workerGroupSpecs"][0] |= {"replicas": most, "minReplicas": 0, "maxReplicas": most}
    return convert(made, RAY_CLUSTER.decoded)


def _worker(number: int) -> Pod:
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(_ONE.pods[1]))
    made["metadata"] |= {"name": _NAME.format(number), "uid": f"uid-{number}"}
    made["spec"] |= {"nodeName": "", "schedulingGates": [{"name": GATE}]}
    return convert(made, Pod)


async def _measure(pods: int) -> None:
    cluster = filled([_ONE], [queue("q0", "2")])
    shown = cluster.pods.of("volcano")
    shown.replace_all(_ONE.pods[:1])
    next(one.store for one in cluster.watched() if one.type is RAY_CLUSTER.decoded).replace_all([_cluster(pods)])
    world = leader(cluster, shown=True)
    for _ in world.reconciler.prime(cluster.pod_groups.values()):
        pass
    await work(world)
    for step in range(_STEPS):
        for number in range(pods * step // _STEPS, pods * (step + 1) // _STEPS):
            shown.apply("added", _worker(number))
        await work(world)
        world.reconciler.tell_who_waits()
        await work(world)
    written, said = world.written, world.said
    print(
        f"{pods:6} surplus pods: the longest PodGroup {written.longest} bytes, the longest note {said.longest}; "
        f"{written.groups} writes of {written.bytes} bytes, {written.pods} gates opened, {said.events} events",
        flush=True,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", default="1000,4000,16000", help="how many pods come, a list")
    sizes = [int(text) for text in parser.parse_args().pods.split(",")]
    spare_collector()
    for size in sizes:
        asyncio.run(_measure(size))


if __name__ == "__main__":
    main()
