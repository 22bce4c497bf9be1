"""What a process has used, as /proc has it."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["cpu_seconds", "descriptors", "forget_peak", "resident"]

_TICKS = os.sysconf("SC_CLK_TCK")
# proc(5), clear_refs: the highest memory is counted from now on.
_PEAK = "5"


def cpu_seconds(pid: int) -> float:
    """CPU time of a process so far, user and system, in seconds. Raises OSError when it is gone."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident(pid: int, field: str = "VmRSS") -> float:
    """Memory of a process in MB; `VmHWM` is its highest so far. Raises OSError when it is gone."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise ProcessLookupError(f"no {field} of process {pid}")


def descriptors(pid: int) -> int:
    """How many files, sockets and pipes a process has open. Raises OSError when it is gone."""
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208 - numbers alone


def forget_peak(pid: int) -> None:
    """Have `VmHWM` begin at what the process has now. Raises OSError when it is gone."""
    Path(f"/proc/{pid}/clear_refs").write_text(_PEAK)
