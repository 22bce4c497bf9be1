"""A real node leaves nothing on the machine, however it ends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hack.testbed import Testbed, enclosure, wait_for
from hack.testbed.archive import PAUSE
from hack.testbed.debian import Debian
from hack.testbed.errors import TestbedError
from hack.testbed.nodes import REAL
from hack.testbed.process import marked
from hack.testbed.site import cgroup_name
from tests.support.cluster.scene import PATIENCE

pytestmark = pytest.mark.long

_ROOT = Path(__file__).parents[2]
_START_ONE = """
import sys
from pathlib import Path
from hack.testbed import Nodes, Testbed
Testbed.start(parts=["node"], nodes=Nodes(count=1, gpu=0), state=Path(sys.argv[1]))
print("up", flush=True)
sys.stdin.read()
"""
_SYSCTLS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
    "net/ipv4/ip_forward",
)
_FOLDERS = (
    *("/run/containerd", "/run/runc", "/run/netns", "/var/lib/cni", "/var/lib/kubelet"),
    *("/var/log/pods", "/var/log/containers", "/opt/containerd", "/usr/libexec/kubernetes"),
)


def _cli(*args: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "hack.testbed", *args]
    return subprocess.run(argv, capture_output=True, text=True, timeout=2 * PATIENCE, check=False, cwd=_ROOT)


def _said(*argv: str) -> str:
    debian = Debian()
    return subprocess.run(argv, capture_output=True, text=True, check=True, env=debian.environment).stdout


def _machine() -> dict[str, object]:
    """What a node could change on the machine."""
    return {
        "links": _said("ip", "-oneline", "link"),
        "routes": _said("ip", "route", "show", "table", "all"),
        "rules": _said("nft", "list", "ruleset"),
        "namespaces": _said("ip", "netns"),
        "mounts": Path("/proc/self/mounts").read_text(),
        "sysctls": {name: (Path("/proc/sys") / name).read_text() for name in _SYSCTLS},
        "folders": {name: Path(name).exists() for name in _FOLDERS},
    }


def _cgroups(state: Path) -> list[Path]:
    return [path for path in Path("/sys/fs/cgroup").rglob(cgroup_name(state)) if path.is_dir()]


def _contained(state: Path) -> list[str]:
    """Processes in the node's cgroups: those of its containers."""
    return [
        pid for top in _cgroups(state) for file in top.rglob("cgroup.procs") for pid in file.read_text().splitlines()
    ]


def _run_a_pod(testbed: Testbed) -> None:
    spec = json.dumps({"apiVersion": "v1", "spec": {"tolerations": [{"key": REAL, "operator": "Exists"}]}})
    testbed.kubectl("run", "pause", f"--image={PAUSE}", "--image-pull-policy=Never", f"--overrides={spec}")
    testbed.kubectl("wait", "--for=condition=Ready", "pod/pause", f"--timeout={PATIENCE:g}s")


def test_down_leaves_no_process_mount_namespace_cgroup_interface_or_sysctl(tmp_path: Path) -> None:
    Debian().ensure(print)  # for `nft`, before anything is compared
    before = _machine()
    up = _cli("up", "--node", "--with", "", "--nodes", "1", "--state", str(tmp_path))
    assert up.returncode == 0, up.stderr
    _run_a_pod(Testbed.attach(tmp_path))
    assert _contained(tmp_path)
    assert _machine() == before
    down = _cli("down", "--state", str(tmp_path))
    assert down.returncode == 0, down.stderr
    assert marked(tmp_path) == []
    assert _cgroups(tmp_path) == []
    assert _machine() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["logs"]
    assert list((tmp_path / "logs" / "pods").glob("default_pause_*/pause/0.log"))


def test_sigkill_of_the_caller_ends_containers_too_and_down_cleans_up(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", _START_ONE, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_ROOT) as caller:
        assert caller.stdout is not None
        assert caller.stdout.readline() == b"up\n"
        _run_a_pod(Testbed.attach(tmp_path))
        assert _contained(tmp_path)
        caller.kill()
    wait_for("its processes to be gone", lambda: not marked(tmp_path), PATIENCE)
    wait_for("its containers to be gone", lambda: not _contained(tmp_path), PATIENCE)
    assert _cli("down", "--state", str(tmp_path)).returncode == 0
    assert _cgroups(tmp_path) == []


def test_down_takes_the_cgroups_of_runs_that_were_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They have a folder of their own each, which nobody can name."""
    monkeypatch.setenv("MUSTER_CACHE", str(tmp_path))
    killed = tmp_path / "testbed" / "state" / "run-killed"
    killed.mkdir(parents=True)
    for root in enclosure.cgroup_roots():
        (root / cgroup_name(killed) / "kubepods").mkdir(parents=True)
    assert _cgroups(killed)
    assert _cli("down").returncode == 0
    assert _cgroups(killed) == []


@pytest.mark.parametrize("missing", ["unshare", "nsenter", "setpriv", "mount", "ip"])
def test_a_missing_tool_is_named(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in ("unshare", "nsenter", "setpriv", "mount", "ip"):
        if tool != missing:
            (tmp_path / tool).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TestbedError, match=f"needs `{missing}`"):
        enclosure.check_machine(tmp_path)
