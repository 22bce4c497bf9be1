"""What a user reads of a gang that waits, and of one that never fits: the commands, and what they print."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from hack.bench.peers.contenders import RAY_CLUSTERS, Contender, queue_of
from muster.model.names import GATE

if TYPE_CHECKING:
    from hack.bench.peers.measures import Measures
    from hack.bench.peers.place import Place

__all__ = ["read"]

# Four cpu are there: the first runs, the second waits for it, and the third can never run.
_FIRST, _SECOND, _THIRD = ("first", 3), ("second", 3), ("third", 5)
_SECONDS = 12.0


async def read(contender: Contender, measures: Measures, place: Place) -> str:
    """What is printed, each command after a `$`, in a queue of 4 cpu."""
    first = await measures.cluster(contender, *_FIRST)
    await asyncio.wait_for(first.running.wait(), 120)
    second = await measures.cluster(contender, *_SECOND)
    # Whoever has something to say has said it by then.
    await asyncio.sleep(_SECONDS)
    said = ["# a RayCluster of 3 cpu runs in a queue of 4 cpu, and a second one waits"]
    said += await _waiting(contender, place, second.name)
    said += ["", "# a third one needs 5 cpu"]
    manifest = json.dumps(contender.ray_cluster(*_THIRD, queue_of(contender, "small"), cpu="1"))
    applied = place.testbed.kubectl(
        "apply", f"--namespace={contender.namespace}", "--filename=-", input=manifest, check=False
    )
    said += ["$ kubectl apply -f third.yaml", *(applied.stdout + applied.stderr).splitlines()]
    gangs = [first, second]
    if not applied.returncode:
        gangs.append(measures.watched.expect(contender.namespace, *_THIRD, contender.gate))
        await asyncio.sleep(_SECONDS)
        said += _events(contender, place, _THIRD[0])
    await measures.remove_clusters(contender, gangs)
    return "\n".join(said)


async def _waiting(contender: Contender, place: Place, name: str) -> list[str]:
    said = _kubectl(contender, place, "get", RAY_CLUSTERS.plural)
    said += _kubectl(contender, place, "get", "pods")
    if contender.kueue:
        said += _kubectl(contender, place, "get", "workloads")
    said += _events(contender, place, name)
    if contender.gate == GATE:
        said += _explained(contender, place, name)
    return said


def _events(contender: Contender, place: Place, name: str) -> list[str]:
    """The events of a RayCluster, and of what stands for it where the reason is said."""
    said = _kubectl(contender, place, "events", "--for", f"raycluster/{name}")
    if contender.kueue:
        found = place.testbed.api().get(f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{contender.namespace}/workloads")
        names = [one["metadata"]["name"] for one in found["items"] if f"-{name}-" in one["metadata"]["name"]]
        for workload in names:
            said += _kubectl(contender, place, "events", "--for", f"workload/{workload}")
    elif contender.flag:
        said += _kubectl(contender, place, "events", "--for", f"podgroup/ray-{name}-pg")
        pods = place.testbed.api().get(f"/api/v1/namespaces/{contender.namespace}/pods")["items"]
        heads = [one["metadata"]["name"] for one in pods if one["metadata"]["name"].startswith(f"{name}-head")]
        for head in heads:
            said += _kubectl(contender, place, "events", "--for", f"pod/{head}")
    return said


def _kubectl(contender: Contender, place: Place, *arguments: str) -> list[str]:
    done = place.testbed.kubectl(*arguments, f"--namespace={contender.namespace}", check=False)
    return [f"$ kubectl {' '.join(arguments)}", *(line.rstrip() for line in (done.stdout + done.stderr).splitlines())]


def _explained(contender: Contender, place: Place, name: str) -> list[str]:
    asked = ["explain", f"raycluster/{name}"]
    done = subprocess.run(
        [sys.executable, "-m", "muster.cli", *asked, f"--namespace={contender.namespace}"],
        env=os.environ | place.testbed.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return [f"$ muster {' '.join(asked)}", *(done.stdout + done.stderr).splitlines()]
