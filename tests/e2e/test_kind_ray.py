"""RayCluster, and RayJob, RayService and RayCronJob, whose gang is that of the RayCluster that they make."""

import re
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from hack.testbed import Testbed
from hack.testbed.versions import chosen
from muster.model.names import ADMITTED_AT, PATIENCE, QUEUE_LABEL
from muster.model.resource import POD_GROUPS, PODS, QUEUES
from muster.model.times import seconds_of
from muster.planning.candidate import GONE_IN
from muster.workloads.ray_parents import RAY_CRON_JOB, RAY_JOB, RAY_SERVICE
from tests.support.cluster.ray_dashboards import RayDashboards
from tests.support.cluster.recorder import JOBS, RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene, message, open_scene, phase, state
from tests.support.manifests.applied import RUN_SECONDS, ray_cluster

pytestmark = pytest.mark.part("kinds")

# kwok ends the pods of any Job at once, unless told otherwise.
_GOES_ON = {RUN_SECONDS: "3600"}
# Long enough for the gangs behind the job to be there before its time is over, on a busy machine, too.
_LIMIT = 90


@pytest.fixture
def ray(testbed: Testbed, muster: object, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A scene in which all kinds of Ray are on record."""
    del muster
    kinds = [kind.resource for kind in (RAY_JOB, RAY_SERVICE)]
    name = request.node.name.removeprefix("test_")
    with open_scene(testbed, name, kinds=(*kinds, RAY_CLUSTERS, JOBS)) as scene:
        yield scene


@pytest.fixture
def dashboards(testbed: Testbed) -> Iterator[RayDashboards]:
    """Ray's dashboards, as far as KubeRay asks them."""
    with RayDashboards(testbed) as answering:
        yield answering


@pytest.fixture
def cron_jobs(testbed: Testbed) -> Iterator[None]:
    """KubeRay with RayCronJobs, an alpha feature."""
    try:
        testbed.restart_part("kuberay", extra_args=["--feature-gates=RayCronJob=true"])
        yield
    # Also where it does not know the feature, and has ended.
    finally:
        testbed.restart_part("kuberay")


def _cluster(workers: int = 2) -> Manifest:
    spec: Manifest = ray_cluster("any").workers(workers).manifest()["spec"]
    return spec


def _ray_job(name: str, queue: str, *, workers: int = 2, **spec: object) -> Manifest:
    pod = {"restartPolicy": "Never", "containers": [{"name": "submit", "image": "none"}]}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "labels": {QUEUE_LABEL: queue}},
        "spec": {
            "entrypoint": "sleep",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": _cluster(workers),
            "submitterPodTemplate": {"metadata": {"annotations": _GOES_ON}, "spec": pod},
            **spec,
        },
    }


def _ray_service(name: str, queue: str, workers: int = 2) -> Manifest:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": name, "labels": {QUEUE_LABEL: queue}},
        "spec": {
            "serveConfigV2": "applications: [{name: main, import_path: main.app}]",
            "rayClusterConfig": _cluster(workers),
            # Older versions always wait, for a minute.
            **({} if chosen("kuberay") in ("1.3", "1.4") else {"rayClusterDeletionDelaySeconds": 0}),
        },
    }


def _says(scene: Scene, job: str) -> str:
    """KubeRay's word for how far a RayJob is."""
    found = scene.recorder.get(RAY_JOB.resource, job) or {}
    return str(found.get("status", {}).get("jobDeploymentStatus", ""))


def _active_of(service: Manifest) -> str:
    return str(service.get("status", {}).get("activeServiceStatus", {}).get("rayClusterName", ""))


def _active(scene: Scene, service: str) -> str:
    """The RayCluster that serves for a RayService."""
    return _active_of(scene.recorder.get(RAY_SERVICE.resource, service) or {})


def _clusters_of(scene: Scene, owner: str) -> list[str]:
    """The RayClusters that there are of a RayJob or RayService, by name."""
    return [
        cluster["metadata"]["name"]
        for cluster in scene.recorder.now(RAY_CLUSTERS)
        if [one["name"] for one in cluster["metadata"]["ownerReferences"]] == [owner]
        and "deletionTimestamp" not in cluster["metadata"]
    ]


def _assert_never_above(scene: Scene, queue: str, **capability: str) -> None:
    """At no moment did the queue's pods hold more.

    KubeRay was seen to make pods of a cluster that it had just deleted, from what it remembered. Whose they are nobody
    can tell any more: they are of no queue, and the garbage collector takes them.
    """
    scene.assert_never_above(capability, queue)


def _gang_of(scene: Scene, owner: str, but: str = "") -> str:
    """The gang of the one RayCluster of a RayJob or RayService, when it is there and is another one than `but`."""
    found: list[str] = []

    def there() -> bool:
        found[:] = [f"ray-{name}-pg" for name in _clusters_of(scene, owner) if f"ray-{name}-pg" != but]
        return len(found) == 1

    scene.wait(f"a RayCluster of {owner}", there)
    return found[0]


def _submitters(scene: Scene, job: str) -> list[Manifest]:
    """The pods of the Job by which a RayJob is submitted."""
    return [pod for pod in scene.pods() if pod["metadata"]["labels"].get("job-name") == job]


def _cluster_of(gang: str) -> str:
    return gang.removeprefix("ray-").removesuffix("-pg")


def test_a_ray_job_waits_and_runs_and_a_suspended_one_queues_again(ray: Scene) -> None:
    """Suspending deletes the cluster and gives its place back; resuming makes a new cluster, a new gang."""
    queue = ray.queue(cpu="4")
    ray.apply(_ray_job("first", queue))
    first = _gang_of(ray, "first")
    ray.await_running(first, 3)
    ray.apply(_ray_job("second", queue))
    second = _gang_of(ray, "second")
    ray.await_gated(second, 3)
    ray.await_state(second, "WaitingForQuota")
    assert ray.await_event("second", "WaitingForQuota").startswith(f'RayCluster "{_cluster_of(second)}": needs cpu 3 ')

    ray.patch(RAY_JOB.resource, "first", {"spec": {"suspend": True}})
    ray.await_running(second, 3)
    ray.wait("the first's PodGroup to go", lambda: ray.recorder.get(POD_GROUPS, first) is None)

    ray.patch(RAY_JOB.resource, "first", {"spec": {"suspend": False}})
    again = _gang_of(ray, "first", but=first)
    assert again != first
    ray.await_gated(again, 3)
    ray.await_state(again, "WaitingForQuota")
    ray.delete(RAY_JOB.resource, "second")
    ray.await_running(again, 3)
    for gang in (first, second, again):
        ray.assert_started_together(gang, 3)
    _assert_never_above(ray, queue, cpu="4")


def test_a_ray_job_ends_and_one_that_failed_queues_for_its_next_try(ray: Scene, dashboards: RayDashboards) -> None:
    """A try is a gang of its own, at the place of its job: who came after the job is behind it again."""
    queue = ray.queue(cpu="4")
    ray.apply(_ray_job("first", queue))
    first = _gang_of(ray, "first")
    ray.await_running(first, 3)
    ray.create(_ray_job("second", queue, submissionMode="HTTPMode", backoffLimit=1))
    second = _gang_of(ray, "second")
    ray.await_gated(second, 3)
    ray.await_state(second, "WaitingForQuota")

    # KubeRay looks every few seconds whether it is time for it.
    ray.wait("the first's submitter", lambda: [phase(pod) for pod in _submitters(ray, "first")] == ["Running"])
    dashboards.end_job(_cluster_of(first))
    ray.annotate(PODS, *(pod["metadata"]["name"] for pod in _submitters(ray, "first")), **{RUN_SECONDS: "0"})
    ray.await_running(second, 3)
    ray.wait("the first to be complete", lambda: _says(ray, "first") == "Complete")
    ray.wait("the second's submission", lambda: dashboards.runs_job(_cluster_of(second)))
    ray.create(_ray_job("third", queue, submissionMode="HTTPMode"))
    third = _gang_of(ray, "third")
    ray.await_gated(third, 3)
    ray.create(_ray_job("younger", queue, submissionMode="HTTPMode"))
    younger = _gang_of(ray, "younger")
    ray.await_gated(younger, 3)

    dashboards.end_job(_cluster_of(second), "FAILED")
    again = _gang_of(ray, "second", but=second)
    ray.await_running(third, 3)
    ray.await_gated(again, 3)
    ray.await_state(again, "WaitingForQuota")
    ray.wait("the failed try's PodGroup to go", lambda: ray.recorder.get(POD_GROUPS, second) is None)

    ray.wait("the third's submission", lambda: dashboards.runs_job(_cluster_of(third)))
    dashboards.end_job(_cluster_of(third))
    ray.await_running(again, 3)
    ray.await_gated(younger, 3)
    ray.wait("the next try's submission", lambda: dashboards.runs_job(_cluster_of(again)))
    dashboards.end_job(_cluster_of(again))
    ray.await_running(younger, 3)
    ray.wait("the last submission", lambda: dashboards.runs_job(_cluster_of(younger)))
    dashboards.end_job(_cluster_of(younger))
    jobs = ("second", "third", "younger")
    ray.wait("all to be complete", lambda: {_says(ray, name) for name in jobs} == {"Complete"})
    ray.wait("their gangs to go", lambda: not ray.recorder.now(POD_GROUPS))
    for gang in (first, second, third, again, younger):
        ray.assert_started_together(gang, 3)
    _assert_never_above(ray, queue, cpu="4")


def test_a_ray_job_that_keeps_its_head_gives_the_place_of_its_workers(ray: Scene, dashboards: RayDashboards) -> None:
    """With a rule to delete the workers at its end, the head stays, to be looked at, and keeps its own place."""
    queue = ray.queue(cpu="4")
    rule = {"policy": "DeleteWorkers", "condition": {"jobStatus": "SUCCEEDED", "ttlSeconds": 0}}
    keeps = {"shutdownAfterJobFinishes": False, "deletionStrategy": {"deletionRules": [rule]}}
    first_job = _ray_job("first", queue, submissionMode="HTTPMode")
    first_job["spec"] |= keeps
    ray.create(first_job)
    first = _gang_of(ray, "first")
    ray.await_running(first, 3)
    ray.create(_ray_job("second", queue, submissionMode="HTTPMode"))
    second = _gang_of(ray, "second")
    ray.await_gated(second, 3)

    ray.wait("the submission", lambda: dashboards.runs_job(_cluster_of(first)))
    dashboards.end_job(_cluster_of(first))
    ray.await_running(second, 3)
    ray.await_running(first, 1)
    ray.wait("its minimum to be the head", lambda: ray.pod_group(first)["spec"]["minMember"] == 1)
    ray.assert_started_together(second, 3)
    _assert_never_above(ray, queue, cpu="4")


def _behind_a_time_limit(ray: Scene, words: str, **spec: Any) -> str:  # noqa: ANN401 - fields of a RayJob
    """Have a large gang wait behind a RayJob with a time limit, until these words are said of it; the job's gang."""
    queue = ray.queue(cpu="5")
    ray.annotate(QUEUES, queue, **{PATIENCE: "0s"})
    ray.create(_ray_job("first", queue, submissionMode="HTTPMode", activeDeadlineSeconds=_LIMIT, **spec))
    first = _gang_of(ray, "first")
    ray.await_running(first, 3)
    ray.create(ray_cluster("large").label(QUEUE_LABEL, queue).workers(4))
    ray.await_gated("ray-large-pg", 5)
    ray.create(ray_cluster("small").label(QUEUE_LABEL, queue))
    ray.await_running("ray-small-pg", 1)
    ray.delete(RAY_CLUSTERS, "small")
    ray.wait("word of it", lambda: words in message(ray.pod_group("ray-large-pg")))
    return first


def test_behind_a_time_limit_of_a_ray_job_a_start_is_promised(ray: Scene, dashboards: RayDashboards) -> None:
    """KubeRay looks at the time every few seconds, as long as the cluster answers it."""
    del dashboards
    _behind_a_time_limit(ray, "starts by ")
    promise = re.search(r"starts by ([0-9-]+) ([0-9:]+) UTC", message(ray.pod_group("ray-large-pg")))
    assert promise is not None
    status = (ray.recorder.get(RAY_JOB.resource, "first") or {})["status"]
    began, latest = seconds_of(status["startTime"]), seconds_of(f"{promise[1]}T{promise[2]}:00Z")
    gone = 30 + GONE_IN
    assert began is not None
    assert latest is not None
    assert 0 <= latest - (began + _LIMIT + gone) < 60, "the limit, until its pods are gone, and the minute in full"
    ray.await_running("ray-large-pg", 5)
    admitted_at = seconds_of(ray.pod_group("ray-large-pg")["metadata"]["annotations"][ADMITTED_AT])
    assert admitted_at is not None
    assert began + _LIMIT <= admitted_at <= latest


def test_a_cluster_that_its_ray_job_leaves_promises_nothing(ray: Scene, dashboards: RayDashboards) -> None:
    """The job is ended at its time limit, and its cluster stays until somebody deletes it."""
    del dashboards
    never = "what does not end by itself leaves it no room"
    first = _behind_a_time_limit(ray, never, shutdownAfterJobFinishes=False)
    ray.wait("the job to fail", lambda: _says(ray, "first") == "Failed")
    ray.recorder.settle()
    ray.await_running(first, 3)
    assert never in message(ray.pod_group("ray-large-pg"))


def test_a_ray_cluster_that_is_recreated_keeps_its_place(ray: Scene) -> None:
    """An upgrade in place: all its pods go and come anew, and nobody takes the room that they leave for a moment."""
    queue = ray.queue(cpu="3")
    cluster = ray_cluster("one").label(QUEUE_LABEL, queue).workers(2).manifest()
    cluster["spec"]["upgradeStrategy"] = {"type": "Recreate"}
    ray.create(cluster)
    before = {pod["metadata"]["uid"] for pod in ray.await_running("ray-one-pg", 3)}
    ray.create(ray_cluster("two").label(QUEUE_LABEL, queue).workers(1))
    waiting = {pod["metadata"]["uid"] for pod in ray.await_gated("ray-two-pg", 2)}

    ray.patch(RAY_CLUSTERS, "one", {"spec": {"rayVersion": "2.53.0"}})
    ray.wait("its pods to go", lambda: not before & {pod["metadata"]["uid"] for pod in ray.pods("ray-one-pg")})
    ray.await_running("ray-one-pg", 3)
    assert {pod["metadata"]["uid"] for pod in ray.await_gated("ray-two-pg", 2)} == waiting
    ray.delete(RAY_CLUSTERS, "one")
    ray.await_running("ray-two-pg", 2)
    _assert_never_above(ray, queue, cpu="3")


def test_a_ray_cluster_that_is_recreated_larger_queues_again_as_a_whole(ray: Scene) -> None:
    """What it was admitted for is not what it asks for now, and another gang runs beside it."""
    queue = ray.queue(cpu="6")
    cluster = ray_cluster("one").label(QUEUE_LABEL, queue).workers(2).manifest()
    cluster["spec"]["upgradeStrategy"] = {"type": "Recreate"}
    ray.create(cluster)
    ray.await_running("ray-one-pg", 3)
    ray.create(ray_cluster("two").label(QUEUE_LABEL, queue).workers(1))
    ray.await_running("ray-two-pg", 2)

    groups = ray_cluster("one").label(QUEUE_LABEL, queue).workers(2, cpu="2").manifest()["spec"]["workerGroupSpecs"]
    ray.patch(RAY_CLUSTERS, "one", {"spec": {"workerGroupSpecs": groups}})
    assert "which is more than it was admitted for" in ray.await_event("one", "Requeued")
    ray.await_gated("ray-one-pg", 3)
    assert message(ray.await_state("ray-one-pg", "WaitingForQuota")).startswith("needs cpu 5 ")
    ray.delete(RAY_CLUSTERS, "two")
    ray.await_running("ray-one-pg", 3)
    _assert_never_above(ray, queue, cpu="6")


def test_the_next_cluster_of_a_ray_service_waits_for_room_and_takes_over(ray: Scene, dashboards: RayDashboards) -> None:
    """Two clusters at once are two gangs; the old one serves, and keeps its place, until the new one serves."""
    queue = ray.queue(cpu="6")
    ray.create(_ray_service("shop", queue))
    old = _gang_of(ray, "shop")
    ray.await_running(old, 3)
    ray.wait("its applications", lambda: dashboards.starts_applications(_cluster_of(old)))
    dashboards.let_serve(_cluster_of(old))
    ray.wait("the first cluster to serve", lambda: _active(ray, "shop") == _cluster_of(old))
    ray.create(_ray_service("neighbour", queue, workers=1))
    ray.await_running(_gang_of(ray, "neighbour"), 2)

    ray.patch(RAY_SERVICE.resource, "shop", {"spec": {"rayClusterConfig": {"rayVersion": "2.53.0"}}})
    new = _gang_of(ray, "shop", but=old)
    ray.await_gated(new, 3)
    ray.await_state(new, "WaitingForQuota")
    ray.delete(RAY_SERVICE.resource, "neighbour")
    ray.await_running(new, 3)
    ray.wait("its applications", lambda: dashboards.starts_applications(_cluster_of(new)))
    ray.create(_ray_service("next", queue))
    later = _gang_of(ray, "next")
    ray.await_gated(later, 3)
    ray.await_state(later, "WaitingForQuota")
    ray.await_running(old, 3)
    assert _active(ray, "shop") == _cluster_of(old)

    dashboards.let_serve(_cluster_of(new))
    ray.await_running(later, 3)
    ray.recorder.settle()
    taken_over = next(
        seen.version
        for seen in ray.recorder.history(RAY_SERVICE.resource)
        if _active_of(seen.object) == _cluster_of(new)
    )
    gone = next(
        seen.version
        for seen in ray.recorder.history(RAY_CLUSTERS)
        if seen.name == _cluster_of(old) and (seen.gone or "deletionTimestamp" in seen.object["metadata"])
    )
    assert gone > taken_over, "the old cluster went before the new one served"
    for gang in (old, new, later):
        ray.assert_started_together(gang, 3)
    _assert_never_above(ray, queue, cpu="6")


def test_the_jobs_of_a_ray_cron_job_queue_one_after_another(
    ray: Scene, dashboards: RayDashboards, cron_jobs: None
) -> None:
    """KubeRay hands its labels to nobody, so that its RayClusters are looked up through their owners."""
    del cron_jobs
    queue = ray.queue(cpu="4")
    ray.create(
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCronJob",
            "metadata": {"name": "often", "labels": {QUEUE_LABEL: queue}},
            "spec": {
                "schedule": "@every 3s",
                "jobTemplate": _ray_job("any", queue, submissionMode="HTTPMode")["spec"],
            },
        }
    )
    jobs = RAY_JOB.resource
    ray.wait("two jobs", lambda: len(ray.recorder.now(jobs)) > 1)
    ray.patch(RAY_CRON_JOB.resource, "often", {"spec": {"suspend": True}})
    ray.recorder.settle()
    gangs = {_gang_of(ray, name): name for name in (job["metadata"]["name"] for job in ray.recorder.now(jobs))}
    first = _runs_alone(ray, gangs)
    for gang in gangs.keys() - {first}:
        ray.await_gated(gang, 3)
        assert ray.pod_group(gang)["spec"]["queue"] == queue
        assert ray.await_event(gangs[gang], "WaitingForQuota")
    assert ray.await_event("often", "WaitingForQuota")

    ray.wait("the submission", lambda: dashboards.runs_job(_cluster_of(first)))
    dashboards.end_job(_cluster_of(first))
    second = _runs_alone(ray, gangs.keys() - {first})
    ray.wait("the first to be complete", lambda: _says(ray, gangs[first]) == "Complete")
    for gang in (first, second):
        ray.assert_started_together(gang, 3)
    _assert_never_above(ray, queue, cpu="4")


def _runs_alone(scene: Scene, gangs: Collection[str]) -> str:
    """Wait until one of these gangs runs and all others wait, and return it; who is older is KubeRay's to decide."""

    def running() -> list[str]:
        return [gang for gang in gangs if state(scene.pod_group(gang)) == "Running"]

    def waiting() -> list[str]:
        return [gang for gang in gangs if state(scene.pod_group(gang)) == "WaitingForQuota"]

    scene.wait("one to run and the others to wait", lambda: (len(running()), len(waiting())) == (1, len(gangs) - 1))
    (first,) = running()
    scene.await_running(first, 3)
    return first
