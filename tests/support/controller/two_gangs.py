"""Two gangs of 3 cpu and a queue of 4: one starts, and the other waits for it."""

from __future__ import annotations

import pytest

from controller.writer import NotLeaderError
from muster.kube.errors import ApiError
from tests.support.controller.recording_client import Scene
from tests.support.manifests.objects import JSON, queue, ray_cluster, ray_pod

SMALL = queue(cpu="4", memory="6Gi")


def members(name: str = "demo") -> list[JSON]:
    """The pods of a gang of 3 cpu, all held."""
    return [
        ray_pod(f"{name}-head", "headgroup", cluster=name, owner_uid=f"uid-{name}"),
        *(ray_pod(f"{name}-w-{n}", cluster=name, owner_uid=f"uid-{name}") for n in range(2)),
    ]


def demo(**changes: list[JSON]) -> Scene:
    """One gang of 3 cpu, assembled, in a queue of 4."""
    return Scene(**{"workloads": [ray_cluster()], "pods": members(), "queues": [SMALL], **changes})


def two() -> Scene:
    """Two gangs of 3 cpu in a queue of 4; `other` is the second by name."""
    return demo(
        workloads=[ray_cluster(), ray_cluster(name="other", uid="uid-other")],
        pods=[*members(), *members("other")],
    )


async def until_refused(scene: Scene) -> None:
    """Work until a write fails."""
    with pytest.raises((ApiError, NotLeaderError)):
        await scene.work()


def again(scene: Scene) -> None:
    """What the work queue does after a failure."""
    for key in list(scene.cluster.gangs()):
        scene.queue.add(key)


def pods_go(scene: Scene) -> None:
    """The pods of the first gang are deleted, and the watch shows it."""
    for pod in members():
        del scene.client.pods[pod["metadata"]["name"]]
    scene.watch()
