"""One pytest of `hack.check`: how it ran, which of its tests failed, and what it cost; and a table of all costs."""

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hack.testbed.costs import COSTS, START, noted
from hack.testbed.parts import PARTS

# Of a reason, which pytest does not cut where CI is set, in characters.
_LONGEST = 400
_HEAD = ("part", "wall s", "CPU s", "tests", "etcd", "apiserver", "kubernetes", "operators", "muster", "starts")


@dataclass(slots=True)
class Part:
    """One pytest: its name, its options and what it runs, how it ended (None: not at all), and what it cost.

    `failed` has the line of pytest's summary for each failure.
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
    """Lines that the testbeds' programs noted (`hack.testbed.costs`)."""
    left: int = 0
    """Tests that were left to `make test-all`."""
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


def table(parts: Sequence[Part], seconds: float, others: float) -> list[str]:
    """Return the lines of a table of processor seconds; `tests` is pytest with what it runs and no testbed noted.

    The last line has the shares of all processors that the run had, and that others took (`others`).
    """
    rows = [_row(part) for part in parts]
    total = [sum(column) for column in zip(*(numbers for _, numbers in rows), strict=True)]
    lines = [_line(_HEAD), *(_line((name, *(f"{one:.0f}" for one in numbers))) for name, numbers in rows)]
    cores = os.cpu_count() or 1
    cpu = sum(part.cpu for part in parts)
    share = cpu / (seconds * cores)
    lines.append(_line(("all", *(f"{one:.0f}" for one in [seconds, *total[1:]]))))
    lines.append(f"{cpu:.0f} CPU s in {seconds:.0f} s: {share:.0%} of {cores} processors; others took {others:.0%}")
    return lines


def _row(part: Part) -> tuple[str, list[float]]:
    programs = dict.fromkeys(_HEAD[4:-1], 0.0)
    for name, seconds in part.spent:
        if name != START:
            programs[_column(name)] += seconds
    starts = sum(name == START for name, _ in part.spent)
    return part.name, [part.seconds, part.cpu, part.cpu - sum(programs.values()), *programs.values(), starts]


def _column(name: str) -> str:
    if name in ("etcd", "kube-apiserver"):
        return name.removeprefix("kube-")
    if name not in PARTS:
        return "muster"
    return "operators" if PARTS[name].addon not in ("", "node") else "kubernetes"


def _line(cells: Iterable[str]) -> str:
    first, *others = cells
    return f"{first:<11}" + "".join(f"{one:>11}" for one in others)
