"""Gangs that are held only until they are whole, or not at all."""

import pytest

from muster.model.names import ADMITTED, STATE
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import GROUP, JSON, NO_QUEUE, namespace, queue, ray_cluster, ray_pod, workers

HEAD = ray_pod("head", "headgroup")


def gate(mode: str) -> dict[str, str]:
    return {"muster.dev/gate": mode}


def members(*, held: bool = True) -> list[JSON]:
    return [ray_pod("head", "headgroup", held=held), ray_pod("w-0", held=held), ray_pod("w-1", held=held)]


def other(*, held: bool = True) -> list[JSON]:
    return [
        ray_pod(name, role, held=held, cluster="other", owner_uid="uid-other")
        for name, role in (("o-head", "headgroup"), ("o-0", "workers"), ("o-1", "workers"))
    ]


def full(mode: str, **changes: list[JSON]) -> Harness:
    """A gang of 3 cpu in a queue of this mode that can hold 1."""
    queues = [queue(cpu="1", annotations=gate(mode))]
    return Harness(**{"workloads": [ray_cluster()], "pods": members(), "queues": queues, **changes})


async def test_with_assemble_a_whole_gang_starts_whatever_its_queue_has() -> None:
    harness = await full("assemble").settled()
    assert harness.open_pods() == ["head", "w-0", "w-1"]
    assert harness.annotations(GROUP)[ADMITTED] == "uid-demo"
    assert ("Normal", "Admitted", "all its pods are there") in harness.events()


async def test_with_assemble_a_gang_that_lacks_a_pod_is_held() -> None:
    harness = await full("assemble", pods=members()[:2]).settled()
    assert harness.open_pods() == []
    assert ADMITTED not in harness.annotations(GROUP)


async def test_with_assemble_surplus_starts_whatever_the_queue_has() -> None:
    harness = await full("assemble", pods=[*members(), ray_pod("w-2")]).settled()
    assert harness.open_pods() == ["head", "w-0", "w-1", "w-2"]


@pytest.mark.parametrize("mode", ["queue", "assemble", "off"])
async def test_in_every_mode_the_queue_must_be_there(mode: str) -> None:
    """Volcano places nothing in one that is missing; who may not use one is told the same, and would be placed."""
    harness = await Harness(
        workloads=[ray_cluster()], pods=members(), namespaces=[namespace(annotations=gate(mode))]
    ).settled()
    assert (harness.open_pods(), harness.client.groups) == ([], {})
    assert harness.events() == [("Warning", "QueueNotFound", NO_QUEUE)]
    harness.set_queue(queue(cpu="4", memory="4Gi"))
    await harness.settle()
    assert harness.open_pods() == ["head", "w-0", "w-1"]


async def test_what_a_gang_holds_counts_for_others_whatever_its_mode() -> None:
    """The namespaces of a queue may differ; room that is taken is taken."""
    neighbour = ray_cluster(name="other", uid="uid-other", labels={"volcano.sh/queue-name": "q"})
    harness = await Harness(
        workloads=[ray_cluster(), neighbour],
        pods=[*members(held=False), *other()],
        queues=[queue(cpu="4", memory="9Gi")],
    ).settled()
    assert harness.annotations("ray-other-pg")[STATE] == "WaitingForQuota"


async def test_with_the_gate_off_the_group_is_made_with_the_first_pod() -> None:
    """Its pods come open and bound; Volcano does not look at them before there is a PodGroup."""
    harness = full("off", pods=members(held=False)[:1])
    written = await harness.settle()
    assert written[0] == f"muster {GROUP}"
    assert harness.annotations(GROUP)[ADMITTED] == "uid-demo"
    assert not [one for one in written if one.startswith("patch")]


@cases("there", ("whole", 3), ("a part", 1))
async def test_turned_off_the_gate_lets_those_go_that_it_held(there: int) -> None:
    harness = await full("queue", pods=members()[:there]).settled()
    assert harness.open_pods() == []
    harness.set_queue(queue(cpu="1", annotations=gate("off")))
    await harness.settle()
    assert harness.open_pods() == ["head", "w-0", "w-1"][:there]


async def test_a_namespace_that_turns_it_off_lets_those_go_that_it_held() -> None:
    harness = await Harness(
        workloads=[ray_cluster()], pods=members(), queues=[queue(cpu="1")], namespaces=[namespace()]
    ).settled()
    assert harness.open_pods() == []
    harness.set_namespace(namespace(annotations=gate("off")))
    await harness.settle()
    assert harness.open_pods() == ["head", "w-0", "w-1"]


async def test_a_queue_that_turns_it_on_again_holds_nobody_who_runs() -> None:
    harness = await full("off", pods=members(held=False)).settled()
    harness.set_queue(queue(cpu="1", annotations=gate("queue")))
    await harness.settle()
    assert harness.open_pods() == ["head", "w-0", "w-1"]
    assert harness.annotations(GROUP)[ADMITTED] == "uid-demo"


async def test_an_admitted_gang_grows_by_the_rules_of_the_queue_that_it_is_in() -> None:
    """Its label may name another queue by now; what it holds stays in the first."""
    moved = ray_cluster(labels={"volcano.sh/queue-name": "free"})
    harness = await Harness(
        workloads=[ray_cluster()],
        pods=members(),
        queues=[queue(cpu="3", memory="9Gi"), queue("free", annotations=gate("assemble"))],
    ).settled()
    harness.set_workload(moved)
    harness.client.pods["w-2"] = ray_pod("w-2")
    await harness.catch_up()
    assert harness.open_pods() == ["head", "w-0", "w-1"]


async def test_a_workload_of_an_opted_in_namespace_is_a_gang() -> None:
    around = namespace(labels={"muster.dev/managed": "true"}, annotations={"scheduling.volcano.sh/queue-name": "q"})
    harness = await Harness(
        workloads=[ray_cluster(labels={})],
        pods=members(),
        queues=[queue(cpu="4", memory="9Gi")],
        namespaces=[around],
    ).settled()
    assert harness.open_pods() == ["head", "w-0", "w-1"]
    assert harness.client.groups[GROUP]["spec"]["queue"] == "q"


@pytest.mark.parametrize("gate", ["off", "assemble", "queue"])
async def test_a_workload_that_is_made_again_at_once_gets_its_own_queue_and_numbers(gate: str) -> None:
    said = {"muster.dev/gate": gate}
    held = gate != "off"
    first = ray_cluster(workers(replicas=1))
    harness = await Harness(
        workloads=[first],
        pods=[ray_pod("h", "headgroup", held=held), ray_pod("w", held=held)],
        queues=[queue("q", cpu="20", annotations=said), queue("p", cpu="20", annotations=said)],
    ).settled()
    harness.drop_workload(first)
    harness.set_workload(ray_cluster(workers(replicas=2), uid="uid-2", labels={"volcano.sh/queue-name": "p"}))
    roles = {"h-2": "headgroup", "x-0": "workers", "x-1": "workers"}
    harness.client.pods.clear()
    harness.client.pods |= {name: ray_pod(name, role, owner_uid="uid-2", held=held) for name, role in roles.items()}
    await harness.catch_up()
    spec = harness.client.groups[GROUP]["spec"]
    assert (spec["queue"], spec["minMember"], spec["minResources"]["cpu"]) == ("p", 3, "3")
