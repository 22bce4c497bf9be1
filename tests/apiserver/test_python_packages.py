"""The recipes of docs/python.md with the packages of others, as they are on PyPI, and their defaults that it names."""

import json
from pathlib import Path
from typing import Any

import pytest

from muster.model.names import QUEUE_LABEL
from muster.model.resource import QUEUES
from muster.workloads.trainer import CLUSTER_TRAINING_RUNTIME, TRAIN_JOB
from tests.support.cluster.desk import Desk
from tests.support.manifests import applied
from tests.support.manifests.applied import ray_cluster
from tests.support.packages import Packages
from tests.support.pages.blocks import python

pytestmark = [pytest.mark.long, pytest.mark.part("commands")]

PAGE = "docs/python.md"
TRAIN_JOBS, RUNTIMES = TRAIN_JOB.resource, CLUSTER_TRAINING_RUNTIME.resource
RAY_JOB = """\
apiVersion: ray.io/v1
kind: RayJob
metadata: {name: train, labels: {volcano.sh/queue-name: research}}
spec:
  entrypoint: python train.py
  rayClusterSpec:
    headGroupSpec: {template: {spec: {containers: [{name: head, image: ray, resources: {requests: {cpu: 1}}}]}}}
"""


def recipe(begins: str, desk: Desk | None = None) -> str:
    """A block of the page, in the namespace of the test."""
    text = python(PAGE, begins)
    return text if desk is None else text.replace('"team"', f'"{desk.namespace}"')


@pytest.mark.usefixtures("every_kind")
def test_the_kubeflow_sdk_makes_a_gang_that_is_waited_for(desk: Desk, tmp_path: Path) -> None:
    sdk = Packages("kubeflow==0.5.0")
    where = {"KUBECONFIG": str(desk.testbed.kubeconfig), "HOME": str(tmp_path)}
    runtime = _runtime()
    desk.api.create(RUNTIMES.path(), runtime)
    desk.create(applied.queue("research", cpu="8"))
    try:
        made = sdk.run(tmp_path, recipe("from kubeflow.trainer import", desk), "print(name)", **where).split()[-1]
        job = desk.get(TRAIN_JOBS, made)
        assert job["metadata"]["labels"][QUEUE_LABEL] == "research"
        # The job's own controller would say so.
        done = {"type": "Complete", "status": "True", "reason": "Done", "lastTransitionTime": "2026-11-29T00:00:00Z"}
        status = {"status": {"conditions": [done | {"message": ""}]}}
        desk.patch(TRAIN_JOBS, made, status, "status")
        client = recipe("from kubeflow.trainer import", desk).partition("name = ")[0]
        waits = recipe('muster.wait(f"trainjob/', desk)
        sdk.run(tmp_path, client, f"name = {made!r}", waits, **where)
    finally:
        desk.delete(QUEUES, "research")
        desk.api.delete(RUNTIMES.path(name="torch-distributed"), missing_ok=True)
    defaults = sdk.run(
        tmp_path,
        "import inspect",
        "from kubeflow.trainer import TrainerClient",
        "print(inspect.signature(TrainerClient.wait_for_job_status).parameters['timeout'].default)",
    )
    assert f"| Kubeflow SDK, `wait_for_job_status` | {defaults.strip()} s |" in _page()


def test_the_kubernetes_client_gets_a_cause_for_each_finding(desk: Desk, tmp_path: Path) -> None:
    queue = desk.namespace
    desk.create(applied.queue(queue, cpu="2"))
    manifest = ray_cluster("large").label(QUEUE_LABEL, queue).workers(3, cpu="1").manifest()
    printed = Packages("kubeflow==0.5.0").run(
        tmp_path,
        f"manifest = {manifest!r}",
        recipe("import json\n\nfrom kubernetes", desk),
        KUBECONFIG=str(desk.testbed.kubeconfig),
    )
    desk.delete(QUEUES, queue)
    assert printed.startswith(f"ExceedsCapability metadata.labels[{QUEUE_LABEL}] gang ")


def test_hera_makes_the_resource_that_was_planned(tmp_path: Path) -> None:
    printed = Packages("hera==7.1.0").run(
        tmp_path,
        "import json",
        f"manifest = {RAY_JOB!r}",
        recipe("import muster\nfrom hera"),
        "print(json.dumps(workflow.to_dict()))",
    )
    (template,) = json.loads(printed)["spec"]["templates"]
    assert template["resource"]["manifest"] == RAY_JOB
    assert template["resource"]["successCondition"] == "status.jobDeploymentStatus == Complete"


def test_the_training_sdk_waits_as_long_as_the_page_says(tmp_path: Path) -> None:
    printed = Packages("kubeflow-training==1.9.4").run(
        tmp_path,
        "import inspect",
        "from kubeflow.training import TrainingClient",
        "print(inspect.signature(TrainingClient.wait_for_job_conditions).parameters['wait_timeout'].default)",
    )
    assert f"| Training SDK, `wait_for_job_conditions` | {printed.strip()} s |" in _page()


def test_a_job_for_ray_fails_at_once_without_a_dashboard(tmp_path: Path) -> None:
    """The rest of the recipe needs a cluster with real pods."""
    compile(recipe("import muster\nfrom ray"), PAGE, "exec")
    Packages("ray[default]==2.60.0").run(
        tmp_path,
        "from ray.job_submission import JobSubmissionClient",
        "try:\n    JobSubmissionClient('http://127.0.0.1:1')",
        "except ConnectionError:\n    raise SystemExit(0)\nraise AssertionError",
    )


def test_airflow_loads_the_dag_of_the_page_and_has_its_defaults(tmp_path: Path) -> None:
    """The provider for Kubernetes brings Airflow itself."""
    printed = Packages("apache-airflow==3.3.2", "apache-airflow-providers-cncf-kubernetes==10.25.0").run(
        tmp_path,
        recipe("import muster\nfrom airflow"),
        _AIRFLOW,
        AIRFLOW_HOME=str(tmp_path),
    )
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    assert found == {"task": "trained", "mode": "reschedule", "startup": 120, "schedule": None, "sensor": 7 * 86400}
    assert "that of `startup_timeout_seconds`, 120 s" in _page()


_AIRFLOW = """
import inspect, json
from airflow.configuration import conf
from airflow.providers.cncf.kubernetes.operators.pod import KubernetesPodOperator

(task,) = dag.tasks
options = inspect.signature(KubernetesPodOperator.__init__).parameters
found = {
    "task": task.task_id,
    "mode": task.mode,
    "startup": options["startup_timeout_seconds"].default,
    "schedule": options["schedule_timeout_seconds"].default,
    "sensor": conf.getint("sensors", "default_timeout"),
}
print(json.dumps(found))
"""


def _page() -> str:
    return (Path(__file__).parents[2] / PAGE).read_text()


def _runtime() -> dict[str, Any]:
    pods = {"containers": [{"name": "node", "image": "pytorch"}]}
    node = {
        "name": "node",
        "template": {
            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
            "spec": {"template": {"spec": pods}},
        },
    }
    return {
        "apiVersion": f"{RUNTIMES.group}/{RUNTIMES.version}",
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": "torch-distributed", "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "auto"}},
            "template": {"spec": {"replicatedJobs": [node]}},
        },
    }
