"""`muster record` at the real apiserver: a queue that comes and changes, and a file that can be read again."""

import re
import signal
import subprocess
import sys
import time
import uuid
import zlib
from functools import partial
from pathlib import Path

from hack.testbed import wait_for
from hack.testbed.muster import MusterInstall
from muster.cli.replay.load import read_load
from muster.model.names import QUEUE_LABEL
from muster.model.resource import PODS, QUEUES
from tests.support.cli.in_process import muster
from tests.support.cluster.desk import PATIENCE, Desk
from tests.support.cluster.recorder import PYTORCH_JOBS
from tests.support.manifests import applied
from tests.support.manifests.observed import amounts

MUSTER = (sys.executable, "-m", "muster.cli", "record")


def gang(desk: Desk, name: str) -> list[str]:
    """Make a job, and play its operator; gives the names of its pods."""
    made = desk.create(applied.pytorch_job(name).master().workers(1).label(QUEUE_LABEL, desk.namespace).manifest())
    return [desk.create(desk.member(made, role))["metadata"]["name"] for role in ("master", "worker")]


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


def test_gangs_that_start_and_end_are_recorded_and_replayed(desk: Desk, webhook: MusterInstall, tmp_path: Path) -> None:
    """Of two gangs one has room at a time."""
    path = tmp_path / "day.jsonl.gz"
    desk.create(applied.queue(desk.namespace, cpu="3"))
    desk.patch(QUEUES, desk.namespace, {"status": {"state": "Open"}}, "status")
    process = webhook.start_controller()
    command = [*MUSTER, f"--kubeconfig={desk.testbed.kubeconfig}", f"--out={path}"]
    recording = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    began = time.monotonic()
    try:
        wait_for("the record to begin", lambda: "queue" in written(path), PATIENCE)
        before = written(path).count('"starts"')
        first = gang(desk, "first")
        wait_for("the first gang", lambda: written(path).count('"starts"') == before + 1, PATIENCE)
        gang(desk, "second")
        desk.delete(PYTORCH_JOBS, "first")
        # kube-controller-manager may be there first.
        desk.delete(PODS, *first, grace_seconds=0, missing_ok=True)
        wait_for("the second gang", lambda: written(path).count('"starts"') == before + 2, PATIENCE)
    finally:
        recording.send_signal(signal.SIGINT)
        told, _ = recording.communicate(timeout=PATIENCE)
        webhook.controllers.remove(process)
        process.stop()
        desk.delete(QUEUES, desk.namespace)
    assert recording.returncode == 0
    hashed = re.search(rf"^queue {desk.namespace} is (\w+) in the record$", told, re.MULTILINE)
    assert hashed is not None
    own = [one for one in read_load(str(path)).arrivals if one.queue == hashed[1]]
    assert [one.need["cpu"] for one in own] == [amounts(cpu="2")["cpu"]] * 2
    assert all(0 <= one.runs <= time.monotonic() - began for one in own)
    assert len({one.lineage for one in own} - {""}) == 2
    done = muster("replay", str(path), "--policy", "patience=10m")
    assert (done.returncode, done.stderr) == (0, "")


def written(path: Path) -> str:
    """What is in the file so far."""
    return zlib.decompressobj(wbits=31).decompress(path.read_bytes()).decode() if path.exists() else ""
