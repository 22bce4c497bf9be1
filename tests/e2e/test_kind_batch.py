"""JobSet and TrainJob with their real controllers: JobSet -> Job -> pod, TrainJob -> JobSet -> Job -> pod."""

from collections.abc import Iterator

import pytest

from hack.testbed import Testbed
from hack.testbed.muster import MusterInstall
from muster.model.names import GANG, GATE, MANAGED, QUEUE_ANNOTATION, QUEUE_LABEL
from muster.model.resource import EVENTS, POD_GROUPS, PODS
from muster.model.times import seconds_of
from muster.workloads.jobset import JOB_SET
from muster.workloads.trainer import TRAIN_JOB
from tests.e2e.conftest import Resident
from tests.support.cluster.gang_lifecycle import goes_through_its_life
from tests.support.cluster.nudges import assert_soon, nudges, version_now
from tests.support.cluster.propagation import await_accepted
from tests.support.cluster.recorder import JOBS, Manifest
from tests.support.cluster.scene import (
    PATIENCE,
    Scene,
    alive,
    gates,
    has_condition,
    message,
    node_of,
    open_scene,
    phase,
)
from tests.support.manifests.applied import FAIL_AFTER_SECONDS, RUN_SECONDS
from tests.support.manifests.batch import job_set, replicated, runtime, train_job, trainer
from tests.support.manifests.train_jobs import patch

pytestmark = pytest.mark.part("operators")

# In vain, half a minute long: by then the Job controller would wait for as long again.
_NUDGES = 12
# Long enough for muster to see the pods before the time is nearly over, on a busy machine, too.
_LIMIT = 70
_KINDS = (JOB_SET.resource, TRAIN_JOB.resource)


@pytest.fixture(scope="module")
def before_muster(added_operators: Testbed, resident: Resident) -> Iterator[Scene]:
    """Workloads that run when muster is installed."""
    resident.away()
    with open_scene(added_operators, "before-muster", kinds=_KINDS) as scene:
        queue = scene.queue(cpu="4")
        scene.apply(job_set("set", queue, replicated("work", replicas=2)), runtime("plain", trainer()))
        _apply_train_job(scene, train_job("train", "plain", {QUEUE_LABEL: queue}))
        for name in ("set", "train"):
            _await_of(scene, name, old=2)
        resident.present()
        yield scene


@pytest.fixture
def ran_before(before_muster: Scene, muster: object) -> Scene:
    """Workloads that ran before muster was installed, and muster."""
    del muster
    return before_muster


@pytest.fixture
def batch(ran_before: Scene, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """A scene in which JobSets and TrainJobs are on record."""
    with open_scene(ran_before.testbed, request.node.name.removeprefix("test_"), kinds=(*_KINDS, JOBS)) as scene:
        yield scene


def _apply_train_job(scene: Scene, job: Manifest) -> None:
    """When the Trainer knows its runtime, which was made a moment before: it refuses those of others."""
    await_accepted(scene, job)
    scene.apply(job)


def _of(scene: Scene, name: str) -> list[Manifest]:
    """The living pods of a workload, whoever's they are."""
    return [
        pod
        for pod in scene.pods()
        if alive(pod) and pod["metadata"]["labels"]["jobset.sigs.k8s.io/jobset-name"] == name
    ]


def _await_of(scene: Scene, name: str, *, new: int = 0, old: int = 0) -> set[str]:
    """Wait until so many pods of a workload run that came by muster, and without it; return the UIDs of all."""

    def there() -> bool:
        pods = _of(scene, name)
        by_muster = sum(GANG in pod["metadata"]["labels"] for pod in pods)
        return (by_muster, len(pods) - by_muster) == (new, old) and {phase(pod) for pod in pods} == {"Running"}

    scene.wait(f"{new} new and {old} old pods of {name} to run", there)
    return {pod["metadata"]["uid"] for pod in _of(scene, name)}


def _suspend(scene: Scene, *, suspend: bool = True) -> None:
    for kind, name in zip(_KINDS, ("set", "train"), strict=True):
        scene.patch(kind, name, {"spec": {"suspend": suspend}})


def _label(scene: Scene, label: str, value: str | None) -> None:
    for kind, name in zip(_KINDS, ("set", "train"), strict=True):
        scene.patch(kind, name, {"metadata": {"labels": {label: value}}})


def _of_role(scene: Scene, gang: str, role: str) -> list[Manifest]:
    return [
        pod for pod in scene.pods(gang) if pod["metadata"]["labels"]["jobset.sigs.k8s.io/replicatedjob-name"] == role
    ]


def _end_role(scene: Scene, gang: str, role: str) -> None:
    names = [pod["metadata"]["name"] for pod in _of_role(scene, gang, role)]
    scene.annotate(PODS, *names, **{RUN_SECONDS: "0"})


def test_what_ran_before_muster_runs_on_and_so_do_its_replacements(ran_before: Scene) -> None:
    """A Job stands between these pods and their workload; resumed after a suspension, the workload is a gang."""
    scene = ran_before
    ran = {name: _await_of(scene, name, old=2) for name in ("set", "train")}
    lost = {}
    for name in ran:
        assert "left alone until the pods are gone that came without muster" in scene.await_event(name, "NotManaged")
        lost[name] = _of(scene, name)[0]["metadata"]
        scene.delete(PODS, lost[name]["name"], wait=False)
    gone = {meta["uid"] for meta in lost.values()}
    scene.wait("both to go", lambda: gone.isdisjoint(pod["metadata"]["uid"] for pod in scene.pods()))
    for name, before in ran.items():
        assert len(_await_of(scene, name, old=2) & before) == 1
    scene.recorder.settle()
    assert {GATE in gates(seen.object) for seen in scene.recorder.history(PODS)} == {False}
    assert not scene.recorder.now(POD_GROUPS)

    _suspend(scene)
    scene.wait("all to go", lambda: not any(map(alive, scene.pods())))
    _suspend(scene, suspend=False)
    for name in ran:
        scene.await_running(name, 2)


def test_labelled_and_taken_out_again_while_they_run(batch: Scene) -> None:
    """Nothing of what runs is disturbed; those that muster has made stay where they are."""
    queue = batch.queue(cpu="4")
    unlabelled = job_set("set", queue, replicated("work", replicas=2))
    del unlabelled["metadata"]["labels"]
    batch.apply(unlabelled, runtime("plain", trainer()))
    _apply_train_job(batch, train_job("train", "plain", {}))
    ran = {name: _await_of(batch, name, old=2) for name in ("set", "train")}
    _label(batch, QUEUE_LABEL, queue)
    for name, before in ran.items():
        batch.await_event(name, "NotManaged")
        assert _await_of(batch, name, old=2) == before
    _suspend(batch)
    batch.wait("all to go", lambda: not any(map(alive, batch.pods())))
    _suspend(batch, suspend=False)
    ran = {}
    for name in ("set", "train"):
        batch.await_running(name, 2)
        ran[name] = _await_of(batch, name, new=2)
    _label(batch, MANAGED, "false")
    for name, before in ran.items():
        batch.await_state(name, "NotManaged")
        assert _await_of(batch, name, new=2) == before
    _label(batch, MANAGED, None)
    for name, before in ran.items():
        assert {pod["metadata"]["uid"] for pod in batch.await_running(name, 2) if alive(pod)} == before


def test_a_jobset_whose_first_wave_is_over_is_a_gang_of_what_is_left(batch: Scene) -> None:
    """Labelled while its first wave ran, and later suspended: the Jobs that have succeeded do not come again."""
    queue = batch.queue(cpu="2")
    after = [{"name": "prepare", "status": "Complete"}]
    waves = job_set("waves", queue, replicated("prepare"), replicated("train", pods=2, dependsOn=after))
    del waves["metadata"]["labels"]
    batch.apply(waves)
    _await_of(batch, "waves", old=1)
    batch.patch(JOB_SET.resource, "waves", {"metadata": {"labels": {QUEUE_LABEL: queue}}})
    batch.await_event("waves", "NotManaged")
    batch.annotate(PODS, *(pod["metadata"]["name"] for pod in batch.pods()), **{RUN_SECONDS: "0"})
    batch.wait("the second wave to run", lambda: [phase(pod) for pod in _of(batch, "waves")] == ["Running"] * 2)

    batch.patch(JOB_SET.resource, "waves", {"spec": {"suspend": True}})
    batch.wait("all to go", lambda: not any(map(alive, batch.pods())))
    batch.patch(JOB_SET.resource, "waves", {"spec": {"suspend": False}})
    batch.wait("it to run again", lambda: len(_of(batch, "waves")) == 2)
    batch.await_state("waves", "Running")
    _await_of(batch, "waves", new=2)
    assert batch.pod_group("waves")["spec"]["minTaskMember"] == {"train": 2}


def test_a_jobset_is_one_gang_of_all_its_jobs(batch: Scene) -> None:
    queue = batch.queue(cpu="5")
    jobs = (replicated("driver"), replicated("worker", replicas=2, pods=1))
    goes_through_its_life(batch, lambda name: job_set(name, queue, *jobs), pods=3)
    assert batch.pod_group("second")["spec"]["minTaskMember"] == {"driver": 1, "worker": 2}


def test_the_first_wave_is_the_gang_and_later_ones_join_it(batch: Scene) -> None:
    """Those that depend on others come when these are done, and take their place."""
    queue = batch.queue(cpu="2")
    after = [{"name": "prepare", "status": "Complete"}]
    batch.apply(job_set("waves", queue, replicated("prepare", pods=2), replicated("train", pods=2, dependsOn=after)))
    batch.await_running("waves", 2)
    assert batch.pod_group("waves")["spec"]["minTaskMember"] == {"prepare": 2}
    _end_role(batch, "waves", "prepare")
    batch.wait(
        "the second wave to run",
        lambda: [phase(pod) for pod in _of_role(batch, "waves", "train")] == ["Running"] * 2,
    )
    assert {GATE in gates(pod) for pod in batch.pods("waves")} == {False}
    _end_role(batch, "waves", "train")
    batch.await_state("waves", "Finished")
    batch.assert_never_above({"cpu": "2"})


def test_a_later_wave_waits_for_room_as_a_whole(batch: Scene) -> None:
    """A part of it would only wait for the rest; it starts when all of it has room."""
    queue = batch.queue(cpu="3")
    after = [{"name": "prepare", "status": "Complete"}]
    waves = (replicated("prepare"), replicated("train", pods=3, dependsOn=after))
    batch.apply(job_set("other", queue, replicated("work")), job_set("waves", queue, *waves))
    for gang in ("other", "waves"):
        batch.await_running(gang, 1)
    _end_role(batch, "waves", "prepare")
    batch.wait("word of it", lambda: "no room yet for cpu 3 more" in message(batch.pod_group("waves")))
    assert [gates(pod) for pod in _of_role(batch, "waves", "train")] == [[GATE]] * 3
    batch.delete(JOB_SET.resource, "other")
    batch.wait("it to run", lambda: [phase(pod) for pod in _of_role(batch, "waves", "train")] == ["Running"] * 3)
    batch.assert_never_above({"cpu": "3"})


def test_what_comes_when_others_are_ready_has_its_room_from_the_beginning(batch: Scene) -> None:
    """Of two JobSets that each fit alone the second waits: the nodes of both would keep the launchers from starting."""
    queue = batch.queue(cpu="4")
    jobs = (replicated("node", pods=2), replicated("launcher", dependsOn=[{"name": "node", "status": "Ready"}]))
    batch.apply(job_set("first", queue, *jobs))
    batch.await_running("first", 3)
    assert batch.pod_group("first")["spec"]["minResources"] == {"cpu": "3"}
    assert batch.pod_group("first")["spec"]["minMember"] == 2
    batch.apply(job_set("second", queue, *jobs))
    assert "needs cpu 3;" in message(batch.await_state("second", "WaitingForQuota"))
    for role in ("node", "launcher"):
        _end_role(batch, "first", role)
    batch.await_state("first", "Finished")
    batch.await_running("second", 3)
    batch.assert_never_above({"cpu": "4"})


def test_with_exclusive_placement_leaders_start_together_and_followers_join_them(batch: Scene, urgent: str) -> None:
    """JobSet refuses each follower until its leader has a node; the room of all is kept from the beginning.

    Exclusive it is among JobSets of one priority, and others run on these nodes.
    """
    queue = batch.queue(cpu="5")
    work = replicated("work", replicas=2, pods=2)
    work["template"]["spec"]["template"]["spec"]["priorityClassName"] = urgent

    def exclusive(name: str) -> Manifest:
        manifest = job_set(name, queue, work)
        manifest["metadata"]["annotations"] = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "kubernetes.io/hostname"}
        return manifest

    (warning,) = batch.told(exclusive("first"))
    assert "has JobSet make 2 of 4 pods first" in warning
    batch.create(exclusive("first"))
    batch.await_running("first", 4)
    assert batch.pod_group("first")["spec"]["minTaskMember"] == {"work": 2}
    places = {(pod["metadata"]["labels"]["jobset.sigs.k8s.io/job-index"], node_of(pod)) for pod in batch.pods("first")}
    assert len(places) == len(dict(places)) == 2, "each Job has a node of its own"

    batch.create(exclusive("second"))
    batch.await_gated("second", 2)
    assert message(batch.await_state("second", "WaitingForQuota")).startswith("needs cpu 4;")
    batch.delete(JOB_SET.resource, "first")
    batch.await_running("second", 4)
    batch.assert_never_above({"cpu": "5"})


def test_the_time_limits_of_its_jobs_bound_a_jobset_from_their_start(batch: Scene) -> None:
    """Its first pods tell when they began; at the end JobSet fails, and all that is left of it is deleted."""
    queue = batch.queue(cpu="2")
    limited = [replicated("driver"), replicated("worker")]
    for job, seconds in zip(limited, (_LIMIT, 3600), strict=True):
        job["template"]["spec"]["activeDeadlineSeconds"] = seconds
    batch.apply(job_set("holder", queue, replicated("work", pods=2)))
    batch.await_running("holder", 2)
    batch.apply(job_set("late", queue, *limited))
    batch.await_gated("late", 2)
    near = batch.await_event("late", "DeadlineNear")
    driver = batch.recorder.get(JOBS, "late-driver-0") or {}
    began, ends = seconds_of(driver["status"]["startTime"]), seconds_of(near.split(" ends at ")[1].split(",")[0])
    assert began is not None
    assert ends is not None
    assert abs(ends - (began + _LIMIT)) <= 1
    batch.wait(
        "the JobSet to fail",
        lambda: has_condition(batch.recorder.get(JOB_SET.resource, "late") or {}, "Failed"),
    )
    batch.wait("its pods to go", lambda: not batch.pods("late"))


def test_a_suspended_jobset_gives_its_place_back_and_queues_again(batch: Scene) -> None:
    queue = batch.queue(cpu="3")
    work = replicated("work", pods=2)
    batch.apply(job_set("first", queue, work))
    batch.await_running("first", 2)
    batch.apply(job_set("second", queue, work))
    batch.await_gated("second", 2)
    batch.patch(JOB_SET.resource, "first", {"spec": {"suspend": True}})
    batch.await_running("second", 2)
    batch.await_state("first", "Suspended")
    batch.patch(JOB_SET.resource, "first", {"spec": {"suspend": False}})
    batch.wait("the first to wait", lambda: [node_of(pod) for pod in batch.pods("first")] == ["", ""])
    batch.await_state("first", "WaitingForQuota")
    batch.delete(JOB_SET.resource, "second")
    batch.await_running("first", 2)
    batch.assert_never_above({"cpu": "3"})


def test_a_jobset_that_restarts_keeps_its_place(batch: Scene) -> None:
    """Its Jobs go, all of them, and come anew: nobody takes the room that they leave for a moment."""
    queue = batch.queue(cpu="3")
    work = replicated("work", replicas=2)
    work["template"]["spec"]["backoffLimit"] = 0
    batch.create(job_set("first", queue, work, failurePolicy={"maxRestarts": 1}))
    before = {pod["metadata"]["uid"] for pod in batch.await_running("first", 2)}
    batch.create(job_set("second", queue, replicated("work", pods=2)))
    waiting = {pod["metadata"]["uid"] for pod in batch.await_gated("second", 2)}

    one = batch.pods("first")[0]["metadata"]["name"]
    batch.annotate(PODS, one, **{FAIL_AFTER_SECONDS: "0"})
    batch.wait("its pods to go", lambda: not before & {pod["metadata"]["uid"] for pod in batch.pods("first")})
    batch.await_running("first", 2)
    assert {pod["metadata"]["uid"] for pod in batch.await_gated("second", 2)} == waiting
    batch.end("first")
    batch.await_state("first", "Finished")
    batch.await_running("second", 2)
    batch.assert_never_above({"cpu": "3"})


def test_a_train_job_is_the_gang_of_its_jobset(batch: Scene) -> None:
    """The JobSet says nothing of its own; the PodGroup is the TrainJob's."""
    queue = batch.queue(cpu="5")
    batch.apply(runtime("plain", trainer()))
    await_accepted(batch, train_job("any", "plain", {}))
    goes_through_its_life(batch, lambda name: train_job(name, "plain", {QUEUE_LABEL: queue}, nodes=3), pods=3)


def test_a_runtime_speaks_for_its_train_jobs(batch: Scene) -> None:
    """Volcano's own annotation on the runtime's template names the queue of all that run in it."""
    queue = batch.queue(cpu="2")
    batch.apply(runtime("queued", trainer(), metadata={"annotations": {QUEUE_ANNOTATION: queue}}))
    await_accepted(batch, train_job("silent", "queued", {}))
    batch.create(train_job("silent", "queued", {}))
    batch.await_running("silent", 2)
    assert batch.pod_group("silent")["spec"]["queue"] == queue


def test_a_patch_of_the_runtime_names_the_queue_of_a_train_job(batch: Scene) -> None:
    """And the pods ask for what muster counts: its resourcesPerNode over what the runtime has."""
    queue = batch.queue(cpu="2")
    batch.apply(runtime("plain", trainer()))
    job = train_job("patched", "plain", {})
    job["spec"]["trainer"]["resourcesPerNode"] = {"requests": {"memory": "1Gi"}}
    job["spec"]["runtimePatches"] = [patch(meta={"labels": {QUEUE_LABEL: queue}})]
    _apply_train_job(batch, job)
    batch.await_running("patched", 2)
    spec = batch.pod_group("patched")["spec"]
    assert (spec["queue"], spec["minResources"]) == (queue, {"cpu": "2", "memory": "2Gi"})
    for pod in batch.pods("patched"):
        assert pod["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1", "memory": "1Gi"}


def test_the_nodes_of_a_train_job_join_when_its_initializer_is_done(batch: Scene) -> None:
    queue = batch.queue(cpu="3")
    after = [{"name": "dataset-initializer", "status": "Complete"}]
    batch.apply(
        runtime(
            "steps",
            replicated("dataset-initializer", step="dataset-initializer"),
            replicated("node", step="trainer", dependsOn=after),
        )
    )
    _apply_train_job(batch, train_job("steps", "steps", {QUEUE_LABEL: queue}, nodes=3))
    batch.await_running("steps", 1)
    _end_role(batch, "steps", "dataset-initializer")
    batch.wait("the nodes to run", lambda: [phase(pod) for pod in _of_role(batch, "steps", "node")] == ["Running"] * 3)
    _end_role(batch, "steps", "node")
    batch.await_state("steps", "Finished")
    batch.assert_never_above({"cpu": "3"})


def test_pods_come_soon_after_a_long_outage_of_the_webhook(batch: Scene, muster: MusterInstall) -> None:
    """It is the Job controller that waits, and it hears of Jobs only: those that lack pods are touched."""
    queue = batch.queue(cpu="4")
    batch.apply(job_set("set", queue, replicated("work", replicas=2)), runtime("plain", trainer()))
    _apply_train_job(batch, train_job("train", "plain", {QUEUE_LABEL: queue}))
    gangs = {name: {pod["metadata"]["uid"] for pod in batch.await_running(name, 2)} for name in ("set", "train")}

    muster.stop_webhooks()
    down = version_now(batch)
    for name in gangs:
        batch.delete(PODS, batch.pods(name)[0]["metadata"]["name"], wait=False)
    batch.wait("the Job controller to be refused for both", lambda: len(_refused(batch)) == len(gangs))
    kinds = dict(zip(gangs, _KINDS, strict=True))
    batch.wait(
        "both workloads to be nudged while nobody answers",
        lambda: all(
            sum(at > down for at in nudges(batch, kind, name).values()) >= _NUDGES for name, kind in kinds.items()
        ),
        2 * PATIENCE,
    )
    muster.start_webhook()
    muster.wait_ready()
    back = version_now(batch)
    for name, before in gangs.items():
        uids = {pod["metadata"]["uid"] for pod in batch.await_running(name, 2)}
        assert_soon(batch, kinds[name], name, back, uids - before, long=True)


def _refused(scene: Scene) -> set[str]:
    """The Jobs of which an event says that a webhook did not answer for their pods."""
    return {
        event["regarding"]["name"]
        for event in scene.recorder.now(EVENTS)
        if event["regarding"]["kind"] == "Job" and "failed calling webhook" in event.get("note", "")
    }
