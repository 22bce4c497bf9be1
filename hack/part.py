"""One pytest of `hack.check`: how it ran, which of its tests failed, and what it cost."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hack.testbed.costs import COSTS, noted

# Of a reason, which pytest does not cut where CI is set, in characters.
_LONGEST = 400


@dataclass(slots=True)
class Part:
    """One pytest: its name, its options and what it runs, how it ended (None: not at all), and what it cost.

    `failed` has a line for each failure, as pytest's summary says it.
    """

    name: str
    options: Sequence[str]
    paths: Sequence[str]
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

    def run(self) -> None:
        """Run it to its end, print what it prints, and note what failed."""
        with tempfile.TemporaryDirectory() as folder:
            costs = Path(folder) / "costs"
            started = time.monotonic()
            # Parts that run side by side would write over each other's cache.
            self._follow(["-p", "no:cacheprovider", *self.options, *self.paths], costs)
            self.seconds = time.monotonic() - started
            self.spent = noted(costs)

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

    def outcome(self) -> str:
        """Return how it ended, in words, and after how long."""
        ended = "passed" if self.code == 0 else f"failed ({self.code})"
        return f"{self.name} {ended} in {self.seconds:.0f} s"
