"""A manifest may have ten thousands of roles: judging it takes time in proportion, or one would stop the webhook."""

from __future__ import annotations

import time

import pytest

from tests.unit.builders import JSON, NAMESPACE, pytorch_job, ray_cluster
from tests.unit.families import judged

COUNT = 15_000
TEMPLATE: JSON = {"spec": {"containers": [{}]}}
# Of the processor's time, so that a busy machine is none of its business: three times what it takes, and less than what
# comparing every role with every other took.
SECONDS = 2.5


def _named(api_version: str, kind: str, **spec: object) -> JSON:
    labels = {"volcano.sh/queue-name": "q"}
    meta = {"name": "many", "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def _replicated(**fields: object) -> list[JSON]:
    return [{"name": f"r{n}", "template": {"spec": {"template": TEMPLATE}}, **fields} for n in range(COUNT)]


@pytest.mark.parametrize(
    "manifest",
    [
        pytest.param(
            ray_cluster(*({"groupName": f"r{n}", "template": TEMPLATE} for n in range(COUNT))), id="RayCluster"
        ),
        pytest.param(
            pytorch_job(policy={"queue": "q"}, replicas={f"r{n}": {"template": TEMPLATE} for n in range(COUNT)}),
            id="PyTorchJob",
        ),
        pytest.param(
            _named(
                "batch.volcano.sh/v1alpha1",
                "Job",
                tasks=[{"name": f"r{n}", "template": TEMPLATE} for n in range(COUNT)],
            ),
            id="Volcano Job",
        ),
        pytest.param(_named("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=_replicated()), id="JobSet"),
        pytest.param(
            _named(
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                replicatedJobs=_replicated(replicas=0),
                startupPolicy={"startupPolicyOrder": "InOrder"},
            ),
            id="JobSet in order, without pods",
        ),
    ],
)
def test_many_roles_take_time_in_proportion(manifest: JSON) -> None:
    start = time.process_time()
    verdict = judged(manifest)
    assert time.process_time() - start < SECONDS
    assert verdict.gang is not None
    assert len(verdict.gang.roles) >= COUNT
