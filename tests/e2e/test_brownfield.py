"""Workloads that ran before muster or before their label, or past its webhook: left alone until all pods are new."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hack.testbed import Testbed
from hack.testbed.muster import MusterInstall
from muster.model.names import ADMITTED, GANG, GATE, GROUP_NAME, MANAGED_BY, QUEUE_LABEL, SCHEDULER_LABEL, STATE
from muster.model.resource import DEPLOYMENTS, POD_GROUPS, PODS, Resource
from tests.e2e.conftest import AdoptOnBare, InstallOnBare
from tests.support.cluster.recorder import PYTORCH_JOBS, RAY_CLUSTERS, Manifest
from tests.support.cluster.scene import Scene, alive, gates, open_scene, phase
from tests.support.manifests.applied import RayCluster, pytorch_job, ray_cluster
from tests.support.pages.blocks import block, sentence
from tests.support.pages.walkthrough import Shell

pytestmark = pytest.mark.part("bare")

# The label by which operators mark the pods of a workload.
_OF = {RAY_CLUSTERS: "ray.io/cluster", PYTORCH_JOBS: "training.kubeflow.org/job-name"}


def _pods(scene: Scene, kind: Resource, name: str) -> list[Manifest]:
    """The living pods of a workload, whoever's they are."""
    return [pod for pod in scene.pods() if alive(pod) and _labels(pod).get(_OF[kind]) == name]


def _labels(pod: Manifest) -> Manifest:
    return pod["metadata"].get("labels") or {}


def _await_pods(scene: Scene, kind: Resource, name: str, *, new: int, old: int) -> set[str]:
    """Wait until so many pods of a workload run that came by muster, and without it; return the UIDs of all."""

    def there() -> bool:
        pods = _pods(scene, kind, name)
        by_muster = sum(GANG in _labels(pod) for pod in pods)
        return (by_muster, len(pods) - by_muster) == (new, old) and all(phase(pod) == "Running" for pod in pods)

    scene.wait(f"{new} new and {old} old pods of {kind.kind} {name} to run", there)
    return {pod["metadata"]["uid"] for pod in _pods(scene, kind, name)}


def _lose_a_worker(scene: Scene, kind: Resource, name: str) -> None:
    """Take a worker away and wait until it is gone."""
    worker = next(pod for pod in _pods(scene, kind, name) if "worker" in pod["metadata"]["name"])
    scene.delete(PODS, worker["metadata"]["name"], wait=False)
    uid = worker["metadata"]["uid"]
    scene.wait("the worker to go", lambda: all(pod["metadata"]["uid"] != uid for pod in scene.pods()))


def _never_held(scene: Scene, kind: Resource, name: str) -> None:
    """No pod of the workload ever had a gate."""
    scene.recorder.settle()
    for seen in scene.recorder.history(PODS):
        if _labels(seen.object).get(_OF[kind]) == name:
            assert gates(seen.object) == [], seen.name


@pytest.fixture
def before(bare: Testbed) -> Iterator[Scene]:
    with open_scene(bare, "before-muster") as scene:
        yield scene


@pytest.fixture
def operators_own(bare: Testbed) -> Iterator[Scene]:
    """KubeRay has its flag until the test takes it away; after a test that failed before, too, nobody else meets it."""
    bare.restart_part("kuberay", extra_args=("--batch-scheduler=volcano",))
    with open_scene(bare, "operators-own") as scene:
        yield scene
    bare.restart_part("kuberay")


def test_muster_comes_while_workloads_run_and_goes_for_a_while(before: Scene, install_on_bare: InstallOnBare) -> None:
    """Installed over running workloads, and down with policy Ignore: their pods run; made anew, they are managed."""
    scene = before
    queue = scene.queue(cpu="12")
    cluster = ray_cluster("ray").label(QUEUE_LABEL, queue)
    job = pytorch_job("train").policy(queue=queue)
    scene.apply(cluster.workers(2), job.workers(2))
    ray, train = ((RAY_CLUSTERS, "ray"), (PYTORCH_JOBS, "train"))
    ran = {kind: _await_pods(scene, kind, name, new=0, old=3) for kind, name in (ray, train)}

    muster = install_on_bare(webhook__failurePolicy="Ignore")
    for kind, name in (ray, train):
        assert "left alone until the pods are gone that came without muster" in scene.await_event(name, "NotManaged")
        assert _await_pods(scene, kind, name, new=0, old=3) == ran[kind], "what ran was disturbed"
        _lose_a_worker(scene, kind, name)
        assert len(_await_pods(scene, kind, name, new=0, old=3) & ran[kind]) == 2
    scene.apply(cluster.workers(3))
    _await_pods(scene, RAY_CLUSTERS, "ray", new=0, old=4)
    for kind, name in (ray, train):
        _never_held(scene, kind, name)
    assert not scene.recorder.now(POD_GROUPS)

    # All of them anew.
    scene.apply(cluster.workers(3).suspended(), job.workers(2).suspended())
    scene.wait("all to go", lambda: not scene.pods())
    scene.apply(cluster.workers(3).suspended(suspend=False), job.workers(2).suspended(suspend=False))
    scene.await_running("ray-ray-pg", 4)
    scene.await_running("train", 3)

    _slips_past(scene, muster, cluster)


def _slips_past(scene: Scene, muster: MusterInstall, cluster: RayCluster) -> None:
    """A worker is replaced while no webhook answers, and its gang goes on; when it has gone, all are members again."""
    muster.stop_webhooks()
    _lose_a_worker(scene, RAY_CLUSTERS, "ray")
    _await_pods(scene, RAY_CLUSTERS, "ray", new=3, old=1)
    scene.wait("word of it", lambda: scene.pod_group("ray-ray-pg")["metadata"]["annotations"][STATE] == "NotManaged")
    muster.start_webhook()
    muster.wait_ready()
    member = next(pod for pod in _pods(scene, RAY_CLUSTERS, "ray") if GANG in _labels(pod) and _is_worker(pod))
    scene.delete(PODS, member["metadata"]["name"], wait=False)
    _await_pods(scene, RAY_CLUSTERS, "ray", new=2, old=2)
    # Only when the last one goes that came without muster are those that follow its members again.
    old = [pod["metadata"]["name"] for pod in _pods(scene, RAY_CLUSTERS, "ray") if GANG not in _labels(pod)]
    scene.apply(cluster.workers(1, scaleStrategy={"workersToDelete": old}))
    scene.wait("both to go", lambda: not any(scene.recorder.get(PODS, name) for name in old))
    scene.apply(cluster.workers(3))
    _await_pods(scene, RAY_CLUSTERS, "ray", new=4, old=0)
    scene.await_running("ray-ray-pg", 4)


def _is_worker(pod: Manifest) -> bool:
    return _labels(pod).get("ray.io/node-type") == "worker"


def test_labelled_and_unlabelled_while_they_run(scene: Scene) -> None:
    """A label comes: old pods, their successors and a scale-up run on; resumed after a suspension, they are gangs."""
    queue = scene.queue(cpu="12")
    cluster, job = ray_cluster("ray"), pytorch_job("train").workers(2)
    scene.apply(cluster.workers(2), job)
    ray, train = ((RAY_CLUSTERS, "ray"), (PYTORCH_JOBS, "train"))
    for kind, name in (ray, train):
        _await_pods(scene, kind, name, new=0, old=3)

    scene.apply(cluster.label(QUEUE_LABEL, queue).workers(2), job.label(QUEUE_LABEL, queue))
    for kind, name in (ray, train):
        scene.await_event(name, "NotManaged")
        _lose_a_worker(scene, kind, name)
        _await_pods(scene, kind, name, new=0, old=3)
    scene.apply(cluster.label(QUEUE_LABEL, queue).workers(3))
    _await_pods(scene, RAY_CLUSTERS, "ray", new=0, old=4)
    for kind, name in (ray, train):
        _never_held(scene, kind, name)

    scene.apply(cluster.label(QUEUE_LABEL, queue).workers(3).suspended(), job.label(QUEUE_LABEL, queue).suspended())
    scene.wait("all to go", lambda: not scene.pods())
    scene.apply(
        cluster.label(QUEUE_LABEL, queue).workers(3).suspended(suspend=False),
        job.label(QUEUE_LABEL, queue).suspended(suspend=False),
    )
    scene.await_running("ray-ray-pg", 4)
    scene.await_running("train", 3)


def test_taken_out_of_musters_hands_while_it_runs_and_put_back(scene: Scene) -> None:
    """Its members run on, newcomers come without muster; put back, it is a gang again when those are gone."""
    queue = scene.queue(cpu="12")
    cluster = ray_cluster("ray").label(QUEUE_LABEL, queue)
    scene.apply(cluster.workers(2))
    members = {pod["metadata"]["uid"] for pod in scene.await_running("ray-ray-pg", 3)}
    whole = scene.pod_group("ray-ray-pg")["spec"]

    scene.apply(cluster.label("muster.dev/managed", "false").workers(2))
    scene.await_state("ray-ray-pg", "NotManaged")
    assert scene.pod_group("ray-ray-pg")["spec"]["minMember"] == 1, "Volcano would keep replacements back"
    scene.apply(cluster.label("muster.dev/managed", "false").workers(3))
    running = _await_pods(scene, RAY_CLUSTERS, "ray", new=3, old=1)
    assert members < running

    scene.apply(cluster.label("muster.dev/managed", "true").workers(3))
    scene.wait("it to be left alone", lambda: "came without muster" in _said(scene))
    assert _await_pods(scene, RAY_CLUSTERS, "ray", new=3, old=1) == running
    scene.apply(cluster.label("muster.dev/managed", "true").workers(2))
    scene.wait("one worker to go", lambda: len(_pods(scene, RAY_CLUSTERS, "ray")) == 2 + 1)
    for pod in _pods(scene, RAY_CLUSTERS, "ray"):
        if GANG not in _labels(pod):
            # KubeRay took a member away and kept this one.
            scene.delete(PODS, pod["metadata"]["name"], wait=False)
    _await_pods(scene, RAY_CLUSTERS, "ray", new=3, old=0)
    scene.await_running("ray-ray-pg", 3)
    assert scene.pod_group("ray-ray-pg")["spec"] == whole


def _said(scene: Scene) -> str:
    return str(scene.pod_group("ray-ray-pg")["metadata"]["annotations"]["muster.dev/message"])


def test_an_operators_own_gang_while_muster_comes_and_its_flag_goes(
    bare: Testbed, operators_own: Scene, adopt_on_bare: AdoptOnBare
) -> None:
    """KubeRay's gangs stay its own, those too that come later; what can never fit is refused all the same.

    With the flag off their successors run on, and made anew they are muster's. The commands are those of the documents.
    """
    scene = operators_own
    queue = scene.queue(cpu="12")
    cluster = ray_cluster("ray").label(QUEUE_LABEL, queue).label(SCHEDULER_LABEL, "volcano")
    scene.apply(cluster.workers(2))
    ran = _await_pods(scene, RAY_CLUSTERS, "ray", new=0, old=3)
    scene.apply(ray_cluster("never").label(QUEUE_LABEL, queue).label(SCHEDULER_LABEL, "volcano").workers(12))
    reader = Shell.on(bare, {"REGISTRY": "registry.test"})
    with _deployed(scene):
        adopt_on_bare(lambda: reader.obey(block("docs/install.md", "helm install muster")))
        told = _words(reader.run(block("docs/choosing.md", "muster doctor")))
        assert f"KubeRay (Deployment {scene.namespace}/kuberay-operator) has --batch-scheduler=volcano: it" in told
        assert f"RayCluster {scene.namespace}/never refused (ExceedsCapability): " in told
        assert " 1 would be refused" in told
    scene.delete(RAY_CLUSTERS, "never")
    # No step of its own: what muster has looked at since it came has to do with all that was there.
    scene.wait("muster to say whose the gang is", lambda: scene.events("ray", "External"))
    assert 'bound to the PodGroup "ray-ray-pg"' in scene.events("ray", "External")[0]
    _lose_a_worker(scene, RAY_CLUSTERS, "ray")
    assert len(_await_pods(scene, RAY_CLUSTERS, "ray", new=0, old=3) & ran) == 2
    _another_of_the_operators(scene, queue)

    bare.restart_part("kuberay")
    _lose_a_worker(scene, RAY_CLUSTERS, "ray")
    _await_pods(scene, RAY_CLUSTERS, "ray", new=0, old=3)
    _never_held(scene, RAY_CLUSTERS, "ray")
    assert "has --batch-scheduler" not in _words(reader.run(sentence("docs/choosing.md", "muster doctor")))

    _only_suspended(scene, cluster.workers(2))
    assert f" {queue} Open 1 0 cpu 3 / 12 " in _words(reader.obey(sentence("docs/choosing.md", "muster queues")))
    scene.delete(RAY_CLUSTERS, "ray")
    scene.wait("all to go", lambda: not scene.pods() and not scene.recorder.now(POD_GROUPS))
    scene.apply(cluster.workers(2))
    scene.await_running("ray-ray-pg", 3)
    assert not any(GATE in gates(pod) for pod in scene.pods())


@contextmanager
def _deployed(scene: Scene) -> Iterator[None]:
    """KubeRay's Deployment as its chart makes it; the operator itself runs beside it, with the same flag."""
    labels = {"app.kubernetes.io/name": "kuberay-operator"}
    container = {"name": "operator", "image": "kuberay/operator:v1", "args": ["--batch-scheduler=volcano"]}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
    path = DEPLOYMENTS.path(scene.namespace)
    scene.api.create(path, {"metadata": {"name": "kuberay-operator"}, "spec": spec})
    yield
    scene.api.delete(DEPLOYMENTS.path(scene.namespace, "kuberay-operator"))


def _words(said: str) -> str:
    """What a terminal shows, without its lines."""
    return " ".join(said.split())


def _only_suspended(scene: Scene, cluster: RayCluster) -> None:
    """It meets the PodGroup that KubeRay has left; without that it is muster's."""
    scene.apply(cluster.suspended())
    scene.wait("all to go", lambda: not scene.pods())
    scene.apply(cluster.suspended(suspend=False))
    scene.await_event("ray", "ForeignPodGroup")
    scene.delete(POD_GROUPS, "ray-ray-pg")
    scene.await_running("ray-ray-pg", 3)


def _another_of_the_operators(scene: Scene, queue: str) -> None:
    """One that comes when muster is there: no PodGroup, label or gate of muster's; what can never fit is refused."""
    scene.apply(ray_cluster("own").label(QUEUE_LABEL, queue).label(SCHEDULER_LABEL, "volcano").workers(2))
    _await_pods(scene, RAY_CLUSTERS, "own", new=0, old=3)
    _never_held(scene, RAY_CLUSTERS, "own")
    for pod in _pods(scene, RAY_CLUSTERS, "own"):
        assert pod["metadata"]["annotations"][GROUP_NAME] == "ray-own-pg"
    group = scene.pod_group("ray-own-pg")
    assert phase(group) in {"Inqueue", "Running"}
    assert MANAGED_BY not in (group["metadata"].get("labels") or {})
    assert not {ADMITTED, STATE} & set(group["metadata"].get("annotations") or {})
    said = scene.refused(ray_cluster("big").label(QUEUE_LABEL, queue).workers(12))
    assert f'gang "ray-big-pg" needs cpu 13, queue "{queue}" has capability cpu 12' in said
    scene.delete(RAY_CLUSTERS, "own")
