"""Fixtures for all tests."""

import gc
import os
import signal

import pytest

from hack.testbed import PATIENCE
from muster.cli import CONNECT_TIMEOUT
from tests.support.cluster import steps
from tests.support.cluster.image_fixtures import container, image, image_tree
from tests.support.cluster.testbed_fixtures import (
    own_testbed,
    pytest_pyfunc_call,
    pytest_runtest_makereport,
    testbed,
)

__all__ = [
    "container",
    "image",
    "image_tree",
    "own_testbed",
    "pytest_pyfunc_call",
    "pytest_runtest_makereport",
    "testbed",
]

# A control plane on a busy machine may need longer than a user would wait; a test that is about the time says its own.
os.environ.setdefault(CONNECT_TIMEOUT, f"{PATIENCE:g}")

# A shell has what it starts in the background ignore Ctrl-C, and so would all that the tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Have the garbage collector look at what tests make alone, not at all that was imported and collected before."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show how much work of muster's the steps of this run took."""
    steps.record()
    if lines := steps.table():
        terminalreporter.section("work of muster's by step: median and most of this run (recorded median)")
        for line in lines:
            terminalreporter.write_line(line)
