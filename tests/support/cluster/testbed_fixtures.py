"""Fixtures of every test that needs a real cluster. A testbed that cannot start is an error, never a skip."""

from collections.abc import Generator, Iterator, Sequence
from typing import Protocol

import pytest

from hack.testbed import Nodes, Testbed
from hack.testbed.kubernetes import DEFAULT_KUBERNETES
from hack.testbed.parts import DEFAULT_ADDONS
from tests.support.cluster.judge import judged_with_the_test
from tests.support.cluster.steps import counted_with_the_test


class OwnTestbed(Protocol):
    """Starts a testbed that belongs to one test; it is stopped with the test."""

    def __call__(
        self, *, parts: Sequence[str] = DEFAULT_ADDONS, nodes: Nodes = ..., kubernetes: str = DEFAULT_KUBERNETES
    ) -> Testbed:
        """Return a running testbed with these add-ons and nodes, and this Kubernetes."""


@pytest.fixture(scope="session")
def testbed() -> Iterator[Testbed]:
    """One testbed for the session: tests keep to namespaces and queues of their own and break nothing."""
    with Testbed.start(progress=print) as running:
        yield running


@pytest.fixture
def own_testbed() -> Iterator[OwnTestbed]:
    """Make testbeds for a test that breaks things."""
    running: list[Testbed] = []

    def start(
        *,
        parts: Sequence[str] = DEFAULT_ADDONS,
        nodes: Nodes = Nodes(),  # noqa: B008 (frozen)
        kubernetes: str = DEFAULT_KUBERNETES,
    ) -> Testbed:
        running.append(Testbed.start(parts=parts, nodes=nodes, kubernetes=kubernetes, progress=print))
        return running[-1]

    yield start
    for one in running:
        one.stop()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Judge with each test what muster opened in its scenes, and how much work it took."""
    with counted_with_the_test(pyfuncitem.nodeid.removeprefix("tests/")), judged_with_the_test():
        return (yield)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Name the log folders of the testbeds that a failed test used."""
    outcome = yield
    report: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed:
        used = [value for value in getattr(item, "funcargs", {}).values() if isinstance(value, Testbed)]
        for one in used:
            report.sections.append(("testbed", f"logs of every process: {one.logs}"))
