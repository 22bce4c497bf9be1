"""No creation fails, at any moment of install, upgrade, rollback and uninstall; and what was held before runs.

Pods of gangs and plain pods, RayClusters with a queue and without, are created all the time; each call and its answer
stand in `creations-*.jsonl` beside the testbed's logs.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import groupby
from typing import Any

import pytest

from hack.release.kept import Kept
from hack.testbed import Testbed, wait_for
from hack.testbed.node import NODE as REAL_NODE
from hack.testbed.nodes import FAKE
from muster import __version__
from muster.model.names import ADMITTED_FOR, GANG, GANG_SIZE, GATE, QUEUE_LABEL
from muster.model.resource import PODS
from tests.support.cluster.admission_stream import admitted
from tests.support.cluster.creations import ENOUGH, Creations
from tests.support.cluster.former_versions import FORMER_VERSIONS, UNRELEASED, rights
from tests.support.cluster.helm_release import CHART, NAMESPACE, WITHIN, Release
from tests.support.cluster.recorder import RAY_CLUSTERS
from tests.support.cluster.rollout import Rollout
from tests.support.cluster.scene import PATIENCE, Scene, gates, node_of, open_scene, phase
from tests.support.manifests import applied
from tests.support.manifests.applied import ray_cluster
from tests.support.pages.blocks import block
from tests.support.webhook.admission_reviews import review

_DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/muster-webhook"
_VERSION = re.compile(r'^muster_build_info\{.*version="([^"]*)"', re.MULTILINE)

Answers = dict[str, list[Any]]


@contextmanager
def halfway(release: Release) -> Iterator[Answers]:
    """Stop the rollout that has begun when its first new webhook serves; gives each version's answers to reviews.

    It goes on when the block ends. What does not answer as the others of its version fails.
    """
    api = release.testbed.api()
    wait_for("a webhook of another image", lambda: len(set(map(_image, release.pods("webhook")))) > 1)
    api.merge(_DEPLOYMENT, {"spec": {"paused": True}})
    images = {pod["metadata"]["name"]: _image(pod) for pod in release.pods("webhook")}
    wait_for(
        "webhooks of both images to serve",
        lambda: {images[name] for name in release.ready("webhook") if name in images} == set(images.values()),
    )
    answers: Answers = {}
    for name in release.ready("webhook"):
        (version,) = _VERSION.findall(release.metrics(name))
        told = [_told(release, name, *question) for question in _questions()]
        assert answers.setdefault(version, told) == told, f"{name} answers otherwise than another one of {version}"
    try:
        yield answers
    finally:
        api.merge(_DEPLOYMENT, {"spec": {"paused": None}})


def _questions() -> Iterator[tuple[str, dict[str, Any]]]:
    member = applied.pod("member")
    member["metadata"].update(labels={GANG: "asked"}, annotations={GANG_SIZE: "1"})
    yield "/mutate/pods", review(member)
    yield "/validate/workloads", review(applied.ray_cluster("asked").label(QUEUE_LABEL, "nowhere").manifest())


def _told(release: Release, name: str, path: str, question: dict[str, Any]) -> Any:  # noqa: ANN401 - JSON
    """What this replica answers, asked by the apiserver's proxy."""
    answer = release.testbed.api().create(f"{release.path_of(name, 9443, 'https:')}{path}", question)["response"]
    assert "status" in answer or "patch" in answer, f"{name} says nothing of {path}"
    return json.loads(base64.b64decode(answer["patch"])) if "patch" in answer else answer["status"]


def _image(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["containers"][0]["image"])


Manifest = dict[str, Any]

# Six times helm waits for all replicas, and the first test for the testbed.
_ON_KWOK = [{"key": FAKE, "operator": "Exists"}]
_WAIT = ("--wait", WITHIN)
# Of what is created in turn.
_MEMBER, _PLAIN = 0, 1


def _pods() -> list[Manifest]:
    # Some hundreds, which are to be gone at once in the end.
    member, plain = (applied.pod("", tolerations=_ON_KWOK, terminationGracePeriodSeconds=0) for _ in range(2))
    member["metadata"].update(labels={GANG: "stream"}, annotations={GANG_SIZE: "1"})
    return [member, plain]


def _cluster(name: str, queue: str = "", workers: int = 1) -> Manifest:
    made = ray_cluster(name).workers(workers)
    manifest: Manifest = (made.label(QUEUE_LABEL, queue) if queue else made).manifest()
    spec = manifest["spec"]
    for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"]):
        group["template"]["spec"]["tolerations"] = _ON_KWOK
    return manifest


@contextmanager
def _created_all_the_time(real: Testbed, scene: Scene, what: str, *, keep: bool = False) -> Iterator[Creations]:
    """No creation fails while the block lasts; without `keep` nothing of it stays."""
    manifests = _pods() if keep else [*_pods(), _cluster("", "default"), _cluster("")]
    with Creations(real, scene.namespace, manifests, dry_run=not keep) as creations:
        try:
            yield creations
        finally:
            creations.write(real.logs / f"creations-{what}.jsonl")
    assert creations.failures() == []
    assert set(creations.held(_PLAIN)) == {False}
    scene.recorder.settle()
    assert REAL_NODE not in {node_of(seen.object) for seen in scene.recorder.history(PODS)}


def _changes(held: list[bool]) -> list[bool]:
    return [value for value, _ in groupby(held)]


def _runs(scene: Scene, name: str) -> Callable[[], bool]:
    def run() -> bool:
        return [phase(pod) for pod in scene.pods() if _of_cluster(pod) == name] == ["Running"] * 2

    return run


def _of_cluster(pod: Manifest) -> str:
    return str(pod["metadata"].get("labels", {}).get("ray.io/cluster", ""))


@pytest.fixture
def scene(real: Testbed, request: pytest.FixtureRequest) -> Iterator[Scene]:
    name = re.sub("[^a-z0-9]+", "-", request.node.name.removeprefix("test_")).strip("-")
    # With the version at its end, where it has one.
    with open_scene(real, f"{name[:24]}-{name[-5:]}", kinds=(RAY_CLUSTERS,)) as opened:
        yield opened


@pytest.fixture
def former(real: Testbed, former_loaded: dict[str, Kept], request: pytest.FixtureRequest) -> Iterator[Kept]:
    """A former version, by its number, with the rights that its image needs."""
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": rights(NAMESPACE)})
    if request.param == UNRELEASED:
        real.kubectl("apply", "--filename=-", input=given)
    yield former_loaded[request.param]
    if request.param == UNRELEASED:
        real.kubectl("delete", "--filename=-", input=given)


# An install, an upgrade, a rollback and an uninstall for each version there was, whose images are built first.
@pytest.mark.long
@pytest.mark.parametrize("former", FORMER_VERSIONS, indirect=True)
def test_from_a_former_version_and_back_with_gangs_that_wait_and_run(
    real: Testbed, absent: Release, scene: Scene, former: Kept
) -> None:
    """Replicas of both versions serve, and lead, beside each other; every new pod of a gang is held all the time.

    The values are those of the former chart, which may know fewer. Each version knows what the other has admitted,
    although the one that was not released writes no annotation with the terms.
    """
    absent.chart = former.chart
    absent.helm("install", *absent.values, f"--set=image.tag={former.version}", *_WAIT)
    queue = scene.queue(cpu="3")
    scene.apply(_cluster("first", queue))
    running = {"first": scene.await_running("ray-first-pg", 2)}
    annotations = scene.pod_group("ray-first-pg")["metadata"]["annotations"]
    assert (ADMITTED_FOR in annotations) == (former.version != UNRELEASED)
    scene.apply(_cluster("second", queue))
    scene.await_state("ray-second-pg", "WaitingForQuota")
    absent.chart = CHART
    for verb, flags in (("upgrade", ("--reuse-values", f"--set=image.tag={__version__}")), ("rollback", ())):
        with _created_all_the_time(real, scene, verb) as creations, Rollout(absent) as rollout:
            creations.go_on()
            absent.helm(verb, *flags)
            with halfway(absent) as answers:
                assert answers.keys() == {former.version, __version__}
                assert answers[former.version] == answers[__version__]
                creations.go_on()
            phases = rollout.await_end()
            rollout.await_end("controller")
            creations.go_on()
        assert creations.rounds(phases.beside, phases.new) >= ENOUGH
        assert set(creations.held(_MEMBER)) == {True}
        assert rollout.leaders() == ["old", "new"]
        assert rollout.transitions() >= 1
        if verb == "upgrade":
            # Beside the gang that the former version has admitted there is room for this one, and no other.
            scene.apply(_cluster("third", queue, workers=0))
            running["third"] = scene.await_running("ray-third-pg", 1)
            assert ADMITTED_FOR in scene.pod_group("ray-third-pg")["metadata"]["annotations"]
        scene.await_gated("ray-second-pg", 2)
    for name, pods in running.items():
        uids = {pod["metadata"]["uid"] for pod in scene.await_running(f"ray-{name}-pg", len(pods))}
        assert uids == {pod["metadata"]["uid"] for pod in pods}
    scene.delete(RAY_CLUSTERS, "first")
    scene.await_running("ray-second-pg", 2)
    scene.assert_never_above({"cpu": "3"})
    absent.helm("uninstall", *_WAIT)


def test_from_nothing_and_back_to_nothing(real: Testbed, absent: Release, scene: Scene) -> None:
    """Gangs are held from the moment on at which muster is reached, and never again from that at which it goes."""
    absent.chart = CHART
    with _created_all_the_time(real, scene, "install") as creations:
        creations.go_on()
        absent.helm("install", *absent.values, *_WAIT)
        wait_for("gangs to be held", lambda: creations.held(_MEMBER)[-1], PATIENCE)
        creations.go_on()
    assert _changes(creations.held(_MEMBER)) == [False, True]

    queue = scene.queue(cpu="2")
    scene.apply(_cluster("runs", queue))
    scene.await_running("ray-runs-pg", 2)
    scene.apply(_cluster("waits", queue))
    scene.await_state("ray-waits-pg", "WaitingForQuota")

    scene.judge.excuse("ray-waits-pg", "what an uninstall finds held it opens, whatever room there is")
    with _created_all_the_time(real, scene, "uninstall", keep=True) as creations:
        creations.go_on()
        absent.helm("uninstall", *_WAIT)
        creations.go_on()
    assert _changes(creations.held(_MEMBER)) == [True, False]
    scene.recorder.settle()
    assert [pod["metadata"]["name"] for pod in scene.pods() if GATE in gates(pod)] == []
    creations.remove()
    scene.delete(RAY_CLUSTERS, "runs")
    scene.wait("what waited to run", _runs(scene, "waits"))
    scene.apply(_cluster("afterwards", queue))
    scene.wait("what came afterwards to run", _runs(scene, "afterwards"))
    assert not [
        pod for pod in scene.pods() if pod["spec"]["schedulerName"] == "volcano" and _of_cluster(pod) == "afterwards"
    ]
    kinds = "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations"
    label = "--selector=app.kubernetes.io/name=muster"
    assert real.kubectl("get", kinds, label, "--output=name").stdout == ""
    mine = "jobs,serviceaccounts,roles,rolebindings,deployments,services,secrets"
    assert absent.kubectl("get", mine, label, "--output=name") == ""


# An install, two upgrades, a rollback and two uninstalls for hooks that change with the chart alone.
@pytest.mark.long
def test_an_image_that_is_nowhere_stops_nobody(real: Testbed, absent: Release) -> None:
    """What was installed is not called, also after an upgrade; nor can it be uninstalled but without its Job.

    Helm says so then, and has removed nothing; a rollback to where the release was makes it whole again.
    """
    absent.chart = CHART
    absent.helm("install", *absent.values, "--set=image.tag=nowhere")
    api = real.api()
    assert admitted(api, gang=True) == "gates []"
    absent.helm("upgrade", "--reuse-values", "--set=logFormat=json")
    assert admitted(api, gang=True) == "gates []"
    failed = absent.helm("uninstall", "--timeout=8s", check=False)
    assert failed.returncode
    assert "muster-uninstall not ready" in failed.stderr
    assert absent.pods("webhook")
    # Where the page sends its reader to look.
    *_, describe = block(
        "docs/runbook.md", "kubectl -n muster-system logs -l app.kubernetes.io/component=uninstall"
    ).splitlines()
    assert "muster.test/muster:nowhere" in real.kubectl(*describe.split()[1:]).stdout
    absent.helm("rollback", "2")
    assert "STATUS: deployed" in absent.helm("status").stdout
    absent.helm("upgrade", "--reuse-values")
    absent.helm("uninstall", "--no-hooks", *_WAIT)
    absent.kubectl("delete", "job", "muster-uninstall")
    left = "serviceaccounts,clusterroles,clusterrolebindings"
    assert absent.kubectl("get", left, "--selector=app.kubernetes.io/name=muster", "--output=name") == ""
