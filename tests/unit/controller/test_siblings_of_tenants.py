"""What a tenant of one queue writes keeps no gang of another queue waiting: of claims counts what can be placed."""

from collections.abc import Callable
from typing import Any

import pytest

from muster.model.names import GROUP_NAME, QUEUE_LABEL, STATE
from muster.model.objects import Node
from muster.resources.quantity import ZERO
from tests.support.cases import cases
from tests.support.controller.bypass_queue import gang
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, made, pod, queue, ray_pod

READY = {"conditions": [{"type": "Ready", "status": "True"}]}
NOT_READY = {"conditions": [{"type": "Ready", "status": "Unknown"}]}


def below(name: str, parent: str, cpu: str | None) -> JSON:
    one = queue(name, cpu=cpu) if cpu else queue(name)
    one["spec"]["parent"] = parent
    return one


def of(name: str, cpus: int, queue_name: str) -> tuple[JSON, list[JSON]]:
    workload, pods = gang(name, cpus, labels={QUEUE_LABEL: queue_name})
    for one in pods:
        one["metadata"]["labels"][QUEUE_LABEL] = queue_name
    return workload, pods


def large(one: JSON, **spec: str) -> JSON:
    """The pod, with a request for 1,000 cpu."""
    one["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1000"
    one["spec"] |= spec
    return one


def bound(**spec: str) -> JSON:
    """A pod that the tenant binds to its PodGroup by hand."""
    return large(pod("ghost", annotations={GROUP_NAME: "ray-runs-pg"}), **spec)


def member(**spec: str) -> JSON:
    """A pod that looks as one of the gang."""
    one = large(ray_pod("runs-9", "workers", cluster="runs", owner_uid="uid-runs", held=False), **spec)
    one["metadata"]["labels"][QUEUE_LABEL] = "a"
    return one


def terminating(**spec: str) -> JSON:
    """One that is being deleted, and has as long as it likes."""
    one = bound(**spec)
    one["metadata"]["deletionTimestamp"] = "2036-01-01T00:00:00Z"
    return one


def group(phase: str = "Inqueue") -> JSON:
    spec = {"minMember": 1, "queue": "a", "minResources": {"cpu": "1000"}}
    meta = {"name": "mine", "namespace": "team", "uid": "uid-mine", "labels": {}, "annotations": {}}
    return {"metadata": meta, "spec": spec, "status": {"phase": phase}}


class _Scene(Harness):
    """A gang of 2 cpu runs in the tenant's queue a, of 4 cpu, below org, of 100, beside b, of 50."""

    def __init__(self, own: str | None = "4", groups: list[JSON] | None = None, *, listed: bool = True) -> None:
        workload, pods = of("runs", 2, "a")
        queues = [queue("root"), below("org", "root", "100"), below("a", "org", own), below("b", "org", "50")]
        super().__init__(workloads=[workload], pods=pods, queues=queues, groups=groups or [])
        if listed:
            self.nodes_are_listed()

    def nodes_are_listed(self) -> None:
        nodes = {"real": READY, "lost": NOT_READY}
        listed: list[dict[str, Any]] = [
            {"metadata": {"name": name, "uid": name}, "status": status} for name, status in nodes.items()
        ]
        self.cluster.nodes.replace_all([made(Node, one) for one in listed])

    async def begin(self) -> None:
        await self.settle()
        assert self.open_pods() == ["runs-0", "runs-1"]
        for one in self.client.pods.values():
            one["spec"]["nodeName"] = "real"
            one["status"]["phase"] = "Running"
        await self.catch_up()

    async def comes(self, *pods: JSON) -> None:
        self.client.pods |= {one["metadata"]["name"]: one for one in pods}
        await self.catch_up()

    def used(self, name: str) -> int:
        used: int = self.term.ledger.used(name).get("cpu", ZERO).nano // 10**9
        return used

    async def victim(self, cpus: int) -> str:
        """The state of a gang of so many cpu in queue b."""
        workload, pods = of("victim", cpus, "b")
        self.set_workload(workload)
        await self.comes(*pods)
        return str(self.annotations("ray-victim-pg").get(STATE))


@cases("own", ("4 cpu", "4"), ("no capability", None))
@pytest.mark.parametrize("make", [bound, member, terminating])
async def test_pods_on_nodes_that_do_not_exist_count_nowhere(make: Callable[..., JSON], own: str | None) -> None:
    scene = _Scene(own)
    await scene.begin()
    await scene.comes(make(nodeName="no-such-node"))
    assert [scene.used(name) for name in ("a", "org")] == [2, 2]
    assert await scene.victim(50) == "Admitted"


@pytest.mark.parametrize("make", [bound, member, terminating])
async def test_pods_that_no_kubelet_runs_take_no_more_of_others_than_their_queue_may(make: Callable[..., JSON]) -> None:
    """The tenant's own queue is full; above it count 4 cpu, and the 2 that run."""
    scene = _Scene()
    await scene.begin()
    await scene.comes(make(nodeName="lost"))
    assert scene.used("a") > 1000
    assert scene.used("org") <= 6
    assert await scene.victim(50) == "Admitted"


@pytest.mark.parametrize("phase", ["Inqueue", "Running", "Unknown"])
async def test_a_pod_group_of_the_tenants_own_holds_what_its_queue_has_free(phase: str) -> None:
    scene = await _Scene(groups=[group(phase)]).settled()
    assert [scene.used(name) for name in ("a", "org")] == [4, 4]
    assert await scene.victim(50) == "Admitted"


async def test_a_node_that_comes_or_goes_has_its_pods_counted_again() -> None:
    """No pod of them changes then."""
    scene = _Scene()
    await scene.begin()
    await scene.comes(bound(nodeName="late"))
    assert scene.used("a") == 2
    late = made(Node, {"metadata": {"name": "late", "uid": "late"}, "status": READY})
    scene.cluster.nodes.apply("added", late)
    await scene.settle()
    assert scene.used("a") == 1002
    scene.cluster.nodes.apply("deleted", late)
    await scene.settle()
    assert scene.used("a") == 2


@pytest.mark.parametrize("make", [bound, member])
async def test_until_nodes_are_listed_every_pod_counts(make: Callable[..., JSON]) -> None:
    scene = _Scene(listed=False)
    await scene.begin()
    await scene.comes(make(nodeName="no-such-node"))
    assert scene.used("a") == 1002
    scene.nodes_are_listed()
    await scene.settle()
    assert scene.used("a") == 2


async def test_what_really_runs_beyond_the_limit_counts_for_all() -> None:
    scene = _Scene()
    await scene.begin()
    strays = bound(nodeName="real")
    strays["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "70"
    strays["status"]["phase"] = "Running"
    await scene.comes(strays)
    assert [scene.used(name) for name in ("a", "org")] == [72, 72]
    assert await scene.victim(50) == "WaitingForQuota"
