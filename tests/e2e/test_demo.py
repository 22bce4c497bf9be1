"""`make demo`, as it is, beside another testbed: it tells its whole story, as the picture in README.md, and ends."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hack.testbed import PATIENCE
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


def _ended_demo(*options: str) -> str:
    """Run the demo to its end, and return what it said: its whole story, of which nothing is left running."""
    argv = [sys.executable, "-m", "hack.demo", *options]
    done = subprocess.run(argv, cwd=_CHECKOUT, capture_output=True, text=True, check=False, timeout=5 * PATIENCE)
    assert (done.returncode, done.stderr) == (0, "")
    summary = done.stdout.partition("Summary, ")[2].splitlines()[1:]
    assert [line.partition(":")[0].strip(" -") for line in summary] == [
        *("test-cluster-0", "test-cluster-2", "test-cluster-1", "test-cluster-1")
    ]
    (state,) = re.findall(r"^starting at \S+, state in (.*)$", done.stdout, re.MULTILINE)
    assert marked(Path(state)) == []
    return done.stdout
