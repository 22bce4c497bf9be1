"""Two gangs of 3 cpu and a queue of 4: one starts, and the other waits for it."""

import pytest

from controller.apiserver import NotLeaderError
from muster.kube.errors import ApiError
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, queue, ray_cluster, ray_pod

SMALL = queue(cpu="4", memory="6Gi")


def members(name: str = "demo") -> list[JSON]:
    """The pods of a gang of 3 cpu, all held."""
    return [
        ray_pod(f"{name}-head", "headgroup", cluster=name, owner_uid=f"uid-{name}"),
        *(ray_pod(f"{name}-w-{n}", cluster=name, owner_uid=f"uid-{name}") for n in range(2)),
    ]


def demo(**changes: list[JSON]) -> Harness:
    """One gang of 3 cpu, assembled, in a queue of 4."""
    return Harness(**{"workloads": [ray_cluster()], "pods": members(), "queues": [SMALL], **changes})


def two() -> Harness:
    """Two gangs of 3 cpu in a queue of 4; `other` is the second by name."""
    return demo(
        workloads=[ray_cluster(), ray_cluster(name="other", uid="uid-other")],
        pods=[*members(), *members("other")],
    )


async def until_refused(harness: Harness) -> None:
    """Work until a write fails."""
    with pytest.raises((ApiError, NotLeaderError)):
        await harness.work()


def again(harness: Harness) -> None:
    """What the work queue does after a failure."""
    for key in list(harness.cluster.gangs()):
        harness.queue.add(key)


def pods_go(harness: Harness) -> None:
    """The pods of the first gang are deleted, and the watch shows it."""
    for pod in members():
        del harness.client.pods[pod["metadata"]["name"]]
    harness.watch()
