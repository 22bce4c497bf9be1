"""A RayCluster counts its pods as KubeRay does."""

import pytest

from muster.model.findings import Reason
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.resources.amounts import as_text
from muster.workloads import kind_of, kind_of_owner
from muster.workloads.ray import RAY_CLUSTER
from tests.support.cases import cases
from tests.support.manifests.families import judged
from tests.support.manifests.observed import JSON, lines, made, pod, ray_cluster, ray_pod, read, template, workers


@cases(
    "group, desired",
    ("replicas", workers(replicas=3), 3),
    ("none", workers(replicas=0), 0),
    ("not given: minReplicas, which is 0", workers(replicas=None), 0),
    ("not given: minReplicas", workers(replicas=None, minReplicas=2), 2),
    ("raised to minReplicas", workers(replicas=1, minReplicas=2, maxReplicas=5), 2),
    ("lowered to maxReplicas", workers(replicas=9, minReplicas=2, maxReplicas=5), 5),
    ("maxReplicas of 0", workers(replicas=9, maxReplicas=0), 0),
    ("times the hosts of a replica", workers(replicas=3, numOfHosts=4), 12),
    ("clamped before the hosts", workers(replicas=9, maxReplicas=2, numOfHosts=4), 8),
    ("suspended group", workers(replicas=3, minReplicas=3, suspend=True), 0),
    ("nulls", workers(replicas=2, numOfHosts=None, minReplicas=None, maxReplicas=None), 2),
)
def test_desired_pods_of_a_group(group: JSON, desired: int) -> None:
    role = read(ray_cluster(group)).roles[1]
    assert (role.replicas, role.minimum) == (desired, desired)


@cases(
    "group, replicas, minimum",
    ("only minReplicas are needed", workers(replicas=4, minReplicas=1), 4, 1),
    ("minReplicas not given", workers(replicas=4), 4, 0),
    ("none at first", workers(replicas=0), 0, 0),
    ("neither replicas nor minReplicas given", workers(replicas=None, maxReplicas=3), 0, 0),
    ("times the hosts", workers(replicas=2, minReplicas=2, numOfHosts=3), 6, 6),
    ("suspended group", workers(replicas=4, minReplicas=2, suspend=True), 0, 0),
)
def test_with_autoscaling_the_gang_is_the_least_that_ray_keeps(group: JSON, replicas: int, minimum: int) -> None:
    role = read(ray_cluster(group, enableInTreeAutoscaling=True)).roles[1]
    assert (role.replicas, role.minimum) == (replicas, minimum)


def test_there_is_always_one_head_and_it_leads() -> None:
    head, *others = read(ray_cluster(workers("a"), workers("b"))).roles
    assert (head.name, head.replicas, head.minimum, head.leads) == ("headgroup", 1, 1, True)
    assert [(role.name, role.leads) for role in others] == [("a", False), ("b", False)]


@cases(
    "manifest, line",
    ("no head", {**ray_cluster(), "spec": {}}, "spec.headGroupSpec: missing; a RayCluster has one head"),
    (
        "no name",
        ray_cluster(workers(), workers("")),
        "spec.workerGroupSpecs[1].groupName: missing; a worker group needs a name",
    ),
    (
        "name twice",
        ray_cluster(workers("a"), workers("a")),
        'spec.workerGroupSpecs[1].groupName: "a" is taken; group names differ',
    ),
    (
        "the head's name",
        ray_cluster(workers("headgroup")),
        'spec.workerGroupSpecs[0].groupName: "headgroup" is taken; group names differ',
    ),
    (
        "negative replicas",
        ray_cluster(workers(replicas=-1)),
        "spec.workerGroupSpecs[0].replicas: -1 is negative; a number of pods is 0 or more",
    ),
    (
        "negative minReplicas",
        ray_cluster(workers(minReplicas=-2)),
        "spec.workerGroupSpecs[0].minReplicas: -2 is negative; a number of pods is 0 or more",
    ),
    (
        "minimum above maximum",
        ray_cluster(workers(minReplicas=3, maxReplicas=2)),
        "spec.workerGroupSpecs[0].minReplicas: 3 is above maxReplicas 2; raise maxReplicas or lower minReplicas",
    ),
    (
        "no hosts: KubeRay would make no pod",
        ray_cluster(workers(numOfHosts=0)),
        "spec.workerGroupSpecs[0].numOfHosts: 0 is below 1; a replica has at least one host",
    ),
    (
        "negative hosts",
        ray_cluster(workers("a"), workers("b", numOfHosts=-2)),
        "spec.workerGroupSpecs[1].numOfHosts: -2 is below 1; a replica has at least one host",
    ),
    (
        "negative replicas of a suspended group",
        ray_cluster(workers(replicas=-1, suspend=True)),
        "spec.workerGroupSpecs[0].replicas: -1 is negative; a number of pods is 0 or more",
    ),
    (
        "negative maximum",
        ray_cluster(workers(maxReplicas=-1)),
        "spec.workerGroupSpecs[0].maxReplicas: -1 is negative; a number of pods is 0 or more",
    ),
)
def test_numbers_that_make_no_gang_are_refused_by_field(manifest: JSON, line: str) -> None:
    with pytest.raises(InvalidObjectError) as refused:
        read(manifest)
    assert str(refused.value) == line


def test_the_pod_group_is_named_as_kuberay_names_it() -> None:
    assert read(ray_cluster(name="demo")).pod_group == "ray-demo-pg"


def test_v1alpha1_knows_no_hosts_and_no_suspended_groups() -> None:
    """The apiserver drops both fields from what is written in that version."""
    old = ray_cluster(workers(replicas=2, numOfHosts=4, suspend=True)) | {"apiVersion": "ray.io/v1alpha1"}
    workload = read(old)
    assert workload.roles[1].replicas == 2
    line = (
        "spec.workerGroupSpecs[0]: ray.io/v1alpha1 knows neither numOfHosts nor suspend of a group, so that the "
        "apiserver drops them; use ray.io/v1"
    )
    assert lines(workload.findings) == (line,)


@pytest.mark.parametrize(
    "field", [{"historyServerOptions": {"collectorOptions": {}}}, {"tlsOptions": {"enabled": True}}], ids=str
)
def test_v1alpha1_knows_neither_collectors_nor_tls(field: JSON) -> None:
    workload = read(ray_cluster(**field) | {"apiVersion": "ray.io/v1alpha1"})
    line = (
        "spec: ray.io/v1alpha1 knows neither historyServerOptions nor tlsOptions, so that the apiserver drops them; "
        "use ray.io/v1"
    )
    assert lines(workload.findings) == (line,)
    assert workload.roles == read(ray_cluster()).roles


def test_v1alpha1_without_those_is_read_as_v1() -> None:
    workload = read(ray_cluster(workers(replicas=2)) | {"apiVersion": "ray.io/v1alpha1"})
    assert (workload.roles[1].replicas, workload.findings) == (2, ())


def test_many_hosts_are_counted_as_pods_even_beyond_what_a_pod_group_can_hold() -> None:
    manifest = ray_cluster(workers(replicas=70_000, numOfHosts=70_000, maxReplicas=70_000))
    (only,) = judged(manifest).refusals
    assert only.message == ("spec: 4900000001 pods are more than the 2147483647 of a PodGroup; lower the replicas")


def ray_job(**spec: object) -> JSON:
    cluster = ray_cluster()
    return cluster | {"kind": "RayJob", "spec": {"rayClusterSpec": cluster["spec"], **spec}}


@cases(
    "manifest, path",
    ("RayJob", ray_job(clusterSelector={"ray.io/cluster": "mine"}, rayClusterSpec=None), "spec"),
    (
        "RayCronJob",
        ray_job() | {"kind": "RayCronJob", "spec": {"jobTemplate": ray_job(clusterSelector={"a": "b"})["spec"]}},
        "spec.jobTemplate",
    ),
)
def test_a_ray_job_in_a_cluster_that_is_there_has_no_gang_and_says_so(manifest: JSON, path: str) -> None:
    verdict = judged(manifest)
    (only,) = verdict.warnings
    assert (verdict.allowed, verdict.gang, only.reason) == (True, None, Reason.NO_PODS)
    assert only.message.startswith(
        f"{path}.clusterSelector: the job runs in the RayCluster that it selects and makes none"
    )


def test_a_ray_job_in_a_cluster_that_is_there_and_asks_for_nothing_is_left_alone() -> None:
    silent = ray_job(clusterSelector={"ray.io/cluster": "mine"})
    assert judged({**silent, "metadata": {"name": "silent"}}).warnings == ()


@cases(
    "manifest, line",
    (
        "RayJob without a cluster",
        ray_job(rayClusterSpec=None),
        "spec.rayClusterSpec: missing; a RayJob makes a cluster or selects one",
    ),
    (
        "RayCronJob without a cluster",
        ray_job() | {"kind": "RayCronJob", "spec": {}},
        "spec.jobTemplate.rayClusterSpec: missing; a RayJob makes a cluster or selects one",
    ),
    (
        "RayService without a cluster",
        ray_job() | {"kind": "RayService", "spec": {}},
        "spec.rayClusterConfig.headGroupSpec: missing; a RayCluster has one head",
    ),
    (
        "a head with KubeRay's submitter alone",
        ray_job(submissionMode="SidecarMode", rayClusterSpec={"headGroupSpec": {}}),
        "spec.rayClusterSpec.headGroupSpec.template.spec.containers: empty; a pod has at least one container",
    ),
    (
        "a head with KubeRay's autoscaler alone",
        ray_cluster(enableInTreeAutoscaling=True, head={"spec": {}}),
        "spec.headGroupSpec.template.spec.containers: empty; a pod has at least one container",
    ),
)
def test_a_cluster_that_cannot_be_made_is_refused_by_field(manifest: JSON, line: str) -> None:
    (only,) = judged(manifest).refusals
    assert only.message == line


@cases(
    "manifest, head",
    ("nothing", ray_cluster(), "1"),
    ("the autoscaler", ray_cluster(enableInTreeAutoscaling=True), "1500m"),
    (
        "the autoscaler with resources of the user",
        ray_cluster(enableInTreeAutoscaling=True, autoscalerOptions={"resources": {"limits": {"cpu": "2"}}}),
        "3",
    ),
    ("the autoscaler with none", ray_cluster(enableInTreeAutoscaling=True, autoscalerOptions={"resources": {}}), "1"),
    ("no submitter: it has a pod of its own", ray_job(), "1"),
    ("no submitter: the operator submits", ray_job(submissionMode="HTTPMode"), "1"),
    ("the submitter beside the head", ray_job(submissionMode="SidecarMode"), "1500m"),
)
def test_what_kuberay_adds_to_the_head(manifest: JSON, head: str) -> None:
    gang = judged(manifest).gang
    assert gang is not None
    assert as_text(gang.roles[0].requests)["cpu"] == head


@cases(
    "fields, requests",
    ("nothing", {}, ["1", "1"]),
    ("nulls", {"historyServerOptions": None}, ["1", "1"]),
    ("the collector", {"historyServerOptions": {"collectorOptions": {}}}, ["1050m", "1050m"]),
    (
        "the collector with resources of the user",
        {"historyServerOptions": {"collectorOptions": {"resources": {"requests": {"cpu": "500m"}}}}},
        ["1500m", "1500m"],
    ),
    ("the collector with none", {"historyServerOptions": {"collectorOptions": {"resources": {}}}}, ["1", "1"]),
    (
        "beside the autoscaler",
        {"enableInTreeAutoscaling": True, "historyServerOptions": {"collectorOptions": {}}},
        ["1550m", "1050m"],
    ),
)
def test_what_kuberay_adds_to_each_pod(fields: JSON, requests: list[str]) -> None:
    gang = judged(ray_cluster(workers(replicas=2), **fields)).gang
    assert gang is not None
    assert [as_text(role.requests)["cpu"] for role in gang.roles] == requests


@cases(
    "tls, head",
    ("on", {"enabled": True}, {"cpu": "50m", "memory": "64Mi"}),
    ("off", {"enabled": False}, {}),
    ("not said", {}, {}),
)
def test_with_mtls_each_pod_waits_for_its_certificate(tls: JSON, head: JSON) -> None:
    """In an init container before all others, which counts where it is larger than what runs later."""
    bare: JSON = {"spec": {"containers": [{"name": "ray"}]}}
    gang = judged(ray_cluster(workers(template=bare), head=bare, tlsOptions=tls)).gang
    assert gang is not None
    assert [as_text(role.requests) for role in gang.roles] == [head, {"cpu": "200m", "memory": "256Mi"}]


def test_workers_wait_for_the_head_in_an_init_container() -> None:
    """It counts where it is larger than what runs later."""
    gang = judged(ray_cluster(workers(template=template("100m", "1Gi")))).gang
    assert gang is not None
    assert as_text(gang.roles[1].requests) == {"cpu": "200m", "memory": "1Gi"}


def test_autoscaling_from_none_needs_the_head_alone() -> None:
    verdict = judged(ray_cluster(workers(replicas=0), enableInTreeAutoscaling=True))
    assert verdict.gang is not None
    assert (verdict.gang.min_member, verdict.gang.min_task_member) == (1, {"headgroup": 1})
    assert verdict.warnings == ()


@cases(
    "manifest, suspended, finished",
    ("RayJob", ray_job(), False, False),
    ("RayJob suspended", ray_job(suspend=True), True, False),
    ("RayJob complete", ray_job() | {"status": {"jobDeploymentStatus": "Complete"}}, False, True),
    ("RayJob failed", ray_job() | {"status": {"jobDeploymentStatus": "Failed"}}, False, True),
    ("RayJob retried", ray_job() | {"status": {"jobDeploymentStatus": "Retrying"}}, False, False),
    (
        "RayService suspended",
        ray_job() | {"kind": "RayService", "spec": {"rayClusterConfig": ray_cluster()["spec"], "suspend": True}},
        True,
        False,
    ),
    (
        "a suspended RayCronJob: its jobs are judged when they are made",
        ray_job() | {"kind": "RayCronJob", "spec": {"jobTemplate": ray_job()["spec"], "suspend": True}},
        False,
        False,
    ),
)
def test_where_the_maker_of_a_cluster_stands(manifest: JSON, suspended: bool, finished: bool) -> None:
    workload = read(manifest)
    assert (workload.suspended, workload.finished) == (suspended, finished)


@cases(
    "manifest, active",
    ("runs", ray_cluster(), True),
    ("suspended", ray_cluster(suspend=True), False),
    ("being deleted", ray_cluster(meta={"deletionTimestamp": "2026-11-21T10:00:00Z"}), False),
)
def test_whether_the_workload_wants_to_run(manifest: JSON, active: bool) -> None:
    assert read(manifest).active is active


def test_a_pods_role_is_its_group() -> None:
    assert RAY_CLUSTER.role_of(made(Pod, ray_pod("w-0", "workers"))) == "workers"


@cases(
    "labels",
    ("without a group", {}),
    ("a RayJob's submitter", {"ray.io/originated-from-cr-name": "job", "ray.io/originated-from-crd": "RayJob"}),
    (
        "what empties Redis at the end",
        {"ray.io/cluster": "demo", "ray.io/group": "headgroup", "ray.io/node-type": "redis-cleanup"},
    ),
)
def test_a_pod_that_is_no_member_has_no_role(labels: dict[str, str]) -> None:
    assert RAY_CLUSTER.role_of(made(Pod, pod("p", labels=labels))) is None


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
def test_kinds_are_known_by_group_version_and_kind(api_version: str, kind: str, known: bool) -> None:
    assert (kind_of(api_version, kind) is not None) is known


def test_a_pod_without_an_owner_has_no_workload() -> None:
    assert kind_of_owner(None) is None


def test_the_time_limit_of_a_schedule_stands_in_its_template() -> None:
    spec = {"jobTemplate": {**ray_job()["spec"], "activeDeadlineSeconds": 60}}
    (limit,) = read(ray_job() | {"kind": "RayCronJob", "spec": spec}).time_limits
    assert limit.path == "spec.jobTemplate.activeDeadlineSeconds"


def test_the_autoscaler_is_a_container_of_the_head_by_its_name() -> None:
    head = read(ray_cluster(enableInTreeAutoscaling=True)).roles[0].template.spec
    assert [one.name for one in head.containers][-1] == "autoscaler"


@pytest.mark.parametrize(("hosts", "pods"), [(1, None), (4, 4)])
def test_the_hosts_of_a_replica_are_of_use_only_together(hosts: int, pods: int | None) -> None:
    role = read(ray_cluster(workers(numOfHosts=hosts))).role("workers")
    assert role is not None
    assert (role.unit.pods if role.unit else None) == pods
