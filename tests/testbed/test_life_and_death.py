"""A testbed leaves nothing behind, however it ends, and several live side by side."""

import json
import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hack.testbed import Nodes, Testbed, TestbedError, wait_for
from hack.testbed.ports import check_free
from hack.testbed.process import Process, marked, spawn
from tests.support.cluster.scene import PATIENCE
from tests.support.cluster.testbed_fixtures import OwnTestbed

pytestmark = pytest.mark.long

_ROOT = Path(__file__).parents[2]
_START_ONE = """
import sys
from pathlib import Path
from hack.testbed import Testbed
Testbed.start(parts=[], state=Path(sys.argv[1]))
print("up", flush=True)
sys.stdin.read()
"""


def _cli(*args: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "hack.testbed", *args]
    return subprocess.run(argv, capture_output=True, text=True, timeout=2 * PATIENCE, check=False, cwd=_ROOT)


def test_down_leaves_no_process_and_keeps_the_logs(tmp_path: Path) -> None:
    """The testbed outlives the command that started it, and another command ends it."""
    up = _cli("up", "--with", "", "--nodes", "1", "--state", str(tmp_path))
    assert up.returncode == 0, up.stderr
    assert len(marked(tmp_path)) == 5
    assert _cli("status", "--state", str(tmp_path)).returncode == 0
    nodes = _cli("kubectl", "--state", str(tmp_path), "get", "nodes", "-oname")
    assert nodes.stdout == "node/node-0\n"
    assert _cli("down", "--state", str(tmp_path)).returncode == 0
    assert marked(tmp_path) == []
    assert [entry.name for entry in tmp_path.iterdir()] == ["logs"]
    assert (tmp_path / "logs" / "kube-apiserver.log").stat().st_size > 0
    assert _cli("down", "--state", str(tmp_path)).returncode == 0


def test_sigkill_of_the_caller_leaves_no_process(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", _START_ONE, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == b"up\n"
        assert len(marked(tmp_path)) == 5
        caller.kill()
    wait_for("its children to be gone", lambda: not marked(tmp_path), PATIENCE)


def test_down_after_a_crash_in_the_middle_of_up(tmp_path: Path) -> None:
    """What an interrupted `up` started, `down` finds, and the next `up` works."""
    argv = [sys.executable, "-m", "hack.testbed", "up", "--with", "", "--state", str(tmp_path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=_ROOT) as up:
        wait_for("etcd to be started", lambda: marked(tmp_path), PATIENCE)
        up.kill()
    assert marked(tmp_path) != []
    assert _cli("down", "--state", str(tmp_path)).returncode == 0
    assert marked(tmp_path) == []


def test_testbeds_side_by_side_share_nothing(own_testbed: OwnTestbed, testbed: Testbed) -> None:
    other = own_testbed(parts=[], nodes=Nodes(count=1, gpu=0))
    other.kubectl("create", "namespace", "only-here")
    assert testbed.kubectl("get", "namespace", "only-here", check=False).returncode == 1
    assert other.service_range != testbed.service_range
    other.stop()
    assert testbed.kubectl("get", "--raw=/readyz").stdout == "ok"


@pytest.fixture(scope="module")
def stopped() -> tuple[Testbed, Process]:
    """A testbed that was stopped while it had a further process."""
    with Testbed.start(parts=[], progress=print) as one:
        process = one.spawn("sleeper", ["sleep", "600"], env={"WHO": "me"})
        assert b"WHO=me" in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    return one, process


def test_stop_twice_is_stop_once(stopped: tuple[Testbed, Process]) -> None:
    one, _ = stopped
    one.stop()
    assert marked(one.state) == []


def test_parts_stop_and_start_again(own_testbed: OwnTestbed) -> None:
    """The apiserver comes back at its address with what it knew, also after a SIGKILL of etcd."""
    one = own_testbed(parts=[])
    one.kubectl("create", "namespace", "kept")
    one.stop_part("kube-apiserver")
    one.stop_part("etcd", kill=True)
    assert one.kubectl("get", "namespaces", check=False).returncode == 1
    one.start_part("etcd")
    one.start_part("kube-apiserver", extra_args=["--v=1"])
    assert one.kubectl("get", "namespace", "kept", "-oname").stdout == "namespace/kept\n"
    with pytest.raises(TestbedError, match="runs already"):
        one.start_part("etcd")


def test_volcanos_webhooks_answer_when_asked_for(own_testbed: OwnTestbed) -> None:
    """The webhook manager is reached through its Service: it refuses a queue below one that does not exist."""
    one = own_testbed(parts=["volcano"])
    one.start_part("volcano-webhooks")
    queue = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": "orphan"},
        "spec": {"parent": "nobody"},
    }

    def refusal() -> str:
        return one.kubectl("apply", "--dry-run=server", "-f", "-", input=json.dumps(queue), check=False).stderr

    wait_for("the refusal", lambda: '"validatequeue.volcano.sh" denied the request' in refusal(), PATIENCE)


def test_spawned_processes_end_with_the_testbed(stopped: tuple[Testbed, Process]) -> None:
    _, process = stopped
    assert not process.alive()


def test_recycled_pid_is_never_signalled(tmp_path: Path) -> None:
    """A record whose pid now belongs to somebody else (here: to us) is left alone by `down`."""
    (tmp_path / "processes").mkdir()
    record = {"name": "etcd", "pid": os.getpid(), "start_time": 1, "log": str(tmp_path / "etcd.log")}
    (tmp_path / "processes" / "etcd.json").write_text(json.dumps(record))
    previous = signal.signal(signal.SIGTERM, lambda *_: pytest.fail("signalled"))
    try:
        assert _cli("down", "--state", str(tmp_path)).returncode == 0
    finally:
        signal.signal(signal.SIGTERM, previous)


def test_a_process_that_is_ending_is_alive_until_its_last_thread_has_gone(tmp_path: Path) -> None:
    """Its first thread is a zombie before that, while its port is still taken from who starts it anew."""
    listening = "import ctypes, socket, sys, threading; s = socket.create_server(('127.0.0.1', 0)); "
    port = "open(sys.argv[1], 'w').write(str(s.getsockname()[1])); "
    ending = "threading.Thread(target=threading.Event().wait).start(); ctypes.CDLL(None).syscall(int(sys.argv[2]), 0)"
    said = tmp_path / "port"
    exit_of_one_thread = {"x86_64": 60, "aarch64": 93}[platform.machine()]
    argv = [sys.executable, "-c", listening + port + ending, str(said), str(exit_of_one_thread)]
    process = spawn("ending", argv, state=tmp_path, env={}, tied=True)
    stat = Path(f"/proc/{process.pid}/stat")
    wait_for("its first thread to be gone", lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", PATIENCE)
    with pytest.raises(TestbedError, match="is taken"):
        check_free(int(said.read_text()), "the test")
    assert process.alive()
    process.kill()
    check_free(int(said.read_text()), "the test")
