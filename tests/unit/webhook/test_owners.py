"""Whose gang a pod belongs to: the way up its owners."""

import json
from collections.abc import Mapping

import jsonpatch
import pytest

from muster.kube.errors import ApiError, Unreachable
from tests.support.cases import cases
from tests.support.manifests.observed import JSON, NAMESPACE, pod, ray_cluster, template
from tests.support.manifests.train_jobs import patch
from tests.support.webhook.admission_reviews import Reader, answered, knowing, patch_of, request
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.pods import review_pod
from webhook.reviews.workloads import review_workload

LABELS = {"volcano.sh/queue-name": "q"}


def owned_by(kind: str, name: str, api_version: str) -> JSON:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": f"uid-{kind}-{name}", "controller": True}


JOB = owned_by("Job", "demo-x", "batch/v1")
JOB_SET = owned_by("JobSet", "demo", "jobset.x-k8s.io/v1alpha2")
TRAIN_JOB = owned_by("TrainJob", "demo", "trainer.kubeflow.org/v1alpha1")
MPI_JOB = owned_by("MPIJob", "demo", "kubeflow.org/v2beta1")
RAY_JOB = owned_by("RayJob", "demo", "ray.io/v1")
RAY_CRON_JOB = owned_by("RayCronJob", "nightly", "ray.io/v1")


def of(reference: JSON, *, owner: JSON | None = None, labels: Mapping[str, str] = LABELS, **spec: object) -> JSON:
    """The object that a reference means."""
    meta = {
        "name": reference["name"],
        "namespace": NAMESPACE,
        "uid": reference["uid"],
        "labels": dict(labels),
        "ownerReferences": [owner] if owner else [],
    }
    return {"apiVersion": reference["apiVersion"], "kind": reference["kind"], "metadata": meta, "spec": spec}


REPLICATED = [{"name": "work", "replicas": 2, "template": {"spec": {"template": template()}}}]
RUNTIME: JSON = {
    "apiVersion": "trainer.kubeflow.org/v1alpha1",
    "kind": "ClusterTrainingRuntime",
    "metadata": {"name": "torch"},
    "spec": {"template": {"spec": {"replicatedJobs": REPLICATED}}},
}
LAUNCHER = {"Launcher": {"replicas": 1, "template": template()}, "Worker": {"replicas": 2, "template": template()}}


def job_set_pod(owner: JSON = JOB) -> JSON:
    labels = {"jobset.sigs.k8s.io/jobset-name": "demo", "jobset.sigs.k8s.io/replicatedjob-name": "work"}
    return pod("", owner=owner, labels=labels, schedulerName="default-scheduler")


def launcher() -> JSON:
    labels = {"training.kubeflow.org/job-name": "demo", "training.kubeflow.org/job-role": "launcher"}
    return pod("", owner=JOB, labels=labels, schedulerName="default-scheduler")


def ray_worker() -> JSON:
    owner = owned_by("RayCluster", "demo-abcde", "ray.io/v1")
    labels = {"ray.io/cluster": "demo-abcde", "ray.io/group": "workers"}
    return pod("", owner=owner, labels=labels, schedulerName="default-scheduler")


async def bound(new: JSON, knowledge: ClusterReader) -> JSON:
    """The pod as the webhook leaves it."""
    answer = await review_pod(request(new), knowledge)
    patched: JSON = jsonpatch.apply_patch(new, patch_of(answer)) if answer.patch else new
    return patched


def workload_of(bound_pod: JSON) -> str:
    """The workload that the webhook wrote down, by kind."""
    return str(json.loads(bound_pod["metadata"]["annotations"]["muster.dev/workload"])["kind"])


async def test_the_pods_of_a_job_of_a_jobset_are_the_jobsets() -> None:
    reader = Reader({"jobs/demo-x": of(JOB, owner=JOB_SET)})
    result = await bound(job_set_pod(), knowing(reader, workloads=[of(JOB_SET, replicatedJobs=REPLICATED)]))
    assert result["metadata"]["labels"]["muster.dev/gang"] == "demo"
    assert result["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
    written = json.loads(result["metadata"]["annotations"]["muster.dev/workload"])
    assert written == JOB_SET


async def test_a_job_is_read_once_for_all_its_pods() -> None:
    reader = Reader({"jobs/demo-x": of(JOB, owner=JOB_SET)})
    knowledge = knowing(reader, workloads=[of(JOB_SET, replicatedJobs=REPLICATED)])
    for _ in range(3):
        assert workload_of(await bound(job_set_pod(), knowledge)) == "JobSet"
    assert reader.reads == ["jobs/demo-x"]


async def test_the_jobset_of_a_trainjob_is_the_trainjobs() -> None:
    """Also when only the TrainJob says something: its JobSet has none of its labels."""
    reader = Reader({"jobs/demo-x": of(JOB, owner=JOB_SET)})
    workloads = [
        of(JOB_SET, owner=TRAIN_JOB, labels={}, replicatedJobs=REPLICATED),
        of(TRAIN_JOB, runtimeRef={"name": "torch"}),
        RUNTIME,
    ]
    assert workload_of(await bound(job_set_pod(), knowing(reader, workloads=workloads))) == "TrainJob"


async def test_a_runtime_of_a_moment_ago_is_read() -> None:
    reader = Reader({"jobs/demo-x": of(JOB, owner=JOB_SET), "clustertrainingruntimes/torch": RUNTIME})
    workloads = [
        of(JOB_SET, owner=TRAIN_JOB, labels={}, replicatedJobs=REPLICATED),
        of(TRAIN_JOB, runtimeRef={"name": "torch"}),
    ]
    assert workload_of(await bound(job_set_pod(), knowing(reader, workloads=workloads))) == "TrainJob"


async def test_a_runtime_speaks_for_its_trainjobs() -> None:
    reader = Reader({"jobs/demo-x": of(JOB, owner=JOB_SET)})
    annotated = {
        **RUNTIME,
        "spec": {
            "template": {
                "metadata": {"annotations": {"scheduling.volcano.sh/queue-name": "of-runtime"}},
                "spec": {"replicatedJobs": REPLICATED},
            }
        },
    }
    workloads = [
        of(JOB_SET, owner=TRAIN_JOB, labels={}, replicatedJobs=REPLICATED),
        of(TRAIN_JOB, labels={}, runtimeRef={"name": "torch"}),
        annotated,
    ]
    result = await bound(job_set_pod(), knowing(reader, workloads=workloads))
    assert result["metadata"]["labels"]["volcano.sh/queue-name"] == "of-runtime"


async def test_a_patch_of_its_runtime_speaks_for_a_trainjob() -> None:
    """Trainer 2.2 and later take queue and priority there alone; the Trainer puts them on the JobSet."""
    reader = Reader({"jobs/demo-x": of(JOB, owner=JOB_SET)})
    change = patch(meta={"labels": {"volcano.sh/queue-name": "patched"}})
    workloads = [
        of(JOB_SET, owner=TRAIN_JOB, labels={}, replicatedJobs=REPLICATED),
        of(TRAIN_JOB, labels={}, runtimeRef={"name": "torch"}, runtimePatches=[change]),
        RUNTIME,
    ]
    result = await bound(job_set_pod(), knowing(reader, workloads=workloads))
    assert result["metadata"]["labels"]["volcano.sh/queue-name"] == "patched"


async def test_what_stands_on_the_jobset_speaks_for_its_trainjob() -> None:
    """Whoever put it there, and whatever the runtime says by now."""
    reader = Reader({"jobs/demo-x": of(JOB, owner=JOB_SET)})
    since = {"template": {"metadata": {"labels": {"volcano.sh/queue-name": "later"}}, **RUNTIME["spec"]["template"]}}
    for runtime in (RUNTIME, {**RUNTIME, "spec": since}):
        workloads = [
            of(JOB_SET, owner=TRAIN_JOB, labels={"volcano.sh/queue-name": "made"}, replicatedJobs=REPLICATED),
            of(TRAIN_JOB, labels={}, runtimeRef={"name": "torch"}),
            runtime,
        ]
        result = await bound(job_set_pod(), knowing(reader, workloads=workloads))
        assert result["metadata"]["labels"]["volcano.sh/queue-name"] == "made"
        assert workload_of(result) == "TrainJob"


async def test_a_pod_of_a_trainjob_whose_runtime_is_gone_is_refused() -> None:
    """A part of a gang that nobody can count must not start."""
    reader = Reader({"jobs/demo-x": of(JOB, owner=JOB_SET)})
    workloads = [of(JOB_SET, owner=TRAIN_JOB, labels={}), of(TRAIN_JOB, runtimeRef={"name": "torch"})]
    answer = answered(await review_pod(request(job_set_pod()), knowing(reader, workloads=workloads)))
    assert 'ClusterTrainingRuntime "torch" is not known' in answer["status"]["message"]


@pytest.mark.parametrize(
    ("policy", "held"), [pytest.param("AtStartup", True, id="at startup"), ("WaitForWorkersReady", False)]
)
async def test_a_launcher_is_its_mpijobs_and_one_that_comes_later_is_not_held(policy: str, held: bool) -> None:
    reader = Reader({"jobs/demo-x": of(JOB, owner=MPI_JOB)})
    job = of(MPI_JOB, mpiReplicaSpecs=LAUNCHER, launcherCreationPolicy=policy)
    result = await bound(launcher(), knowing(reader, workloads=[job]))
    assert workload_of(result) == "MPIJob"
    assert ("schedulingGates" in result["spec"]) is held
    assert result["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "demo"


async def test_a_ray_cron_job_speaks_for_the_clusters_of_its_jobs() -> None:
    cluster = ray_cluster(
        name="demo-abcde", uid="uid-RayCluster-demo-abcde", labels={}, meta={"ownerReferences": [RAY_JOB]}
    )
    workloads = [cluster, of(RAY_JOB, owner=RAY_CRON_JOB, labels={}), of(RAY_CRON_JOB)]
    result = await bound(ray_worker(), knowing(workloads=workloads))
    assert result["metadata"]["labels"]["volcano.sh/queue-name"] == "q"
    assert "muster.dev/workload" not in result["metadata"]["annotations"]


@cases(
    "objects, workloads",
    ("the Job is gone", {}, [of(JOB_SET, replicatedJobs=REPLICATED)]),
    ("another Job by now", {"jobs/demo-x": {"metadata": {"name": "demo-x", "uid": "next"}}}, []),
    ("a Job of nobody's", {"jobs/demo-x": of(JOB)}, [of(JOB_SET, replicatedJobs=REPLICATED)]),
    ("the JobSet is gone", {"jobs/demo-x": of(JOB, owner=JOB_SET)}, []),
    (
        "the JobSet says nothing",
        {"jobs/demo-x": of(JOB, owner=JOB_SET)},
        [of(JOB_SET, labels={}, replicatedJobs=REPLICATED)],
    ),
)
async def test_where_no_gang_is_found_the_pod_passes_untouched(
    objects: dict[str, JSON | Exception], workloads: list[JSON]
) -> None:
    knowledge = knowing(Reader(objects), workloads=workloads)
    assert not (await review_pod(request(job_set_pod()), knowledge)).patch


MADE = "2026-11-21T10:00:00Z"


@pytest.mark.parametrize(
    ("created", "held"), [pytest.param(MADE, False, id="this one's"), ("2026-11-21T09:59:59Z", True)]
)
async def test_beside_an_unmanaged_pod_those_of_its_jobset_pass_untouched(created: str, held: bool) -> None:
    """A Job stands between them and the JobSet; one that is older than that is of a former JobSet."""
    old = job_set_pod()
    old["metadata"] |= {"name": "old", "creationTimestamp": created}
    one = of(JOB_SET, replicatedJobs=REPLICATED)
    one["metadata"]["creationTimestamp"] = MADE
    knowledge = knowing(Reader({"jobs/demo-x": of(JOB, owner=JOB_SET)}), workloads=[one], pods=[old])
    result = await bound(job_set_pod(), knowledge)
    assert ("schedulingGates" in result["spec"]) is held


async def test_a_job_that_cannot_be_read_decides_nothing() -> None:
    """A member that slipped through ungated could never be gated afterwards."""
    with pytest.raises(ApiError):
        await bound(job_set_pod(), knowing(Reader({"jobs/demo-x": Unreachable("silent")})))


async def test_owners_in_a_circle_end_somewhere() -> None:
    """Whoever may create them may write any owner into them."""
    one = of(JOB_SET, owner=TRAIN_JOB, labels={}, replicatedJobs=REPLICATED)
    other = of(TRAIN_JOB, owner=JOB_SET, labels={}, runtimeRef={"name": "torch"})
    assert not (await review_pod(request(job_set_pod(JOB_SET)), knowing(workloads=[one, other]))).patch


async def test_a_jobset_of_a_trainjob_is_judged_with_that() -> None:
    """Refusing it would leave a TrainJob that was accepted without one."""
    large = [{"name": "work", "replicas": 99, "template": {"spec": {"template": template()}}}]
    knowledge = knowing(queues=[{"metadata": {"name": "q"}, "spec": {"capability": {"cpu": "4"}}}])
    alone, of_train_job = of(JOB_SET, replicatedJobs=large), of(JOB_SET, owner=TRAIN_JOB, replicatedJobs=large)
    assert not (await review_workload(request(alone), knowledge)).allowed
    assert (await review_workload(request(of_train_job), knowledge)).allowed


GANG_LABELS = {"muster.dev/gang": "pair", **LABELS}


def plain_pod(owner: JSON | None = None, **annotations: str) -> JSON:
    said = {f"muster.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
    return pod("p", owner=owner, labels=GANG_LABELS, annotations=said, schedulerName="default-scheduler")


@cases(
    "owner",
    ("made by hand", None),
    ("a plain Job's", JOB),
    ("a StatefulSet's", owned_by("StatefulSet", "demo", "apps/v1")),
)
async def test_a_pod_that_opts_in_by_itself_is_its_gangs_whoever_made_it(owner: JSON | None) -> None:
    result = await bound(plain_pod(owner, gang_size="2"), knowing(Reader({"jobs/demo-x": of(JOB)})))
    assert result["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "pair"
    assert result["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
    assert "muster.dev/workload" not in result["metadata"]["annotations"]


CRON_JOB = owned_by("CronJob", "nightly", "batch/v1")
WORKFLOW = owned_by("Workflow", "train-x7k2p", "argoproj.io/v1alpha1")
LONG = owned_by("Job", f"{'very-' * 11}long", "batch/v1")


@cases(
    "job, above, gang",
    ("of a CronJob", owned_by("Job", "nightly-28812345", "batch/v1"), CRON_JOB, "pair-nightly-28812345"),
    ("named as its gang", owned_by("Job", "pair-28812345", "batch/v1"), CRON_JOB, "pair-28812345"),
    ("a second one by hand", owned_by("Job", "pair-2", "batch/v1"), None, "pair-2"),
    ("of the same name", owned_by("Job", "pair", "batch/v1"), CRON_JOB, "pair"),
    ("a step of a workflow", WORKFLOW, None, "pair-train-x7k2p"),
    ("a ReplicaSet's", owned_by("ReplicaSet", "pair-5d9c", "apps/v1"), None, "pair"),
    ("a StatefulSet's", owned_by("StatefulSet", "pair-db", "apps/v1"), None, "pair"),
)
async def test_each_run_of_a_template_is_a_gang_of_its_own(job: JSON, above: JSON | None, gang: str) -> None:
    """Another webhook may have it looked at twice, and what the template binds it to is not believed."""
    reader = Reader({f"jobs/{job['name']}": of(job, owner=above)} if job["kind"] == "Job" else {})
    new = plain_pod(job, gang_size="2")
    new["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = "others"
    for _ in range(2):
        new = await bound(new, knowing(reader))
        assert new["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == gang
        assert new["metadata"]["labels"]["muster.dev/gang"] == gang


async def test_a_long_name_of_a_run_is_a_hash_in_its_gangs() -> None:
    names = set()
    for number in (1, 2):
        job = {**LONG, "name": f"{LONG['name']}-{number}"}
        new = plain_pod(job, gang_size="2")
        for _ in range(2):
            new = await bound(new, knowing(Reader({f"jobs/{job['name']}": of(job, owner=CRON_JOB)})))
        name = new["metadata"]["labels"]["muster.dev/gang"]
        assert (len(name) <= 63, name.startswith("pair-")) == (True, True)
        names.add(name)
    assert len(names) == 2


@cases("spec, written", ("a number", {"completions": 6}, "6"), ("none", {}, None))
async def test_how_many_pods_of_a_plain_job_are_to_succeed_is_written_on_them(spec: JSON, written: str | None) -> None:
    """The controller watches no Jobs; whatever the template says of it."""
    reader = Reader({"jobs/demo-x": of(JOB, **spec)})
    knowledge = knowing(reader)
    for said in ({}, {"gang_completions": "9"} if written else {}):
        result = await bound(plain_pod(JOB, gang_size="2", **said), knowledge)
        assert result["metadata"]["annotations"].get("muster.dev/gang-completions") == written
    assert reader.reads == ["jobs/demo-x"]


@pytest.mark.parametrize(("spec", "written"), [({"activeDeadlineSeconds": 3600}, "3600"), ({}, None)])
async def test_the_time_limit_of_a_plain_job_is_written_on_its_pods(spec: JSON, written: str | None) -> None:
    """Whatever the template says of it: gangs pass others by it."""
    knowledge = knowing(Reader({"jobs/demo-x": of(JOB, **spec)}))
    for said in ({}, {"gang_time_limit": "60"}):
        result = await bound(plain_pod(JOB, gang_size="2", **said), knowledge)
        assert result["metadata"]["annotations"].get("muster.dev/gang-time-limit") == written


async def test_a_pod_that_does_not_say_how_many_they_are_is_refused() -> None:
    answer = answered(await review_pod(request(plain_pod()), knowing()))
    (cause,) = answer["status"]["details"]["causes"]
    assert cause["field"] == "metadata.annotations[muster.dev/gang-size]"


async def test_a_runtime_that_is_changed_afterwards_does_not_change_who_is_a_member() -> None:
    """The Trainer leaves the JobSet as it is: its pods would pass past the queue, of a role that is there no more."""
    reader = Reader({"jobs/demo-x": of(JOB, owner=JOB_SET)})
    others = [{**REPLICATED[0], "name": "renamed"}]
    workloads = [
        of(JOB_SET, owner=TRAIN_JOB, labels={}, replicatedJobs=REPLICATED),
        of(TRAIN_JOB, runtimeRef={"name": "torch"}),
        {**RUNTIME, "spec": {"template": {"spec": {"replicatedJobs": others}}}},
    ]
    result = await bound(job_set_pod(), knowing(reader, workloads=workloads))
    assert result["spec"]["schedulingGates"] == [{"name": "muster.dev/gang"}]
    assert workload_of(result) == "TrainJob"
