"""Fixtures for all tests."""

import gc
import os
import signal

import pytest

from hack.image.build import CHECKOUT, Built, build, source
from hack.image.tree import Tree
from hack.testbed import PATIENCE
from muster.cli import CONNECT_TIMEOUT
from tests.support.cluster import steps
from tests.support.cluster.testbed_fixtures import (
    own_testbed,
    pytest_pyfunc_call,
    pytest_runtest_makereport,
    testbed,
)
from tests.support.image.container import Container, files, unpacked

__all__ = ["own_testbed", "pytest_pyfunc_call", "pytest_runtest_makereport", "testbed"]


@pytest.fixture(scope="session")
def image() -> Built:
    """The image of this checkout."""
    return build(source(CHECKOUT), name="muster", progress=print)


@pytest.fixture(scope="session")
def image_tree(image: Built) -> Tree:
    """All its files, layer over layer."""
    return files(image)


@pytest.fixture(scope="session")
def container(image: Built, image_tree: Tree, tmp_path_factory: pytest.TempPathFactory) -> Container:
    """The image on disk. Mounting and entering it needs root."""
    if os.geteuid() != 0:
        pytest.fail("running the image needs root, for mount and chroot: run these tests as root")
    root = tmp_path_factory.mktemp("image") / "root"
    root.parent.chmod(0o755)
    return unpacked(image, image_tree, root)


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
