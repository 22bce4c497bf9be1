"""JobSets, and TrainJobs with their runtimes, written in one line."""

from muster.model.names import QUEUE_LABEL
from tests.support.cluster.recorder import Manifest
from tests.support.manifests.applied import RUN_SECONDS

_ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"


def replicated(name: str, *, replicas: int = 1, pods: int = 1, step: str = "", **rest: object) -> Manifest:
    """A replicated job: so many Jobs of so many pods of 1 cpu; `step` is what it is for the Trainer."""
    # kwok ends the pods of any Job at once, unless told otherwise.
    container = {
        "name": step if "initializer" in step else "node",
        "image": "none",
        "resources": {"requests": {"cpu": "1"}},
    }
    template = {
        "metadata": {"annotations": {RUN_SECONDS: "3600"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    job: Manifest = {"spec": {"parallelism": pods, "completions": pods, "backoffLimit": 6, "template": template}}
    if step:
        job["metadata"] = {"labels": {_ANCESTOR: step}}
    return {"name": name, "replicas": replicas, "template": job, **rest}


def job_set(name: str, queue: str, *jobs: Manifest, **spec: object) -> Manifest:
    """A JobSet in a queue; further words are fields of its specification."""
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, "labels": {QUEUE_LABEL: queue}},
        "spec": {"replicatedJobs": list(jobs), **spec},
    }


def train_job(name: str, runtime: str, labels: dict[str, str], nodes: int = 2) -> Manifest:
    """A TrainJob of so many nodes, of a runtime in its namespace."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": name, "labels": labels},
        "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": runtime}, "trainer": {"numNodes": nodes}},
    }


def runtime(name: str, *jobs: Manifest, **template: object) -> Manifest:
    """A TrainingRuntime of these replicated jobs; further words are fields of its JobSet template."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainingRuntime",
        "metadata": {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {"mlPolicy": {"numNodes": 1}, "template": {"spec": {"replicatedJobs": list(jobs)}, **template}},
    }


def trainer() -> Manifest:
    """The replicated job whose pods are a TrainJob's nodes."""
    return replicated("node", step="trainer")
