"""A tenant who makes thousands of gangs: what they cost is bounded, and another's starts as if they were not there."""

from muster.model.names import STATE
from tests.support.controller.bypass_queue import gang, running
from tests.support.controller.bypass_queue import harness as bypass_queue
from tests.support.controller.harness import Harness
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
    assert sum(map(len, harness.announcer._pending.values())) <= 2000  # of the events; older ones are dropped
    harness.watch()
    await work(harness)
    harness.reconciler.refresh_messages()
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


async def test_a_small_gang_that_passes_hundreds_of_large_ones_writes_for_itself_and_two_at_most() -> None:
    """Patience begins for the first that it passes; the words of the others follow in their turn."""
    runs, group = running("runs", 2)
    large = [
        gang(f"large-{number:04}", 3, created=f"2026-11-21T10:{number // 60:02}:{number % 60:02}Z")
        for number in range(examples(400))
    ]
    harness = bypass_queue(runs, *large, groups=[group])
    await work(harness)
    harness.watch()
    await work(harness)
    first = len(harness.client.writes)

    cluster, pods = gang("small", 1, created="2026-11-21T23:00:00Z")
    harness.set_workload(cluster)
    harness.client.pods |= {pod["metadata"]["name"]: pod for pod in pods}
    harness.watch()
    await work(harness)
    said = [write.says for write in harness.client.writes[first:]]
    own = ["muster ray-small-pg", "mark ray-small-pg", "patch small-0"]
    assert [words for words in said if words in own] == own
    assert [words for words in said if words not in own] == ["muster-ledger ray-large-0000-pg"]
