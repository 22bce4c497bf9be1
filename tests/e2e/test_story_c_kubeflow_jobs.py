"""Story C: Kubeflow's jobs and gang scheduling: silent ones (C1), all or nothing (C4), crashes under load (C5)."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from hack.testbed import Testbed
from muster.model.names import BOUND, GATE, MANAGED, QUEUE_ANNOTATION
from muster.model.resource import NAMESPACES, PODS, QUEUES
from muster.workloads.kubeflow import TF_JOB
from tests.support.cluster.propagation import await_said
from tests.support.cluster.recorder import Manifest
from tests.support.cluster.scene import Scene, admitted, alive, gates, message, node_of, open_scene, phase
from tests.support.cluster.timeline import shown, timeline
from tests.support.manifests.applied import PyTorchJob, pytorch_job
from tests.support.pages.seeds import GATED, Point, told

_EIGHT = 8
_CRASHES = (1, 2, 2)
_WORDS = {1: ("a worker of J1 dies", "its replacement runs"), 2: ("two of J1 die", "their replacements run")}
_ONE_BY_ONE = "J1 starts, J1 runs, J2 waits, J1 ends, J2 starts, J2 runs"


def _tf_job(name: str, gpu: str = "1") -> Manifest:
    """As it would be without gang scheduling: no label, no policy, amounts in limits only."""

    def replica(**limits: str) -> Manifest:
        container = {"name": "tensorflow", "image": "none", "resources": {"limits": limits}}
        return {"replicas": 1, "restartPolicy": "Never", "template": {"spec": {"containers": [container]}}}

    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": name},
        "spec": {"tfReplicaSpecs": {"Worker": replica(**{"nvidia.com/gpu": gpu}), "PS": replica(cpu="1")}},
    }


@pytest.mark.usefixtures("muster")
def test_c1_a_tfjob_that_says_nothing_is_a_gang_where_its_namespace_is_opted_in(testbed: Testbed) -> None:
    """C1: the YAML is as without gang scheduling, with amounts in limits only. What can never run is refused."""
    with open_scene(testbed, "story-c1", kinds=(TF_JOB.resource,)) as scene:
        queue = scene.queue(cpu="1", **{"nvidia.com/gpu": "1"})
        scene.annotate(NAMESPACES, scene.namespace, **{QUEUE_ANNOTATION: queue})
        scene.label(NAMESPACES, scene.namespace, **{MANAGED: "true"})
        speaks = f"namespace {scene.namespace}: metadata.annotations[{QUEUE_ANNOTATION}]"
        await_said(scene, _tf_job("large", gpu="2"), f'{speaks}: gang "large" needs nvidia.com/gpu 2')
        scene.create(_tf_job("first"))
        scene.await_running("first", 2)
        assert admitted(scene.pod_group("first"))
        scene.create(_tf_job("second"))
        assert not any(node_of(pod) for pod in scene.await_gated("second", 2))
        scene.await_state("second", "WaitingForQuota")
        pods = shown(scene, "second")
        scene.end("first")
        assert not admitted(scene.await_state("first", "Finished")), "an ended job still holds its place"
        scene.await_running("second", 2)
        for gang in ("first", "second"):
            scene.assert_started_together(gang, 2)
        assert all(GATE not in gates(pod) for pod in scene.pods())
        group = scene.pod_group("second")["spec"]
        assert group["queue"] == queue
        owners = [(one["kind"], one["uid"]) for one in scene.pod_group("second")["metadata"]["ownerReferences"]]
        assert owners == [("TFJob", admitted(scene.pod_group("second")))]
        told(
            "C1. A TFJob that says nothing of gang scheduling",
            "A worker with a GPU and a parameter server with a cpu, both in limits only, in a namespace with the label "
            '`muster.dev/managed: "true"`.',
            Point("order of two jobs where one fits", _ONE_BY_ONE, timeline(scene, {"first": "J1", "second": "J2"})),
            Point("minMember", "2", str(group["minMember"])),
            Point(
                "minResources",
                "cpu 1, nvidia.com/gpu 1",
                ", ".join(f"{name} {amount}" for name, amount in sorted(group["minResources"].items())),
            ),
            Point("pods of J2 while it waits", "2 Pending", pods, GATED),
        )


@pytest.fixture
def bound(scene: Scene) -> Iterator[Scene]:
    """The root queue is bound to what the nodes can hold."""
    scene.await_queue("root")
    scene.annotate(QUEUES, "root", **{BOUND: "nodes"})
    yield scene
    scene.annotate(QUEUES, "root", **{BOUND: None})


def _job(name: str, pods: int, queue: str) -> PyTorchJob:
    """A job of so many pods, of which eight find place on the four nodes of 16 cpu."""
    return pytorch_job(name).master(cpu="7500m").workers(pods - 1, cpu="7500m").policy(queue=queue)


@contextmanager
def _room_for_six(scene: Scene, queue: str) -> Iterator[list[tuple[int, str]]]:
    """Another job has two of the eight places until the body ends; then say when the last of them was free."""
    scene.apply(_job("other", 2, queue))
    scene.await_running("other", 2)
    marks: list[tuple[int, str]] = []
    yield marks
    scene.end("other")
    scene.await_ended("other")
    # A job has succeeded with its master.
    scene.wait("its worker to end", lambda: not any(map(alive, scene.pods("other"))))
    scene.recorder.settle()
    ends = [
        scene.recorder.first(PODS, lambda pod, name=pod["metadata"]["name"]: _has_ended(pod, name)).version  # type: ignore[misc]
        for pod in scene.pods("other")
    ]
    marks.append((max(ends), "room comes"))


def _has_ended(pod: Manifest, name: str) -> bool:
    return bool(pod["metadata"]["name"] == name) and not alive(pod)


_ALL_OR_NOTHING = (
    "A job of eight pods in a queue without limit; another job leaves room for six of them, and ends later. "
)


def test_c4_where_nodes_bound_the_root_queue_all_wait_gated_until_all_find_room(bound: Scene) -> None:
    """C4, `bound: nodes`: muster itself holds the gang, for it knows what the nodes can give together."""
    scene = bound
    queue = scene.queue()
    with _room_for_six(scene, queue) as marks:
        scene.apply(_job("job", _EIGHT, queue))
        scene.await_gated("job", _EIGHT)
        assert "the cluster" in message(scene.await_state("job", "WaitingForQuota"))
        pods = shown(scene, "job")
    scene.await_running("job", _EIGHT)
    scene.assert_started_together("job", _EIGHT)
    told(
        "C4. All or nothing on the nodes, bounded",
        f"{_ALL_OR_NOTHING}The queue `root` has the annotation `muster.dev/bound: nodes`.",
        Point(
            "order",
            "the job waits, room comes, the job starts, the job runs",
            timeline(scene, {"job": "the job"}, marks),
        ),
        Point("pods while they wait", f"{_EIGHT} Pending", pods, GATED),
    )


def _finds_no_place(pod: Manifest) -> bool:
    """Volcano has tried this pod; before its gate opened, the reason was another."""
    conditions = pod.get("status", {}).get("conditions", [])
    return any((c["type"], c.get("reason")) == ("PodScheduled", "Unschedulable") for c in conditions)


def test_c4_where_nothing_bounds_volcano_holds_all_until_all_find_room(scene: Scene) -> None:
    """C4 by default: muster leaves nodes to the scheduler, whose gang plugin places all of the gang or nothing."""
    queue = scene.queue()
    with _room_for_six(scene, queue) as marks:
        scene.apply(_job("job", _EIGHT, queue))
        scene.await_state("job", "Admitted")
        scene.wait("Volcano's try", lambda: all(_finds_no_place(pod) for pod in scene.pods("job")))
        assert not any(node_of(pod) for pod in scene.pods("job"))
        pods = shown(scene, "job")
        marks.append(
            (
                scene.recorder.first(
                    PODS, lambda pod: pod["metadata"]["name"].startswith("job-") and _finds_no_place(pod)
                ).version,
                "Volcano finds no place",
            )
        )
    scene.await_running("job", _EIGHT)
    told(
        "C4. All or nothing on the nodes, left to Volcano",
        f"{_ALL_OR_NOTHING}Volcano places the gang when there is room.",
        Point(
            "order",
            "Volcano finds no place, room comes, the job starts, the job runs",
            timeline(scene, {"job": "the job"}, marks),
        ),
        Point("pods while they wait", f"{_EIGHT} Pending", pods),
    )


def test_c5_in_a_capped_queue_the_replacement_starts_and_the_other_waits_on(scene: Scene) -> None:
    """C5 (issue 5, 6.2): two jobs in a queue that holds one and a half."""
    queue = scene.queue(cpu="6")
    order = _crash(scene, pytorch_job("").workers(3).policy(queue=queue), 4, f'queue "{queue}"')
    told(
        "C5. Crash under load, in a capped queue",
        f"Two jobs of four pods in a queue for six. {_CRASHED}\n\n{_WITHOUT_MUSTER}",
        order,
    )
    scene.assert_never_open_above()


def test_c5_on_few_nodes_without_any_cap_too(bound: Scene) -> None:
    """C5: where the queue limits nothing, the nodes do."""
    order = _crash(bound, _job("", 5, bound.queue()), 5, "the cluster")
    told(
        "C5. Crash under load, on few nodes",
        f"Two jobs of five pods in a queue without limit, on nodes for eight (`muster.dev/bound: nodes`). {_CRASHED}",
        order,
    )


_CRASHED = "A worker of the running job dies, then two at once, then two again."
_WITHOUT_MUSTER = """\
With the Training operator's flag and Volcano 1.14.1 instead of muster, J2 takes the place of two workers that die at
once: in all of 7 tries in the queue, and in all of 3 on nodes for six pods. J1 then holds two places, does nothing, and
is whole again only when J2 has ended (`tests/e2e/test_operator_flag.py`). A single worker was always replaced (20 tries
each). A deadlock was not seen: Volcano places all missing pods of a gang or none."""


def _crash(scene: Scene, job: PyTorchJob, pods: int, where: str) -> Point:
    scene.apply(replace(job, name="first"))
    scene.await_running("first", pods)
    scene.apply(replace(job, name="second"))
    assert where in message(scene.await_state("second", "WaitingForQuota"))

    marks = []
    for count in _CRASHES:
        before = _uids(scene)
        workers = [pod for pod in scene.pods("first") if pod["metadata"]["name"].startswith("first-worker")]
        lost = {pod["metadata"]["uid"] for pod in workers[:count]}
        scene.delete(PODS, *(pod["metadata"]["name"] for pod in workers[:count]))
        scene.wait("the crash to be seen", lambda lost=lost: not lost & _uids(scene))  # type: ignore[misc]
        scene.await_running("first", pods)
        marks += _crash_and_replacement(scene, lost, _uids(scene) - before)
    scene.recorder.settle()
    assert [gates(pod) for pod in scene.pods("second")] == [[GATE]] * pods

    scene.end("first")
    scene.await_ended("first")
    scene.await_running("second", pods)
    scene.end("second")
    scene.await_ended("second")
    crashes = ", ".join(", ".join(_WORDS[count]) for count in _CRASHES)
    order = timeline(scene, {"first": "J1", "second": "J2"}, marks)
    assert order == f"J1 starts, J1 runs, J2 waits, {crashes}, J1 ends, J2 starts, J2 runs, J2 ends"
    return Point(
        "order",
        "J1 starts, J1 runs, J2 waits, some of J1 die; J2 may take their place, and the two block each other",
        order,
        "a gang keeps its quota until its workload ends: no other gang takes the place of a crashed member",
    )


def _crash_and_replacement(scene: Scene, lost: set[str], new: set[str]) -> list[tuple[int, str]]:
    """The last of the lost to go, and the last of the new ones to run."""
    history = [(seen, seen.object["metadata"]["uid"]) for seen in scene.recorder.history(PODS)]
    died = max(seen.version for seen, uid in history if uid in lost and seen.gone)
    ran = {uid: seen.version for seen, uid in reversed(history) if uid in new and phase(seen.object) == "Running"}
    return list(zip((died, max(ran.values())), _WORDS[len(new)], strict=True))


def _uids(scene: Scene) -> set[str]:
    return {pod["metadata"]["uid"] for pod in scene.pods("first")}
