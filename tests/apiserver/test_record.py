"""`muster record` at the real apiserver: a queue that comes and changes, and a file that can be read again."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import uuid
import zlib
from functools import partial
from typing import TYPE_CHECKING

from hack.testbed import wait_for
from muster.cli.replay.load import read_load
from muster.kube.resource import QUEUES
from tests.support.cluster.desk import PATIENCE, Desk
from tests.support.manifests import applied
from tests.support.manifests.observed import amounts

if TYPE_CHECKING:
    from pathlib import Path

MUSTER = (sys.executable, "-m", "muster.cli", "record")


def test_queues_are_recorded_as_they_come_and_change(desk: Desk, tmp_path: Path) -> None:
    out, name = tmp_path / "day.jsonl.gz", f"recorded-{uuid.uuid4().hex[:6]}"
    command = [*MUSTER, f"--kubeconfig={desk.testbed.kubeconfig}", f"--out={out}"]
    recording = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        for cpu in ("3331", "3332"):
            if cpu == "3331":
                desk.create(applied.queue(name, cpu=cpu))
            else:
                desk.patch(QUEUES, name, {"spec": {"capability": {"cpu": cpu}}})
            wait_for("the record", partial(is_written, out, f'"{cpu}"'), PATIENCE)
    finally:
        recording.send_signal(signal.SIGINT)
        said, _ = recording.communicate(timeout=PATIENCE)
        desk.delete(QUEUES, name)
    assert recording.returncode == 0
    hashed = re.search(rf"^queue {name} is (\w+) in the record$", said, re.MULTILINE)
    assert hashed is not None
    assert name not in written(out)
    (view,) = (one for one in read_load(str(out)).queues if one.name == hashed[1])
    assert view.limit == amounts(cpu="3332")


def test_a_file_that_is_there_is_not_written_over(desk: Desk, tmp_path: Path) -> None:
    out = tmp_path / "day.jsonl.gz"
    out.write_bytes(b"mine")
    command = [*MUSTER, f"--kubeconfig={desk.testbed.kubeconfig}", f"--out={out}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert (done.returncode, out.read_bytes()) == (2, b"mine")
    assert done.stderr == f"muster record: {out}: File exists\n"


def is_written(path: Path, text: str) -> bool:
    return text in written(path)


def written(path: Path) -> str:
    """What is in the file so far."""
    return zlib.decompressobj(wbits=31).decompress(path.read_bytes()).decode() if path.exists() else ""
