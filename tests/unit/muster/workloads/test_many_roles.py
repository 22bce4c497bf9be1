"""A manifest may have ten thousands of roles: judging it takes time in proportion, or one would stop the webhook."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.manifests.families import judged
from tests.support.manifests.objects import JSON, NAMESPACE, pytorch_job, ray_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

COUNT = 15_000
TEMPLATE: JSON = {"spec": {"containers": [{}]}}
# Of five times the roles, compared each with every other: twelve times the processor's time.
PARTS, MOST = 5, 8
# A busy machine takes longer for the one and not for the other, but not each time.
TRIES = 10


def _named(api_version: str, kind: str, **spec: object) -> JSON:
    labels = {"volcano.sh/queue-name": "q"}
    meta = {"name": "many", "namespace": NAMESPACE, "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def _replicated(count: int, **fields: object) -> list[JSON]:
    return [{"name": f"r{n}", "template": {"spec": {"template": TEMPLATE}}, **fields} for n in range(count)]


@pytest.mark.parametrize(
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
def test_many_roles_take_time_in_proportion(make: Callable[[int], JSON]) -> None:
    part, whole = make(COUNT // PARTS), make(COUNT)
    assert any(_seconds(whole, COUNT) < MOST * _seconds(part, COUNT // PARTS) for _ in range(TRIES))


def _seconds(manifest: JSON, roles: int) -> float:
    """How long the processor is busy with judging it, and not with looking through what other tests have left."""
    gc.disable()
    try:
        start = time.process_time()
        verdict = judged(manifest)
        seconds = time.process_time() - start
    finally:
        gc.enable()
    assert verdict.gang is not None
    assert len(verdict.gang.roles) >= roles
    return seconds
