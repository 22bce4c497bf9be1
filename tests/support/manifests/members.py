"""Every kind of docs/gangs.md as its operator leaves it: who owns a member, and what the member carries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from hack.testbed.crds import read_crd
from muster.model.names import GANG, GANG_SIZE
from tests.support.cluster.desk import PATIENCE, Manifest
from tests.support.manifests.applied import ray_cluster
from tests.support.manifests.owner_chains import chain, member

_CRDS = {
    "github.com/ray-project/kuberay/ray-operator": "config/crd/bases/ray.io_*.yaml",
    "github.com/kubeflow/training-operator": "manifests/base/crds/kubeflow.org_[!m]*.yaml",
    "github.com/kubeflow/mpi-operator": "manifests/base/kubeflow.org_mpijobs.yaml",
    "sigs.k8s.io/jobset": "config/components/crd/bases/*.yaml",
    "github.com/kubeflow/trainer/v2": "manifests/base/crds/trainer*.yaml",
}
_MPI_JOBS = "mpijobs.kubeflow.org"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RAY, _KUBEFLOW, _TRAINER = "ray.io/v1", "kubeflow.org/v1", "trainer.kubeflow.org/v1alpha1"

TEMPLATE: Manifest = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "none"}]}}
"""The pod template of every role, where a test has no other."""


def serve(bare: Testbed, files: Iterable[Path]) -> None:
    """Install CRDs, and wait until every version of every one is served."""
    api = bare.api()

    def install(file: Path) -> None:
        name, content = read_crd(file)
        api.apply(f"{DEFINITIONS}/{name}", content)

    api.each(install, files)
    wait_for("the CRDs to be served", lambda: _all_served(api), PATIENCE)


def _all_served(api: Api) -> bool:
    """Whether the apiserver serves what its CRDs say; by their conditions it may do so a moment later."""
    kinds = [
        (f"/apis/{spec['group']}/{version['name']}", spec["names"]["plural"])
        for spec in (crd["spec"] for crd in api.get(DEFINITIONS)["items"])
        for version in spec["versions"]
        if version["served"]
    ]
    # One that is not served is NotFoundError, for which the caller waits; discovery may tell of it later still.
    return all(
        "items" in api.get(f"{path}/{plural}?limit=1")
        and plural in {found["name"] for found in api.get(path)["resources"]}
        for path, plural in kinds
    )


def serve_all(bare: Testbed) -> None:
    """Install all CRDs of all operators, with the MPI operator's MPIJob."""
    serve(bare, _files(bare, *_CRDS))


@contextmanager
def serving_v1(bare: Testbed) -> Iterator[None]:
    """Serve the Training operator's MPIJob in place of the MPI operator's, whose CRD has the same name."""
    theirs = bare.module_dir("github.com/kubeflow/training-operator") / "manifests/base/crds/kubeflow.org_mpijobs.yaml"
    withdraw(bare, _MPI_JOBS)
    serve(bare, [theirs])
    yield
    withdraw(bare, _MPI_JOBS)
    serve(bare, _files(bare, "github.com/kubeflow/mpi-operator"))


def withdraw(bare: Testbed, *names: str) -> None:
    """Remove CRDs with all of their objects, and wait until nothing of them is left."""
    api = bare.api()
    for name in names:
        api.delete(f"{DEFINITIONS}/{name}", missing_ok=True)
    for name in names:
        wait_for("its end", lambda path=f"{DEFINITIONS}/{name}": not api("GET", path).ok, PATIENCE)  # type: ignore[misc]


def _files(bare: Testbed, *modules: str) -> list[Path]:
    return [file for module in modules for file in bare.module_dir(module).glob(_CRDS[module])]


@dataclass(frozen=True, slots=True)
class Chain:
    """A kind: its owners from the topmost down, by a name and a pod template; labels, PodGroup and role of a member.

    Of a `plain` kind no owner is a workload: the pod speaks for itself.
    """

    title: str
    owners: Callable[[str, Manifest], list[Manifest]]
    labels: Callable[[str], dict[str, str]]
    group: str
    role: str
    plain: bool = False

    def made(
        self, create: Callable[[Manifest], Manifest], name: str, said: Mapping[str, str], template: Manifest = TEMPLATE
    ) -> Member:
        """Create the owners. Only the topmost says anything, as where an operator hands nothing down, or the pod."""
        owners = self.owners(name, template)
        if self.plain:
            owner = chain(owners, create) if owners else None
            return Member(self, name, owner, {**self.labels(name), **said}, {GANG_SIZE: "2"})
        top = {**owners[0], "metadata": {**owners[0]["metadata"], "labels": dict(said)}}
        if top["kind"] == "TrainJob":
            create(_runtime(name, template))
        return Member(self, name, chain([top, *owners[1:]], create), self.labels(name), {})


@dataclass(frozen=True, slots=True)
class Member:
    """What a pod of one workload is made from."""

    chain: Chain
    name: str
    owner: Manifest | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The PodGroup of its gang."""
        return self.chain.group.format(self.name)

    def pod(self, **spec: Any) -> Manifest:  # noqa: ANN401 - JSON
        """The pod as its operator would make it; further words are fields of its specification."""
        return member(self.owner, self.labels, self.annotations, **spec)


def _object(api_version: str, kind: str, name: str, **spec: object) -> Manifest:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _job(name: str, template: Manifest) -> Manifest:
    return _object("batch/v1", "Job", name, template=template)


def _job_set(name: str, template: Manifest) -> Manifest:
    replicated = {"name": "work", "replicas": 1, "template": {"spec": {"parallelism": 2, "template": template}}}
    return _object("jobset.x-k8s.io/v1alpha2", "JobSet", name, replicatedJobs=[replicated])


def _training(kind: str, field_: str, *roles: str, version: str = _KUBEFLOW) -> Chain:
    def owners(name: str, template: Manifest) -> list[Manifest]:
        specs = {role: {"replicas": 1, "template": template} for role in roles}
        return [_object(version, kind, name, **{field_: specs})]

    role = roles[-1].lower()
    return Chain(kind, owners, lambda name: _kubeflow(name, "replica-type", role), "{}", role)


def mpi_job(name: str, template: Manifest = TEMPLATE) -> Manifest:
    """An MPIJob of the MPI operator: a launcher and two workers."""
    specs = {"Launcher": {"replicas": 1, "template": template}, "Worker": {"replicas": 2, "template": template}}
    return _object("kubeflow.org/v2beta1", "MPIJob", name, mpiReplicaSpecs=specs)


def _cluster(name: str, template: Manifest) -> Manifest:
    manifest = ray_cluster(name).workers(2).manifest()
    for one in (manifest["spec"]["headGroupSpec"], *manifest["spec"]["workerGroupSpecs"]):
        one["template"] = template
    return manifest


def _cluster_spec(template: Manifest) -> Any:  # noqa: ANN401 - JSON
    return _cluster("", template)["spec"]


def _ray_job(name: str, template: Manifest) -> Manifest:
    return _object(_RAY, "RayJob", name, entrypoint="true", rayClusterSpec=_cluster_spec(template))


def _cron_job(name: str, template: Manifest) -> Manifest:
    job = {"entrypoint": "true", "rayClusterSpec": _cluster_spec(template)}
    return _object(_RAY, "RayCronJob", name, schedule="0 * * * *", jobTemplate=job)


def _ray_service(name: str, template: Manifest) -> Manifest:
    return _object(_RAY, "RayService", name, rayClusterConfig=_cluster_spec(template))


def _train_job(name: str, _: Manifest) -> Manifest:
    ref = {"apiGroup": "trainer.kubeflow.org", "kind": "TrainingRuntime", "name": name}
    return _object(_TRAINER, "TrainJob", name, runtimeRef=ref)


def _runtime(name: str, template: Manifest) -> Manifest:
    labels = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
    job = {"name": "work", "template": {"metadata": {"labels": labels}, "spec": {"template": template}}}
    return _object(
        _TRAINER, "TrainingRuntime", name, mlPolicy={"numNodes": 2}, template={"spec": {"replicatedJobs": [job]}}
    )


def _ray(cluster: str) -> dict[str, str]:
    return {"ray.io/cluster": cluster, "ray.io/group": "worker", "ray.io/node-type": "worker"}


def _kubeflow(job: str, key: str, role: str) -> dict[str, str]:
    return {"training.kubeflow.org/job-name": job, f"training.kubeflow.org/{key}": role}


def _of_set(name: str) -> dict[str, str]:
    return {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/replicatedjob-name": "work"}


MPI_JOB_V1 = _training("MPIJob", "mpiReplicaSpecs", "Launcher", "Worker")
PLAIN = (
    Chain("plain pod", lambda _, __: [], lambda n: {GANG: n}, "{}", "member", plain=True),
    Chain("plain pod of a Job", lambda n, t: [_job(n, t)], lambda n: {GANG: n}, "{}", "member", plain=True),
)
"""Pods that opt in by themselves."""

WITH_WORKLOAD = (
    Chain("RayCluster", lambda n, t: [_cluster(n, t)], _ray, "ray-{}-pg", "worker"),
    Chain(
        "RayJob",
        lambda n, t: [_ray_job(n, t), _cluster(f"{n}-x", t)],
        lambda n: _ray(f"{n}-x"),
        "ray-{}-x-pg",
        "worker",
    ),
    Chain(
        "RayService",
        lambda n, t: [_ray_service(n, t), _cluster(f"{n}-x", t)],
        lambda n: _ray(f"{n}-x"),
        "ray-{}-x-pg",
        "worker",
    ),
    Chain(
        "RayCronJob",
        lambda n, t: [_cron_job(n, t), _ray_job(f"{n}-x", t), _cluster(f"{n}-x-y", t)],
        lambda n: _ray(f"{n}-x-y"),
        "ray-{}-x-y-pg",
        "worker",
    ),
    _training("PyTorchJob", "pytorchReplicaSpecs", "Master", "Worker"),
    _training("TFJob", "tfReplicaSpecs", "Chief", "PS", "Worker"),
    _training("XGBoostJob", "xgbReplicaSpecs", "Master", "Worker"),
    _training("PaddleJob", "paddleReplicaSpecs", "Worker"),
    _training("JAXJob", "jaxReplicaSpecs", "Worker"),
    Chain(
        "worker of an MPIJob",
        lambda n, t: [mpi_job(n, t)],
        lambda n: _kubeflow(n, "job-role", "worker"),
        "{}",
        "worker",
    ),
    Chain(
        "launcher of an MPIJob",
        lambda n, t: [mpi_job(n, t), _job(f"{n}-launcher", t)],
        lambda n: _kubeflow(n, "job-role", "launcher"),
        "{}",
        "launcher",
    ),
    Chain("JobSet", lambda n, t: [_job_set(n, t), _job(f"{n}-work-0", t)], _of_set, "{}", "work"),
    Chain(
        "TrainJob",
        lambda n, t: [_train_job(n, t), _job_set(n, t), _job(f"{n}-work-0", t)],
        _of_set,
        "{}",
        "work",
    ),
)
"""The kinds with a workload, MPIJob v1 apart: no cluster serves both of its CRDs.

tests/unit/webhook/test_chains.py says which kind has no chain yet.
"""
