"""`make demo`, beside another testbed or on a cluster that is there: the whole story, as in README.md's picture."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hack.testbed import PATIENCE, Testbed
from hack.testbed.process import marked
from hack.tour import DRAWING
from hack.tour import read as recording
from tests.support.pages.transcripts import shown

pytestmark = pytest.mark.part("time")

_CHECKOUT = Path(__file__).parents[2]


@pytest.mark.usefixtures("testbed")
def test_the_demo_shows_what_the_readme_shows_and_leaves_nothing() -> None:
    """But for the ends of names, and ages. The recording shows the whole story, from KubeRay's sample on."""
    drawn = shown(recording((_CHECKOUT / DRAWING).read_text()))
    assert len(drawn) > 8
    story = " ".join(line for one in drawn for line in one.lines)
    promised = ("needs cpu 5", "SchedulingGated", "WaitingForQuota", "Running")
    assert [word for word in promised if word not in story] == []

    seen = shown(_ended_demo())
    assert [one.command for one in drawn] == [one.command for one in seen[-len(drawn) :]]
    # How far Volcano and the garbage collector are with PodGroups differs from run to run.
    for one in (one for one in drawn if one.command != "kubectl get podgroups"):
        assert one.lines
        assert one in seen, f"the demo does not show\n{one}\nbut\n" + "\n".join(map(str, seen))


@pytest.mark.long
@pytest.mark.parametrize("scheduler", ["coscheduling", "kubernetes"])
def test_the_demo_tells_the_same_story_without_volcano(scheduler: str) -> None:
    said = _ended_demo("--scheduler", scheduler)
    assert "needs cpu 5" in said


@pytest.mark.usefixtures("muster")
def test_the_demo_runs_on_a_cluster_that_is_there_and_leaves_nothing(testbed: Testbed) -> None:
    """In a namespace and a queue of its own, with the scheduler and the queues that muster has there."""
    done = _demo_on(testbed)
    assert (done.returncode, done.stderr) == (0, "")
    assert _summary(done.stdout) == _STORY
    assert 'gang "ray-test-cluster-2-pg" needs cpu 5, queue "muster-demo" has capability cpu 4' in " ".join(
        done.stdout.split()
    )
    for kind in ("namespace", "queues.scheduling.volcano.sh"):
        assert not testbed.kubectl("get", kind, "muster-demo", "--ignore-not-found").stdout


def test_what_a_cluster_lacks_is_named_and_nothing_is_made(bare: Testbed) -> None:
    done = _demo_on(bare)
    assert done.returncode == 1
    assert done.stderr == (
        "demo: the demo cannot run on the cluster of context testbed:\n"
        "  - muster is missing; with an image of yours: helm install muster charts/muster --namespace muster-system "
        "--create-namespace --set image.repository=REGISTRY/muster\n"
    )
    assert not bare.kubectl("get", "namespace", "muster-demo", "--ignore-not-found").stdout


def test_a_context_that_is_not_there_is_named(testbed: Testbed) -> None:
    done = _demo_on(testbed, "kind-none")
    assert done.returncode == 1
    assert re.fullmatch(r"demo: the cluster of context kind-none does not answer: .*kind-none.*\n", done.stderr)


_STORY = ["test-cluster-0", "test-cluster-2", "test-cluster-1", "test-cluster-1"]


def _summary(printed: str) -> list[str]:
    """The clusters of which the lines of the summary are."""
    lines = printed.partition("Summary, ")[2].splitlines()[1:]
    return [line.partition(":")[0].strip(" -") for line in lines]


def _demo_on(testbed: Testbed, context: str = "testbed") -> subprocess.CompletedProcess[str]:
    """Run the demo on a testbed that is there, by its kubeconfig."""
    argv = [sys.executable, "-m", "hack.demo", "--context", context]
    environment = os.environ | testbed.environment()
    return subprocess.run(
        argv, cwd=_CHECKOUT, env=environment, capture_output=True, text=True, check=False, timeout=5 * PATIENCE
    )


def _ended_demo(*options: str) -> str:
    """Run the demo to its end, and return its output: the whole story. Nothing is left running."""
    argv = [sys.executable, "-m", "hack.demo", *options]
    done = subprocess.run(argv, cwd=_CHECKOUT, capture_output=True, text=True, check=False, timeout=5 * PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    assert _summary(done.stdout) == _STORY
    (state,) = re.findall(r"^starting at \S+, state in (.*)$", done.stdout, re.MULTILINE)
    assert marked(Path(state)) == []
    return done.stdout
