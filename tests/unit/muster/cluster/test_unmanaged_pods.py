"""Which pods came without muster."""

from typing import Any

from muster.cluster.cluster import Cluster
from muster.cluster.stores import UnmanagedPods
from muster.model.objects import ObjectMeta
from muster.model.pods import Pod
from muster.queueing.ledger import GangKey
from muster.workloads import MAKERS, Kind
from muster.workloads.jobset import JOB_SET
from muster.workloads.kubeflow import PYTORCH_JOB
from muster.workloads.mpi import MPI_JOB
from muster.workloads.ray import RAY_CLUSTER
from muster.workloads.trainer import TRAIN_JOB
from tests.support.cases import cases
from tests.support.controller.stores import fill_outsiders
from tests.support.manifests.observed import JSON, KEY, NAMESPACE, made, old_pod, pod, pytorch_pod


def knowing(*pods: JSON) -> UnmanagedPods:
    unmanaged_pods = UnmanagedPods()
    fill_outsiders(unmanaged_pods, [made(Pod, item) for item in pods])
    return unmanaged_pods


def named(name: str = "demo", uid: str = "uid-demo", created: str = "") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=NAMESPACE, uid=uid, created=created)


def names(found: list[Pod]) -> list[str]:
    return [pod.metadata.name for pod in found]


def test_those_of_a_workload_are_found_by_name() -> None:
    unmanaged_pods = knowing(old_pod("demo-w-1"), old_pod("demo-w-0"))
    assert names(unmanaged_pods.of(RAY_CLUSTER, named())) == ["demo-w-0", "demo-w-1"]
    assert unmanaged_pods.of(RAY_CLUSTER, named(uid="uid-next")) == []
    assert unmanaged_pods.of(RAY_CLUSTER, named("other", "uid-other")) == []


MADE, LATER = "2026-11-21T10:00:00Z", "2026-11-21T10:00:05Z"


def of_job(name: str, labels: dict[str, str], created: str = MADE) -> JSON:
    """A pod that a Job controls."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "any", "uid": "uid-job", "controller": True}
    return pod(name, owner=owner, labels=labels, meta={"creationTimestamp": created}, schedulerName="default-scheduler")


SET_LABELS = {"jobset.sigs.k8s.io/jobset-name": "demo", "jobset.sigs.k8s.io/replicatedjob-name": "work"}
LAUNCHER_LABELS = {"training.kubeflow.org/job-name": "demo", "training.kubeflow.org/job-role": "launcher"}


@cases(
    "kind, labels",
    ("JobSet", JOB_SET, SET_LABELS),
    ("TrainJob, which gives its JobSet its name", TRAIN_JOB, SET_LABELS),
    ("the launcher of an MPIJob", MPI_JOB, LAUNCHER_LABELS),
)
def test_those_that_a_job_controls_are_found_by_their_labels_and_not_those_of_a_former_workload(
    kind: Kind, labels: dict[str, str]
) -> None:
    """Nothing else on them says whose they are; a pod is not older than its workload."""
    unmanaged_pods = knowing(of_job("a", labels), of_job("b", labels, LATER))
    assert names(unmanaged_pods.of(kind, named(created=MADE))) == ["a", "b"]
    assert names(unmanaged_pods.of(kind, named(uid="next", created=LATER))) == ["b"]
    assert unmanaged_pods.of(kind, named("other", created=MADE)) == []
    assert unmanaged_pods.of(PYTORCH_JOB, named(created=MADE)) == []


def test_a_job_of_nobodys_gang_has_no_say() -> None:
    """KubeRay cleans up with a Job, and its pods have the cluster's label."""
    unmanaged_pods = knowing(of_job("a", {"ray.io/cluster": "demo", "ray.io/group": "workers"}))
    assert unmanaged_pods.of(RAY_CLUSTER, named(created=MADE)) == []


@cases(
    "old",
    ("succeeded", old_pod("p", phase="Succeeded")),
    ("failed", old_pod("p", phase="Failed")),
    ("being deleted", old_pod("p", meta={"deletionTimestamp": "2026-11-21T10:00:00Z"})),
    ("nobody's", old_pod("p", meta={"ownerReferences": []})),
    ("no role", old_pod("p", meta={"labels": {"ray.io/cluster": "demo"}})),
)
def test_what_does_not_run_or_is_no_member_does_not_count(old: JSON) -> None:
    assert knowing(old).of(RAY_CLUSTER, named()) == []


def test_changes_are_told_by_gang() -> None:
    unmanaged_pods = knowing()
    told: list[GangKey] = []
    unmanaged_pods.subscribe(told.append)
    fill_outsiders(unmanaged_pods, [made(Pod, old_pod("demo-w-0"))])
    fill_outsiders(unmanaged_pods, [])
    assert told == [KEY, KEY]


def test_what_a_kubelet_says_of_a_pod_is_no_change_for_its_gang() -> None:
    unmanaged_pods = knowing(old_pod("demo-w-0", meta={"resourceVersion": "1"}, phase="Pending"))
    told: list[GangKey] = []
    unmanaged_pods.subscribe(told.append)

    def show(version: str, bound: str = "", **rest: Any) -> list[GangKey]:  # noqa: ANN401 - whatever a pod has
        told.clear()
        seen = old_pod("demo-w-0", meta={"resourceVersion": version}, **rest)
        seen["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": bound} if bound else {}
        fill_outsiders(unmanaged_pods, [made(Pod, seen)])
        return told

    assert show("2", phase="Running") == []
    # A scheduler has bound it to a PodGroup, and to a node; and it ends.
    assert show("3", "other", phase="Running") == [KEY]
    assert show("4", "other", phase="Running", nodeName="n") == [KEY]
    assert show("5", "other", phase="Succeeded", nodeName="n") == [KEY]


def test_a_pod_that_another_workload_of_the_name_takes_over_is_a_change_for_its_gang() -> None:
    """An operator takes the pods of one that was deleted without them; a relist shows both steps as one."""
    unmanaged_pods = knowing(old_pod("demo-w-0", meta={"resourceVersion": "1"}))
    told: list[GangKey] = []
    unmanaged_pods.subscribe(told.append)
    taken = old_pod("demo-w-0", meta={"resourceVersion": "2"})
    taken["metadata"]["ownerReferences"][0]["uid"] = "uid-next"
    fill_outsiders(unmanaged_pods, [made(Pod, taken)])
    assert names(unmanaged_pods.of(RAY_CLUSTER, named(uid="uid-next"))) == ["demo-w-0"]
    assert told == [KEY]


def test_each_operators_pods_are_asked_for_by_label_without_those_of_muster_and_the_finished() -> None:
    watched = (one for one in Cluster().watched() if one.label_selector.endswith("!muster.dev/gang"))
    assert {(one.label_selector, one.field_selector) for one in watched} == {
        (f"{label},!muster.dev/gang", "status.phase!=Succeeded,status.phase!=Failed") for label in MAKERS
    }


def test_a_member_by_musters_hand_is_none() -> None:
    member = pytorch_pod("train-worker-0", held=False)
    assert knowing(member).of(PYTORCH_JOB, named("train", "uid-train")) == []
