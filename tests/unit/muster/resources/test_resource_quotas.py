"""What a ResourceQuota never holds is refused: a held pod is charged as any other."""

import pytest

from muster.model.findings import Reason
from muster.model.objects import InvalidObjectError
from muster.resources.amounts import as_text
from muster.resources.pod_defaults import PodDefaults
from muster.resources.resource_quotas import ResourceQuota, limits
from muster.validation.context import Context
from tests.support.cases import cases
from tests.support.manifests.families import judged
from tests.support.manifests.observed import (
    JSON,
    lines,
    made,
    pytorch_job,
    ray_cluster,
    resource_quota,
    template,
    workers,
)


def refusals(manifest: JSON, *quotas: JSON) -> tuple[str, ...]:
    verdict = judged(manifest, Context(pod_defaults=PodDefaults(quotas=[made(ResourceQuota, one) for one in quotas])))
    assert {one.reason for one in verdict.refusals} <= {Reason.EXCEEDS_RESOURCE_QUOTA}
    return lines(verdict.refusals)


@cases(
    "quota, needs, hard",
    ("cpu", resource_quota({"cpu": "2"}), "cpu 3", "cpu 2"),
    ("requests.cpu", resource_quota({"requests.cpu": "2500m"}), "cpu 3", "cpu 2500m"),
    ("pods", resource_quota({"pods": "2"}), "pods 3", "pods 2"),
    ("none", resource_quota({"count/pods": "0"}), "pods 3", "pods 0"),
    (
        "the smaller of two that mean the same",
        resource_quota({"cpu": "9", "requests.cpu": "1", "memory": "1Gi"}),
        "cpu 3 and memory 3Gi",
        "cpu 1 and memory 1Gi",
    ),
)
def test_a_gang_that_a_quota_never_holds_is_refused(quota: JSON, needs: str, hard: str) -> None:
    (line,) = refusals(ray_cluster(), quota)
    said = f'spec: gang "ray-demo-pg" needs {needs}, ResourceQuota "quota" has hard {hard}; '
    assert line == f"{said}lower the replicas or raise the quota"


@cases(
    "quota",
    ("exactly enough", resource_quota({"cpu": "3", "memory": "3Gi", "pods": "3"})),
    ("of limits that no pod has", resource_quota({"limits.ephemeral-storage": "1"})),
    ("of storage", resource_quota({"requests.storage": "0"})),
    ("of other objects", resource_quota({"count/jobs.batch": "0"})),
    ("of what it does not ask for", resource_quota({"requests.nvidia.com/gpu": "0"})),
    ("with a scope", {**resource_quota({}), "spec": {"hard": {"cpu": "1"}, "scopes": ["BestEffort"]}}),
    ("that cannot be read", {**resource_quota({}), "spec": {"hard": {"cpu": "no"}}}),
)
def test_a_quota_that_holds_it_or_counts_something_else_refuses_nothing(quota: JSON) -> None:
    assert refusals(ray_cluster(), quota) == ()


def test_extended_resources_are_counted_by_their_requests() -> None:
    gpu: JSON = {"spec": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]}}
    (line,) = refusals(ray_cluster(workers(template=gpu)), resource_quota({"requests.nvidia.com/gpu": "3"}))
    assert "needs nvidia.com/gpu 4" in line


def test_what_the_gang_starts_without_is_not_counted() -> None:
    """Further pods wait for the quota as for anything else."""
    nine = {"Worker": {"replicas": 9, "template": template()}}
    job = pytorch_job(policy={"queue": "q", "minAvailable": 2}, replicas=nine)
    assert refusals(job, resource_quota({"cpu": "2", "pods": "2"})) == ()
    assert len(refusals(job, resource_quota({"cpu": "1"}))) == 1


def test_pods_that_come_when_the_gang_runs_are_counted() -> None:
    """They are charged beside the others: the launcher that waits for its workers."""
    replicas = {"Launcher": {"replicas": 1, "template": template()}, "Worker": {"replicas": 2, "template": template()}}
    job: JSON = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": "pi", "namespace": "team", "labels": {"volcano.sh/queue-name": "q"}},
        "spec": {"launcherCreationPolicy": "WaitForWorkersReady", "mpiReplicaSpecs": replicas},
    }
    assert len(refusals(job, resource_quota({"pods": "2"}))) == 1
    assert refusals(job, resource_quota({"pods": "3"})) == ()


def test_every_quota_that_is_too_small_is_said() -> None:
    both = resource_quota({"cpu": "1"}, name="a"), resource_quota({"pods": "1"}, name="b")
    assert len(refusals(ray_cluster(), *both)) == 2


def test_the_keys_of_a_quota_that_mean_the_requests_of_pods() -> None:
    quota = made(ResourceQuota, resource_quota({"cpu": "1", "hugepages-2Mi": "2", "requests.ephemeral-storage": "3"}))
    assert as_text(limits(quota)) == {"cpu": "1", "ephemeral-storage": "3", "hugepages-2Mi": "2"}
    with pytest.raises(InvalidObjectError, match=r"spec\.hard\.cpu"):
        limits(made(ResourceQuota, {"spec": {"hard": {"cpu": "x"}}}))
