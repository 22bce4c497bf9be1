"""TrainJobs whose runtime is changed: what the Trainer made of the old one counts as long as it is there."""

import json

from muster.model.names import GANG, GATE, GROUP_NAME, WORKLOAD
from muster.workloads.jobset import JOB_SET
from muster.workloads.trainer import CLUSTER_TRAINING_RUNTIME, TrainingRuntime
from tests.support.cases import cases
from tests.support.controller.harness import Harness
from tests.support.controller.stores import workload_store
from tests.support.manifests.observed import JSON, NAMESPACE, made, pod, queue
from tests.support.manifests.owner_chains import owned
from tests.support.manifests.train_jobs import TRAINER, runtime, step, train_job

_JOB: JSON = {"apiVersion": "batch/v1", "kind": "Job", "name": "train-node-0", "uid": "uid-job", "controller": True}
_LARGE = step(
    "node", "trainer", pod={"spec": {"containers": [{"name": "node", "resources": {"requests": {"cpu": "9"}}}]}}
)


def _train_job() -> JSON:
    job = train_job()
    return {**job, "metadata": {**job["metadata"], "uid": "uid-train"}}


def _job_set(nodes: int = 2) -> JSON:
    template = {"spec": {**TRAINER["template"]["spec"], "parallelism": nodes, "completions": nodes}}
    job_set = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": NAMESPACE, "uid": "uid-set"},
        "spec": {"replicatedJobs": [{"name": "node", "replicas": 1, "template": template}]},
    }
    return owned(job_set, _train_job())


def _node(name: str) -> JSON:
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "train", "uid": "uid-train"}
    labels = {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/replicatedjob-name": "node", GANG: "train"}
    annotations = {GROUP_NAME: "train", WORKLOAD: json.dumps({**owner, "controller": True})}
    return pod(name, owner=_JOB, labels=labels, annotations=annotations, schedulingGates=[{"name": GATE}])


def _set_runtime(harness: Harness, manifest: JSON) -> None:
    harness.cluster.sources[CLUSTER_TRAINING_RUNTIME].apply("modified", made(TrainingRuntime, manifest))


@cases(
    "changed",
    ("more nodes", runtime(mlPolicy={"numNodes": 3})),
    ("larger nodes", runtime(_LARGE, mlPolicy={"numNodes": 2})),
    ("another name", runtime(step("other", "trainer"), mlPolicy={"numNodes": 2})),
)
async def test_a_train_job_that_waits_starts_as_it_was_made(changed: JSON) -> None:
    """The Trainer never changes the JobSet: the gang would wait for pods, or for room, that nobody needs."""
    workloads = [_train_job(), _job_set(), runtime(mlPolicy={"numNodes": 2})]
    harness = await Harness(workloads=workloads, pods=[_node("n-0"), _node("n-1")], queues=[queue(cpu="1")]).settled()
    _set_runtime(harness, changed)
    harness.set_queue(queue(cpu="2"))
    await harness.settle()
    assert harness.open_pods() == ["n-0", "n-1"]
    assert harness.client.groups["train"]["spec"]["minTaskMember"] == {"node": 2}


async def test_a_job_set_that_is_gone_is_made_anew_of_the_runtime() -> None:
    workloads = [_train_job(), _job_set(), runtime(mlPolicy={"numNodes": 3})]
    pods = [_node(f"n-{number}") for number in range(2)]
    harness = await Harness(workloads=workloads, pods=pods, queues=[queue(cpu="1")]).settled()
    assert harness.client.groups["train"]["spec"]["minMember"] == 2
    workload_store(harness.cluster, JOB_SET).apply("deleted", made(JOB_SET.decoded, _job_set()))
    await harness.settle()
    assert harness.client.groups["train"]["spec"]["minMember"] == 3
