"""How long the image's processes take to start: `python -m hack.bench.start [--rounds 5] [--core 0]` (root only).

Builds the image, and starts a bare control plane with the chart installed. Then each process is started from the
image's files, with the token of its ServiceAccount, again and again, alone on one core; the control plane and this
bench keep to the others. Prints the seconds from its start until `/readyz` says yes, how many of them its main thread
waited for the core (on a quiet machine none), and what it used of it. The first start of a webhook is said apart: it
makes the certificates.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from hack.bench.usage import cpu_seconds
from hack.image.build import CHECKOUT, build, source
from hack.image.container import Container, files, unpacked
from hack.testbed import Nodes, Testbed, wait_for
from hack.testbed.api import answers
from hack.testbed.from_image import Pod
from hack.testbed.muster import MusterInstall, install

if TYPE_CHECKING:
    from hack.testbed.process import Process

__all__: list[str] = []

_SECONDS = 60.0
_LOOK_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Start:
    """One start, in seconds: until it was ready, waited for the core meanwhile, used of it."""

    ready: float
    waited: float
    used: float


def _started(process: Process, began: float) -> Start:
    ready = time.monotonic() - began
    waited = int(Path(f"/proc/{process.pid}/schedstat").read_text().split()[1]) / 1e9
    return Start(ready, waited, cpu_seconds(process.pid))


def _start(pod: Pod, testbed: Testbed, core: int) -> Start:
    began = time.monotonic()
    process, url = pod.start(before=("taskset", "--cpu-list", str(core)))

    def ready() -> bool:
        if not process.alive():
            raise SystemExit(process.log.read_text())
        return answers(url, testbed.ca_file)

    try:
        wait_for("the process to be ready", ready, _SECONDS, interval=_LOOK_SECONDS)
        return _started(process, began)
    finally:
        process.stop(grace=_SECONDS)


def _measure(container: Container, installed: MusterInstall, rounds: int, core: int) -> None:
    for component in ("webhook", "controller"):
        pod = Pod(container, installed, component)
        first = _start(pod, installed.testbed, core)
        starts = [_start(pod, installed.testbed, core) for _ in range(rounds)]
        ready = sorted(one.ready for one in starts)
        waited, used = (median(seconds) for seconds in zip(*((one.waited, one.used) for one in starts), strict=True))
        print(
            f"{component:<10} ready after {median(ready):.2f} s ({ready[0]:.2f} to {ready[-1]:.2f}, {rounds} times; "
            f"the first {first.ready:.2f}): {waited:.2f} s waiting for the core, {used:.2f} s using it; load "
            f"{os.getloadavg()[0]:.1f}",
            flush=True,
        )


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(prog="hack.bench.start", description="From start to ready, on one core.")
    parser.add_argument("--rounds", type=int, default=5, help="starts of each process")
    parser.add_argument("--core", type=int, default=0, help="the core that they have for themselves")
    given = parser.parse_args()
    cores = os.sched_getaffinity(0)
    # All that is started from here on; a process under test is told otherwise.
    os.sched_setaffinity(0, cores - {given.core} or cores)
    image = build(source(CHECKOUT), name="muster", progress=print)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        container = unpacked(image, files(image), Path(folder) / "root")
        with Testbed.start(parts=("volcano", "kuberay"), nodes=Nodes(gpu=0), progress=print) as testbed:
            # Each start ends with a stop, which is not what is measured.
            values = {"webhook.shutdownDelaySeconds": "0"}
            installed = install(testbed, values=values, webhooks=0, controllers=0)
            _measure(container, installed, given.rounds, given.core)


if __name__ == "__main__":
    main()
