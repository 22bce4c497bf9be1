"""Gangs of so many cpu, one a pod, in line for one queue: a large one, a small one, one that runs."""

from collections.abc import Mapping

from muster.model.names import PASSED_IN, PASSED_SINCE
from muster.model.times import text_of
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, pod_group, queue, ray_cluster, ray_owner, ray_pod, workers

LARGE, SMALL, RUNS = "ray-large-pg", "ray-small-pg", "ray-runs-pg"


OF_A_JOB = {"ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "job", "controller": True}]}
"""Metadata of a RayCluster that ends by itself."""


def gang(
    name: str, cpus: int, *, held: bool = True, created: str = "", labels: Mapping[str, str] | None = None
) -> tuple[JSON, list[JSON]]:
    """A workload of so many cpu, one a pod, and its pods; it is a job, and ends by itself."""
    meta = {**OF_A_JOB, **({"creationTimestamp": created} if created else {})}
    said = {"volcano.sh/queue-name": "q", **(labels or {})}
    cluster = ray_cluster(workers(replicas=cpus - 1), name=name, uid=f"uid-{name}", labels=said, meta=meta)
    roles = ["headgroup", *["workers"] * (cpus - 1)]
    pods = [
        ray_pod(f"{name}-{number}", role, cluster=name, owner_uid=f"uid-{name}", held=held)
        for number, role in enumerate(roles)
    ]
    return cluster, pods


def harness(
    *gangs: tuple[JSON, list[JSON]], annotations: Mapping[str, str] | None = None, cpu: str = "4", **more: list[JSON]
) -> Harness:
    """These gangs in queue q, where no estimates count."""
    said = {"reserves": "bounds", **(annotations or {})}
    of_queue = queue(cpu=cpu, annotations={f"muster.dev/{key}": text for key, text in said.items()})
    return Harness(
        workloads=[workload for workload, _ in gangs],
        pods=[one for _, pods in gangs for one in pods],
        queues=[of_queue],
        **more,
    )


def running(name: str, cpus: int) -> tuple[tuple[JSON, list[JSON]], JSON]:
    """A gang that was admitted before, and its PodGroup."""
    return gang(name, cpus, held=False, created="2026-11-21T09:00:00Z"), pod_group(
        f"ray-{name}-pg",
        owner=ray_owner(name),
        admitted=f"uid-{name}",
        minResources={"cpu": str(cpus)},
        minMember=cpus,
        minTaskMember={"headgroup": 1, "workers": cpus - 1},
    )


def passed(queue: str = "q") -> JSON:
    """The PodGroup of the large gang, passed in that queue for longer than anybody's patience."""
    return pod_group(LARGE, owner=ray_owner("large"), annotations={PASSED_SINCE: text_of(0.0), PASSED_IN: queue})


def small_behind_large(*groups: JSON, annotations: Mapping[str, str] | None = None) -> Harness:
    """Half of the queue is free: the large gang, which is first, needs more, and the small one behind it does not."""
    runs, group = running("runs", 2)
    large = gang("large", 3, created="2026-11-21T10:00:00Z")
    small = gang("small", 1, created="2026-11-21T11:00:00Z")
    return harness(runs, large, small, groups=[group, *groups], annotations=annotations)
