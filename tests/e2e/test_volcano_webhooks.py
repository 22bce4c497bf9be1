"""Volcano's own webhooks beside muster's: both see the same pods, PodGroups, Jobs and Queues, in either order."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar

import pytest

from hack.testbed import Testbed, wait_for
from hack.testbed.api import Api
from muster.model.names import (
    GANG,
    GATE,
    GROUP_NAME,
    QUEUE_ANNOTATION,
    QUEUE_LABEL,
    QUEUEING,
    SCHEDULER_LABEL,
)
from muster.model.resource import MUTATING_WEBHOOKS, NAMESPACES, POD_GROUPS, QUEUES
from muster.queueing.verdicts import no_such_queue
from tests.support.cli.in_process import muster as muster_command
from tests.support.cluster.claim_terms import GANG_QUEUES
from tests.support.cluster.gang_queues import serving_gang_queues
from tests.support.cluster.recorder import RAY_CLUSTERS, VOLCANO_JOBS, Manifest
from tests.support.cluster.scene import PATIENCE, admitted, gates, open_scene, phase
from tests.support.manifests import applied
from tests.support.manifests.applied import RUN_SECONDS, PyTorchJob, RayCluster, pytorch_job, ray_cluster

pytestmark = pytest.mark.part("bare")

W = TypeVar("W", RayCluster, PyTorchJob)

_CONFIGURATIONS = "mutatingwebhookconfigurations,validatingwebhookconfigurations"
_RESOURCE_GROUP = "volcano.sh/resource-group"
# What Volcano's webhook does to pods with such an annotation.
_RESOURCE_GROUPS: dict[str, Manifest] = {
    "linux": {"labels": {"kubernetes.io/os": "linux"}, "tolerations": [{"key": "linux", "operator": "Exists"}]},
    "unnamed": {"schedulerName": "default-scheduler"},
    "theirs": {"schedulerName": "their-own"},
}


def _admission_conf() -> str:
    groups = [
        {"resourceGroup": name, "object": {"key": "annotation", "value": [f"{_RESOURCE_GROUP}: {name}"]}, **does}
        for name, does in _RESOURCE_GROUPS.items()
    ]
    return json.dumps({"resourceGroups": groups})


@pytest.fixture(scope="module")
def volcanos_webhooks(testbed: Testbed) -> Iterator[None]:
    """Volcano's webhooks, all of them, on the session's testbed until the last test of this file."""
    conf = testbed.state / "conf" / "volcano-admission" / "volcano-admission.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text(_admission_conf())
    testbed.start_part("volcano-webhooks", extra_args=(f"--admission-conf={conf}",))
    wait_for("Volcano's webhooks", lambda: _answer(testbed), PATIENCE)
    yield
    there = testbed.kubectl("get", _CONFIGURATIONS, "--output=name").stdout.split()
    testbed.kubectl("delete", *(name for name in there if "/volcano-admission-service-" in name))
    testbed.stop_part("volcano-webhooks")


@pytest.fixture
def both(testbed: Testbed, volcanos_webhooks: None, muster: object) -> Testbed:
    """A testbed with Volcano's webhooks and with muster."""
    del volcanos_webhooks, muster
    return testbed


def _answer(testbed: Testbed) -> bool:
    return testbed.api()("POST", f"{QUEUES.path()}?dryRun=All", applied.queue("probe")).ok


@pytest.fixture(params=["first", "last"])
def musters_turn(both: Testbed, request: pytest.FixtureRequest) -> Iterator[str]:
    """The apiserver calls mutating webhooks in the order of the names of their configurations."""
    if request.param == "last":
        _rename(both, "muster", "zz-muster")
    yield request.param
    if request.param == "last":
        _rename(both, "zz-muster", "muster")


def _rename(testbed: Testbed, old: str, new: str) -> None:
    api = testbed.api()
    there = api.get(MUTATING_WEBHOOKS.path(name=old))
    there["metadata"] = {"name": new, **{key: there["metadata"][key] for key in ("labels", "annotations")}}
    api.create(MUTATING_WEBHOOKS.path(), there)
    api.delete(MUTATING_WEBHOOKS.path(name=old))


def _grouped(workload: W, group: str) -> W:
    """With pods of a resource group of Volcano's."""
    return replace(workload, pod_annotations={**workload.pod_annotations, _RESOURCE_GROUP: group})


def test_gangs_wait_and_run_whoever_is_asked_first(both: Testbed, musters_turn: str) -> None:
    """Pods have what Volcano's webhook adds and what muster's does, and nobody's is lost in the second round."""
    with open_scene(both, f"gangs-muster-{musters_turn}") as scene:
        queue = scene.queue(cpu="5")
        scene.apply(_grouped(ray_cluster("ray").label(QUEUE_LABEL, queue).workers(2), "linux"))
        scene.await_running("ray-ray-pg", 3)
        # Theirs is only another word for what muster may change.
        scene.apply(_grouped(pytorch_job("train").policy(queue=queue).workers(2), "unnamed"))
        waiting = scene.await_gated("train", 3)
        assert {pod["spec"]["schedulerName"] for pod in waiting} == {"volcano"}
        for pod in scene.pods("ray-ray-pg"):
            assert pod["spec"]["nodeSelector"] == {"kubernetes.io/os": "linux"}
            assert "linux" in {one.get("key") for one in pod["spec"]["tolerations"]}
            assert pod["metadata"]["annotations"][GROUP_NAME] == "ray-ray-pg"
        scene.await_state("train", "WaitingForQuota")
        scene.delete(RAY_CLUSTERS, "ray")
        scene.await_running("train", 3)
        for gang in ("ray-ray-pg", "train"):
            scene.assert_started_together(gang, 3)


def test_pods_that_volcanos_webhook_gives_to_another_scheduler_are_left_alone(both: Testbed, musters_turn: str) -> None:
    """Also those that muster had bound and held before: nobody would ever open their gates."""
    with open_scene(both, f"theirs-muster-{musters_turn}") as scene:
        queue = scene.queue(cpu="5")
        scene.apply(_grouped(ray_cluster("ray").label(QUEUE_LABEL, queue).workers(1), "theirs"))
        scene.wait("its pods", lambda: len(scene.pods()) == 2)
        scene.await_event("ray", "NotManaged")
        for pod in scene.pods():
            assert (gates(pod), pod["spec"]["schedulerName"]) == ([], "their-own")
            assert GANG not in pod["metadata"]["labels"]
            assert GROUP_NAME not in pod["metadata"].get("annotations", {})


def test_a_gang_of_queue_default_stays_there_where_its_namespace_names_another(both: Testbed) -> None:
    """Volcano's webhook moves a new PodGroup of queue "default"; nothing is decided before it is back."""
    with open_scene(both, "queue-default") as scene:
        other = scene.queue("-other", cpu="1")
        scene.annotate(NAMESPACES, scene.namespace, **{QUEUE_ANNOTATION: other})
        scene.apply(ray_cluster("stays").label(QUEUE_LABEL, "default").workers(1))
        scene.await_running("ray-stays-pg", 2)
        scene.apply(ray_cluster("goes").label(SCHEDULER_LABEL, "volcano"))
        scene.await_running("ray-goes-pg", 1)
        queues = {
            (seen.name, seen.object["spec"]["queue"])
            for seen in scene.recorder.history(POD_GROUPS)
            if admitted(seen.object)
        }
        assert queues == {("ray-stays-pg", "default"), ("ray-goes-pg", other)}


def test_a_refused_pod_group_is_said_and_its_gang_starts_when_the_reason_is_gone(both: Testbed) -> None:
    """Volcano's webhook takes no new PodGroup into a queue that is missing or closed; the workload says which."""
    with open_scene(both, "refused") as scene:
        queue = scene.queue(cpu="4")
        # They were accepted, and have no pods yet, when their queue goes.
        lost, shut = (ray_cluster(name).label(QUEUE_LABEL, queue).workers(1) for name in ("lost", "shut"))
        scene.apply(lost.suspended(), shut.suspended())
        scene.wait("both to be suspended", lambda: len(scene.recorder.now(RAY_CLUSTERS)) == 2)
        scene.delete(QUEUES, queue)
        scene.apply(lost.suspended(suspend=False))
        assert scene.await_event("lost", "QueueNotFound") == no_such_queue(queue, scene.namespace)
        assert all(gates(pod) == [GATE] for pod in scene.await_gated("ray-lost-pg", 2))
        assert not scene.recorder.now(POD_GROUPS)
        scene.apply(applied.queue(queue, cpu="4"))
        scene.await_running("ray-lost-pg", 2)

        scene.operate_queue(queue, "CloseQueue")
        scene.await_queue(queue, "Closing")
        scene.apply(shut.suspended(suspend=False))
        assert scene.await_event("shut", "QueueClosed") == f'queue "{queue}" is Closing and takes no new work'
        scene.await_gated("ray-shut-pg", 2)
        assert [group["metadata"]["name"] for group in scene.recorder.now(POD_GROUPS)] == ["ray-lost-pg"]
        scene.operate_queue(queue, "OpenQueue")
        scene.await_running("ray-shut-pg", 2)


def _volcano_job(name: str, queue: str, cpu: str) -> Manifest:
    """With nothing in it that Volcano's webhook fills in: scheduler, minAvailable, names of tasks."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    # kwok ends the pods of any Job at once, unless told otherwise.
    template = {
        "metadata": {"annotations": {RUN_SECONDS: "3600"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"queue": queue, "tasks": [{"replicas": 2, "template": template}]},
    }


def test_a_volcano_job_is_judged_as_volcanos_webhook_has_filled_it_in(both: Testbed) -> None:
    """All of its pods count, as Volcano writes into it; one that fits runs, and takes room."""
    with open_scene(both, "volcano-jobs", kinds=(VOLCANO_JOBS, RAY_CLUSTERS)) as scene:
        queue = scene.queue(cpu="4")
        said = scene.refused(_volcano_job("large", queue, "3"))
        assert f'needs cpu 6, queue "{queue}" has capability cpu 4' in said
        scene.apply(_volcano_job("fits", queue, "1500m"))
        scene.recorder.settle()
        job = scene.recorder.first(VOLCANO_JOBS, lambda item: item["metadata"]["name"] == "fits").object["spec"]
        assert (job["minAvailable"], job["schedulerName"], job["tasks"][0]["name"]) == (2, "volcano", "default0")
        scene.wait("it to run", lambda: [phase(pod) for pod in scene.pods()] == ["Running"] * 2)
        scene.apply(ray_cluster("beside").label(QUEUE_LABEL, queue).workers(1))
        assert "has cpu 1 free of cpu 4" in scene.await_event("beside", "WaitingForQuota")


def test_what_muster_reads_on_queues_survives_volcanos_webhooks(both: Testbed) -> None:
    """A strict queue that Volcano's webhook has filled in and checked is strict; and nothing runs in a parent."""
    with open_scene(both, "queues") as scene:
        name = scene.namespace
        asked = {QUEUEING: "strict", "muster.dev/patience": "30m"}
        hdrf = {"volcano.sh/hierarchy": "science", "volcano.sh/hierarchy-weights": "2"}
        manifest = applied.queue(name, cpu="2")
        del manifest["spec"]["weight"]
        manifest["metadata"]["annotations"] = {**asked, **hdrf}
        scene.adopt_queue(name)
        scene.apply(manifest)
        scene.await_queue(name)
        there = scene.api.get(QUEUES.path(name=name))
        assert asked.items() <= there["metadata"]["annotations"].items()
        assert there["metadata"]["annotations"]["volcano.sh/hierarchy"] == "root/science"
        assert there["spec"]["reclaimable"] is True

        # Of the same second, names decide who is first.
        for gang, workers in (("first", 0), ("second", 1), ("third", 0)):
            scene.apply(ray_cluster(gang).label(QUEUE_LABEL, name).workers(workers))
            scene.await_state(f"ray-{gang}-pg", "Running" if gang == "first" else "WaitingForQuota")
        assert 'gang "ray-second-pg" is before it in a strict queue' in scene.await_event("third", "WaitingForQuota")

        child = applied.queue(f"{name}-child")
        child["spec"]["parent"] = name
        scene.wait(
            "Volcano to count the pod",
            lambda: scene.api.get(QUEUES.path(name=name))["status"].get("allocated", {}).get("pods"),
        )
        # Whoever answers first: muster's looks at the PodGroups, Volcano's at the pods.
        refusal = scene.refused(child)
        assert refusal.startswith("QueueHierarchy:") or "because it has allocated Pods: 1" in refusal


def test_gang_queues_become_queues_one_below_the_other(both: Testbed) -> None:
    """Volcano's webhook refuses a queue whose parent it does not know: in a dry run, or yet."""
    names = [f"moved-{one}" for one in ("top", "middle", "low")]
    with serving_gang_queues(both.api()) as api:
        _copied(both, api, names)


def _copied(both: Testbed, api: Api, names: list[str]) -> None:
    for name, parent in zip(names, ("", *names), strict=False):
        spec = {"capability": {"cpu": "4"}} | ({"parent": parent} if parent else {})
        made = {"apiVersion": GANG_QUEUES.api_version, "kind": GANG_QUEUES.kind, "metadata": {"name": name}}
        api.create(GANG_QUEUES.path(), {**made, "spec": spec})
    try:
        command = ("migrate-queues", "--to=volcano", "--yes", f"--kubeconfig={both.kubeconfig}")
        dry = muster_command(*command, "--dry-run")
        assert (dry.returncode, dry.stderr) == (0, "")
        said = [line for line in dry.stdout.splitlines() if "moved" in line]
        assert said == [f"queue {name}: would be made" for name in names]
        assert not api("GET", QUEUES.path(name=names[0])).ok
        done = muster_command(*command)
        assert (done.returncode, done.stderr) == (0, "")
        assert api.get(QUEUES.path(name=names[2]))["spec"]["parent"] == names[1]
    finally:
        for name in reversed(names):
            api.delete(GANG_QUEUES.path(name=name), missing_ok=True)
            # Volcano's webhook hears by a watch that the queue's child is gone.
            wait_for(f"Volcano to let {name} go", partial(_gone, api, name), PATIENCE)


def _gone(api: Api, queue: str) -> bool:
    answer = api("DELETE", QUEUES.path(name=queue))
    return answer.ok or answer.status == 404
