"""How long gangs run: which limits of operators bound that, what users and muster say of it, and when claims end."""

from typing import Any

import pytest

from muster.cluster.observe import observe
from muster.model.names import ADMITTED, ADMITTED_AT, GANG, GANG_SIZE, GANG_TIME_LIMIT, GROUP_NAME
from muster.model.times import seconds_of
from muster.planning.candidate import end_of, run_of
from muster.planning.snapshot import AdmissionRecord
from muster.queueing.entries import End, EndKind, Run
from muster.queueing.ledger import GangKey
from tests.support.cases import cases
from tests.support.controller.stores import filled
from tests.support.manifests.observed import (
    DEFAULTS,
    JSON,
    NAMESPACE,
    pod,
    pod_group,
    pytorch_job,
    pytorch_pod,
    ray_cluster,
    ray_pod,
    template,
)

BEGAN = "2026-11-21T10:00:00Z"
ADMISSION = "2026-11-21T11:00:00Z"
START, ADMITTED_THEN = seconds_of(BEGAN) or 0.0, seconds_of(ADMISSION) or 0.0
HOUR = 3600.0
# Of a pod that says nothing else.
# The grace period of the pods, and what is gone is seen to be.
GRACE = 30.0 + 60.0

ENFORCED, SAID, ABOUT = EndKind


def said(text: str) -> JSON:
    return {"muster.dev/runs-at-most": text}


def ray_job(*, annotations: JSON | None = None, owners: list[JSON] | None = None, **spec: Any) -> JSON:  # noqa: ANN401
    """A RayJob that has made `ray_cluster()`."""
    meta = {"name": "job", "namespace": NAMESPACE, "uid": "uid-job", "annotations": annotations or {}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {**meta, "ownerReferences": owners or []},
        "spec": {"rayClusterSpec": ray_cluster()["spec"], **spec},
        "status": {"rayClusterName": "demo", "startTime": BEGAN},
    }


def of_ray_job(**rest: Any) -> dict[str, list[JSON]]:  # noqa: ANN401 - whatever `ray_job` takes
    maker = {"apiVersion": "ray.io/v1", "kind": "RayJob", "name": "job", "uid": "uid-job", "controller": True}
    cluster = ray_cluster(meta={"ownerReferences": [maker]})
    return {"workloads": [cluster, ray_job(**rest)], "pods": [ray_pod("h", "headgroup")]}


def rules(**ttl_of: int) -> JSON:
    """Deletion rules that delete the cluster so many seconds after the job has ended so."""
    conditions = {"SUCCEEDED": "jobStatus", "FAILED": "jobStatus", "Failed": "jobDeploymentStatus"}
    return {
        "deletionRules": [
            {"policy": "DeleteCluster", "condition": {conditions[how]: how, "ttlSeconds": ttl}}
            for how, ttl in ttl_of.items()
        ]
    }


def job_set(*limits: int | None, **spec: Any) -> dict[str, list[JSON]]:  # noqa: ANN401
    """A JobSet of as many Jobs, each with its limit, and their pods, the second one a minute younger."""
    jobs = [
        {
            "name": f"job-{index}",
            "template": {"spec": {"template": template()} | ({"activeDeadlineSeconds": limit} if limit else {})},
        }
        for index, limit in enumerate(limits)
    ]
    meta = {"name": "train", "namespace": NAMESPACE, "uid": "uid-train", "labels": {"volcano.sh/queue-name": "q"}}
    owner = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train", "uid": "uid-train"}
    pods = [
        pod(
            f"p-{index}",
            owner={**owner, "controller": True},
            labels={
                "jobset.sigs.k8s.io/jobset-name": "train",
                "jobset.sigs.k8s.io/replicatedjob-name": f"job-{index}",
                GANG: "train",
            },
            annotations={GROUP_NAME: "train"},
            meta={"creationTimestamp": f"2026-11-21T10:0{index}:00Z"},
        )
        for index in range(len(jobs))
    ]
    manifest = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": meta,
        "spec": {"replicatedJobs": jobs, **spec},
    }
    return {"workloads": [manifest], "pods": pods}


def pytorch(**rest: Any) -> dict[str, list[JSON]]:  # noqa: ANN401 - whatever `pytorch_job` takes
    return {"workloads": [pytorch_job(policy={"queue": "q"}, **rest)], "pods": [pytorch_pod("m", "master")]}


def plain(*limits: int | None, annotations: JSON | None = None, jobs: int = 1) -> dict[str, list[JSON]]:
    """Pods of so many Jobs that the webhook has seen, each with the limit of its Job."""
    pods = [
        pod(
            f"p-{index}",
            owner={"apiVersion": "batch/v1", "kind": "Job", "name": f"j{index % jobs}", "uid": f"uid-j{index % jobs}"}
            | {"controller": True},
            labels={GANG: "train", "volcano.sh/queue-name": "q"},
            annotations={GROUP_NAME: "train", GANG_SIZE: "2"}
            | ({GANG_TIME_LIMIT: str(limit)} if limit else {})
            | (annotations or {}),
            meta={"creationTimestamp": BEGAN},
            restartPolicy="Never",
        )
        for index, limit in enumerate(limits)
    ]
    return {"pods": pods}


def run(key: str, **cluster: list[JSON]) -> Run | None:
    return run_of(observe(GangKey(NAMESPACE, key), filled(**cluster), DEFAULTS), AdmissionRecord())


@cases(
    "spec, frees",
    ("shut down", {"shutdownAfterJobFinishes": True}, 0),
    ("a while later", {"shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": 60}, 60),
    ("by rules for both ends", {"deletionStrategy": rules(SUCCEEDED=10, Failed=90)}, 90),
    ("a rule that sees no deadline", {"deletionStrategy": rules(SUCCEEDED=10)}, None),
    ("a deadline fails no Ray job", {"deletionStrategy": rules(SUCCEEDED=0, FAILED=0)}, None),
    (
        "former policies see no deadline",
        {
            "shutdownAfterJobFinishes": True,
            "deletionStrategy": {"onSuccess": {"policy": "DeleteCluster"}, "onFailure": {"policy": "DeleteSelf"}},
        },
        None,
    ),
    ("interactive", {"shutdownAfterJobFinishes": True, "submissionMode": "InteractiveMode"}, None),
    ("the cluster stays", {}, None),
    ("the cluster stays where all goes well", {"deletionStrategy": rules(Failed=0)}, None),
)
def test_the_limit_of_a_ray_job_bounds_its_cluster_where_that_is_deleted(spec: JSON, frees: int | None) -> None:
    found = run("ray-demo-pg", **of_ray_job(activeDeadlineSeconds=3600, **spec))
    assert found == (None if frees is None else Run(HOUR + frees + GRACE, ENFORCED))


@cases(
    "cluster, expected",
    ("the longest of the Jobs of a JobSet", job_set(3600, 7200), Run(2 * HOUR + GRACE, ENFORCED)),
    ("a Job without a limit", job_set(3600, None), None),
    ("a JobSet that restarts", job_set(3600, failurePolicy={"maxRestarts": 1}), None),
    (
        "a JobSet that restarts by a rule",
        job_set(3600, failurePolicy={"rules": [{"action": "RestartJobSetAndIgnoreMaxRestarts"}]}),
        None,
    ),
    ("Jobs one after the other", job_set(3600, 60, startupPolicy={"startupPolicyOrder": "InOrder"}), None),
    ("nothing has the operator look", pytorch(activeDeadlineSeconds=3600), Run(HOUR + GRACE, SAID)),
    ("pods of a Job", plain(3600, 3600), Run(HOUR + GRACE, ENFORCED)),
    ("pods of two Jobs", plain(3600, 7200, jobs=2), None),
    ("a Job without a limit of its own", plain(None), None),
)
def test_a_limit_of_an_operator_bounds_a_run_where_it_frees_the_room(
    cluster: dict[str, list[JSON]], expected: Run | None
) -> None:
    assert run("train", **cluster) == expected


@cases(
    "cluster, seconds",
    ("on the workload", pytorch(annotations=said("30m")), 1800.0),
    ("Kueue's label", pytorch(labels={"kueue.x-k8s.io/max-exec-time-seconds": "900"}), 900.0),
    (
        "the shorter of both",
        pytorch(annotations=said("5m"), labels={"kueue.x-k8s.io/max-exec-time-seconds": "900"}),
        300.0,
    ),
    ("the operator's first", pytorch(annotations=said("2h"), activeDeadlineSeconds=60), 60 + GRACE),
    ("on the template of a Job", plain(7200, annotations=said("1h")), HOUR),
    ("nothing that can be read", pytorch(annotations=said("soon")), None),
    ("too short", pytorch(annotations=said("59s")), None),
    ("too long", pytorch(annotations=said("1441h")), None),
    ("not in seconds", pytorch(labels={"kueue.x-k8s.io/max-exec-time-seconds": "1h"}), None),
)
def test_what_a_user_says_bounds_a_run_where_it_can_be_read(
    cluster: dict[str, list[JSON]], seconds: float | None
) -> None:
    assert run("train", **cluster) == (None if seconds is None else Run(seconds, SAID))


def test_a_ray_cron_job_says_it_for_clusters_that_do_not_get_its_annotations() -> None:
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCronJob", "name": "cron", "uid": "uid-cron", "controller": True}
    meta = {"name": "cron", "namespace": NAMESPACE, "uid": "uid-cron", "annotations": said("2h")}
    cron = {"apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": meta, "spec": {"jobTemplate": {}}}
    cluster = of_ray_job(owners=[owner], shutdownAfterJobFinishes=True)
    cluster["workloads"].append(cron)
    assert run("ray-demo-pg", **cluster) == Run(2 * HOUR, SAID)


def test_what_stays_until_it_is_deleted_does_not_end_whatever_is_said() -> None:
    assert run("ray-demo-pg", workloads=[ray_cluster(annotations=said("2h"))], pods=[ray_pod("h", "headgroup")]) is None


@cases(
    "job, expected",
    ("alone", {}, Run(4 * HOUR, ABOUT, (7800.0, 4 * HOUR, 9 * HOUR))),
    ("beside a bound", {"annotations": said("12h")}, Run(12 * HOUR, SAID)),
)
def test_an_estimate_counts_where_there_is_no_bound(job: JSON, expected: Run) -> None:
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "name": "train", "uid": "uid-train"}
    group = pod_group("train", owner=owner, annotations={"muster.dev/runs-about": "2h10m 4h 9h"})
    assert run("train", **pytorch(**job), groups=[group]) == expected


def test_the_time_limit_of_a_ray_job_that_waits_is_known() -> None:
    cluster = of_ray_job(activeDeadlineSeconds=3600, preRunningDeadlineSeconds=600)
    workload = observe(GangKey(NAMESPACE, "ray-demo-pg"), filled(**cluster), DEFAULTS).workload
    assert workload is not None
    assert workload.deadline is not None
    assert (workload.deadline.path, workload.deadline.ends) == ("spec.preRunningDeadlineSeconds", START + 600)


@pytest.mark.parametrize(
    ("cluster", "ends"), [(plain(3600, 3600), START + HOUR), (job_set(3600, 3500), START + 60 + 3500)]
)
def test_the_time_limit_of_a_job_begins_with_its_first_pod(cluster: dict[str, list[JSON]], ends: float) -> None:
    workload = observe(GangKey(NAMESPACE, "train"), filled(**cluster), DEFAULTS).workload
    assert workload is not None
    assert workload.deadline is not None
    assert workload.deadline.ends == ends


@cases(
    "cluster, now, end",
    ("no later than the operator's", plain(7200, 7200), ADMITTED_THEN, End(START, 2 * HOUR + GRACE, ENFORCED)),
    (
        "what its user says",
        plain(7200, 7200, annotations=said("30m")),
        ADMITTED_THEN,
        End(ADMITTED_THEN, HOUR / 2, SAID),
    ),
    (
        "the operator's, once it has run longer than that",
        plain(7200, 7200, annotations=said("30m")),
        ADMITTED_THEN + HOUR / 2,
        End(START, 2 * HOUR + GRACE, ENFORCED),
    ),
)
def test_a_claim_ends_at_its_first_bound_that_is_not_over(cluster: dict[str, list[JSON]], now: float, end: End) -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p-0", "uid": "uid-p-0"}
    group = pod_group("train", owner=owner, annotations={ADMITTED: "uid-j0", ADMITTED_AT: ADMISSION})
    group["metadata"]["ownerReferences"] = []
    view = observe(GangKey(NAMESPACE, "train"), filled(**cluster, groups=[group]), DEFAULTS)
    assert end_of(view, view.record, now) == end
