"""JobSets whose jobs run side by side: one that waits until others are ready has its room before these start."""

from collections.abc import Iterable

import pytest

from muster.model.names import MESSAGE
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import JSON, NAMESPACE, QUEUE_LABELS, queue, template
from tests.unit.controller.test_waves import of_wave


def job(name: str, pods: int = 1, *, ready: str = "", complete: str = "") -> JSON:
    """A replicated job of so many pods, that waits for others."""
    waits = [{"name": one, "status": "Ready"} for one in ready.split()]
    waits += [{"name": one, "status": "Complete"} for one in complete.split()]
    spec = {"template": template(), "parallelism": pods, "completions": pods}
    return {"name": name, "template": {"spec": spec}, **({"dependsOn": waits} if waits else {})}


def job_set(name: str, *jobs: JSON, order: str = "AnyOrder", **succeeded: int) -> JSON:
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": f"uid-{name}",
            "labels": QUEUE_LABELS,
            "creationTimestamp": f"2026-11-21T09:00:0{'ab'.index(name)}Z",
        },
        "spec": {"replicatedJobs": list(jobs), "startupPolicy": {"startupPolicyOrder": order}},
        "status": {"replicatedJobsStatus": [{"name": one, "succeeded": count} for one, count in succeeded.items()]},
    }


def pods(of: str, **roles: int) -> list[JSON]:
    return [of_wave(f"{of}-{role}-{number}", role, of) for role, count in roles.items() for number in range(count)]


async def come(world: Harness, made: Iterable[JSON] = ()) -> list[str]:
    """These pods are made, and what is open runs; gives what is open then."""
    world.client.pods |= {one["metadata"]["name"]: one for one in made}
    await world.catch_up()
    for one in world.client.pods.values():
        if not one["spec"]["schedulingGates"] and one["status"]["phase"] == "Pending":
            one["spec"]["nodeName"], one["status"]["phase"] = "n", "Running"
    await world.catch_up()
    return world.open_pods()


NODES = (job("node", 2), job("launcher", ready="node"))
CHAIN = (job("node"), job("proxy", ready="node"), job("launcher", ready="proxy"))


@cases(
    "jobs, order, first, then",
    ("ready", NODES, "AnyOrder", {"node": 2}, [{"launcher": 1}]),
    ("transitively", CHAIN, "AnyOrder", {"node": 1}, [{"proxy": 1}, {"launcher": 1}]),
    ("in order", (job("node", 2), job("launcher")), "InOrder", {"node": 2}, [{"launcher": 1}]),
)
@pytest.mark.parametrize("restarted", [False, True])
async def test_two_that_fit_alone_do_not_block_each_other(
    jobs: tuple[JSON, ...], order: str, first: dict[str, int], then: list[dict[str, int]], *, restarted: bool
) -> None:
    """Of 4 cpu each needs 3 before it has ended: the nodes run until their launcher is done."""
    world = Harness(
        workloads=[job_set(one, *jobs, order=order) for one in "ab"],
        pods=[one for name in "ab" for one in pods(name, **first)],
        queues=[queue(cpu="4")],
    )
    assert await come(world) == [f"a-{role}-{n}" for role, count in first.items() for n in range(count)]
    assert world.annotations("b")[MESSAGE].startswith("needs cpu 3 and memory 3Gi; queue")
    opened = world.open_pods()
    for step in then:
        if restarted:
            world.restart()
        opened = await come(world, [one for name in "ab" for one in pods(name, **step)])
    assert len(opened) == 3
    assert {name[0] for name in opened} == {"a"}
    assert world.annotations("a")[MESSAGE] == 'cpu 3 and memory 3Gi of queue "q"'


async def test_what_comes_needs_no_room_when_the_queue_is_full_by_then() -> None:
    world = Harness(workloads=[job_set("a", *NODES)], pods=pods("a", node=2), queues=[queue(cpu="3")])
    await come(world)
    world.set_queue(queue(cpu="2"))
    await world.settle()
    assert "a-launcher-0" in await come(world, pods("a", launcher=1))


async def test_a_launcher_that_comes_early_waits_for_its_gang() -> None:
    world = Harness(workloads=[job_set("a", *NODES)], pods=pods("a", launcher=1), queues=[queue(cpu="3")])
    assert await come(world) == []
    assert len(await come(world, pods("a", node=2))) == 3


async def test_what_comes_later_has_room_for_what_others_add_to_pods() -> None:
    """A sidecar is added to every pod: a launcher that waited for that room would keep its nodes from their work."""
    both = [*pods("a", node=2), *pods("a", launcher=1)]
    for one in both:
        one["spec"]["containers"].append({"name": "sidecar", "resources": {"requests": {"cpu": "500m"}}})
    world = Harness(workloads=[job_set("a", *NODES)], pods=both[:2], queues=[queue(cpu="4")])
    assert await come(world) == []
    world.set_queue(queue(cpu="4500m"))
    await world.settle()
    assert len(await come(world)) == 2
    assert len(await come(world, both[2:])) == 3


async def test_no_more_launchers_are_opened_than_there_are_to_be() -> None:
    world = Harness(workloads=[job_set("a", *NODES)], pods=pods("a", node=2), queues=[queue(cpu="3")])
    await come(world)
    assert len(await come(world, pods("a", launcher=3))) == 3
    large = pods("a", launcher=1)[0]
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "9"
    world.client.pods = {name: one for name, one in world.client.pods.items() if "launcher" not in name}
    assert len(await come(world, [large])) == 2


PREPARED = (job("prepare"), job("node", 2, complete="prepare"), job("launcher", ready="node"))


async def prepared(*names: str, cpu: str) -> Harness:
    """JobSets whose preparation is complete, and whose nodes have come, in a queue of so many cpu."""
    world = Harness(
        workloads=[job_set(name, *PREPARED) for name in names],
        pods=[one for name in names for one in pods(name, prepare=1)],
        queues=[queue(cpu=cpu)],
    )
    await come(world)
    for name in names:
        world.client.pods[f"{name}-prepare-0"]["status"]["phase"] = "Succeeded"
        world.set_workload(job_set(name, *PREPARED, prepare=1))
    await come(world, [one for name in names for one in pods(name, node=2)])
    return world


def running(world: Harness) -> list[str]:
    return [name for name in world.open_pods() if "prepare" not in name]


async def test_a_later_wave_has_room_for_what_comes_when_it_is_ready() -> None:
    world = await prepared("a", "b", cpu="5")
    assert running(world) == ["a-node-0", "a-node-1"]
    await come(world, [one for name in "ab" for one in pods(name, launcher=1)])
    assert running(world) == ["a-launcher-0", "a-node-0", "a-node-1"]
    for name in running(world):
        world.client.pods[name]["status"]["phase"] = "Succeeded"
    world.set_workload(job_set("a", *PREPARED, prepare=1, node=2, launcher=1))
    await come(world)
    assert [name for name in running(world) if name[0] == "b"] == ["b-launcher-0", "b-node-0", "b-node-1"]


async def test_a_later_wave_waits_until_all_that_runs_beside_it_fits() -> None:
    world = await prepared("a", cpu="2")
    assert running(world) == []
    said = world.annotations("a")[MESSAGE]
    assert said.endswith("; no room yet for cpu 2 and memory 2Gi more (a-node-0, a-node-1)")
    world.set_queue(queue(cpu="3"))
    await world.settle()
    assert running(world) == ["a-node-0", "a-node-1"]


async def test_two_jobs_of_a_later_wave_that_others_wait_for_start_in_one_room() -> None:
    jobs = (job("p"), job("x", complete="p"), job("y", complete="p"), job("z", ready="x y"))
    world = Harness(workloads=[job_set("a", *jobs)], pods=pods("a", p=1), queues=[queue(cpu="3")])
    await come(world)
    world.client.pods["a-p-0"]["status"]["phase"] = "Succeeded"
    world.set_workload(job_set("a", *jobs, p=1))
    await come(world, pods("a", x=1, y=1))
    assert await come(world, pods("a", z=1)) == ["a-p-0", "a-x-0", "a-y-0", "a-z-0"]
    assert world.annotations("a")[MESSAGE] == 'cpu 3 and memory 3Gi of queue "q"'
