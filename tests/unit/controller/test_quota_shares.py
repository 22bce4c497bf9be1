"""Two gangs, each with a part of its pods, that keep each other from the rest under one ResourceQuota."""

from muster.model.names import HOLD, MESSAGE, REQUEUE_AFTER
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import (
    JSON,
    NAMESPACE,
    QUEUE_LABELS,
    queue,
    ray_cluster,
    ray_pod,
    resource_quota,
    template,
    workers,
)

OLD, YOUNG = "ray-demo-pg", "ray-young-pg"
ASKS = {REQUEUE_AFTER: "1m"}
FULL = resource_quota({"requests.cpu": "4"}, used={"requests.cpu": "4"})


def halves(*quotas: JSON, annotations: JSON | None = None, of_old: JSON | None = None, **rest: object) -> Harness:
    """Two gangs of 3 cpu, each with two pods of 1 cpu; room for both in their queue."""
    young = ray_cluster(
        name="young", uid="uid-young", annotations=annotations, meta={"creationTimestamp": "2026-11-21T11:00:00Z"}
    )
    pods = [
        ray_pod(f"{name}-{pod}", role, cluster=name, owner_uid=f"uid-{name}")
        for name in ("demo", "young")
        for pod, role in (("head", "headgroup"), ("w-0", "workers"))
    ]
    return Harness(
        **{
            "workloads": [ray_cluster(annotations=of_old), young],
            "pods": pods,
            "queues": [queue(cpu="9")],
            "quotas": quotas or (FULL,),
            **rest,  # type: ignore[arg-type]
        }
    )


async def after(harness: Harness, *seconds: float) -> None:
    """So many seconds pass, each of them with a look at all gangs at its end."""
    await harness.settle()
    for one in seconds:
        harness.now += one
        for key in harness.cluster.gangs():
            harness.queue.add(key)
        await harness.settle()


def words(harness: Harness, gang: str) -> str:
    return str(harness.annotations(gang)[MESSAGE])


async def test_a_gang_that_lacks_pods_names_the_quota_and_its_rival() -> None:
    harness = halves()
    await after(harness, 6, 31)
    refuses = 'ResourceQuota "quota" refuses the next one, which needs cpu 1: it has cpu 0 left'
    assert words(harness, OLD) == (
        f'waiting for its pods: workers 1 of 2; {refuses}; gang "{YOUNG}" holds cpu 2 of it and lacks pods as well: '
        "delete one of the two, or raise the quota"
    )
    assert f'gang "{OLD}" holds cpu 2 of it' in words(harness, YOUNG)
    assert harness.client.pods.keys() == {"demo-head", "demo-w-0", "young-head", "young-w-0"}, "nobody asked for that"


async def test_a_quota_that_something_else_fills_is_named_alone() -> None:
    harness = halves()
    for name in ("young-head", "young-w-0"):
        del harness.client.pods[name]
    harness.drop_workload(ray_cluster(name="young", uid="uid-young"))
    harness.watch()
    await after(harness, 6, 31)
    assert words(harness, OLD).endswith("it has cpu 0 left; raise the quota, or delete something that uses it")


@cases(
    "quota",
    ("room for the next pod", resource_quota({"requests.cpu": "4"}, used={"requests.cpu": "3"})),
    ("of something else", resource_quota({"memory": "9Gi"}, used={"memory": "1Gi"})),
    (
        "of limits that no pod has",
        resource_quota({"limits.ephemeral-storage": "4"}, used={"limits.ephemeral-storage": "4"}),
    ),
    ("that counts other pods", {**FULL, "spec": {**FULL["spec"], "scopes": ["Terminating"]}}),
)
async def test_a_quota_that_refuses_nothing_is_not_named(quota: JSON) -> None:
    harness = halves(quota)
    await after(harness, 6, 31)
    assert words(harness, OLD) == "waiting for its pods: workers 1 of 2"


async def test_the_number_of_pods_is_a_quota_as_well() -> None:
    harness = halves(resource_quota({"pods": "4"}, used={"pods": "4"}))
    await after(harness, 6, 31)
    assert "which needs pods 1: it has pods 0 left" in words(harness, OLD)


@cases(
    "quota, short",
    (
        "limits",
        resource_quota({"limits.cpu": "9"}, used={"limits.cpu": "8"}),
        "needs limits.cpu 2: it has limits.cpu 1 left",
    ),
    ("a scope", {**FULL, "spec": {**FULL["spec"], "scopes": ["NotTerminating"]}}, "needs cpu 1: it has cpu 0 left"),
)
async def test_limits_and_quotas_with_scopes_are_named_as_well(quota: JSON, short: str) -> None:
    limited = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}}]}}
    cluster = ray_cluster(workers(template=limited))
    pods = [ray_pod("demo-head", "headgroup"), ray_pod("demo-w-0", "workers")]
    harness = Harness(workloads=[cluster], pods=pods, queues=[queue(cpu="9")], quotas=[quota])
    await after(harness, 6, 31)
    assert f'ResourceQuota "quota" refuses the next one, which {short}' in words(harness, OLD)


async def test_the_younger_gives_its_pods_back_where_its_owner_asks_for_that() -> None:
    """Its operator makes them again, and that of the older one is asked to be quicker."""
    harness = halves(annotations=ASKS)
    await after(harness, 6, 31)
    assert len(harness.client.pods) == 4, "it is too early"
    await after(harness, 31)
    assert harness.client.pods.keys() == {"demo-head", "demo-w-0"}
    touched = [write.name for write in harness.client.writes if write.verb == "annotate"]
    assert touched[-1] == "demo"
    note = 'what it holds of ResourceQuota "quota" is given back to gang "ray-demo-pg"'
    said = [event["note"] for event in harness.events_on("RayCluster") if event["reason"] == "Requeued"]
    assert len(said) == 1
    assert said[0].endswith(note)
    assert "muster.dev/requeued-at" in harness.annotations(YOUNG), "it queues behind those who waited meanwhile"


async def test_nobody_gives_its_pods_back_to_a_gang_on_hold() -> None:
    """It would not start with them."""
    harness = halves(annotations=ASKS, of_old={HOLD: "true"})
    await after(harness, 6, 31, 31)
    assert harness.client.pods.keys() == {"demo-head", "demo-w-0", "young-head", "young-w-0"}


async def test_pods_that_come_again_first_are_given_back_again_later_and_later() -> None:
    harness = halves(annotations=ASKS)
    lost = dict(harness.client.pods)
    await after(harness, 6, 31, 31)
    deleted = []
    start = harness.now
    for second in range(0, 300, 5):
        harness.now = start + second
        for name, pod in lost.items():
            if name not in harness.client.pods:
                harness.client.pods[name] = pod
                deleted.append(second)
        harness.watch()
        await after(harness, 0)
    assert deleted[::2] == [0, 20, 50, 110, 170, 230, 290]
    assert len([one for one in harness.events_on("RayCluster") if one["reason"] == "Requeued"]) == 1


async def test_pods_that_come_again_first_for_days_are_given_back_all_that_time() -> None:
    """The time until the next deletion is doubled no more often than a number can be."""
    harness = halves(annotations=ASKS)
    lost = dict(harness.client.pods)
    await after(harness, 6, 31, 31)
    for _ in range(1030):
        assert len(harness.client.pods) == 2
        harness.client.pods.update(lost)
        harness.watch()
        harness.now += 61
        harness.queue.add(GangKey(NAMESPACE, YOUNG))
        await harness.work()


@cases(
    "quota, of_old, of_young",
    ("who comes first keeps what it has", FULL, ASKS, None),
    ("an annotation that says nothing", FULL, None, {REQUEUE_AFTER: "soon"}),
)
async def test_nobody_else_gives_anything_back(quota: JSON, of_old: JSON | None, of_young: JSON | None) -> None:
    harness = halves(quota, of_old=of_old, annotations=of_young)
    await after(harness, 6, 31, 31, 31)
    assert len(harness.client.pods) == 4


async def test_nothing_is_given_back_that_helps_nobody() -> None:
    """The older one lacks 5 pods, and would not have them with the two of the younger."""
    groups = [{"groupName": "workers", "replicas": 6, "template": ray_cluster()["spec"]["headGroupSpec"]["template"]}]
    young = ray_cluster(
        name="young", uid="uid-young", annotations=ASKS, meta={"creationTimestamp": "2026-11-21T11:00:00Z"}
    )
    harness = halves(workloads=[ray_cluster(*groups), young])
    await after(harness, 6, 31, 31, 31)
    assert len(harness.client.pods) == 4


GPU = "requests.nvidia.com/gpu"


def cpu_and_gpu(cpu: str, gpus: str) -> JSON:
    """A quota of so many of both; 6 cpu and 4 GPUs are charged to it."""
    return resource_quota({"requests.cpu": cpu, GPU: gpus}, used={"requests.cpu": "6", GPU: "4"})


@cases(
    "quotas, left",
    ("a GPU is left", [cpu_and_gpu("6", "5")], 2),
    ("others use all GPUs", [cpu_and_gpu("6", "4")], 4),
    (
        "others use all GPUs of another quota",
        [cpu_and_gpu("6", "5"), resource_quota({GPU: "1"}, used={GPU: "1"}, name="gpus")],
        4,
    ),
    ("more cpu is charged than the quota allows by now", [cpu_and_gpu("4", "5")], 4),
)
async def test_nothing_is_given_back_to_a_gang_that_lacks_something_else(quotas: list[JSON], left: int) -> None:
    """It would be deleted again and again, for a gang that cannot start with it."""
    trains = template()
    trains["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    young = ray_cluster(
        name="young", uid="uid-young", annotations=ASKS, meta={"creationTimestamp": "2026-11-21T11:00:00Z"}
    )
    harness = halves(*quotas, workloads=[ray_cluster(workers(template=trains)), young])
    await after(harness, 6, 31, 31, 31)
    assert len(harness.client.pods) == left


async def test_a_gang_that_has_its_pods_is_nobodys_rival() -> None:
    harness = halves(annotations=ASKS)
    await after(harness, 6, 31)
    harness.client.pods["demo-w-1"] = ray_pod("demo-w-1", "workers", cluster="demo", owner_uid="uid-demo")
    harness.watch()
    await after(harness, 31, 31)
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    assert words(harness, YOUNG).endswith("raise the quota, or delete something that uses it")
    assert len(harness.client.pods) == 5


async def test_who_comes_first_goes_by_priority_as_in_a_queue() -> None:
    urgent = {**QUEUE_LABELS, "ray.io/priority-class-name": "high"}
    young = ray_cluster(name="young", uid="uid-young", labels=urgent)
    young["metadata"]["creationTimestamp"] = "2026-11-21T11:00:00Z"
    classes = [{"metadata": {"name": "high"}, "value": 9}]
    harness = halves(workloads=[ray_cluster(annotations=ASKS), young], classes=classes)
    await after(harness, 6, 31, 31)
    assert harness.client.pods.keys() == {"young-head", "young-w-0"}
