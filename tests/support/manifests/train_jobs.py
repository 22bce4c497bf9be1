"""TrainJobs and the runtimes they refer to, and what muster reads and judges of both."""

from collections.abc import Mapping

from muster.gangs.intent import Defaults, IntentScope
from muster.model.objects import ObjectMeta
from muster.schedulers import SCHEDULERS
from muster.validation.context import Context
from muster.validation.workload import Verdict, judge
from muster.workloads import Reference, Workload
from muster.workloads.trainer import CLUSTER_TRAINING_RUNTIME, TRAIN_JOB, TRAINING_RUNTIME, TrainingRuntime, TrainJob
from tests.support.manifests.observed import JSON, NAMESPACE, QUEUE_LABELS, made

QUEUE = "volcano.sh/queue-name"
RUNTIME = "ClusterTrainingRuntime torch"
_STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
DEFAULTS = Defaults(schedulers=SCHEDULERS)


def step(name: str, of: str = "", *, pod: JSON | None = None, **rest: object) -> JSON:
    """A replicated job; `of` is the step of a TrainJob that it is, `rest` fields of its Job."""
    container = {"name": of if of.endswith("initializer") else "node", "resources": {"requests": {"cpu": "1"}}}
    pod = pod or {"spec": {"containers": [container]}}
    labels = {"metadata": {"labels": {_STEP: of}}} if of else {}
    return {"name": name, "template": {**labels, "spec": {"template": pod, **rest}}}


TRAINER = step("node", "trainer")


def runtime(*jobs: JSON, meta: JSON | None = None, kind: str = "ClusterTrainingRuntime", **spec: object) -> JSON:
    """A runtime of one replicated job that trains, where none are given; `meta` is its template's metadata."""
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": kind,
        "metadata": {"name": "torch", **({"namespace": NAMESPACE} if kind == "TrainingRuntime" else {})},
        "spec": {
            "mlPolicy": {"torch": {}},
            **spec,
            "template": {"metadata": meta or {}, "spec": {"replicatedJobs": list(jobs or (TRAINER,))}},
        },
    }


def patch(*jobs: JSON, meta: JSON | None = None) -> JSON:
    """A runtimePatch: of these replicated jobs, and of the metadata of the JobSet."""
    template = {"metadata": meta or {}, "spec": {"replicatedJobs": list(jobs)}}
    return {"manager": "example.com/me", "trainingRuntimeSpec": {"template": template}}


def train_job(
    trainer: JSON | None = None,
    *,
    labels: Mapping[str, str] = QUEUE_LABELS,
    annotations: Mapping[str, str] | None = None,
    status: JSON | None = None,
    **spec: object,
) -> JSON:
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": "train",
            "namespace": NAMESPACE,
            "labels": dict(labels),
            "annotations": dict(annotations or {}),
        },
        "spec": {"runtimeRef": {"name": "torch"}, "trainer": trainer or {}, **spec},
        "status": status or {},
    }


def read(job: JSON, of: JSON) -> Workload:
    origin = TRAIN_JOB.origin
    assert origin is not None
    return TRAIN_JOB.read(origin.joined(made(TrainJob, job), made(TrainingRuntime, of)))


def judged(job: JSON, of: JSON | None = None, namespace: ObjectMeta | None = None) -> Verdict:
    """The verdict where there is that runtime, or none."""
    known = {}
    if of is not None:
        source = TRAINING_RUNTIME if of["kind"] == "TrainingRuntime" else CLUSTER_TRAINING_RUNTIME
        known[Reference(source, of["metadata"].get("namespace", ""), "torch")] = made(TrainingRuntime, of)
    scope = IntentScope(namespace=namespace or ObjectMeta(name=NAMESPACE))
    return judge(TRAIN_JOB, made(TrainJob, job), Context(origin=known.get, scope=scope, defaults=DEFAULTS))
