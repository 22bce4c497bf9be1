"""A new workload whose PodGroup's name is taken by something alive is refused, and nothing else is."""

from collections.abc import Sequence

from muster.kube.errors import Unreachable
from muster.model.names import GANG, GANG_SIZE
from tests.support.cases import cases
from tests.support.manifests.observed import JSON, pod, pod_group, pytorch_job, queue, ray_cluster
from tests.support.webhook.admission_reviews import Reader, answered, knowing, request
from webhook.reviews.workloads import review_workload

TRAIN = pytorch_job(policy={"queue": "q"})
RAY = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "train", "uid": "uid-ray", "controller": True}
FORMER = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train", "uid": "old", "controller": True}
STRANGER = {"apiVersion": "example.com/v1", "kind": "Thing", "name": "train", "uid": "t", "controller": True}


def holding(owner: JSON | None) -> JSON:
    group = pod_group("train", owner=owner or {})
    group["metadata"]["ownerReferences"] = [owner] if owner else []
    return group


def plain(**status: str) -> JSON:
    return {**pod("other", labels={GANG: "train"}, annotations={GANG_SIZE: "2"}), "status": status}


async def created(group: JSON | Exception, objects: JSON | None = None, pods: Sequence[JSON] = ()) -> JSON:
    reader = Reader({"podgroups/train": group, **(objects or {})}, pods=pods)
    return answered(await review_workload(request(TRAIN), knowing(reader, queues=[queue(cpu="99")])))


async def test_the_name_of_a_living_workloads_pod_group_is_refused_and_the_holder_named() -> None:
    alive = ray_cluster(uid="uid-ray")
    answer = await created(holding(RAY), {"rayclusters/train": alive})
    assert not answer["allowed"]
    assert answer["status"]["reason"] == "PodGroupTaken"
    assert answer["status"]["message"] == (
        'metadata.name: the PodGroup "train" belongs to another workload (RayCluster), and two gangs cannot share one; '
        "use another name or delete the other first"
    )


async def test_the_name_of_a_plain_gang_with_a_living_pod_is_refused() -> None:
    answer = await created(holding(None), pods=[plain(phase="Running")])
    assert "belongs to a gang of plain pods" in answer["status"]["message"]


@cases(
    "group, objects, pods",
    ("the owner is gone", holding(RAY), {}, []),
    ("the owner was made again", holding(RAY), {"rayclusters/train": ray_cluster(uid="later")}, []),
    (
        "the owner is being deleted",
        holding(RAY),
        {"rayclusters/train": ray_cluster(uid="uid-ray", meta={"deletionTimestamp": "2026-11-21T10:00:00Z"})},
        [],
    ),
    (
        "the same workload of a moment ago, still shown",
        holding(FORMER),
        {"pytorchjobs/train": pytorch_job(uid="old")},
        [],
    ),
    ("an owner of no kind that has gangs", holding(STRANGER), {}, []),
    ("a plain gang that has ended", holding(None), {}, [plain(phase="Succeeded")]),
    ("the PodGroup cannot be read", Unreachable("down"), {}, []),
    ("the owner cannot be read", holding(RAY), {"rayclusters/train": Unreachable("down")}, []),
)
async def test_a_name_that_nobody_alive_is_known_to_hold_is_taken(
    group: JSON | Exception, objects: JSON, pods: list[JSON]
) -> None:
    assert await created(group, objects, pods) == {"uid": "u", "allowed": True}
