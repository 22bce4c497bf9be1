"""Who ends by itself, and who takes the place of an older one: whom they hold up when their patience is over."""

from typing import Any

from muster.cluster.observe import observe
from muster.model.names import GANG, GANG_SIZE, GROUP_NAME, MESSAGE, PASSED_SINCE, STATE
from muster.planning.candidate import lasts
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.bypass_queue import LARGE, SMALL, gang, harness, passed, running
from tests.support.controller.stores import filled
from tests.support.manifests.observed import DEFAULTS, JSON, KEY, pod, pod_group, pytorch_job, ray_cluster


def owner(kind: str, name: str = "above", api_version: str = "ray.io/v1") -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def plain(**spec: Any) -> JSON:  # noqa: ANN401 - whatever `pod` takes
    marks = {GROUP_NAME: "ray-demo-pg", GANG_SIZE: "1"}
    return pod("alone", labels={GANG: "ray-demo-pg"}, annotations=marks, **spec)


def of_ray_job(**spec: Any) -> dict[str, list[JSON]]:  # noqa: ANN401 - whatever stands in its spec
    maker = owner("RayJob")
    job = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": maker["name"], "namespace": KEY.namespace, "uid": maker["uid"]},
        "spec": {"rayClusterSpec": ray_cluster()["spec"], **spec},
    }
    return {"workloads": [ray_cluster(meta={"ownerReferences": [maker]}), job]}


@cases(
    "cluster, expected",
    ("a RayCluster", {"workloads": [ray_cluster()]}, True),
    ("of a RayService", {"workloads": [ray_cluster(meta={"ownerReferences": [owner("RayService")]})]}, True),
    ("of a RayJob", {"workloads": [ray_cluster(meta={"ownerReferences": [owner("RayJob")]})]}, False),
    ("of a RayJob that leaves it", of_ray_job(), True),
    (
        "of a RayJob that deletes it only when it has failed",
        of_ray_job(
            deletionStrategy={"deletionRules": [{"policy": "DeleteCluster", "condition": {"jobStatus": "FAILED"}}]}
        ),
        True,
    ),
    ("of a RayJob that shuts it down", of_ray_job(shutdownAfterJobFinishes=True), False),
    (
        "of a RayJob that deletes its workers",
        of_ray_job(
            deletionStrategy={"deletionRules": [{"policy": "DeleteWorkers", "condition": {"jobStatus": "SUCCEEDED"}}]}
        ),
        False,
    ),
    (
        "of a RayJob that deletes it when it has ended well",
        of_ray_job(deletionStrategy={"onSuccess": {"policy": "DeleteCluster"}, "onFailure": {"policy": "DeleteNone"}}),
        False,
    ),
    ("a PyTorchJob", {"workloads": [pytorch_job(name="ray-demo-pg")]}, False),
    ("plain pods that are started again", {"pods": [plain()]}, True),
    ("plain pods that end", {"pods": [plain(restartPolicy="OnFailure")]}, False),
    ("a group of nobody knows whom", {"groups": [pod_group(ours=False)]}, True),
    (
        "a job of Volcano's",
        {"groups": [pod_group(ours=False, owner=owner("Job", api_version="batch.volcano.sh/v1alpha1"))]},
        False,
    ),
)
def test_who_goes_on_until_somebody_ends_it(cluster: dict[str, list[JSON]], expected: bool) -> None:
    assert lasts(observe(GangKey("team", "ray-demo-pg"), filled(**cluster), DEFAULTS)) is expected


async def test_a_service_that_runs_holds_up_nobody_who_could_start_only_after_it() -> None:
    serves, group = running("runs", 2)
    del serves[0]["metadata"]["ownerReferences"]
    large = gang("large", 3, created="2026-11-21T10:00:00Z")
    small = gang("small", 1, created="2026-11-21T11:00:00Z")
    world = harness(serves, large, small, groups=[group, passed()])
    await world.settle()
    assert (world.annotations(LARGE)[STATE], world.annotations(SMALL)[STATE]) == ("WaitingForQuota", "Admitted")
    assert (
        "smaller gangs may go first, for what does not end by itself leaves it no room"
        in world.annotations(LARGE)[MESSAGE]
    )


async def test_the_new_cluster_of_a_service_that_is_upgraded_holds_up_nobody_while_the_old_one_serves() -> None:
    serves, group = running("runs", 2)
    small = gang("small", 1, created="2026-11-21T11:00:00Z")
    upgraded = gang("large", 4, created="2026-11-21T10:00:00Z")
    for cluster, _ in (serves, upgraded):
        cluster["metadata"]["ownerReferences"] = [owner("RayService")]
    world = harness(serves, upgraded, small, groups=[group, passed()], annotations={"queueing": "strict"})
    await world.settle()
    assert (world.annotations(LARGE)[STATE], world.annotations(SMALL)[STATE]) == ("WaitingForQuota", "Admitted")
    assert "for it waits for the end of the cluster that it replaces" in world.annotations(LARGE)[MESSAGE]
    assert PASSED_SINCE in world.annotations(LARGE)


async def test_the_last_pods_of_a_job_that_is_gone_do_not_last() -> None:
    """While they end the one that waits for their room goes on to hold up others."""
    runs, group = running("runs", 2)
    large = gang("large", 3, created="2026-11-21T10:00:00Z")
    small = gang("small", 1, created="2026-11-21T11:00:00Z")
    world = harness(runs, large, small, groups=[group, passed()])
    await world.settle()
    world.drop_workload(runs[0])
    await world.settle()
    assert world.annotations(SMALL)[STATE] == "WaitingForQuota"
    for member in runs[1]:
        del world.client.pods[member["metadata"]["name"]]
    world.watch()
    await world.settle()
    assert world.annotations(LARGE)[STATE] == "Admitted"
