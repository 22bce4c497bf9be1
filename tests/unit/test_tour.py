"""The picture of the demo: what is drawn is what was printed, and README.md shows the same."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from hack.site.loads import loaded
from hack.tour import DRAWING, drawn, read, recorded, story
from tests.support.pages.transcripts import consoles, shown

_CHECKOUT = Path(__file__).parents[2]
_LINES = [
    "=== Start a real control plane",
    "=== KubeRay's own sample: a queue",
    "$ kubectl get pods | grep <none> & true",
    'NAME    READY   "a" ' + "word " * 40 + "end",
    "",
    "Summary, after 101 s:",
]


def test_what_is_drawn_is_what_was_printed() -> None:
    """Long lines are wrapped, as in a terminal, and are whole again when they are read."""
    drawing = drawn(_LINES)
    assert read(drawing) == "\n".join(line for line in _LINES if line)
    ET.fromstring(drawing)  # noqa: S314 - our own
    assert loaded(drawing) == []


def test_what_starts_and_ends_a_testbed_is_left_out() -> None:
    assert story(_LINES) == _LINES[1:5]


def test_a_program_that_fails_is_no_recording() -> None:
    assert recorded([sys.executable, "-c", "print('a'); print('b')"]) == ["a", "b"]
    with pytest.raises(subprocess.CalledProcessError, match="status 3"):
        recorded([sys.executable, "-c", "raise SystemExit(3)"])


def test_the_picture_shows_what_readme_shows() -> None:
    """tests/e2e/test_demo.py holds both against the demo itself."""
    _, _, told = (_CHECKOUT / "README.md").read_text().partition("`make demo` then shows")
    promised = [one for block in consoles(told.partition("\n## ")[0]) for one in shown(block)]
    seen = shown(read((_CHECKOUT / DRAWING).read_text()))
    assert promised
    assert [one.command for one in promised if one not in seen] == []
