"""One small workload of every kind that `muster plan` knows: a leading role of one pod and another of two."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from muster.validation.context import Context
from muster.validation.workload import Verdict, judge
from muster.workloads import Reference, kind_of
from tests.support.manifests.observed import JSON, NAMESPACE, made, template

TRAINING = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "kubeflow.org/v1 MPIJob")
"""The kinds of the Training operator."""

_QUEUE = {"volcano.sh/queue-name": "q"}


@dataclass(frozen=True)
class Family:
    """A kind: `spec` makes its specification from two templates, `paths` say where those stand."""

    api_version: str
    kind: str
    spec: Callable[[JSON, JSON], JSON]
    paths: tuple[str, str]
    pod_group: str = "{}"

    def manifest(
        self,
        first: JSON | None = None,
        second: JSON | None = None,
        *,
        name: str = "demo",
        labels: Mapping[str, str] = _QUEUE,
        annotations: Mapping[str, str] | None = None,
        **meta: str,
    ) -> JSON:
        """The manifest; a template that is not given has a pod of 1 cpu and 1Gi."""
        spec = self.spec(template() if first is None else first, template() if second is None else second)
        metadata = {
            "name": name,
            "namespace": NAMESPACE,
            "labels": dict(labels),
            "annotations": dict(annotations or {}),
        }
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {**metadata, **meta}, "spec": spec}


def judged(manifest: JSON, context: Context | None = None) -> Verdict:
    """The verdict on a manifest of any kind; without a context nothing is judged by queues and classes."""
    kind = kind_of(manifest["apiVersion"], manifest["kind"])
    assert kind is not None

    def origin(reference: Reference) -> object:
        return made(reference.source.decoded, manifest["spec"]["madeFrom"])

    return judge(kind, made(kind.decoded, manifest), replace(context or Context(), origin=origin))


def _cluster(first: JSON, second: JSON) -> JSON:
    group = {"groupName": "w", "replicas": 2, "minReplicas": 2, "maxReplicas": 2, "template": second}
    return {"headGroupSpec": {"template": first}, "workerGroupSpecs": [group]}


def _replicas(field: str, leader: str) -> Callable[[JSON, JSON], JSON]:
    def spec(first: JSON, second: JSON) -> JSON:
        return {field: {leader: {"replicas": 1, "template": first}, "Worker": {"replicas": 2, "template": second}}}

    return spec


def _training(kind: str, field: str, leader: str = "Master", version: str = "v1") -> Family:
    return Family(
        f"kubeflow.org/{version}",
        kind,
        _replicas(field, leader),
        (f"spec.{field}.{leader}.template.spec", f"spec.{field}.Worker.template.spec"),
    )


def _job_set(first: JSON, second: JSON) -> JSON:
    return {
        "replicatedJobs": [
            {"name": "a", "replicas": 1, "template": {"spec": {"parallelism": 1, "template": first}}},
            {"name": "b", "replicas": 2, "template": {"spec": {"parallelism": 1, "template": second}}},
        ]
    }


def _train_job(first: JSON, second: JSON) -> JSON:
    """With its runtime in a field that nobody reads, where `judged` finds it."""
    return {"runtimeRef": {"name": "torch"}, "madeFrom": {"spec": {"template": {"spec": _job_set(first, second)}}}}


def _tasks(first: JSON, second: JSON) -> JSON:
    tasks = [{"name": "a", "replicas": 1, "template": first}, {"name": "b", "replicas": 2, "template": second}]
    return {"queue": "q", "schedulerName": "volcano", "tasks": tasks}


def _ray(kind: str, path: str, wrap: Callable[[JSON], JSON], pod_group: str) -> Family:
    return Family(
        "ray.io/v1",
        kind,
        lambda first, second: wrap(_cluster(first, second)),
        (f"{path}.headGroupSpec.template.spec", f"{path}.workerGroupSpecs[0].template.spec"),
        pod_group,
    )


FAMILIES = (
    _ray("RayCluster", "spec", lambda cluster: cluster, "ray-{}-pg"),
    _ray("RayJob", "spec.rayClusterSpec", lambda cluster: {"rayClusterSpec": cluster}, "ray-{}-xxxxx-pg"),
    _ray("RayService", "spec.rayClusterConfig", lambda cluster: {"rayClusterConfig": cluster}, "ray-{}-xxxxx-pg"),
    _ray(
        "RayCronJob",
        "spec.jobTemplate.rayClusterSpec",
        lambda cluster: {"jobTemplate": {"rayClusterSpec": cluster}},
        "ray-{}-xxxxx-xxxxx-pg",
    ),
    _training("PyTorchJob", "pytorchReplicaSpecs"),
    _training("TFJob", "tfReplicaSpecs", "Chief"),
    _training("XGBoostJob", "xgbReplicaSpecs"),
    _training("PaddleJob", "paddleReplicaSpecs"),
    _training("JAXJob", "jaxReplicaSpecs"),
    _training("MPIJob", "mpiReplicaSpecs", "Launcher"),
    _training("MPIJob", "mpiReplicaSpecs", "Launcher", "v2beta1"),
    Family(
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        _job_set,
        (
            "spec.replicatedJobs[0].template.spec.template.spec",
            "spec.replicatedJobs[1].template.spec.template.spec",
        ),
    ),
    Family(
        "trainer.kubeflow.org/v1alpha1",
        "TrainJob",
        _train_job,
        (
            "ClusterTrainingRuntime torch: spec.template.spec.replicatedJobs[0].template.spec.template.spec",
            "ClusterTrainingRuntime torch: spec.template.spec.replicatedJobs[1].template.spec.template.spec",
        ),
    ),
    Family(
        "batch.volcano.sh/v1alpha1",
        "Job",
        _tasks,
        ("spec.tasks[0].template.spec", "spec.tasks[1].template.spec"),
        "{}-xxxxx",
    ),
)


def each(*without: str) -> pytest.MarkDecorator:
    """Every family, but those of these kinds."""
    return _parametrized([one for one in FAMILIES if not _named(one, without)])


def each_of(*names: str) -> pytest.MarkDecorator:
    """The families of these kinds, each of which there is."""
    assert [name for name in names if not any(_named(one, (name,)) for one in FAMILIES)] == []
    return _parametrized([one for one in FAMILIES if _named(one, names)])


def _named(family: Family, names: Sequence[str]) -> bool:
    return family.kind in names or f"{family.api_version} {family.kind}" in names


def _parametrized(chosen: Sequence[Family]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("family", chosen, ids=lambda one: f"{one.kind} {one.api_version}")
