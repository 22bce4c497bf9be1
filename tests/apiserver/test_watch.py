"""`muster watch` at the real apiserver: it shows what changes, survives a connection that is cut, and ends cleanly."""

import os
import pty
import signal
import subprocess
import sys
import termios
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hack.testbed import wait_for
from muster.model.resource import QUEUES
from tests.support.cluster.desk import PATIENCE, Desk
from tests.support.faults.relay import Relay, relay_to
from tests.support.manifests import applied

pytestmark = pytest.mark.part("commands")

MUSTER = (sys.executable, "-m", "muster.cli", "watch")


@pytest.fixture
def queue(desk: Desk) -> Iterator[str]:
    """A queue of 4 cpu."""
    name = f"watched-{uuid.uuid4().hex[:6]}"
    desk.create(applied.queue(name, cpu="4"))
    yield name
    desk.delete(QUEUES, name)


@pytest.fixture
def relay(desk: Desk) -> Iterator[Relay]:
    """The way to the apiserver."""
    with relay_to(desk.testbed.server) as way:
        yield way


def kubeconfig(desk: Desk, relay: Relay, folder: Path) -> str:
    """The administrator's, by that way."""
    config = yaml.safe_load(desk.testbed.kubeconfig.read_text())
    config["clusters"][0]["cluster"]["server"] = relay.url
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return str(path)


def ended(watching: subprocess.Popen[bytes]) -> int:
    """The exit code after Ctrl-C."""
    watching.send_signal(signal.SIGINT)
    return watching.wait(PATIENCE)


def test_a_connection_that_is_cut_is_told_and_what_changes_then_is_shown(
    desk: Desk, queue: str, relay: Relay, tmp_path: Path
) -> None:
    shown = tmp_path / "shown"
    with shown.open("w") as out:
        command = [*MUSTER, f"--kubeconfig={kubeconfig(desk, relay, tmp_path)}"]
        watching = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
    try:
        wait_for("the queue", lambda: f"{queue} " in shown.read_text(), PATIENCE)
        desk.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "5"}}})
        wait_for("its watch to tell of it", lambda: "/ 5" in shown.read_text(), PATIENCE)
        # A loss that is made good before the next look is not told: it lasts until it is.
        wait_for("the loss to be told", lambda: "(connection lost: " in _after_a_cut(relay, shown), PATIENCE)
        wait_for("the return to be told", lambda: "(connected again)" in shown.read_text(), PATIENCE)
        desk.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "7"}}})
        wait_for("the change", lambda: "/ 7" in shown.read_text(), PATIENCE)
    finally:
        code = ended(watching)
    text = shown.read_text()
    assert code == 0, text[-2000:]
    assert "Traceback" not in text
    assert "\x1b" not in text, "a file gets plain text"


def _after_a_cut(relay: Relay, shown: Path) -> str:
    relay.cut()
    return shown.read_text()


def test_a_terminal_gets_a_screen_of_its_own_and_its_own_back(desk: Desk, queue: str) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (30, 100))
    environment = {**os.environ, "TERM": "xterm"}
    parts: list[bytes] = []

    def read() -> None:
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:
            pass  # the last process has closed the terminal

    watching = subprocess.Popen(
        [*MUSTER, f"--kubeconfig={desk.testbed.kubeconfig}"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
    )
    os.close(theirs)
    reading = threading.Thread(target=read)
    reading.start()
    try:
        wait_for("the queue", lambda: queue in b"".join(parts).decode(errors="replace"), PATIENCE)
        desk.patch(QUEUES, queue, {"spec": {"capability": {"cpu": "7"}}})
        wait_for("the change", lambda: "/ 7" in b"".join(parts).decode(errors="replace"), PATIENCE)
    finally:
        code = ended(watching)
        reading.join(PATIENCE)
        os.close(ours)
    text = b"".join(parts).decode()
    assert code == 0
    assert "Traceback" not in text
    # What it reads it says at once, before the screen.
    first, screen = text.index("muster watch: reading https://"), text.rindex("muster watch")
    assert first < text.index("\x1b[?1049h") < screen < text.index("\x1b[?1049l")
    assert text.count("\x1b[?25h"), "the cursor is shown again"
