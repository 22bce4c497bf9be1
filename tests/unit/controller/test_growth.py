"""Running gangs that want more pods than there is room for: who is looked at when room comes, and in which order."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from muster.kube.errors import Unreachable
from muster.model.names import MESSAGE, QUEUE_LABEL
from muster.schedulers import SCHEDULERS
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.controller.two_gangs import demo, members
from tests.support.manifests.observed import (
    GROUP,
    JSON,
    pytorch_job,
    pytorch_pod,
    queue,
    ray_cluster,
    ray_pod,
    template,
    workers,
)

ELASTIC = [f"elastic-{number:02}" for number in range(20)]
SIBLINGS = ELASTIC[-2:]


def _gang(name: str, cpu: str = "1", queue_name: str = "q") -> tuple[JSON, JSON]:
    """A gang of its head alone, which runs; an autoscaler may give it a worker."""
    group = workers(replicas=0, minReplicas=0, maxReplicas=1)
    whose: dict[str, Any] = {"name": name, "uid": f"uid-{name}", "labels": {QUEUE_LABEL: queue_name}}
    cluster = ray_cluster(group, **whose, head=template(cpu), enableInTreeAutoscaling=True)
    head = ray_pod(f"{name}-head", "headgroup", cluster=name, owner_uid=f"uid-{name}", held=False, nodeName="node")
    head["spec"]["containers"] = template(cpu)["spec"]["containers"]
    head["metadata"]["labels"][QUEUE_LABEL] = queue_name
    return cluster, head


class _Full(Harness):
    """A full queue: elastic gangs that each want one cpu more, and gangs that run and end.

    With `root` the limit is that of the queue above, so annotated, and the last gangs are in another queue below it.
    """

    def __init__(self, ending: Sequence[str], root: Mapping[str, str] | None = None) -> None:
        others = SIBLINGS if root is not None else []
        self.gangs = {name: _gang(name, queue_name="other" if name in others else "q") for name in ELASTIC}
        self.gangs |= {f"ending-{number}": _gang(f"ending-{number}", cpu) for number, cpu in enumerate(ending)}
        surplus = [ray_pod(f"{name}-more", cluster=name, owner_uid=f"uid-{name}") for name in ELASTIC]
        whole = 1000 * len(ELASTIC) + sum(int(cpu.removesuffix("m")) for cpu in ending)
        queues = [queue(cpu=f"{whole}m")]
        if root is not None:
            queues = [queue("root", annotations=root, cpu=f"{whole}m"), queue(), queue("other")]
        super().__init__(
            workloads=[cluster for cluster, _ in self.gangs.values()],
            pods=[*(head for _, head in self.gangs.values()), *surplus],
            queues=queues,
        )

    async def look(self) -> str:
        """Work on the gang that is next; there must be one."""
        assert self.queue.statistics().ready
        key = await self.queue.get()
        await self.reconciler.reconcile(key)
        self.queue.done(key)
        return key.name.removeprefix("ray-").removesuffix("-pg")

    async def ends(self, name: str) -> list[str]:
        """A gang ends; gives the gangs that are looked at for that."""
        self.drop_workload(self.gangs[name][0])
        del self.client.pods[f"{name}-head"]
        self.watch()
        looked = []
        while self.queue.statistics().ready:
            looked.append(await self.look())
        return looked

    def grown(self) -> list[str]:
        """The elastic gangs that have what they want."""
        return [name for name in ELASTIC if f"{name}-more" in self.open_pods()]


async def test_too_little_room_for_anybody_has_nobody_looked_at() -> None:
    """Else each end of a small gang would cost as much as all that want to grow."""
    harness = await _Full(["100m", "200m"]).settled()
    assert await harness.ends("ending-0") == ["ending-0"]
    assert await harness.ends("ending-1") == ["ending-1"]
    assert harness.grown() == []


async def test_room_goes_to_the_first_in_order_and_no_more_are_looked_at_than_grow() -> None:
    harness = await _Full(["3500m"]).settled()
    looked = await harness.ends("ending-0")
    assert harness.grown() == ELASTIC[:3]
    assert looked == ["ending-0", *ELASTIC[:3]]


@cases(
    "root, first", ("by share", {}, [*SIBLINGS, ELASTIC[0]]), ("by age", {"muster.dev/siblings": "age"}, ELASTIC[:3])
)
async def test_room_goes_to_the_queue_that_has_least_of_its_share(root: dict[str, str], first: list[str]) -> None:
    """However many want to grow in the other, and are older. The queue above may say that age alone counts."""
    harness = await _Full(["3500m"], root).settled()
    assert await harness.ends("ending-0") == ["ending-0", *first]
    assert harness.grown() == sorted(first)


async def test_who_wants_no_more_when_its_turn_comes_leaves_the_room_to_the_next() -> None:
    harness = await _Full(["1000m"]).settled()
    first, second, *_ = ELASTIC
    harness.drop_workload(harness.gangs["ending-0"][0])
    del harness.client.pods["ending-0-head"]
    harness.watch()
    assert await harness.look() == "ending-0"
    del harness.client.pods[f"{first}-more"]
    harness.watch()
    assert await harness.look() == first
    assert await harness.look() == second
    assert harness.grown() == [second]


async def test_who_is_gone_grows_no_more() -> None:
    harness = await _Full(["1000m"]).settled()
    first, second, third, *_ = ELASTIC
    del harness.client.pods[f"{first}-more"]
    assert await harness.ends(first) == [first, second]
    assert first not in await harness.ends("ending-0")
    assert harness.grown() == [second, third]


async def test_a_larger_queue_lets_as_many_grow_as_it_has_room_for() -> None:
    harness = await _Full([]).settled()
    harness.set_queue(queue(cpu=str(len(ELASTIC) + 4)))
    await harness.settle()
    assert harness.grown() == ELASTIC[:4]


def _host(name: str, replica: str) -> JSON:
    pod = ray_pod(name)
    pod["metadata"]["labels"]["ray.io/worker-group-replica-name"] = replica
    return pod


async def test_of_replicas_with_several_hosts_whole_ones_start() -> None:
    """Their hosts come in any order of names; a half of one holds nodes, and cannot work."""
    group = workers(replicas=3, minReplicas=1, maxReplicas=3, numOfHosts=2)
    hosts = [_host(f"w-{number}", "ab"[number % 2]) for number in range(4)]
    cluster = ray_cluster(group, enableInTreeAutoscaling=True)
    harness = await Harness(
        workloads=[cluster], pods=[ray_pod("head", "headgroup"), *hosts], queues=[queue(cpu="4500m")]
    ).settled()
    assert harness.open_pods() == ["head", "w-0", "w-2"]
    harness.set_queue(queue(cpu="9"))
    await harness.settle()
    assert harness.open_pods() == ["head", "w-0", "w-1", "w-2", "w-3"]
    harness.client.pods |= {"w-4": _host("w-4", "c")}
    await harness.catch_up()
    assert "w-4" not in harness.open_pods(), "its other host is not there yet"
    assert "what starts together lacks pods: 1 of workers" in harness.annotations("ray-demo-pg")[MESSAGE]
    harness.client.pods |= {"w-5": _host("w-5", "c")}
    await harness.catch_up()
    assert {"w-4", "w-5"} <= set(harness.open_pods())


@cases("gone", ("still being deleted", False), ("gone by then", True))
async def test_the_room_of_a_pod_that_dies_is_taken_once(*, gone: bool) -> None:
    """By one that waited for room to grow, for the gang was admitted for that many; what comes in its stead waits."""
    harness = await demo(pods=[*members(), ray_pod("demo-w-2")], queues=[queue(cpu="3", memory="6Gi")]).settled()
    assert harness.open_pods() == ["demo-head", "demo-w-0", "demo-w-1"]
    harness.set_workload(ray_cluster(workers(replicas=3)))
    for name in harness.open_pods():
        harness.client.pods[name]["spec"]["nodeName"] = "node"
    await harness.catch_up()
    harness.client.pods["demo-w-0"]["metadata"]["deletionTimestamp"] = "2026-11-21T10:10:00Z"
    await harness.catch_up()
    assert "demo-w-2" in harness.open_pods()
    if gone:
        del harness.client.pods["demo-w-0"]
    harness.client.pods["demo-w-3"] = ray_pod("demo-w-3")
    await harness.catch_up()
    assert "demo-w-3" not in harness.open_pods()
    assert "; no room yet for cpu 1 and memory 1Gi more (demo-w-3); " in harness.annotations(GROUP)[MESSAGE]


@cases("gone", ("failed", False), ("gone", True))
@pytest.mark.parametrize("scheduler", ["volcano", "scheduler-plugins-scheduler"])
async def test_nobody_takes_the_room_of_a_lost_head_though_its_gang_has_grown(scheduler: str, *, gone: bool) -> None:
    """The gang was admitted for its head alone and holds a worker beside it; the head comes again and is opened."""

    class Product(Harness):
        """All gangs are of that scheduler."""

    Product.scheduler = SCHEDULERS[scheduler]

    def pod(name: str, role: str = GROUP, gang: str = "a") -> JSON:
        made = ray_pod(name, role, cluster=gang, owner_uid=f"uid-{gang}")
        made["spec"]["schedulerName"] = scheduler
        return made

    pods = [pod("a-head", "headgroup"), pod("a-more")]
    least: dict[str, Any] = {
        "enableInTreeAutoscaling": True,
        "autoscalerOptions": {"resources": {"requests": {"memory": "0"}}},
    }
    elastic = ray_cluster(workers(replicas=1, minReplicas=0, maxReplicas=9), name="a", uid="uid-a", **least)
    harness = Product(workloads=[elastic], pods=pods, queues=[queue(cpu="2", memory="9Gi")])
    for _ in range(2):
        await harness.settle()
        for name in harness.open_pods():
            harness.client.pods[name]["spec"]["nodeName"] = "node"
        harness.watch()
    assert harness.open_pods() == ["a-head", "a-more"]
    harness.set_workload(ray_cluster(workers(replicas=0), name="b", uid="uid-b"))
    harness.client.pods["b-head"] = pod("b-head", "headgroup", "b")
    if gone:
        del harness.client.pods["a-head"]
    else:
        harness.client.pods["a-head"]["status"]["phase"] = "Failed"
    await harness.catch_up()
    assert "b-head" not in harness.open_pods()
    harness.client.pods.pop("a-head", None)
    harness.client.pods |= {"a-head-2": pod("a-head-2", "headgroup"), "a-more-2": pod("a-more-2")}
    await harness.catch_up()
    assert harness.open_pods() == ["a-head-2", "a-more"]


async def test_surplus_leaves_the_room_of_a_launcher_that_comes_when_all_workers_run() -> None:
    """It is never held: where somebody else had its room, the queue would be above its limit when it comes."""
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob"}
    pods = [pytorch_pod(f"w-{number}") for number in range(3)]
    for pod in pods:
        pod["metadata"]["ownerReferences"][0] |= owner
        pod["metadata"]["labels"]["training.kubeflow.org/job-role"] = "worker"
    job = pytorch_job(policy={"queue": "q", "minAvailable": 1})
    specs = {"Launcher": {"replicas": 1, "template": template()}, "Worker": {"replicas": 3, "template": template()}}
    job |= owner
    job["spec"] |= {"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": specs}
    harness = await Harness(workloads=[job], pods=pods, queues=[queue(cpu="3")]).settled()
    assert harness.open_pods() == ["w-0", "w-1"]
    harness.set_queue(queue(cpu="5"))
    await harness.settle()
    assert harness.open_pods() == ["w-0", "w-1", "w-2"]
    assert str(harness.term.ledger.used("q")["cpu"]) == "4"


async def test_what_a_write_without_an_answer_may_have_opened_keeps_its_room() -> None:
    """Another of the gang in its place would be one too many, and the watch may be late to tell."""
    group = workers(replicas=2, minReplicas=0, maxReplicas=2)
    cluster = ray_cluster(group, name="a", uid="uid-a", enableInTreeAutoscaling=True)
    head, later, sooner = (
        ray_pod(name, role, cluster="a", owner_uid="uid-a")
        for name, role in (("a-head", "headgroup"), ("a-worker-2", GROUP), ("a-worker-1", GROUP))
    )
    harness = await Harness(workloads=[cluster], pods=[head], queues=[queue(cpu="2")]).settled()
    harness.client.pods["a-worker-2"] = later
    harness.watch()
    harness.client.fails["patch a-worker-2"] = [Unreachable("no answer")]
    with suppress(Unreachable):
        await harness.work()
    harness.client.pods["a-worker-1"] = sooner
    await harness.catch_up()
    assert harness.open_pods() == ["a-head", "a-worker-2"]


async def test_pods_that_a_role_gained_from_another_are_awaited_by_no_replacement() -> None:
    """Volcano places no replacement in a gang of less than its minMember, and for larger pods there may be no room."""
    large = template("4")

    def cluster(small: int, large_ones: int) -> JSON:
        return ray_cluster(workers("small", small), workers("large", large_ones, template=large))

    def of_large(name: str) -> JSON:
        return ray_pod(name, "large", **large["spec"])

    first = [ray_pod("head", "headgroup"), ray_pod("s-0", "small"), ray_pod("s-1", "small"), of_large("l-0")]
    harness = await Harness(workloads=[cluster(2, 1)], pods=first, queues=[queue(cpu="7")]).settled()
    assert len(harness.open_pods()) == len(first)
    del harness.client.pods["s-1"]
    harness.client.pods["l-1"] = of_large("l-1")
    harness.set_workload(cluster(1, 2))
    await harness.catch_up()
    assert harness.open_pods() == ["head", "l-0", "s-0"]
    spec = harness.client.groups[GROUP]["spec"]
    assert (spec["minMember"], spec["minTaskMember"]) == (3, {"headgroup": 1, "small": 1, "large": 1})


async def test_gangs_of_a_queue_that_has_got_others_below_it_grow_beside_those_of_others() -> None:
    """In their turns: of the cpu that comes each gets as much as the queues have, the older first."""
    gangs = {"old": _gang("old", queue_name="org"), "new": _gang("new", queue_name="team")}
    surplus = [ray_pod(f"{name}-more", cluster=name, owner_uid=f"uid-{name}") for name in gangs]
    below = queue("team")
    below["spec"]["parent"] = "org"
    harness = await Harness(
        workloads=[cluster for cluster, _ in gangs.values()],
        pods=[*(head for _, head in gangs.values()), *surplus],
        queues=[queue("org", cpu="2"), below],
    ).settled()
    assert harness.open_pods() == ["new-head", "old-head"]
    harness.set_queue(queue("org", cpu="3"))
    await harness.settle()
    one = harness.open_pods()
    assert len(one) == 3
    harness.set_queue(queue("org", cpu="4"))
    await harness.settle()
    assert harness.open_pods() == ["new-head", "new-more", "old-head", "old-more"]
