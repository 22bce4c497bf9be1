"""pytest in forks of this process: once with coverage, to see which tests reach what, and once for every mutant.

What is foreign is imported before the first fork. muster and its tests are imported in the fork, where one module's
source is the mutant's.
"""

import importlib.util
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

import aiohttp.web  # noqa: F401 - every fork needs it
import coverage
import cryptography.x509  # noqa: F401 - as above
import hypothesis
import jsonpatch  # noqa: F401 - as above
import kubernetes_asyncio  # noqa: F401 - as above
import pytest

_EVERY_TEST = ("-q", "-x", "--assert=plain", "-p", "no:cacheprovider", "--hypothesis-seed=0")
_TEST_SECONDS = 30  # what a mutant hangs in; the slowest test takes 8
_FIXED_SECONDS, _TIMES_AS_LONG = 30.0, 4.0
_BYTES = 4 * 1024**3
_POLL_SECONDS = 0.01


class Reach:
    """Which tests run which lines, and how long each takes, in seconds."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.seconds: dict[str, float] = found["seconds"]
        self._lines: dict[str, dict[str, list[str]]] = found["lines"]

    def tests(self, path: str, first: int, last: int) -> list[str]:
        """The tests of these lines, the fastest first; of lines that run at import the tests of the whole file."""
        lines = self._lines.get(path, {})
        found = {test for line in range(first, last + 1) for test in lines.get(str(line), ())}
        if "" in found:
            found |= {test for tests in lines.values() for test in tests}
        return sorted(found - {""}, key=lambda test: (self.seconds[test], test))


def reach(sources: Sequence[str], tests: Sequence[str], report: Path, of: str) -> Reach:
    """Run all tests as they are, and keep in `report` what they reach, `of` the files of this digest.

    Exits when one of them fails.
    """
    code = _forked(lambda: _measured(sources, tests, report, of), seconds=3600, show=True)
    if code:
        sys.exit("the unit tests fail without any mutant")
    return Reach(json.loads(report.read_text()))


def survives(path: str, source: str, reach: Reach, tests: Sequence[str]) -> bool:
    """Whether all these tests pass with this source in place of the file's; not when they take far too long."""
    seconds = _FIXED_SECONDS + _TIMES_AS_LONG * sum(reach.seconds[test] for test in tests)

    def run() -> int:
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))
        sys.meta_path.insert(0, _InPlace(path, source))
        files = sorted({test.partition("::")[0] for test in tests})
        return pytest.main([*_EVERY_TEST, f"--timeout={_TEST_SECONDS}", *files], plugins=[_Chosen(tests)])

    return _forked(run, seconds=seconds) == 0


def _forked(run: Callable[[], int], *, seconds: float, show: bool = False) -> int:
    """The exit code of a function in a process of its own; another one than 0 when it took longer."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()
            if not show:
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, 1)
                os.dup2(nothing, 2)
            code = int(run())
        except BaseException:  # noqa: BLE001 - it ends here
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                child = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(_POLL_SECONDS)
    finally:
        if child:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return -signal.SIGKILL


def _measured(sources: Sequence[str], tests: Sequence[str], report: Path, of: str) -> int:
    measured = coverage.Coverage(
        data_file=None, include=[str(Path(path).resolve()) for path in sources], config_file=False
    )
    contexts = _Contexts(measured)
    measured.start()
    code = pytest.main([*_EVERY_TEST, *tests], plugins=[contexts])
    measured.stop()
    data = measured.get_data()
    lines = {path: data.contexts_by_lineno(str(Path(path).resolve())) for path in sources}
    report.write_text(json.dumps({"of": of, "seconds": contexts.seconds, "lines": lines}))
    return code


class _Contexts:
    """Tells coverage which test runs."""

    def __init__(self, measured: coverage.Coverage) -> None:
        self._measured = measured
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._measured.switch_context(item.nodeid)
        started = time.monotonic()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = time.monotonic() - started
            self._measured.switch_context("")


class _Chosen:
    """Only these tests, in this order; an example that fails is enough, it need not be a small one."""

    def __init__(self, tests: Collection[str]) -> None:
        self._order = {test: number for number, test in enumerate(tests)}

    def pytest_collection(self) -> None:
        phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
        hypothesis.settings.register_profile("mutate", hypothesis.settings.default, database=None, phases=phases)
        hypothesis.settings.load_profile("mutate")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((one for one in items if one.nodeid in self._order), key=lambda one: self._order[one.nodeid])


class _InPlace(SourceFileLoader):
    """Finds and loads one module with another source than its file has."""

    def __init__(self, path: str, source: str) -> None:
        name = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        super().__init__(name, str(Path(path).resolve()))
        self._source = source

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """The spec of that module, and of no other."""
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.path, loader=self)

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - its only one
        """The code of the mutant."""
        return compile(self._source, self.path, "exec")
