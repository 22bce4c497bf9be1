"""A tenant who makes two thousand gangs: what they cost is bounded, and another's starts as if they were not there."""

from __future__ import annotations

from muster.names import STATE
from tests.support.controller.recording_client import Scene
from tests.support.manifests.objects import queue, ray_cluster, ray_pod, workers
from tests.unit.controller.test_access import OPENED, members

COUNT = 2000
FITTING = 2
NAMES = [f"flood-{number:04}" for number in range(COUNT)]
CLUSTERS = [
    ray_cluster(workers(replicas=0), name=name, uid=f"uid-{name}", labels={"volcano.sh/queue-name": "theirs"})
    for name in NAMES
]


async def work(scene: Scene) -> None:
    """Work on everything that is ready; events have a budget for each second, so none is written meanwhile."""
    while scene.queue.statistics().ready:
        key = await scene.queue.get()
        await scene.reconciler.reconcile(key)
        scene.queue.done(key)


async def test_two_thousand_gangs_of_one_tenant_hold_up_no_other() -> None:
    """What is written of each is little; who waits is told in turns; what is pending to be said is bounded."""
    scene = Scene(workloads=CLUSTERS, queues=[queue(), queue("theirs", cpu=str(FITTING))])
    await work(scene)
    # Workloads cost their maker nothing; pods are what a quota of his counts.
    assert scene.client.writes == []

    flood = [ray_pod(f"{name}-head", "headgroup", cluster=name, owner_uid=f"uid-{name}") for name in NAMES]
    scene.client.pods |= {pod["metadata"]["name"]: pod for pod in flood}
    scene.watch()
    await work(scene)
    # The PodGroup and what is said of it, which may be written again after five seconds; and gates of those that start.
    assert len(scene.client.writes) <= COUNT * 4
    assert len(scene.open_pods()) == FITTING
    assert len(scene.announcer._pending) <= 2000  # of the events; older ones are dropped
    scene.watch()
    await work(scene)
    scene.reconciler.tell_who_waits()
    assert scene.queue.statistics().ready == 30
    await work(scene)

    scene.watch()
    await work(scene)
    first = len(scene.client.writes)
    scene.set_workload(ray_cluster())
    scene.client.pods |= {pod["metadata"]["name"]: pod for pod in members()}
    scene.watch()
    assert scene.queue.statistics().ready == 1
    await work(scene)
    assert [write.says for write in scene.client.writes[first:]] == [
        "muster ray-demo-pg",
        "mark ray-demo-pg",
        *(f"patch {name}" for name in OPENED),
    ]
    assert scene.annotations("ray-flood-1999-pg")[STATE] == "WaitingForQuota"
