"""The cost of the programs of testbeds: processor seconds by name, and how often a control plane was started.

Where MUSTER_COSTS names a file, each process adds a line to it as it is stopped; `hack.check` reads them. The
cost of a program's end, and of a program that ends by itself, is in no line.
"""

import json
import os
from pathlib import Path

COSTS = "MUSTER_COSTS"
START = "start"
"""The name of the line for a started control plane."""
_TICKS = os.sysconf("SC_CLK_TCK")


def note(name: str, seconds: float = 0.0) -> None:
    """Add a line, if a file is named."""
    if path := os.environ.get(COSTS):
        # One write, so that lines of several processes stay whole.
        with Path(path).open("a") as stream:
            stream.write(json.dumps([name, seconds]) + "\n")


def note_process(name: str, pid: int) -> None:
    """Add a line with what a process, and what it has waited for, has cost until now; none for one that is gone."""
    if os.environ.get(COSTS) and (fields := stat(pid)):
        note(name, spent(fields))


def stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the state on, the third; none for a process that is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    # The command name, in parentheses, may hold spaces and parentheses of its own.
    return text[text.rindex(")") + 2 :].split()


def spent(fields: list[str]) -> float:
    """Return the processor seconds of a process, by its `stat`, and of the children that it has waited for."""
    return sum(map(int, fields[11:15])) / _TICKS


def resident(pid: int, field: str = "VmRSS") -> float:
    """Memory of a process in MB; `VmHWM` is its highest so far. Raises OSError when it is gone."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(f"no {field} of process {pid}")


def noted(path: Path) -> list[tuple[str, float]]:
    """Return every line of a file, none where nothing wrote it."""
    if not path.exists():
        return []
    return [(str(name), float(seconds)) for name, seconds in map(json.loads, path.read_text().splitlines())]
