"""PodGroups on the real Volcano: others' hands on them, its status, and changes while the gang runs."""

from itertools import pairwise

from muster.model.names import GATE, QUEUE_LABEL
from muster.model.resource import POD_GROUPS
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene, gates, has_condition, message, phase
from tests.support.manifests.applied import pytorch_job, ray_cluster

_GANG = "ray-demo-pg"


def _spec(scene: Scene) -> Manifest:
    spec: Manifest = scene.pod_group(_GANG)["spec"]
    return spec


def test_what_is_musters_is_put_right_and_what_is_not_stays(scene: Scene) -> None:
    """Numbers, a role, the queue and an annotation of the workload's are put back; others' own words are not."""
    queue = scene.queue(cpu="4")
    scene.apply(ray_cluster("demo").label(QUEUE_LABEL, queue).annotate("volcano.sh/x", "y").workers(2))
    scene.await_running(_GANG, 3)
    before = _spec(scene)
    theirs = {"labels": {"team": "blue"}, "annotations": {"example.com/note": "z", "volcano.sh/x": None}}
    numbers = {"minMember": 1, "minTaskMember": {"worker": None}, "minResources": None}
    scene.patch(POD_GROUPS, _GANG, {"metadata": theirs, "spec": {"queue": "default", **numbers}})
    scene.wait("that to be seen", lambda: scene.pod_group(_GANG)["metadata"]["labels"].get("team") == "blue")
    scene.wait("spec to be as before", lambda: _spec(scene) == before)
    scene.wait("its annotation", lambda: scene.pod_group(_GANG)["metadata"]["annotations"].get("volcano.sh/x") == "y")
    meta = scene.pod_group(_GANG)["metadata"]
    assert (meta["labels"]["team"], meta["annotations"]["example.com/note"]) == ("blue", "z")
    scene.await_running(_GANG, 3)


def test_an_annotation_that_the_workload_loses_goes_from_the_group(scene: Scene) -> None:
    queue = scene.queue(cpu="4")
    cluster = ray_cluster("demo").label(QUEUE_LABEL, queue)
    scene.apply(cluster.annotate("volcano.sh/x", "y"))
    scene.await_running(_GANG, 1)
    assert scene.pod_group(_GANG)["metadata"]["annotations"]["volcano.sh/x"] == "y"
    scene.apply(cluster)
    scene.wait("it to go", lambda: "volcano.sh/x" not in scene.pod_group(_GANG)["metadata"]["annotations"])


def test_status_survives_what_muster_writes(scene: Scene) -> None:
    """Volcano's PodGroup has no status subresource: what Volcano wrote there is the same after muster's writes."""
    queue = scene.queue(cpu="6")
    cluster = ray_cluster("demo").label(QUEUE_LABEL, queue)
    scene.apply(cluster.workers(3))
    scene.await_running(_GANG, 4)
    running = int(scene.pod_group(_GANG)["metadata"]["resourceVersion"])
    scene.apply(cluster.annotate("volcano.sh/x", "y").workers(1))
    scene.wait("minMember to fall", lambda: _spec(scene)["minMember"] == 2)
    scene.await_running(_GANG, 2)
    scene.recorder.settle()
    after = [seen for seen in scene.recorder.history(POD_GROUPS) if seen.version >= running]
    assert len({str(seen.object["spec"]) for seen in after}) > 1, "nothing was written"
    for before, seen in pairwise(after):
        assert phase(seen.object), f"phase lost at {seen.version}"
        assert has_condition(seen.object, "Scheduled"), f"conditions lost at {seen.version}"
        if _said_by_muster(seen.object) != _said_by_muster(before.object):
            assert seen.object["status"] == before.object["status"], f"status changed at {seen.version}"


def _said_by_muster(group: Manifest) -> tuple[object, object]:
    """Volcano, once a group runs, writes nothing of that."""
    said = group["metadata"].get("annotations", {})
    return group["spec"], {key: value for key, value in said.items() if key.startswith("muster.dev/")}


def test_a_suspended_worker_group_lowers_the_minimum_and_gives_its_room(scene: Scene) -> None:
    """Its pods go, the others run on, a waiting gang takes the room; resumed, its pods wait for room as growth."""
    queue = scene.queue(cpu="4")
    cluster = ray_cluster("demo").label(QUEUE_LABEL, queue).workers(1, group="keep")
    scene.apply(cluster.workers(2, group="pause"))
    scene.await_running(_GANG, 4)
    scene.apply(ray_cluster("next").label(QUEUE_LABEL, queue).workers(1))
    scene.await_event("next", "WaitingForQuota")

    scene.apply(cluster.workers(2, group="pause", suspend=True))
    scene.wait("minMember 2", lambda: _spec(scene)["minMember"] == 2)
    assert _spec(scene)["minTaskMember"] == {"headgroup": 1, "keep": 1}
    scene.await_running(_GANG, 2)
    scene.await_running("ray-next-pg", 2)

    scene.apply(cluster.workers(2, group="pause"))
    words = {"no room yet for cpu 2", "from its next admission on: minMember 4"}
    scene.wait("word of it", lambda: all(one in message(scene.pod_group(_GANG)) for one in words))
    assert _spec(scene)["minMember"] == 2, "Volcano would block replacements"
    scene.delete(RAY_CLUSTERS, "next")
    scene.await_running(_GANG, 4)
    scene.assert_never_above({"cpu": "4"})


def test_a_queue_changed_while_it_runs_acts_at_the_next_admission(scene: Scene) -> None:
    first, second = scene.queue(cpu="2"), scene.queue("-second", cpu="2")
    # The queue of a schedulingPolicy is immutable in the operator's CRD; the label wins over it, and is not.
    job = pytorch_job("train").workers(1)
    scene.apply(job.label(QUEUE_LABEL, first))
    scene.await_running("train", 2)
    scene.apply(job.label(QUEUE_LABEL, second))
    scene.wait(
        "word of it", lambda: f'from its next admission on: queue "{second}"' in message(scene.pod_group("train"))
    )
    assert scene.pod_group("train")["spec"]["queue"] == first
    scene.apply(job.label(QUEUE_LABEL, second).suspended())
    scene.await_state("train", "Suspended")
    # Resumed before the operator has deleted its pods it would have run on.
    scene.wait("its pods to go", lambda: not scene.pods("train"))
    scene.apply(job.label(QUEUE_LABEL, second).suspended(suspend=False))
    scene.wait("the other queue", lambda: scene.pod_group("train")["spec"]["queue"] == second)
    scene.wait("it to run", lambda: [phase(pod) for pod in scene.pods("train")] == ["Running"] * 2)


def test_two_workloads_of_one_group_name_never_mix(scene: Scene) -> None:
    """The second is told, and runs when the first is gone, with a PodGroup of its own.

    It was there before the name was taken: a new one would be refused.
    """
    queue = scene.queue(cpu="6")
    job = pytorch_job(_GANG).workers(1).policy(queue=queue)
    scene.apply(job.suspended())
    scene.apply(ray_cluster("demo").label(QUEUE_LABEL, queue).workers(1))
    scene.await_running(_GANG, 2)
    former = scene.pod_group(_GANG)["metadata"]["uid"]
    scene.apply(job.suspended(suspend=False))
    assert 'belongs to RayCluster "demo"' in scene.await_event(_GANG, "ForeignPodGroup")
    of_job = [pod for pod in scene.pods(_GANG) if "training.kubeflow.org/job-name" in pod["metadata"]["labels"]]
    assert [gates(pod) for pod in of_job] == [[GATE]] * len(of_job)

    scene.delete(RAY_CLUSTERS, "demo")
    scene.await_running(_GANG, 2)
    # Each kind has a watch of its own.
    scene.recorder.settle()
    group = scene.pod_group(_GANG)
    owner = scene.recorder.get(PYTORCH_JOBS, _GANG)
    assert owner is not None
    assert group["metadata"]["uid"] != former
    assert group["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    scene.assert_never_above({"cpu": "6"})


def test_somebody_elses_group_of_the_name_is_never_overwritten(scene: Scene) -> None:
    """It is there first; the workload says so and waits, and starts when it is gone."""
    queue = scene.queue(cpu="4")
    theirs = {
        "apiVersion": POD_GROUPS.api_version,
        "kind": POD_GROUPS.kind,
        "metadata": {"name": _GANG},
        "spec": {"minMember": 7, "queue": queue},
    }
    scene.apply(theirs)
    scene.apply(ray_cluster("demo").label(QUEUE_LABEL, queue).workers(1))
    assert f'"{_GANG}" that muster did not make' in scene.await_event("demo", "ForeignPodGroup")
    assert _spec(scene)["minMember"] == 7
    assert {entry["manager"] for entry in scene.pod_group(_GANG)["metadata"]["managedFields"]}.isdisjoint(
        {"muster", "muster-ledger"}
    )
    scene.delete(POD_GROUPS, _GANG)
    scene.await_running(_GANG, 2)
    scene.recorder.settle()
    assert _spec(scene)["minMember"] == 2
