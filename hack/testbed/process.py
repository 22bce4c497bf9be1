"""Processes that are found again, and never mistaken for others.

Each start is recorded at once in the state folder with the pid and its start time, so that any later command can stop
it and a recycled pid is never touched. Each process also carries the state folder in its environment: what a crash
left between its start and its record is found by that mark. Processes of an attached testbed die with their parent.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hack.testbed.costs import note_process, stat
from hack.testbed.errors import TestbedError
from hack.testbed.paths import write_atomically
from hack.testbed.waiting import wait_for

MARK = "MUSTER_TESTBED_STATE"
# For programs in Go: they share few cores and have memory enough, and their collectors would take a tenth of the time.
LAZY_COLLECTOR = {"GOGC": "400"}
_PR_SET_PDEATHSIG = 1
# Resolved before any fork: a forked child must not load anything.
_PRCTL = ctypes.CDLL(None, use_errno=True).prctl
# Children of this interpreter, so that they are reaped when they end.
_CHILDREN: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a testbed: `start_time` is in clock ticks since boot, as in /proc/PID/stat."""

    name: str
    pid: int
    start_time: int
    log: Path

    def alive(self) -> bool:
        """True if this very process still runs (a zombie does not)."""
        if _start_time(self.pid) == self.start_time:
            return True
        child = _CHILDREN.get(self.pid)
        if child is not None and child.poll() is not None:
            del _CHILDREN[self.pid]
        return False

    def signal(self, number: int) -> None:
        """Send a signal, when the process is still there."""
        if self.alive():
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def kill(self) -> None:
        """End it with SIGKILL and wait until it is gone."""
        if self.alive():
            note_process(self.name, self.pid)
        self._end()

    def _end(self) -> None:
        self.signal(signal.SIGKILL)
        wait_for(f"{self.name} to die", lambda: not self.alive(), interval=0.01)

    def stop(self, grace: float = 5) -> None:
        """End it with SIGTERM, and with SIGKILL after `grace` seconds."""
        stop_all([self], grace)


def spawn(name: str, argv: Sequence[str], *, state: Path, env: Mapping[str, str], tied: bool) -> Process:
    """Start a process, its output appended to `state/logs/NAME.log`, and record it.

    `env` is added to this process's own environment. A tied process is killed by the kernel when its starter dies,
    which holds for the starting thread: it has to be the main one. Raises TestbedError.
    """
    if tied and threading.current_thread() is not threading.main_thread():
        raise TestbedError(f"{name} must be started from the main thread, or it dies with the thread")
    log = state / "logs" / f"{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with log.open("ab") as output:
            child = subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=os.environ | env | {MARK: str(state)},
                preexec_fn=die_with_me() if tied else None,  # noqa: PLW1509 (two prepared system calls)
            )
    except OSError as error:
        raise TestbedError(f"{name} cannot be started: {error}") from error
    _CHILDREN[child.pid] = child
    process = Process(name, child.pid, _start_time(child.pid) or 0, log)
    folder = state / "processes"
    folder.mkdir(exist_ok=True)
    write_atomically(folder / f"{name}.json", json.dumps(asdict(process), default=str))
    return process


def recorded(state: Path) -> dict[str, Process]:
    """Return the processes that were started for this state folder, by name, dead or alive."""
    found = {}
    for record in sorted((state / "processes").glob("[!.]*.json")):
        facts = json.loads(record.read_text())
        found[facts["name"]] = Process(facts["name"], facts["pid"], facts["start_time"], Path(facts["log"]))
    return found


def marked(state: Path) -> list[Process]:
    """Return every process of this machine that carries this state folder's mark, recorded or not."""
    mark = f"{MARK}={state}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            environment = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        start_time = _start_time(int(folder.name))
        if mark in environment and start_time is not None:
            found.append(Process("unrecorded", int(folder.name), start_time, state / "logs"))
    return found


def stop_all(processes: Iterable[Process], grace: float) -> None:
    """End processes together: SIGTERM to all, SIGKILL to any left after `grace` seconds."""
    remaining = [process for process in processes if process.alive()]
    for process in remaining:
        note_process(process.name, process.pid)
        process.signal(signal.SIGTERM)
    try:
        wait_for("processes to end", lambda: not any(process.alive() for process in remaining), grace, interval=0.01)
    except TestbedError:
        for process in remaining:
            process._end()  # noqa: SLF001 (its cost is noted)


def die_with_me() -> Callable[[], None]:
    """Return what a child calls before it becomes a program, so that the kernel kills it when this thread ends."""
    parent = os.getpid()

    def hook() -> None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the call above
            os._exit(1)

    return hook


def _start_time(pid: int) -> int | None:
    """Return the start time of a process that runs, None for one that ended or waits to be reaped.

    While a process is ending its first thread may be a zombie before the others: its ports are not free yet.
    """
    fields = stat(pid)
    if not fields:
        return None
    state, threads, started = fields[0], int(fields[17]), int(fields[19])
    return None if state == "X" or (state == "Z" and threads <= 1) else started


if sys.platform != "linux":
    raise TestbedError("the testbed runs on Linux only: it ties processes with prctl and binds all of 127.0.0.0/8")
