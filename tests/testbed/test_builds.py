"""Binaries are trusted only when they are whole; what goes wrong is said in one line that names the remedy."""

import re
import shutil
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hack.testbed import TestbedError, build, toolchain
from hack.testbed.parts import PARTS, select
from hack.testbed.ports import check_free

pytestmark = pytest.mark.long

_ROOT = Path(__file__).parents[2]


def _finished(folder: Path, content: bytes = b"program") -> Path:
    partial = folder / ".partial"
    partial.write_bytes(content)
    build.finish(partial, folder / "program")
    return folder / "program"


def _ignore(_line: str) -> None:
    pass


def test_a_binary_is_trusted_only_whole(tmp_path: Path) -> None:
    binary = _finished(tmp_path)
    assert build.is_finished(binary)
    for content in (b"prog", b"pr0gram"):
        _finished(tmp_path).write_bytes(content)
        assert not build.is_finished(binary)
    _finished(tmp_path).with_name("program.json").unlink()
    assert not build.is_finished(binary)


def test_what_changes_a_binary_changes_its_place(tmp_path: Path) -> None:
    go = toolchain.Go("1.26.6", tmp_path)
    apiserver = build.binary_path(PARTS["kube-apiserver"], go)
    assert apiserver != build.binary_path(PARTS["kube-apiserver"], toolchain.Go("1.26.7", tmp_path))
    assert apiserver.parent != build.binary_path(PARTS["etcd"], go).parent, "other ldflags, other folder"


def test_a_cold_build_prints_what_is_left_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The share that is done, and minutes; nothing of it is in Go's cache. A second build has nothing to do."""
    monkeypatch.setenv("MUSTER_CACHE", str(tmp_path))
    monkeypatch.setenv("GOCACHE", str(tmp_path / "go"))
    printed: list[str] = []
    parts = [PARTS["kubeconform"], PARTS["crane"]]
    made = build.binaries(parts, printed.append)
    assert subprocess.run([made["crane"], "version"], capture_output=True, check=True).stdout
    assert printed[0] == "compiling 2 programs from their released sources, once"
    found = [re.fullmatch(r"(?:compiling|linking) .*, (\d+)% done, .* minutes? left", line) for line in printed]
    done = [int(one[1]) for one in found if one]
    assert done, printed
    assert done == sorted(done)
    assert 0 < done[0] <= done[-1] <= 100
    assert re.fullmatch(r"compiled 2 programs in \d+ s", printed[-1])
    printed.clear()
    assert build.binaries(parts, printed.append) == made
    assert printed == []


def test_a_program_that_does_not_compile_names_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_CACHE", str(tmp_path))
    part = replace(PARTS["pause"], package="./nonsense")
    with pytest.raises(TestbedError, match=r"(?s)^pause does not compile; log: .*build-pause\.log\n.*nonsense"):
        build.binaries([part], _ignore)


def test_full_disk_is_told_before_the_compiler_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUSTER_CACHE", str(tmp_path))
    usage = shutil.disk_usage(tmp_path)._replace(free=1 << 30)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(TestbedError, match=r"^1\.0 GB free at .* needs \d+ GB: free some space.*$"):
        build.binaries([PARTS["helm"]], _ignore)


def test_kubebuilder_assets_supply_what_they_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    (tmp_path / "etcd").touch(mode=0o755)
    assert build.binaries([PARTS["etcd"]], _ignore) == {"etcd": tmp_path / "etcd"}
    with pytest.raises(TestbedError, match=r"KUBEBUILDER_ASSETS .* has no kubectl: complete it or unset it"):
        build.binaries([PARTS["kubectl"]], _ignore)


def test_without_go_and_without_its_wheel_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUSTER_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    go = toolchain.find_go()
    with pytest.raises(TestbedError, match=r"^no Go 1\.26\.0 or newer on PATH, and its wheel .*: install Go, or "):
        go.ensure(_ignore)


def test_taken_port_is_named_with_its_user() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(TestbedError, match=f"^port {port} of 127.0.0.1 is taken, etcd needs it: stop .*$"):
            check_free(port, "etcd")


@pytest.mark.parametrize("other", ["training", "mpi"])
def test_addons_with_one_crd_between_them_are_refused(other: str) -> None:
    with pytest.raises(TestbedError, match=f"^training-mpi and {other} have CRDs of the same name: start a testbed"):
        select(["training-mpi", other])


def test_one_default_scheduler_is_chosen() -> None:
    def schedulers(*addons: str) -> list[str]:
        return [part.name for part in select(addons) if part.name.endswith("-scheduler")]

    assert schedulers() == ["kube-scheduler"]
    assert schedulers("coscheduling") == ["kube-scheduler", "scheduler-plugins-scheduler"]
    assert schedulers("coscheduling-as-default") == ["scheduler-plugins-scheduler"]


def test_command_line_prints_one_line_and_exits_1(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "hack.testbed", "kubectl", "--state", str(tmp_path), "get", "nodes"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=_ROOT)
    assert done.returncode == 1
    assert done.stderr == f"testbed: no testbed in {tmp_path}: start one with `python -m hack.testbed up`\n"
