"""From one namespace to a team's to the whole cluster, upgrade by upgrade, as docs/pilot.md has it."""

import json
from collections.abc import Callable, Iterator

import pytest

from hack.testbed import Testbed
from hack.testbed.muster import MusterInstall
from muster.model.names import GANG, QUEUE_LABEL
from muster.model.resource import EVENTS, NAMESPACES, POD_GROUPS, PODS
from tests.e2e.conftest import AdoptOnBare, InstallOnBare
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.scene import Scene, gates, open_scene, phase
from tests.support.manifests import applied
from tests.support.manifests.applied import ray_cluster
from tests.support.pages.blocks import block, sentence
from tests.support.pages.walkthrough import Shell

pytestmark = pytest.mark.part("kinds")

KUEUES = "kueue.x-k8s.io/admission"


@pytest.fixture
def pilot(bare: Testbed) -> Iterator[Scene]:
    with open_scene(bare, "pilot", kinds=(RAY_CLUSTERS,)) as scene:
        yield scene


@pytest.fixture
def leaving(bare: Testbed) -> Iterator[Scene]:
    with open_scene(bare, "leaving", kinds=(RAY_CLUSTERS,)) as scene:
        yield scene


@pytest.fixture
def team(bare: Testbed) -> Iterator[Scene]:
    with open_scene(bare, "team", kinds=(RAY_CLUSTERS,)) as scene:
        yield scene


@pytest.fixture
def others(bare: Testbed) -> Iterator[Scene]:
    with open_scene(bare, "others", kinds=(RAY_CLUSTERS,)) as scene:
        yield scene


def _label(scene: Scene, stage: str) -> None:
    scene.api.merge(NAMESPACES.path(name=scene.namespace), {"metadata": {"labels": {"muster": stage}}})


def _go_on(muster: MusterInstall, upgrade: Callable[[], object]) -> None:
    """Upgrade the release, and have both processes run with what it says."""
    muster.stop_webhooks()
    upgrade()
    muster.read_programs()
    muster.kill_controller()
    muster.free_lease()
    muster.start_webhook()
    muster.start_controller()
    muster.wait_ready()


def _assert_managed(scene: Scene, name: str) -> None:
    scene.apply(ray_cluster(name).label(QUEUE_LABEL, "default").workers(1))
    scene.await_running(f"ray-{name}-pg", 2)


def _assert_untouched(scene: Scene, name: str, *, beside: tuple[str, ...] = ()) -> None:
    """The workload asks for a gang in a queue that is missing, and runs as it would without muster.

    Nothing in its namespace has an event of muster's, but for the workloads `beside` it, which were muster's before.
    """
    scene.apply(ray_cluster(name).label(QUEUE_LABEL, "missing").workers(1))

    def runs() -> bool:
        pods = [pod for pod in scene.pods() if pod["metadata"]["labels"].get("ray.io/cluster") == name]
        return [phase(pod) for pod in pods] == ["Running"] * 2

    scene.wait(f"{name} to run without muster", runs)
    scene.recorder.settle()
    mine = [pod for pod in scene.pods() if pod["metadata"]["labels"].get("ray.io/cluster") == name]
    assert [(gates(pod), GANG in pod["metadata"]["labels"]) for pod in mine] == [([], False)] * 2
    assert {pod["spec"]["schedulerName"] for pod in mine} == {"default-scheduler"}
    assert not [one for one in scene.recorder.now(POD_GROUPS) if name in one["metadata"]["name"]]
    events = [one for one in scene.recorder.now(EVENTS) if one.get("reportingController", "").startswith("muster")]
    assert not [one for one in events if not any(former in one["regarding"]["name"] for former in beside)]


def test_pilot_team_and_cluster_one_after_the_other(
    pilot: Scene, team: Scene, others: Scene, adopt_on_bare: AdoptOnBare
) -> None:
    """By the commands of the page, but for `helm test`, which needs a kubelet; tests/node runs it.

    Kueue's pods, in a namespace of the pilot, are the same at the end: nobody has written to them.
    """
    kueues = applied.pod("kueues")
    kueues["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "research", "kueue.x-k8s.io/managed": "true"}
    kueues["spec"]["schedulingGates"] = [{"name": KUEUES}]
    pilot.apply(kueues)
    before = pilot.api.get(PODS.path(pilot.namespace, "kueues"))

    reader = Shell.on(pilot.testbed, {"sandbox": pilot.namespace, "team-a-train team-a-serve": team.namespace})
    first = block("docs/pilot.md", "kubectl label namespace sandbox")
    commands, helm_test, look = first.partition("helm test muster --namespace muster-system\n")
    assert helm_test
    muster = adopt_on_bare(lambda: reader.obey(commands))
    assert " webhooks " in reader.run(look)
    _assert_managed(pilot, "first")
    assert "0 would be refused" in reader.obey(sentence("docs/pilot.md", "muster audit -n sandbox"))
    _assert_untouched(team, "early")
    _assert_untouched(others, "early")

    _go_on(muster, lambda: reader.obey(block("docs/pilot.md", "kubectl label namespace team-a-train")))
    _assert_managed(pilot, "second")
    _assert_managed(team, "second")
    _assert_untouched(others, "later")

    _go_on(muster, lambda: reader.obey(block("docs/pilot.md", "helm upgrade muster")))
    _assert_managed(team, "third")
    _assert_managed(others, "third")
    refused = others.refused(ray_cluster("lost").label(QUEUE_LABEL, "missing"))
    assert 'queue "missing" does not exist' in refused
    # What came before the namespace was selected runs on as it is.
    assert [gates(pod) for pod in others.pods() if GANG not in pod["metadata"]["labels"]] == [[]] * 4
    after = pilot.api.get(PODS.path(pilot.namespace, "kueues"))
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"]


def test_what_waits_in_a_namespace_that_is_taken_out_waits_on_and_starts_in_its_turn(
    leaving: Scene, install_on_bare: InstallOnBare
) -> None:
    """Gates stay shut, so that nobody jumps the queue this way; what is created from then on is not muster's."""
    _label(leaving, "pilot")
    muster = install_on_bare(
        **{
            "namespaceSelector__matchExpressions[0]__key": "muster",
            "namespaceSelector__matchExpressions[0]__operator": "In",
            "namespaceSelector__matchExpressions[0]__values": "{pilot}",
        }
    )
    queue = leaving.queue(cpu="2")
    leaving.apply(ray_cluster("first").label(QUEUE_LABEL, queue).workers(1))
    leaving.await_running("ray-first-pg", 2)
    leaving.apply(ray_cluster("waits").label(QUEUE_LABEL, queue).workers(1))
    leaving.await_gated("ray-waits-pg", 2)

    selector = json.dumps({"matchExpressions": [{"key": "muster", "operator": "In", "values": ["team"]}]})
    _go_on(muster, lambda: muster.upgrade({}, f"--set-json=namespaceSelector={selector}"))
    _assert_untouched(leaving, "later", beside=("first", "waits"))
    assert {phase(pod) for pod in leaving.pods("ray-first-pg")} == {"Running"}
    leaving.await_gated("ray-waits-pg", 2)
    leaving.delete(RAY_CLUSTERS, "first")
    leaving.wait("the gang to start", lambda: {phase(pod) for pod in leaving.pods("ray-waits-pg")} == {"Running"})
    leaving.await_state("ray-waits-pg", "NotManaged")
