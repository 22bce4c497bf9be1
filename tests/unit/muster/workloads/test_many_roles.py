"""A manifest may have two hundred roles: judging it takes time in proportion, or one would stop the webhook."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from tests.support.manifests.families import judged
from tests.support.manifests.observed import JSON, NAMESPACE, pytorch_job, ray_cluster

TEMPLATE: JSON = {"spec": {"containers": [{}]}}
# Five times the roles take five times the steps. Compared each with every other they took twelve times the time.
PARTS = 5
FEW, MOST_STEPS = 40, 5.1


def _named(api_version: str, kind: str, **spec: object) -> JSON:
    labels = {"volcano.sh/queue-name": "q"}
    meta = {"name": "many", "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def _replicated(count: int, **fields: object) -> list[JSON]:
    return [{"name": f"r{n}", "template": {"spec": {"template": TEMPLATE}}, **fields} for n in range(count)]


_KINDS = pytest.mark.parametrize(
    "make",
    [
        pytest.param(
            lambda count: ray_cluster(*({"groupName": f"r{n}", "template": TEMPLATE} for n in range(count))),
            id="RayCluster",
        ),
        pytest.param(
            lambda count: pytorch_job(
                policy={"queue": "q"}, replicas={f"r{n}": {"template": TEMPLATE} for n in range(count)}
            ),
            id="PyTorchJob",
        ),
        pytest.param(
            lambda count: _named(
                "batch.volcano.sh/v1alpha1",
                "Job",
                tasks=[{"name": f"r{n}", "template": TEMPLATE} for n in range(count)],
            ),
            id="Volcano Job",
        ),
        pytest.param(
            lambda count: _named("jobset.x-k8s.io/v1alpha2", "JobSet", replicatedJobs=_replicated(count)), id="JobSet"
        ),
        pytest.param(
            lambda count: _named(
                "jobset.x-k8s.io/v1alpha2",
                "JobSet",
                replicatedJobs=_replicated(count, replicas=0),
                startupPolicy={"startupPolicyOrder": "InOrder"},
            ),
            id="JobSet in order, without pods",
        ),
    ],
)


@_KINDS
def test_many_roles_take_steps_in_proportion(make: Callable[[int], JSON]) -> None:
    """Lines of Python that are run, counted: the same on every machine, however busy."""
    judged(make(1))
    assert _steps(make(PARTS * FEW), PARTS * FEW) <= MOST_STEPS * _steps(make(FEW), FEW)


def _steps(manifest: JSON, roles: int) -> int:
    """How many lines of Python are run to judge it."""
    steps = 0

    def count(_: FrameType, event: str, __: Any) -> Any:  # noqa: ANN401 - as sys.settrace has it
        nonlocal steps
        steps += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        verdict = judged(manifest)
    finally:
        sys.settrace(before)
    assert verdict.gang is not None
    assert len(verdict.gang.roles) >= roles
    return steps
