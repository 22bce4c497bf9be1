"""One pytest of `hack.check`: how it ran, which of its tests failed, and whether a failed test gets further attempts.

Of tests without a control plane, and of those that compare numbers, the first answer counts. A test with a control
plane on a busy machine may fail for want of time: where a few of a part failed, each runs five times more by itself, in
a process of its own. If one of the five fails it has failed, and so has its part. A test that passes all five is
unsteady: its fault, or muster's, is still there, so that it is named at the end and in a log that outlives the run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from hack.testbed.costs import COSTS, noted
from hack.testbed.paths import cache_root

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ATTEMPTS", "FEW", "Part", "remember", "unsteady_log"]

ATTEMPTS = 5
"""How often a failed test runs by itself; all must pass."""
FEW = 3
"""That many failed tests of a part get further attempts; more are no accident."""
# Of a reason, which pytest does not cut where CI is set, in characters.
_LONGEST = 400
# How pytest says that tests failed, and nothing else did.
_SOME_FAILED = 1
_MEMORY = Path(".pytest_cache")


@dataclass(slots=True)
class Part:
    """One pytest: its name, its options and what it runs, how it ended (None: not at all), and what it cost.

    `failed` has a line for each failure, as pytest's summary says it, and `tests` the tests that are behind them.
    """

    name: str
    options: Sequence[str]
    paths: Sequence[str]
    steady: bool = False
    """Whether the first answer counts."""
    lane: str = ""
    """Parts of one lane run one after another."""
    code: int | None = None
    seconds: float = 0.0
    cpu: float = 0.0
    """Processor seconds of pytest and of all that it started and waited for."""
    spent: list[tuple[str, float]] = field(default_factory=list)
    """What the testbeds' programs noted (`hack.testbed.costs`)."""
    left: int = 0
    """How many tests were left to `make test-all`."""
    failed: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    unsteady: list[str] = field(default_factory=list)
    """Tests that failed, and passed all further attempts."""

    def run(self) -> None:
        """Run it to its end, print what it prints, and note what failed."""
        # Where pytest remembers which tests failed: those of this part alone.
        memory = _MEMORY / self.name
        options = (f"--override-ini=cache_dir={memory}", "--cache-clear", *self.options)
        with tempfile.TemporaryDirectory() as folder:
            costs = Path(folder) / "costs"
            started = time.monotonic()
            self._follow([*options, *self.paths], costs)
            self.seconds = time.monotonic() - started
            self.spent = noted(costs)
        last_failed = memory / "v" / "cache" / "lastfailed"
        self.tests = list(json.loads(last_failed.read_text())) if last_failed.exists() else []

    def _follow(self, arguments: Sequence[str], costs: Path) -> None:
        # pytest cuts the reasons of its summary to the width of the terminal, which is none here.
        environment = os.environ | {"COLUMNS": "200", COSTS: str(costs)}
        in_summary = False
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
        ) as process:
            for line in map(str.rstrip, process.stdout or ()):
                print(f"{self.name:<11}| {line}", flush=True)
                in_summary = in_summary or line.strip("= ") == "short test summary info"
                if in_summary and line.startswith(("FAILED ", "ERROR ")):
                    self.failed.append(line[:_LONGEST])
                if found := re.search(r"\b(\d+) deselected\b.* in [0-9.]+s", line):
                    self.left = int(found[1])
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = self.code = os.waitstatus_to_exitcode(status)
        self.cpu = usage.ru_utime + usage.ru_stime

    def may_try_again(self) -> bool:
        """Whether its failed tests get further attempts."""
        return self.code == _SOME_FAILED and not self.steady and 0 < len(self.tests) <= FEW

    def try_again(self) -> None:
        """Run each failed test five times by itself, until a run fails; where none does the part has passed."""
        if all(map(self._passes_always, self.tests)):
            self.code, self.unsteady, self.failed = 0, self.tests, []

    def _passes_always(self, test: str) -> bool:
        return all(self._attempt(number, test) for number in range(1, ATTEMPTS + 1))

    def _attempt(self, number: int, test: str) -> bool:
        print(f"== attempt {number} of {ATTEMPTS}, nothing beside it: {test}", flush=True)
        started = time.monotonic()
        argv = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *self.options, test]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        self.seconds += time.monotonic() - started
        if done.returncode:
            print("\n".join(f"{self.name:<11}| {line}" for line in done.stdout.splitlines()), flush=True)
        return done.returncode == 0

    def outcome(self) -> str:
        """Return how it ended, in words, and after how long."""
        ended = "passed" if self.code == 0 else f"failed ({self.code})"
        unsteady = f" ({len(self.unsteady)} UNSTEADY)" if self.unsteady else ""
        return f"{self.name} {ended}{unsteady} in {self.seconds:.0f} s"


def unsteady_log() -> Path:
    """Return the file that keeps every unsteady test: beside the testbed's programs, out of the checkout."""
    return cache_root().parent / "unsteady.log"


def remember(parts: Sequence[Part]) -> None:
    """Add the unsteady tests of these parts to the log, each with the time and the commit."""
    seen = [(part.name, test) for part in parts for test in part.unsteady]
    if not seen:
        return
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip() or "no commit"
    now = datetime.now(UTC).isoformat(timespec="seconds")
    log = unsteady_log()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as stream:
        stream.writelines(f"{now} {commit} {name}: {test}\n" for name, test in seen)
