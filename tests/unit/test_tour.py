"""The recording of the demo: what is drawn is what was printed, when it was printed, and README.md tells the same."""

import itertools
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hack.site.loads import loaded
from hack.tour import DRAWING, LONGEST, Line, begun, drawn, recorded, said
from tests.support.pages.transcripts import consoles, shown

_CHECKOUT = Path(__file__).parents[2]
_LINES = [
    Line(0.0, "=== Start a real control plane"),
    Line(30.0, "=== KubeRay's own sample: a queue"),
    Line(30.5, "$ kubectl get pods | grep <none> & true"),
    Line(31.0, "x" * 250),
    Line(100.0, ""),
    Line(101.0, "Summary, after 101 s:"),
]


def test_what_is_drawn_is_what_was_printed() -> None:
    """Long lines are wrapped, as in a terminal, and are whole again when they are read."""
    drawing = drawn(_LINES)
    assert said(drawing) == "\n".join(line.text for line in _LINES)
    ET.fromstring(drawing)  # noqa: S314 - our own
    assert loaded(drawing) == []


def test_what_starts_and_ends_a_testbed_is_left_out() -> None:
    assert begun(_LINES) == _LINES[1:5]


def test_no_wait_is_longer_than_people_wait() -> None:
    """The lines come in their order, and the last one early enough to be read."""
    drawing = drawn(begun(_LINES))
    (whole,) = {float(seconds) for seconds in re.findall(r"animation: \w+ ([\d.]+)s", drawing)}
    shares = [float(share) for share in re.findall(r"opacity: 0; } ([\d.]+)% ", drawing)]
    assert shares == sorted(shares)
    times = [share * whole / 100 for share in shares]
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) <= LONGEST + 1.3
    assert whole - times[-1] > 5


def test_lines_are_noted_as_they_come() -> None:
    first, second = recorded([sys.executable, "-c", "print('a', flush=True); print('b')"])
    assert (first.text, second.text) == ("a", "b")
    assert 0 < first.after <= second.after


def test_a_program_that_fails_is_no_recording() -> None:
    with pytest.raises(subprocess.CalledProcessError, match="status 3"):
        recorded([sys.executable, "-c", "raise SystemExit(3)"])


def test_the_recording_shows_what_readme_shows() -> None:
    """tests/e2e/test_demo.py holds both against the demo itself."""
    _, _, told = (_CHECKOUT / "README.md").read_text().partition("`make demo` then shows")
    promised = [one for block in consoles(told.partition("\n## ")[0]) for one in shown(block)]
    seen = shown(said((_CHECKOUT / DRAWING).read_text()))
    assert promised
    assert [one.command for one in promised if one not in seen] == []
