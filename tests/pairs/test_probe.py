"""`muster doctor --probe` on real schedulers: which half of native PodGroups is missing, by a gang of two pods."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hack.testbed import PATIENCE, Nodes, Testbed, wait_for
from hack.testbed.muster import install, probe_of_helm_test
from muster.cli.doctor.probe import LABEL
from muster.model.resource import PODS
from tests.support.cases import cases
from tests.support.cli.doctor import Doctor
from tests.support.cluster.backends import NATIVE_POD_GROUPS
from tests.support.cluster.scene import open_scene
from tests.support.cluster.testbed_fixtures import OwnTestbed
from tests.support.pages.blocks import block

pytestmark = pytest.mark.long

_PAIR = {"schedulers": "{kubernetes}", "queues.source": "muster"}
_NODES = Nodes(count=2, gpu=0)
_ALONE = ("--probe=only", "--image=none", "-ojson")


@pytest.fixture(scope="module")
def native() -> Iterator[Testbed]:
    """Kubernetes 1.37 with everything that native PodGroups need, and muster's objects."""
    with Testbed.start(parts=[], kubernetes="1.37", nodes=_NODES, progress=print) as running:
        install(running, values=_PAIR, webhooks=0, controllers=0)
        yield running


def _left(testbed: Testbed) -> list[str]:
    """The objects of probes in all namespaces, but for those that are being deleted."""
    api = testbed.api()
    return [
        item["metadata"]["name"]
        for resource in (PODS, NATIVE_POD_GROUPS)
        for item in api.get(f"{resource.path()}?labelSelector={LABEL}")["items"]
        if "deletionTimestamp" not in item["metadata"]
    ]


def _probed(doctor: Doctor, *arguments: str) -> tuple[str, str, str]:
    """Level, message and cure of the one finding about kube-scheduler."""
    _, out, _ = doctor.run("-ojson", *arguments)
    (one,) = (one for one in json.loads(out)["diagnoses"] if one["check"] == "kubernetes")
    return one["level"], one["message"], one["cure"]


def test_a_scheduler_that_holds_gangs_together_is_in_order(native: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    """By what the installation says: its scheduler, and its image, which the pods run."""
    with open_scene(native, "probed", [PODS, NATIVE_POD_GROUPS]) as scene:
        level, message, _ = _probed(Doctor(native, capsys), "--probe", f"--namespace={scene.namespace}")
        assert (level, message) == (
            "ok",
            "kube-scheduler (default-scheduler) holds a pod of a gang whose other pod is gated, and places a plain pod",
        )
        assert _left(native) == []
        scene.recorder.settle()
        plain = scene.recorder.first(PODS, lambda pod: pod["metadata"]["name"].endswith("-plain"))
        assert plain.object["spec"]["containers"][0]["image"].startswith("muster:")


def test_helm_test_finds_it_too_with_the_rights_of_its_own_account(native: Testbed) -> None:
    said = probe_of_helm_test(native, "muster", "muster-system")
    assert "places a plain pod" in said.replace("\n" + " " * 23, " ")
    assert said.endswith("\n0 problems, 0 warnings\n")
    assert _left(native) == []


def test_the_page_of_the_command_line_has_the_words_that_ask_for_it(
    native: Testbed, capsys: pytest.CaptureFixture[str]
) -> None:
    program, command, *words = block("docs/cli.md", "muster doctor --probe").split()
    assert (program, command) == ("muster", "doctor")
    with open_scene(native, "sandbox", [PODS, NATIVE_POD_GROUPS]):
        level, message, _ = _probed(Doctor(native, capsys), *words)
    assert (level, "places a plain pod" in message) == ("ok", True)


def test_without_being_asked_it_makes_nothing(native: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    level, message, _ = _probed(Doctor(native, capsys))
    assert (level, message.partition(":")[0]) == ("ok", "not tested without --probe")


@contextmanager
def _without_room(testbed: Testbed) -> Iterator[None]:
    """No node takes a pod."""
    testbed.kubectl("cordon", "--selector=kubernetes.io/os=linux")
    try:
        yield
    finally:
        testbed.kubectl("uncordon", "--selector=kubernetes.io/os=linux")


def test_without_room_it_says_that_it_could_not_look(native: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    """A scheduler that places nothing holds every gang; that is no proof."""
    with _without_room(native):
        code, out, _ = Doctor(native, capsys).run(*_ALONE)
    (one,) = json.loads(out)["diagnoses"]
    assert (code, one["level"]) == (2, "unknown")
    assert "nodes are available" in one["message"]
    assert _left(native) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: signal.Signals(number).name)
def test_whoever_stops_it_finds_nothing_left(native: Testbed, number: signal.Signals) -> None:
    with _without_room(native):
        argv = [sys.executable, "-m", "muster.cli", "doctor", *_ALONE, f"--kubeconfig={native.kubeconfig}"]
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for("all of its objects", lambda: len(_left(native)) == 4)
        process.send_signal(number)
        out, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, errors) == (2, "", "muster doctor: stopped by a signal\n")
    assert _left(native) == []


def test_what_it_may_not_make_leaves_nothing(native: Testbed, capsys: pytest.CaptureFixture[str]) -> None:
    """A quota lets one pod in, and refuses the second."""
    with open_scene(native, "quota", []) as scene:
        scene.resource_quota({"pods": "1"}, used={"pods": "0"})
        code, out, _ = Doctor(native, capsys).run(*_ALONE, f"--namespace={scene.namespace}")
        (one,) = json.loads(out)["diagnoses"]
        assert (code, one["level"]) == (2, "unknown")
        assert "exceeded quota: team" in one["message"]
        assert _left(native) == []


@cases(
    "version, words, cure",
    (
        "the scheduler's gate is off",
        "1.37-scheduler-gate-off",
        "it places the pods of gangs one by one",
        "start kube-scheduler with --feature-gates=GenericWorkload=true",
    ),
    (
        "the apiserver's gate is off",
        "1.37-gate-off",
        "drops spec.schedulingGroup of pods, and does not serve PodGroups",
        "start kube-apiserver with --feature-gates=GenericWorkload=true and --runtime-config=",
    ),
    (
        "nobody serves PodGroups",
        "1.37-not-served",
        "places no pod at all, not even plain ones",
        "start kube-apiserver with --runtime-config=scheduling.k8s.io/v1beta1=true",
    ),
)
def test_each_half_is_named_with_its_cure(
    own_testbed: OwnTestbed, capsys: pytest.CaptureFixture[str], version: str, words: str, cure: str
) -> None:
    half = own_testbed(parts=[], nodes=_NODES, kubernetes=version)
    capsys.readouterr()
    code, out, _ = Doctor(half, capsys).run(*_ALONE)
    (one,) = json.loads(out)["diagnoses"]
    assert (code, one["level"]) == (1, "problem")
    assert words in one["message"]
    assert one["cure"].startswith(cure)
    left = half.kubectl("get", "pods", "--all-namespaces", f"--selector={LABEL}", "-ojson").stdout
    assert [pod for pod in json.loads(left)["items"] if "deletionTimestamp" not in pod["metadata"]] == []
