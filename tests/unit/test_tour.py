"""The picture of the demo in README.md: what is drawn is what was printed."""

import subprocess
import sys
from xml.etree import ElementTree as ET

import pytest

from hack.site.loads import loaded
from hack.tour import drawn, read, recorded, story

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
