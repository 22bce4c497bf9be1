"""The jobs of the Training operator: one family, one way through. TFJob is story C1."""

import pytest

from hack.testbed import Testbed
from muster.model.names import QUEUE_LABEL
from muster.workloads import Kind
from muster.workloads.kubeflow import JAX_JOB, PADDLE_JOB, XGBOOST_JOB
from tests.support.cluster.gang_lifecycle import goes_through_its_life
from tests.support.cluster.recorder import Manifest
from tests.support.cluster.scene import open_scene

pytestmark = pytest.mark.part("kinds")

# muster reads all of them with the same few lines, and tests/conformance has a case of each.
_LONG = pytest.mark.long


def _replica(container: str, count: int) -> Manifest:
    pod = {"containers": [{"name": container, "image": "none", "resources": {"requests": {"cpu": "1"}}}]}
    return {"replicas": count, "restartPolicy": "Never", "template": {"spec": pod}}


def _job(kind: Kind, name: str, specs: Manifest, queue: str) -> Manifest:
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind.kind,
        "metadata": {"name": name, "labels": {QUEUE_LABEL: queue}},
        "spec": specs,
    }


@pytest.mark.parametrize(
    ("kind", "field", "container", "roles"),
    [
        pytest.param(
            XGBOOST_JOB, "xgbReplicaSpecs", "xgboost", {"Master": 1, "Worker": 2}, id="XGBoostJob", marks=_LONG
        ),
        pytest.param(
            PADDLE_JOB, "paddleReplicaSpecs", "paddle", {"Master": 1, "Worker": 2}, id="PaddleJob", marks=_LONG
        ),
        pytest.param(JAX_JOB, "jaxReplicaSpecs", "jax", {"Worker": 3}, id="JAXJob"),
    ],
)
@pytest.mark.usefixtures("muster")
def test_jobs_wait_run_and_end_as_gangs(
    testbed: Testbed, kind: Kind, field: str, container: str, roles: dict[str, int]
) -> None:
    with open_scene(testbed, f"kind-{kind.plural}", kinds=(kind.resource,)) as scene:
        queue = scene.queue(cpu="5")
        specs = {field: {role: _replica(container, count) for role, count in roles.items()}}
        goes_through_its_life(
            scene,
            lambda name: _job(kind, name, specs, queue),
            pods=sum(roles.values()),
        )
