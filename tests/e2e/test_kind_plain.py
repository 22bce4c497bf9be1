"""Plain pods and Jobs that opt in by themselves; Volcano's own Job is story B."""

from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from muster.model.names import GANG, GANG_SIZE, GANG_TIME_LIMIT, QUEUE_LABEL
from muster.model.resource import POD_GROUPS, PODS, Resource
from muster.model.times import seconds_of
from tests.support.cluster.recorder import JOBS, Manifest
from tests.support.cluster.scene import Scene, admitted, has_condition, open_scene
from tests.support.manifests.applied import RUN_SECONDS
from tests.support.manifests.owner_chains import owned

pytestmark = pytest.mark.part("kinds")

# Long enough for muster to see the pods before the time is nearly over, on a busy machine, too.
_LIMIT = 70
CRON_JOBS = Resource("batch", "v1", "cronjobs", "CronJob")


@pytest.fixture
def plain(testbed: Testbed, muster: object, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A scene in which Jobs are on record."""
    del muster
    with open_scene(testbed, request.node.name.removeprefix("test_"), kinds=(JOBS,)) as scene:
        yield scene


def _metadata(gang: str, size: int, queue: str) -> Manifest:
    return {"labels": {GANG: gang, QUEUE_LABEL: queue}, "annotations": {GANG_SIZE: str(size), RUN_SECONDS: "3600"}}


def _spec(cpu: str) -> Manifest:
    return {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}],
    }


def _pod(name: str, gang: str, size: int, queue: str, cpu: str = "1") -> Manifest:
    metadata = {**_metadata(gang, size, queue), "name": name}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _spec(cpu)}


def _job(name: str, gang: str, size: int, queue: str, *, pods: int, cpu: str = "1") -> Manifest:
    template = {"metadata": _metadata(gang, size, queue), "spec": _spec(cpu)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"parallelism": pods, "completions": pods, "template": template},
    }


def _cron_job(scene: Scene, name: str) -> Manifest:
    """A CronJob that makes nothing by itself, as the apiserver has it."""
    template = {"spec": {"template": {"spec": _spec("1")}}}
    spec = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": template}
    scene.create({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec})
    return scene.patch(CRON_JOBS, name, {"metadata": {"labels": {"made": "by-the-test"}}})


def test_pods_of_one_name_are_a_gang(plain: Scene) -> None:
    """It is complete with the last of them, and its PodGroup goes with the last of them."""
    queue = plain.queue(cpu="5")
    plain.apply(_pod("one-0", "one", 2, queue, cpu="3"))
    plain.await_state("one", "Assembling")
    plain.apply(_pod("one-1", "one", 2, queue))
    plain.await_running("one", 2)
    assert plain.pod_group("one")["spec"]["minResources"] == {"cpu": "4"}, "they need not be alike"
    plain.apply(_pod("two-0", "two", 2, queue), _pod("two-1", "two", 2, queue))
    plain.await_gated("two", 2)
    plain.await_state("two", "WaitingForQuota")

    plain.end("one")
    assert not admitted(plain.await_state("one", "Finished")), "an ended gang still holds its place"
    plain.await_running("two", 2)
    for gang in ("one", "two"):
        plain.assert_started_together(gang, 2)
    plain.delete_all(PODS)
    plain.wait("the PodGroups to go", lambda: not plain.recorder.now(POD_GROUPS))


def test_a_job_waits_runs_ends_and_gives_its_place_back(plain: Scene) -> None:
    queue = plain.queue(cpu="4")
    plain.apply(_job("first", "first", 3, queue, pods=3))
    plain.await_running("first", 3)
    plain.apply(owned(_job("second", "second", 3, queue, pods=3), _cron_job(plain, "yearly")))
    plain.await_gated("second", 3)
    for maker in ("second", "yearly"):
        assert plain.await_event(maker, "WaitingForQuota").startswith('gang "second": needs cpu 3;')
    plain.end("first")
    plain.await_state("first", "Finished")
    plain.await_running("second", 3)
    plain.assert_started_together("second", 3)
    assert "ownerReferences" not in plain.pod_group("second")["metadata"]
    plain.assert_never_above({"cpu": "4"})


def test_a_suspended_job_queues_again(plain: Scene) -> None:
    queue = plain.queue(cpu="3")
    plain.apply(_job("first", "first", 2, queue, pods=2))
    plain.await_running("first", 2)
    plain.apply(_job("second", "second", 2, queue, pods=2))
    plain.await_gated("second", 2)
    plain.patch(JOBS, "first", {"spec": {"suspend": True}})
    plain.await_running("second", 2)
    plain.patch(JOBS, "first", {"spec": {"suspend": False}})
    plain.await_gated("first", 2)
    plain.delete(JOBS, "second")
    plain.await_running("first", 2)
    plain.assert_never_above({"cpu": "3"})


def test_each_run_of_a_cron_job_is_a_gang_of_its_own(plain: Scene) -> None:
    """The second comes while the first runs, and waits as a whole: it is no growth of the first."""
    queue, cron_job = plain.queue(cpu="4"), _cron_job(plain, "hourly")
    plain.apply(owned(_job("hourly-1", "hourly", 3, queue, pods=3), cron_job))
    plain.await_running("hourly-1", 3)
    plain.apply(owned(_job("hourly-2", "hourly", 3, queue, pods=3), cron_job))
    plain.await_gated("hourly-2", 3)
    assert [plain.pod_group(run)["spec"]["minMember"] for run in ("hourly-1", "hourly-2")] == [3, 3]
    plain.end("hourly-1")
    plain.await_running("hourly-2", 3)
    plain.assert_started_together("hourly-2", 3)
    plain.assert_never_above({"cpu": "4"})


def test_the_time_limit_of_a_job_runs_from_its_start_while_its_gang_waits(plain: Scene) -> None:
    """The controller watches no Jobs: the webhook has seen the limit, and the first pod tells when it began."""
    queue = plain.queue(cpu="2")
    plain.apply(_job("holder", "holder", 1, queue, pods=1))
    plain.await_running("holder", 1)
    job = _job("late", "late", 2, queue, pods=2)
    job["spec"]["activeDeadlineSeconds"] = _LIMIT
    plain.apply(job)
    plain.await_gated("late", 2)
    near = plain.await_event("late", "DeadlineNear")
    found = plain.recorder.get(JOBS, "late") or {}
    assert {pod["metadata"]["annotations"][GANG_TIME_LIMIT] for pod in plain.pods("late")} == {str(_LIMIT)}
    began, ends = seconds_of(found["status"]["startTime"]), seconds_of(near.split(" ends at ")[1].split(",")[0])
    assert began is not None
    assert ends is not None
    assert abs(ends - (began + _LIMIT)) <= 1, "its pods are made as soon as it has begun"
    plain.wait("the Job controller to end it", lambda: has_condition(plain.recorder.get(JOBS, "late") or {}, "Failed"))
    plain.wait("its pods to go", lambda: not plain.pods("late"))
