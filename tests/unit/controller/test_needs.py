"""What a gang was admitted for where its pods ask for more than its templates: somebody adds containers to them."""

import json

import pytest

from muster.model.names import ADMITTED_FOR, MESSAGE, STATE
from muster.model.objects import PodGroupSpec
from muster.planning.record import AdmittedTerms, carried, granted
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.manifests.observed import GROUP, JSON, amounts, queue, ray_cluster, ray_pod, workers


def member(name: str, role: str = "workers") -> JSON:
    """A pod of 1 cpu, and another one for a sidecar."""
    pod = ray_pod(name, role)
    pod["spec"]["containers"].append({"name": "sidecar", "resources": {"requests": {"cpu": "1"}}})
    return pod


def cluster(replicas: int = 1) -> JSON:
    return ray_cluster(workers(replicas=replicas))


async def crashed(replicas: int = 1) -> Harness:
    """A queue of 5, in which a gang of 4 has started, and lost all of its pods at once; another one waits for 2."""
    rival = ray_cluster(workers(replicas=1), name="b", uid="uid-b", meta={"creationTimestamp": "2026-11-21T11:00:00Z"})
    pods = [member("h", "headgroup"), member("w")]
    others = [
        ray_pod("b-h", "headgroup", cluster="b", owner_uid="uid-b"),
        ray_pod("b-w", cluster="b", owner_uid="uid-b"),
    ]
    world = await Harness(
        workloads=[cluster(replicas), rival], pods=[*pods, *others], queues=[queue(cpu="5")]
    ).settled()
    for name in ("h", "w"):
        world.client.pods[name]["spec"]["nodeName"] = "n"
    await world.catch_up()
    assert world.annotations("ray-b-pg")[STATE] == "WaitingForQuota"
    for name in ("h", "w"):
        del world.client.pods[name]
    await world.catch_up()
    return world


@pytest.mark.parametrize("restart", [False, True])
async def test_the_places_of_crashed_pods_are_as_large_as_they_were(*, restart: bool) -> None:
    world = await crashed()
    if restart:
        world.restart()
        await world.settle()
    assert "cpu 1 free of cpu 5" in world.annotations("ray-b-pg")[MESSAGE]
    assert json.loads(world.annotations(GROUP)[ADMITTED_FOR])["needs"] == {"cpu": "4", "memory": "2Gi"}
    assert world.client.groups[GROUP]["spec"]["minResources"] == {"cpu": "2", "memory": "2Gi"}, "as the workload says"
    world.client.pods |= {"h2": member("h2", "headgroup"), "w2": member("w2")}
    await world.catch_up()
    assert world.open_pods() == ["h2", "w2"]


@pytest.mark.parametrize("restart", [False, True])
async def test_a_replacement_that_others_added_to_is_as_large_as_the_pod_before_it(*, restart: bool) -> None:
    """The rival holds the rest of the queue: what is larger than that finds no room."""
    world = await crashed()
    world.set_queue(queue(cpu="6"))
    await world.settle()
    if restart:
        world.restart()
        await world.settle()
    assert world.open_pods() == ["b-h", "b-w"]
    large = member("w2")
    large["spec"]["containers"].append({"name": "more", "resources": {"requests": {"cpu": "1m"}}})
    world.client.pods |= {"h2": member("h2", "headgroup"), "w2": large}
    await world.catch_up()
    assert world.open_pods() == ["b-h", "b-w", "h2"]
    world.client.pods["w3"] = member("w3")
    await world.catch_up()
    assert world.open_pods() == ["b-h", "b-w", "h2", "w3"]


def spec(pods: int, cpu: str, needs: str = "") -> PodGroupSpec:
    return AdmittedTerms(
        min_task_member={"workers": pods}, min_resources={"cpu": cpu}, needs={"cpu": needs} if needs else {}
    )


@cases(
    "before, now, kept",
    ("nothing has changed", spec(4, "4", "8"), spec(4, "4"), "8"),
    ("half of the pods", spec(4, "4", "8"), spec(2, "2"), "4"),
    ("nothing beyond the templates", spec(4, "4"), spec(4, "4"), "4"),
    ("an older muster", None, spec(4, "4"), "4"),
    ("unreadable", spec(4, "4", "many"), spec(4, "4"), "4"),
)
def test_what_is_needed_beyond_the_templates_goes_with_the_pods(
    before: PodGroupSpec | None, now: PodGroupSpec, kept: str
) -> None:
    assert granted(carried(now, before)) == amounts(cpu=kept)
