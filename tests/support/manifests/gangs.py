"""Queues with limits, and whole gangs as stores show them, by their names alone."""

from collections.abc import Iterable

from tests.support.manifests.observed import JSON, pod_group, queue, ray_cluster, ray_owner, ray_pod


def limited(name: str, parent: str = "root", **capability: str) -> JSON:
    """A queue below another one, with these limits."""
    manifest = queue(name)
    manifest["spec"] = {"capability": capability, "parent": parent}
    return manifest


def gangs(names: Iterable[str], queue: str = "q", **annotations: str) -> tuple[list[JSON], list[JSON], list[JSON]]:
    """Workloads, pods and PodGroups of gangs of a head and two workers; those whose names begin with `run` run."""
    workloads, pods, groups = [], [], []
    for name in names:
        uid, runs = f"uid-{name}", name.startswith("run")
        workloads.append(ray_cluster(name=name, uid=uid, labels={"volcano.sh/queue-name": queue}))
        pods += [
            ray_pod(f"{name}-{pod}", role, held=not runs, cluster=name, owner_uid=uid)
            for pod, role in (("head", "headgroup"), ("w-0", "workers"), ("w-1", "workers"))
        ]
        said = {f"muster.dev/{key}": text for key, text in annotations.items()}
        groups.append(
            pod_group(
                f"ray-{name}-pg",
                owner=ray_owner(name),
                annotations=said,
                admitted=uid if runs else "",
                queue=queue,
            )
        )
    return workloads, pods, groups
