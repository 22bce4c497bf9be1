"""No PodGroup is deleted that is somebody's, whatever the watches show."""

from muster.cluster.alive import has_living_owner
from muster.model.objects import ObjectMeta
from muster.workloads.ray import RAY_CLUSTER
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.controller.stores import workload_store
from tests.support.faults.apiserver import FaultyApiserver, listing, reply
from tests.support.manifests.observed import GROUP, JSON, made, pod_group, queue, ray_cluster, ray_pod, workers

OWNED = made(ObjectMeta, pod_group(owner_uid="uid-2")["metadata"])
PLAIN = made(ObjectMeta, {"name": "train", "namespace": "team"})


async def test_a_leader_whose_watch_of_workloads_is_behind_deletes_no_live_pod_group() -> None:
    """It shows the former workload of the name, and not that of the PodGroup and the running pods."""
    world = Harness(
        workloads=[ray_cluster(workers(replicas=1), uid="uid-2")],
        pods=[ray_pod("h", "headgroup", owner_uid="uid-2"), ray_pod("w", owner_uid="uid-2")],
        queues=[queue(cpu="5")],
    )
    await world.settle()
    former = made(RAY_CLUSTER.decoded, ray_cluster(workers(replicas=1)))
    workload_store(world.cluster, RAY_CLUSTER).replace_all([former])
    world.alive = {"uid-2"}
    world.restart()
    assert not [write for write in await world.work() if write.startswith("delete")]
    world.alive.clear()
    world.restart()
    assert f"delete {GROUP}" in await world.work()


@cases(
    "metadata, alive",
    ("there", {"uid": "uid-2"}, True),
    ("another of that name", {"uid": "uid-3"}, False),
    ("being deleted", {"uid": "uid-2", "deletionTimestamp": "2026-11-21T10:00:00Z"}, False),
    ("gone", None, False),
)
async def test_a_pod_group_is_somebodys_while_its_owner_is_there(metadata: JSON | None, *, alive: bool) -> None:
    async with FaultyApiserver.serving() as server, server.client() as client:
        answer = reply({"metadata": metadata}) if metadata else reply({"kind": "Status", "code": 404}, status=404)
        server.on("GET", answer)
        assert await has_living_owner(client, OWNED) is alive
    (request,) = server.seen("GET")
    assert request.path == "/apis/ray.io/v1/namespaces/team/rayclusters/demo"


@cases(
    "annotations, phase, alive",
    ("a plain pod", {"muster.dev/gang-size": "2"}, "Running", True),
    ("one that has ended", {"muster.dev/gang-size": "2"}, "Succeeded", False),
    ("a pod of the workload of that name", {}, "Running", False),
)
async def test_a_pod_group_without_owner_is_of_its_plain_pods(annotations: JSON, phase: str, *, alive: bool) -> None:
    async with FaultyApiserver.serving() as server, server.client() as client:
        pod = {"metadata": {"name": "p", "annotations": annotations}, "status": {"phase": phase}}
        server.on("LIST", reply(listing(7, pod)))
        assert await has_living_owner(client, PLAIN) is alive
    (request,) = server.seen("LIST")
    assert (request.path, request.query["labelSelector"]) == ("/api/v1/namespaces/team/pods", "muster.dev/gang=train")


async def test_of_many_plain_pods_no_more_are_read_than_are_looked_at() -> None:
    async with FaultyApiserver.serving() as server, server.client() as client:
        pod = {"metadata": {"name": "p", "annotations": {"muster.dev/gang-size": "2"}}, "status": {"phase": "Running"}}
        server.on("LIST", reply(listing(7, pod)))
        assert await has_living_owner(client, PLAIN, first=1)
    (request,) = server.seen("LIST")
    assert request.path == "/api/v1/namespaces/team/pods"
    assert (request.query["limit"], request.query["labelSelector"]) == ("1", "muster.dev/gang=train")
