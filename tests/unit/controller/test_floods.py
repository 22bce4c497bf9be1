"""A tenant who makes thousands of gangs: what they cost is bounded, and another's starts as if they were not there."""

from __future__ import annotations

from muster.model.names import STATE
from tests.support.controller.recording_client import Harness
from tests.support.examples import examples
from tests.support.manifests.observed import queue, ray_cluster, ray_pod, workers
from tests.unit.controller.test_access import OPENED, members

COUNT = examples(2000)
FITTING = 2
NAMES = [f"flood-{number:04}" for number in range(COUNT)]
CLUSTERS = [
    ray_cluster(workers(replicas=0), name=name, uid=f"uid-{name}", labels={"volcano.sh/queue-name": "theirs"})
    for name in NAMES
]


async def work(harness: Harness) -> None:
    """Work on everything that is ready; events have a budget for each second, so none is written meanwhile."""
    while harness.queue.statistics().ready:
        key = await harness.queue.get()
        await harness.reconciler.reconcile(key)
        harness.queue.done(key)


async def test_thousands_of_gangs_of_one_tenant_hold_up_no_other() -> None:
    """What is written of each is little; who waits is told in turns; what is pending to be said is bounded."""
    harness = Harness(workloads=CLUSTERS, queues=[queue(), queue("theirs", cpu=str(FITTING))])
    await work(harness)
    # Workloads cost their maker nothing; pods are what a quota of his counts.
    assert harness.client.writes == []

    flood = [ray_pod(f"{name}-head", "headgroup", cluster=name, owner_uid=f"uid-{name}") for name in NAMES]
    harness.client.pods |= {pod["metadata"]["name"]: pod for pod in flood}
    harness.watch()
    await work(harness)
    # The PodGroup and what is said of it, which may be written again after five seconds; and gates of those that start.
    assert len(harness.client.writes) <= COUNT * 4
    assert len(harness.open_pods()) == FITTING
    assert len(harness.announcer._pending) <= 2000  # of the events; older ones are dropped
    harness.watch()
    await work(harness)
    harness.reconciler.tell_who_waits()
    assert harness.queue.statistics().ready == 5
    await work(harness)

    harness.watch()
    await work(harness)
    first = len(harness.client.writes)
    harness.set_workload(ray_cluster())
    harness.client.pods |= {pod["metadata"]["name"]: pod for pod in members()}
    harness.watch()
    assert harness.queue.statistics().ready == 1
    await work(harness)
    assert [write.says for write in harness.client.writes[first:]] == [
        "muster ray-demo-pg",
        "mark ray-demo-pg",
        *(f"patch {name}" for name in OPENED),
    ]
    assert harness.annotations(f"ray-{NAMES[-1]}-pg")[STATE] == "WaitingForQuota"
