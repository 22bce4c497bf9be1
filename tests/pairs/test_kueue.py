"""Kueue admits, muster holds each gang until it is whole, and Volcano places it: RayClusters, RayJobs, PyTorchJobs."""

import json
import re
from collections.abc import Iterator
from functools import partial

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.muster import install
from muster.model.gang_states import GangState
from muster.model.names import GATE, QUEUE_LABEL, SCHEDULER_LABEL
from muster.model.resource import PODS
from tests.e2e.conftest import VALUES
from tests.support.cluster.backends import (
    CLUSTER_QUEUES,
    KUEUE_QUEUE,
    RESOURCE_FLAVORS,
    WORKLOADS,
    bound,
    cluster,
    member,
    resource_flavor,
)
from tests.support.cluster.kueue_scene import (
    FLAVOR,
    TEAM,
    admitted_workloads,
    cluster_of,
    evicted,
    in_team,
    open_kueue_scene,
    placed_of_each,
)
from tests.support.cluster.objects import alive, gang_of, gates, has_condition, message
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene, open_scene
from tests.support.manifests.applied import pytorch_job, ray_cluster
from tests.support.pages.recorded import keep_state
from tests.support.pages.seeds import Point, told

# A gang that Kueue has admitted is to be ready by then, on a busy machine, too.
SECONDS = 120
PAIR = {"admitters": "{ledger,kueue}", "kueue.podsReadyTimeout": f"{SECONDS}s"}


@pytest.fixture(scope="module")
def pair() -> Iterator[Testbed]:
    """A cluster with Volcano, Kueue, KubeRay, the Training operator and muster."""
    asked = cluster("volcano", kueue=True)
    with Testbed.start(**asked, nodes=Nodes(count=4, cpu="8", gpu=0), progress=print) as testbed:
        _impatient(testbed)
        testbed.api().create(RESOURCE_FLAVORS.path(), resource_flavor(FLAVOR))
        installed = install(testbed, values={**VALUES, **PAIR}, webhooks=1, controllers=2)
        installed.wait_ready()
        yield testbed


def _impatient(testbed: Testbed) -> None:
    """Have Kueue take back what is not ready in time, and admit pod groups, too."""
    shipped = json.loads(testbed.kueue_conf.read_text())
    shipped["waitForPodsReady"] = {"timeout": f"{SECONDS}s", "requeuingStrategy": {"backoffBaseSeconds": 5}}
    shipped["integrations"]["frameworks"].append("pod")
    testbed.kueue_conf.write_text(json.dumps(shipped))
    testbed.restart_part("kueue")


@pytest.fixture
def scene(pair: Testbed, request: pytest.FixtureRequest) -> Iterator[Scene]:
    name = re.sub(r"\W+", "-", request.node.name.removeprefix("test_"))
    with open_kueue_scene(pair, name, cpu="4", memory="64Gi") as scene:
        yield scene


def admitted_at(scene: Scene, owner: str) -> int:
    """The resource version from which the Workload of this owner was admitted."""

    def admitted(one: Manifest) -> bool:
        return one["metadata"]["ownerReferences"][0]["name"] == owner and has_condition(one, "Admitted")

    return scene.recorder.first(WORKLOADS, admitted, f"admission of {owner}").version


def _said(scene: Scene, workload: str, words: str) -> bool:
    """Whether an event of muster's on the workload has these words."""
    return any(words in note for note in scene.events(workload, "WaitingForKueue"))


def _scale(scene: Scene, workers: int) -> None:
    """As an autoscaler does, which leaves alone what Kueue has put into the templates."""
    (rays,) = scene.recorder.now(RAY_CLUSTERS)
    (group,) = rays["spec"]["workerGroupSpecs"]
    scene.patch(RAY_CLUSTERS, "demo", {"spec": {"workerGroupSpecs": [{**group, "replicas": workers}]}})


def _suspended_again(scene: Scene, seen: int) -> bool:
    """Whether the one PyTorchJob is suspended, after more than one change since so many were seen."""
    history = scene.recorder.history(PYTORCH_JOBS)
    return len(history) > seen + 1 and bool(history[-1].object["spec"]["runPolicy"]["suspend"])


@pytest.mark.kueue
def test_what_kueue_admits_runs_as_a_gang_and_what_it_does_not_waits_with_its_words(scene: Scene) -> None:
    scene.apply(in_team("first"))
    members = scene.await_running("ray-first-pg", 3)
    assert {pod["spec"]["schedulerName"] for pod in members} == {"volcano"}
    scene.assert_started_together("ray-first-pg", 3)
    assert admitted_at(scene, "first") < scene.last_ungated("ray-first-pg", 1)
    assert "admitted by Kueue" in message(scene.pod_group("ray-first-pg"))
    scene.apply(in_team("second", 3))
    # At first Kueue may not have looked at it, and other words of the same state are news after half a minute.
    words = "insufficient unused quota for cpu"
    scene.wait("Kueue's words", lambda: any(words in said for said in scene.events("second", "WaitingForKueue")))
    keep_state(scene, GangState.WAITING_FOR_KUEUE, "raycluster/second")
    assert scene.pods("ray-second-pg") == []
    scene.delete(RAY_CLUSTERS, "first")
    scene.await_running("ray-second-pg", 4)
    scene.assert_started_together("ray-second-pg", 4)
    scene.assert_never_placed_above({"cpu": "4"})


@pytest.mark.long
def test_pods_that_come_before_kueues_yes_are_never_opened(scene: Scene) -> None:
    """A queued PyTorchJob that its user resumes has all of its pods for some 100 ms; admitted, it starts as a gang."""
    scene.apply(in_team("first"))
    scene.await_running("ray-first-pg", 3)
    scene.apply(pytorch_job("job").label(KUEUE_QUEUE, TEAM).label(SCHEDULER_LABEL, "volcano").workers(2))
    scene.await_event("job", "WaitingForKueue")
    held = scene.recorder.now(PYTORCH_JOBS)[0]["spec"]["runPolicy"]["suspend"]
    waits = f"{'suspended' if held else 'not suspended'}, {len(scene.pods('job'))} pods"
    for _ in range(5):
        seen = len(scene.recorder.history(PYTORCH_JOBS))
        scene.patch(PYTORCH_JOBS, "job", {"spec": {"runPolicy": {"suspend": False}}})
        scene.wait(
            "Kueue to suspend it again",
            partial(_suspended_again, scene, seen),
        )
    came = [seen.object for seen in scene.recorder.history(PODS) if gang_of(seen.object) == "job"]
    assert came
    assert all(gates(pod) == [GATE] for pod in came)
    scene.delete(RAY_CLUSTERS, "first")
    scene.await_running("job", 3)
    scene.assert_started_together("job", 3)
    told(
        "C3. Kueue in front of the Training operator's jobs",
        "A PyTorchJob of three pods with Kueue's label, in a namespace whose annotation `muster.dev/admitter` is "
        "`kueue`; a RayCluster has the quota of its queue first. [kueue.md](kueue.md) describes the pair.",
        Point("the job while it waits", "suspended, 0 pods", waits),
        Point("its scheduler", "the cluster's own", "Volcano", "a label asks for it"),
        Point(
            "start after its admission", "pod by pod", "all pods together", "muster's gate holds them until all exist"
        ),
    )


@pytest.mark.long
def test_a_team_on_the_ledger_beside_it(scene: Scene) -> None:
    """Each waits for its own admitter alone, with one scheduler for both."""
    with open_scene(scene.testbed, f"{scene.namespace[:30]}-other") as other:
        queue = other.queue(cpu="3")
        scene.apply(in_team("first"))
        other.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(2))
        scene.await_running("ray-first-pg", 3)
        other.await_running("ray-first-pg", 3)
        scene.apply(in_team("second"))
        other.apply(ray_cluster("second").label(QUEUE_LABEL, queue).workers(2))
        scene.await_event("second", "WaitingForKueue")
        other.await_event("second", "WaitingForQuota")
        assert not any(alive(pod) for pod in scene.pods("ray-second-pg"))
        other.assert_never_above({"cpu": "3"}, queue)


@pytest.mark.long
def test_a_ray_job_is_admitted_and_its_cluster_starts_as_a_gang(scene: Scene) -> None:
    """Kueue's Workload is the RayJob's, and the gang is the RayCluster's."""
    rays = in_team("").workers(2).manifest()["spec"]
    labels = {KUEUE_QUEUE: TEAM, SCHEDULER_LABEL: "volcano"}
    spec = {"rayClusterSpec": rays, "entrypoint": "x", "shutdownAfterJobFinishes": True}
    manifest = {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": "job", "labels": labels},
        "spec": spec,
    }
    scene.create(manifest)
    scene.wait("its cluster", lambda: scene.recorder.now(RAY_CLUSTERS))
    gang = f"ray-{scene.recorder.now(RAY_CLUSTERS)[0]['metadata']['name']}-pg"
    scene.await_running(gang, 3)
    scene.assert_started_together(gang, 3)
    assert admitted_at(scene, "job") < scene.last_ungated(gang, 1)


@pytest.mark.long
def test_what_kueue_preempts_says_so_and_comes_again_as_a_gang(scene: Scene) -> None:
    scene.patch(CLUSTER_QUEUES, scene.namespace, {"spec": {"preemption": {"withinClusterQueue": "LowerPriority"}}})
    urgent = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "urgent"}}
    scene.api.create("/apis/kueue.x-k8s.io/v1beta2/workloadpriorityclasses", {**urgent, "value": 1000})
    scene.apply(in_team("victim"))
    scene.await_running("ray-victim-pg", 3)
    scene.apply(in_team("urgent", 3).label("kueue.x-k8s.io/priority-class", "urgent"))
    scene.wait(
        "the victim to be told", lambda: _said(scene, "victim", "Kueue has preempted it: Preempted to accommodate")
    )
    lost = scene.await_event("victim", "Evicted")
    assert lost.startswith("Kueue evicted 3 of its pods (victim-")
    assert "; cpu 3 and memory 3Gi); they had run up to " in lost
    assert lost.endswith(f'; the preemptor is RayCluster "urgent" of LocalQueue "{TEAM}"')
    scene.await_running("ray-urgent-pg", 4)
    since = "; since then: couldn't assign flavors to pod set head: insufficient unused quota for cpu"
    scene.wait("what it waits for since then", lambda: since in message(scene.pod_group("ray-victim-pg")))
    assert len(scene.events("victim", "Evicted")) == 1
    scene.delete(RAY_CLUSTERS, "urgent")
    scene.await_running("ray-victim-pg", 3)
    scene.assert_never_placed_above({"cpu": "4"})


@pytest.mark.long
def test_a_suspension_that_kueue_reverts_says_what_stops_it(scene: Scene) -> None:
    scene.apply(in_team("demo"))
    scene.await_running("ray-demo-pg", 3)
    scene.patch(RAY_CLUSTERS, "demo", {"spec": {"suspend": True}})
    assert "Kueue has admitted it and resumes it" in scene.await_event("demo", "Suspended")
    # By new pods, or by the same: Kueue may be quicker than KubeRay.
    scene.wait("Kueue to resume it", lambda: not scene.recorder.now(RAY_CLUSTERS)[0]["spec"].get("suspend"))
    scene.await_running("ray-demo-pg", 3)
    workload = scene.recorder.now(WORKLOADS)[0]["metadata"]["name"]
    scene.patch(WORKLOADS, workload, {"spec": {"active": False}})
    scene.wait("its pods to go", lambda: not scene.pods())
    scene.wait("the reason", lambda: _said(scene, "demo", "Kueue"))


@pytest.mark.long
def test_an_elastic_cluster_grows_without_a_restart(scene: Scene) -> None:
    """Two gates stand on its pods, and each opens by itself; of its Workloads the newest counts."""
    scene.apply(in_team("demo", 1).annotate("kueue.x-k8s.io/elastic-job", "true"))
    before = {pod["metadata"]["uid"] for pod in scene.await_running("ray-demo-pg", 2)}
    _scale(scene, 3)
    after = {pod["metadata"]["uid"] for pod in scene.await_running("ray-demo-pg", 4)}
    assert before < after
    _scale(scene, 5)
    scene.wait("pods that Kueue holds", lambda: len(scene.pods("ray-demo-pg")) == 6)
    held = [gates(pod) for pod in scene.pods("ray-demo-pg") if not bound([pod])]
    assert len(held) == 2
    assert all("kueue.x-k8s.io/elastic-job" in of_pod for of_pod in held)
    scene.assert_never_placed_above({"cpu": "4"})


@pytest.mark.long
def test_what_no_quota_can_hold_is_told_when_it_is_applied_and_while_it_waits(scene: Scene) -> None:
    answer = scene.kubectl("apply", "--filename=-", text=json.dumps(in_team("demo", 5).manifest()))
    words = f'it needs cpu 6, and all flavors of ClusterQueue "{scene.namespace}" have cpu 4'
    assert words in answer.stderr
    assert words in scene.await_event("demo", "ExceedsKueueQuota")
    keep_state(scene, GangState.EXCEEDS_KUEUE_QUOTA, "raycluster/demo")


@pytest.mark.long
def test_what_is_in_no_queue_of_kueues_is_told_so_and_stays_held(scene: Scene) -> None:
    manifest = ray_cluster("demo").label(SCHEDULER_LABEL, "volcano").workers(2).manifest()
    answer = scene.kubectl("apply", "--filename=-", text=json.dumps(manifest))
    assert "Kueue admits the gangs of this namespace, and this one waits for ever: name a LocalQueue" in answer.stderr
    scene.await_gated("ray-demo-pg", 3)
    assert "the workload is in none of its queues" in message(scene.await_state("ray-demo-pg", "WaitingForKueue"))


@pytest.mark.long
def test_pod_groups_of_kueues_are_left_alone(scene: Scene) -> None:
    labels = {KUEUE_QUEUE: TEAM, "kueue.x-k8s.io/pod-group-name": "group"}
    for number in range(2):
        pod = member(f"p-{number}", labels=labels)
        pod["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "2"}
        scene.create(pod)
    scene.wait("both to run", lambda: len(bound(scene.pods())) == 2)
    assert not any(GATE in gates(seen.object) for seen in scene.recorder.history(PODS))


@pytest.mark.long
def test_kueue_takes_back_what_the_scheduler_cannot_place_and_both_say_so(pair: Testbed) -> None:
    with open_kueue_scene(pair, "takes-back", cpu="1000", memory="1000Gi") as scene:
        scene.apply(in_team("large").workers(2, cpu="20"))
        assert "Kueue takes its quota back at" in scene.await_event("large", "DeadlineNear")
        said = "Kueue has taken its quota back, for its pods were not ready in time"
        scene.wait("its eviction", lambda: _said(scene, "large", said))
        assert not any(bound([seen.object]) for seen in scene.recorder.history(PODS))


@pytest.mark.long
def test_of_three_admitted_clusters_one_is_placed_whole_and_without_muster_a_part_of_another(pair: Testbed) -> None:
    """Kueue's quota is larger than the nodes; four nodes hold a pod of 5 cpu each."""
    with open_kueue_scene(pair, "all-or-nothing", cpu="1000", memory="1000Gi") as scene:
        for name in ("a", "b", "c"):
            scene.apply(in_team(name).head(cpu="5").workers(2, cpu="5"))
        scene.wait("all to be admitted", lambda: admitted_workloads(scene) == 3)
        scene.wait("one to be placed", lambda: placed_of_each(scene) == [3])
        scene.wait("the others to be taken back", lambda: len(evicted(scene)) == 2)
        ever = {cluster_of(seen.object) for seen in scene.recorder.history(PODS) if bound([seen.object])}
        assert len(ever) == 1
    with open_kueue_scene(pair, "without", cpu="1000", memory="1000Gi") as scene:
        for name in ("a", "b"):
            scene.apply(ray_cluster(name).label(KUEUE_QUEUE, TEAM).head(cpu="5").workers(2, cpu="5"))
        scene.wait("one and a part to be placed", lambda: placed_of_each(scene) == [1, 3])
