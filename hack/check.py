"""Runs all tests: `python -m hack.check [pytest arguments]`.

A few pytests side by side, for most tests wait for clusters most of the time. The tests of whole clusters are in three
of them, such that all take about as long; the short ones begin where another has ended. What needs the MPI operator,
which has a port compiled in, is all in one. Every line says whose it is; the last ones name every test that failed, for
of a long log people see its end. The exit code is 0 when all have passed.

Beside three others on two cores a test of a whole cluster may fail for want of time. So when all have ended, the few
that failed run once more with nothing beside them. Those that pass then are named as unsteady: each is a fault still,
of the test or of muster. What fails again has failed, and so has a part in which many did.

MUSTER_WITHOUT_NODE=1 leaves out what needs a real node, on a machine that cannot run one, and says so at the start and
at the end; where CI is set it is an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["LEFT_OUT", "Part", "main", "parts", "run"]

_TESTS = Path("tests")
_CLUSTERS = _TESTS / "e2e"
_APISERVER = _TESTS / "apiserver"
_FAULTS = _TESTS / "faults"
_OPERATORS = (_TESTS / "conformance", _TESTS / "image", _TESTS / "testbed")
_NODE = _TESTS / "node"
_SWITCH = "MUSTER_WITHOUT_NODE"
LEFT_OUT = f"{_SWITCH} is set: {_NODE}, muster in pods on a real node, is NOT tested"
# Tests of whole clusters that two others take on; those with the node bring testbeds of their own.
_WITH_NODE = (
    *("test_volcano_webhooks.py", "test_kind_batch.py", "test_kind_mpi_v1.py", "test_operator_flag.py"),
    *("test_chaos.py", "test_queue_*.py"),
)
_WITH_OPERATORS = ("test_kind_*.py", "test_story_*.py", "test_nudge.py", "test_requeue.py")
# Of a reason, which pytest does not cut where CI is set, in characters.
_LONGEST = 400
# How pytest says that tests failed, and nothing else did.
_SOME_FAILED = 1
# Each has a control plane most of the time: more would only take cores and memory from each other.
_AT_ONCE = 4
# Of one part; more are no accident.
_FEW = 3


@dataclass(slots=True)
class Part:
    """One pytest: its name, how it ended (None: not at all), when, and one line for each of its tests that failed.

    Those that failed beside others, and passed by themselves, are `unsteady`.
    """

    name: str
    arguments: Sequence[str]
    code: int | None = None
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)

    def run(self, *more: str) -> None:
        """Run it to its end with `more` arguments, and print what it prints."""
        # Where pytest remembers which tests failed: those of this part alone.
        memory = f"--override-ini=cache_dir=.pytest_cache/{self.name}"
        command = [sys.executable, "-m", "pytest", memory, *self.arguments, *more]
        # pytest cuts the reasons of its summary to the width of the terminal, which is none here.
        wide = os.environ | {"COLUMNS": "200"}
        in_summary, started = False, time.monotonic()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=wide
        ) as process:
            for line in map(str.rstrip, process.stdout or ()):
                print(f"{self.name:<9}| {line}", flush=True)
                in_summary = in_summary or line.strip("= ") == "short test summary info"
                if in_summary and line.startswith(("FAILED ", "ERROR ")):
                    self.failed.append(line[:_LONGEST])
        self.code, self.seconds = process.returncode, time.monotonic() - started

    def look_again(self) -> None:
        """Run what failed once more, where that is a few tests."""
        if self.code != _SOME_FAILED or len(self.failed) > _FEW:
            return
        print(f"== once more, with nothing beside it: what failed of {self.name}", flush=True)
        again = Part(self.name, self.arguments)
        again.run("--last-failed", "--last-failed-no-failures=none")
        self.seconds += again.seconds
        if again.code == 0:
            self.code, self.unsteady, self.failed = 0, self.failed, []

    def outcome(self) -> str:
        """Return how it ended, in words, and after how long."""
        ended = "passed" if self.code == 0 else f"failed ({self.code})"
        unsteady = f" ({len(self.unsteady)} at the second attempt)" if self.unsteady else ""
        return f"{self.name} {ended}{unsteady} in {self.seconds:.0f} s"


def parts(more: Sequence[str] = (), *, node: bool = True) -> list[Part]:
    """Return the pytests, the long ones first, each with the arguments `more`.

    Together they run every test, but for the node's, if so.
    """
    left_out = set() if node else {_NODE}
    folders = {folder for folder in _TESTS.iterdir() if any(folder.rglob("test_*.py"))} - left_out
    left = set(_CLUSTERS.glob("test_*.py"))
    taken: dict[tuple[str, ...], list[Path]] = {}
    for names in (_WITH_NODE, _WITH_OPERATORS):
        taken[names] = sorted(path for path in left if any(map(path.match, names)))
        left.difference_update(taken[names])
    whole = {_CLUSTERS, _NODE, *_OPERATORS, _APISERVER, _FAULTS}
    paths = {
        "clusters": sorted(left),
        "operators": [*_OPERATORS, *taken[_WITH_OPERATORS]],
        "node": [*sorted(folders & {_NODE}), *taken[_WITH_NODE]],
        "apiserver": [_APISERVER],
        "faults": [_FAULTS],
        "others": sorted(folders - whole),
    }
    # One line for each test where some take a minute.
    return [Part(name, [*([] if name == "others" else ["-v"]), *map(str, paths[name]), *more]) for name in paths]


def _with_node(environment: Mapping[str, str]) -> bool:
    if not environment.get(_SWITCH):
        return True
    if environment.get("CI"):
        sys.exit(f"{_SWITCH} is for a developer's own machine, and CI is set: unset {_SWITCH}")
    return False


def run(chosen: Sequence[Part]) -> bool:
    """Run these parts in this order, a few at a time; print what failed, and return whether all passed."""
    started = time.monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for _ in pool.map(lambda part: part.run("--cache-clear"), chosen):
            pass
    for part in chosen:
        part.look_again()
    for part in chosen:
        for line in part.failed:
            print(f"{part.name:<9}| {line}")
        for line in part.unsteady:
            print(f"{part.name:<9}| UNSTEADY, passed by itself: {line}")
    print(f"== {', '.join(part.outcome() for part in chosen)}, after {time.monotonic() - started:.0f} s", flush=True)
    return all(part.code == 0 for part in chosen)


def main() -> None:
    """Run all tests and exit."""
    node = _with_node(os.environ)
    if not node:
        print(f"== {LEFT_OUT}", flush=True)
    passed = run(parts(sys.argv[1:], node=node))
    if not node:
        print(f"== {LEFT_OUT}")
    sys.exit(not passed)


if __name__ == "__main__":
    main()
