"""A RayCluster counts its pods as KubeRay does."""

from __future__ import annotations

import pytest

from muster.objects import InvalidObjectError, Pod
from muster.workloads import kind_of, kind_of_owner
from muster.workloads.ray import RAY_CLUSTER
from tests.unit.builders import JSON, made, pod, ray_cluster, ray_pod, read, workers


@pytest.mark.parametrize(
    ("group", "desired"),
    [
        pytest.param(workers(replicas=3), 3, id="replicas"),
        pytest.param(workers(replicas=0), 0, id="none"),
        pytest.param(workers(replicas=None), 0, id="not given: minReplicas, which is 0"),
        pytest.param(workers(replicas=None, minReplicas=2), 2, id="not given: minReplicas"),
        pytest.param(workers(replicas=1, minReplicas=2, maxReplicas=5), 2, id="raised to minReplicas"),
        pytest.param(workers(replicas=9, minReplicas=2, maxReplicas=5), 5, id="lowered to maxReplicas"),
        pytest.param(workers(replicas=9, maxReplicas=0), 0, id="maxReplicas of 0"),
        pytest.param(workers(replicas=3, numOfHosts=4), 12, id="times the hosts of a replica"),
        pytest.param(workers(replicas=9, maxReplicas=2, numOfHosts=4), 8, id="clamped before the hosts"),
        pytest.param(workers(replicas=3, numOfHosts=0), 3, id="no hosts given counts one"),
        pytest.param(workers(replicas=3, minReplicas=3, suspend=True), 0, id="suspended group"),
        pytest.param(workers(replicas=2, numOfHosts=None, minReplicas=None, maxReplicas=None), 2, id="nulls"),
    ],
)
def test_desired_pods_of_a_group(group: JSON, desired: int) -> None:
    role = read(ray_cluster(group)).roles[1]
    assert (role.replicas, role.minimum) == (desired, desired)


@pytest.mark.parametrize(
    ("group", "replicas", "minimum"),
    [
        pytest.param(workers(replicas=4, minReplicas=1), 4, 1, id="only minReplicas are needed"),
        pytest.param(workers(replicas=4), 4, 0, id="minReplicas not given"),
        pytest.param(workers(replicas=2, minReplicas=2, numOfHosts=3), 6, 6, id="times the hosts"),
        pytest.param(workers(replicas=4, minReplicas=2, suspend=True), 0, 0, id="suspended group"),
    ],
)
def test_with_autoscaling_the_gang_is_the_least_that_ray_keeps(group: JSON, replicas: int, minimum: int) -> None:
    role = read(ray_cluster(group, enableInTreeAutoscaling=True)).roles[1]
    assert (role.replicas, role.minimum) == (replicas, minimum)


def test_there_is_always_one_head_and_it_leads() -> None:
    head, *others = read(ray_cluster(workers("a"), workers("b"))).roles
    assert (head.name, head.replicas, head.minimum, head.leads) == ("headgroup", 1, 1, True)
    assert [(role.name, role.leads) for role in others] == [("a", False), ("b", False)]


@pytest.mark.parametrize(
    ("manifest", "line"),
    [
        pytest.param(
            {**ray_cluster(), "spec": {}},
            "spec.headGroupSpec: missing; a RayCluster has one head",
            id="no head",
        ),
        pytest.param(
            ray_cluster(workers(), workers("")),
            "spec.workerGroupSpecs[1].groupName: missing; a worker group needs a name",
            id="no name",
        ),
        pytest.param(
            ray_cluster(workers("a"), workers("a")),
            'spec.workerGroupSpecs[1].groupName: "a" is taken; group names differ',
            id="name twice",
        ),
        pytest.param(
            ray_cluster(workers("headgroup")),
            'spec.workerGroupSpecs[0].groupName: "headgroup" is taken; group names differ',
            id="the head's name",
        ),
        pytest.param(
            ray_cluster(workers(replicas=-1)),
            "spec.workerGroupSpecs[0].replicas: -1 is negative; a number of pods is 0 or more",
            id="negative replicas",
        ),
        pytest.param(
            ray_cluster(workers(minReplicas=-2)),
            "spec.workerGroupSpecs[0].minReplicas: -2 is negative; a number of pods is 0 or more",
            id="negative minReplicas",
        ),
        pytest.param(
            ray_cluster(workers(minReplicas=3, maxReplicas=2)),
            "spec.workerGroupSpecs[0].minReplicas: 3 is above maxReplicas 2; raise maxReplicas or lower minReplicas",
            id="minimum above maximum",
        ),
        pytest.param(
            ray_cluster(workers(maxReplicas=-1)),
            "spec.workerGroupSpecs[0].minReplicas: 0 is above maxReplicas -1; raise maxReplicas or lower minReplicas",
            id="negative maximum",
        ),
    ],
)
def test_numbers_that_make_no_gang_are_refused_by_field(manifest: JSON, line: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        read(manifest)
    assert str(refused.value) == line


def test_the_pod_group_is_named_as_kuberay_names_it() -> None:
    assert read(ray_cluster(name="demo")).pod_group == "ray-demo-pg"


@pytest.mark.parametrize(
    ("manifest", "active"),
    [
        pytest.param(ray_cluster(), True, id="runs"),
        pytest.param(ray_cluster(suspend=True), False, id="suspended"),
        pytest.param(ray_cluster(meta={"deletionTimestamp": "2026-11-21T10:00:00Z"}), False, id="being deleted"),
    ],
)
def test_whether_the_workload_wants_to_run(manifest: JSON, active: bool) -> None:  # noqa: FBT001
    assert read(manifest).active is active


def test_a_pods_role_is_its_group() -> None:
    assert RAY_CLUSTER.role_of(made(Pod, ray_pod("w-0", "workers"))) == "workers"


def test_a_pod_without_a_group_is_no_member() -> None:
    assert RAY_CLUSTER.role_of(made(Pod, pod("w-0"))) is None


def test_pods_of_a_plan_carry_the_operators_labels() -> None:
    workload = read(ray_cluster())
    head, group = (RAY_CLUSTER.pod_labels(workload, role) for role in workload.roles)
    assert (head["ray.io/node-type"], head["ray.io/group"]) == ("head", "headgroup")
    assert (group["ray.io/node-type"], group["ray.io/group"]) == ("worker", "workers")
    assert head["ray.io/cluster"] == group["ray.io/cluster"] == "demo"


@pytest.mark.parametrize(
    ("api_version", "kind", "known"),
    [
        ("ray.io/v1", "RayCluster", True),
        ("ray.io/v1alpha1", "RayCluster", True),
        ("ray.io/v2", "RayCluster", False),
        ("ray.io/v1", "RayJob", True),
        ("ray.io/v1alpha1", "RayCronJob", False),
        ("kubeflow.org/v1", "PyTorchJob", True),
        ("kubeflow.org/v2beta1", "PyTorchJob", False),
        ("example.com/v1", "RayCluster", False),
        ("v1", "Pod", True),
        ("v2", "Pod", False),
        ("", "", False),
    ],
)
def test_kinds_are_known_by_group_version_and_kind(api_version: str, kind: str, known: bool) -> None:  # noqa: FBT001
    assert (kind_of(api_version, kind) is not None) is known


def test_a_pod_without_an_owner_has_no_workload() -> None:
    assert kind_of_owner(None) is None
