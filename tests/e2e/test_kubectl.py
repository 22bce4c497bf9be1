"""Every state as plain kubectl shows it: docs/kubectl.md. Kueue's and ElasticQuotas' states are in tests/pairs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from hack.testbed import Testbed
from muster.model.gang_states import GangState
from muster.model.names import (
    GROUP_NAME,
    HOLD,
    MANAGED,
    QUEUE_LABEL,
    REQUEUE_AFTER,
    RUNS_AT_MOST,
    SCHEDULER_LABEL,
    UNPLACED_AFTER,
)
from muster.model.resource import POD_GROUPS, PODS, QUEUES
from tests.support.cluster.propagation import await_accepted
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene, open_scene
from tests.support.manifests import applied
from tests.support.manifests.applied import pod, pytorch_job, ray_cluster
from tests.support.manifests.batch import runtime, train_job, trainer
from tests.support.pages.blocks import sentence
from tests.support.pages.recorded import keep_state
from tests.support.pages.walkthrough import Shell

pytestmark = pytest.mark.long


@contextmanager
def _team(testbed: Testbed, name: str) -> Iterator[Scene]:
    """A scene with a name that readers of the page like to read."""
    with open_scene(testbed, name) as scene:
        yield scene


def _keep(scene: Scene, state: GangState, subject: str) -> None:
    scene.await_event(subject.rpartition("/")[2], state)
    keep_state(scene, state, subject)


def _full(scene: Scene, **capability: str) -> str:
    """A queue of 4 cpu, of which a job that runs holds 3."""
    queue = scene.queue(**({"cpu": "4"} | capability))
    scene.apply(pytorch_job("resnet").policy(queue=queue).master(cpu="3"))
    scene.await_running("resnet", 1)
    return queue


def _waiting(scene: Scene) -> str:
    """The RayCluster bert waits in such a queue, whose name this is."""
    queue = _full(scene)
    scene.apply(ray_cluster("bert").label(QUEUE_LABEL, queue).workers(2))
    scene.await_state("ray-bert-pg", "WaitingForQuota")
    return queue


def _ray(kind: str, name: str, queue: str, **spec: object) -> Manifest:
    about = {"name": name, "labels": {QUEUE_LABEL: queue}}
    return {"apiVersion": "ray.io/v1", "kind": kind, "metadata": about, "spec": spec}


def _assembling(scene: Scene) -> None:
    queue = scene.queue(cpu="8")
    scene.apply(pod("notebook"))
    scene.resource_quota({"pods": "3"}, used={"pods": "1"})
    scene.apply(ray_cluster("bert").label(QUEUE_LABEL, queue).workers(2))
    _keep(scene, GangState.ASSEMBLING, "raycluster/bert")


def _waiting_for_quota(scene: Scene) -> None:
    queue = _full(scene)
    cluster = ray_cluster("any").workers(2).manifest()["spec"]
    scene.apply(_ray("RayJob", "bert", queue, entrypoint="python train.py", rayClusterSpec=cluster))
    _keep(scene, GangState.WAITING_FOR_QUOTA, "rayjob/bert")
    reader = Shell.on(scene.testbed, {})
    waiting = reader.obey(sentence("docs/reasons.md", "kubectl get podgroups -A -l muster.dev/state=WaitingForQuota"))
    mine = [line.split() for line in waiting.splitlines() if line.startswith(f"{scene.namespace} ")]
    assert [name.startswith("ray-bert-") for _, name, *_ in mine] == [True], "the label selects"
    column = sentence("docs/reasons.md", "kubectl get podgroups -L muster.dev/state")
    assert "WaitingForQuota" in reader.obey(f"{column} --namespace {scene.namespace}")


def _exceeds_capability(scene: Scene) -> None:
    queue = _waiting(scene)
    scene.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "2"}}})
    _keep(scene, GangState.EXCEEDS_CAPABILITY, "raycluster/bert")


def _queue_not_found(scene: Scene) -> None:
    scene.delete(QUEUES, _waiting(scene))
    _keep(scene, GangState.QUEUE_NOT_FOUND, "raycluster/bert")


def _queue_closed(scene: Scene) -> None:
    scene.operate_queue(_waiting(scene), "CloseQueue")
    _keep(scene, GangState.QUEUE_CLOSED, "raycluster/bert")


def _queue_not_leaf(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    job = pytorch_job("bert").policy(queue=queue)
    scene.apply(job.suspended())
    below = f"{queue}-nightly"
    scene.adopt_queue(below)
    child = applied.queue(below, cpu="2")
    child["spec"]["parent"] = queue
    scene.apply(child)
    scene.await_queue(below)
    scene.apply(job.suspended(suspend=False))
    _keep(scene, GangState.QUEUE_NOT_LEAF, "pytorchjob/bert")


def _on_hold(scene: Scene) -> None:
    _waiting(scene)
    scene.annotate(RAY_CLUSTERS, "bert", **{HOLD: "true"})
    _keep(scene, GangState.ON_HOLD, "raycluster/bert")


def _deadlines(scene: Scene) -> None:
    queue = _full(scene)
    limit = {"activeDeadlineSeconds": 20}
    scene.apply(replace(pytorch_job("bert").policy(queue=queue).workers(1), run_policy=limit))
    _keep(scene, GangState.DEADLINE_NEAR, "pytorchjob/bert")
    _keep(scene, GangState.DEADLINE_PASSED, "pytorchjob/bert")


def _admitted_and_unschedulable(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    scene.annotate(QUEUES, queue, **{UNPLACED_AFTER: "10s"})
    scene.apply(ray_cluster("bert").label(QUEUE_LABEL, queue).workers(2).head(memory="4000Gi"))
    _keep(scene, GangState.ADMITTED, "raycluster/bert")
    _keep(scene, GangState.UNSCHEDULABLE, "raycluster/bert")


def _requeued(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    asks = ray_cluster("bert").label(QUEUE_LABEL, queue).annotate(REQUEUE_AFTER, "5s")
    scene.apply(asks.workers(2).head(memory="4000Gi"))
    _keep(scene, GangState.REQUEUED, "raycluster/bert")


def _running(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    cluster = ray_cluster("any").workers(2).manifest()["spec"]
    serves = "applications: [{name: main, import_path: main.app}]"
    scene.apply(_ray("RayService", "chat", queue, serveConfigV2=serves, rayClusterConfig=cluster))
    _keep(scene, GangState.RUNNING, "rayservice/chat")


def _not_ready(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    scene.annotate(QUEUES, queue, **{UNPLACED_AFTER: "5s"})
    scene.apply(ray_cluster("bert").label(QUEUE_LABEL, queue).workers(2))
    pods = scene.await_running("ray-bert-pg", 3)
    worker = next(one["metadata"]["name"] for one in pods if "worker" in one["metadata"]["name"])
    waits = {"name": "nginx", "ready": False, "restartCount": 0, "image": "none", "imageID": ""}
    waits["state"] = {"waiting": {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "none"'}}
    status = {"phase": "Pending", "containerStatuses": [waits], "conditions": [{"type": "Ready", "status": "False"}]}
    scene.patch(PODS, worker, {"status": status}, "status")
    _keep(scene, GangState.NOT_READY, "raycluster/bert")


def _finished(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    scene.apply(pytorch_job("bert").policy(queue=queue).workers(1))
    scene.await_running("bert", 2)
    scene.end("bert")
    _keep(scene, GangState.FINISHED, "pytorchjob/bert")


def _runs_longer(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    scene.apply(pytorch_job("bert").policy(queue=queue).workers(1).annotate(RUNS_AT_MOST, "1m"))
    scene.await_running("bert", 2)
    _keep(scene, GangState.RUNS_LONGER, "pytorchjob/bert")


def _still_held(scene: Scene) -> None:
    _waiting(scene)
    scene.label(RAY_CLUSTERS, "bert", **{QUEUE_LABEL: None})
    _keep(scene, GangState.STILL_HELD, "raycluster/bert")


def _suspended(scene: Scene) -> None:
    job = pytorch_job("bert").policy(queue=_full(scene)).workers(1)
    scene.apply(job)
    scene.await_state("bert", "WaitingForQuota")
    scene.patch(PYTORCH_JOBS, "bert", {"spec": {"runPolicy": {"suspend": True}}})
    _keep(scene, GangState.SUSPENDED, "pytorchjob/bert")


def _invalid(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    none = {f"count/{POD_GROUPS.full_name}": "0"}
    scene.resource_quota(none, used=none)
    scene.apply(ray_cluster("bert").label(QUEUE_LABEL, queue).workers(1))
    _keep(scene, GangState.INVALID, "raycluster/bert")


def _foreign_pod_group(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    about = {"apiVersion": POD_GROUPS.api_version, "kind": POD_GROUPS.kind, "metadata": {"name": "ray-bert-pg"}}
    scene.apply({**about, "spec": {"minMember": 7, "queue": queue}})
    scene.apply(ray_cluster("bert").label(QUEUE_LABEL, queue).workers(1))
    _keep(scene, GangState.FOREIGN_POD_GROUP, "raycluster/bert")


def _external(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    bound = replace(ray_cluster("bert"), pod_annotations={GROUP_NAME: "mine"})
    scene.apply(bound.label(QUEUE_LABEL, queue).label(SCHEDULER_LABEL, "volcano").workers(1))
    _keep(scene, GangState.EXTERNAL, "raycluster/bert")


def _not_managed(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    scene.apply(ray_cluster("bert").label(QUEUE_LABEL, queue).workers(1))
    scene.await_running("ray-bert-pg", 2)
    scene.label(RAY_CLUSTERS, "bert", **{MANAGED: "false"})
    _keep(scene, GangState.NOT_MANAGED, "raycluster/bert")


_STORIES: dict[str, Callable[[Scene], None]] = {
    "robotics": _assembling,
    "vision": _waiting_for_quota,
    "search": _exceeds_capability,
    "archive": _queue_not_found,
    "night": _queue_closed,
    "speech": _queue_not_leaf,
    "planning": _on_hold,
    "hurry": _deadlines,
    "giants": _admitted_and_unschedulable,
    "patient": _requeued,
    "support": _running,
    "images": _not_ready,
    "weather": _finished,
    "overtime": _runs_longer,
    "moving": _still_held,
    "pausing": _suspended,
    "counted": _invalid,
    "shared": _foreign_pod_group,
    "own": _external,
    "leaving": _not_managed,
}


@pytest.mark.parametrize("team", _STORIES)
def test_kubectl_shows_each_state(team: str, testbed: Testbed, muster: object) -> None:
    """What it shows is what the page has; each state in a namespace of its own."""
    del muster
    with _team(testbed, team) as scene:
        _STORIES[team](scene)


def test_a_train_job_tells_its_story(added_operators: Testbed, muster: object) -> None:
    """Not only the JobSet, the Jobs and the pods that others make of it."""
    del muster
    with _team(added_operators, "language") as scene:
        queue = _full(scene)
        scene.apply(runtime("plain", trainer()))
        job = train_job("bert", "plain", {QUEUE_LABEL: queue})
        await_accepted(scene, job)
        scene.apply(job)
        scene.await_event("bert", "WaitingForQuota")
        keep_state(scene, GangState.WAITING_FOR_QUOTA, "trainjob/bert", name="TrainJob")
