"""What a newcomer's first commands print: `make help`, `make setup`, `make clean-cache`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hack.testbed.__main__ import main
from hack.testbed.process import spawn

_ROOT = Path(__file__).parents[2]


def test_make_help_lists_every_target() -> None:
    targets = re.findall(r"^([a-z0-9-]+):", (_ROOT / "Makefile").read_text(), re.MULTILINE)
    done = subprocess.run(["make", "help"], cwd=_ROOT, capture_output=True, text=True, check=True)
    assert re.findall(r"^  make (\S+) +\S", done.stdout, re.MULTILINE) == list(dict.fromkeys(targets))
    assert "test-e2e" in targets


def test_a_package_that_cannot_be_had_ends_the_setup_with_the_words_of_pip(tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"no-such-package==1.0 --hash=sha256:{'0' * 64}\n")
    environment = os.environ | {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}
    argv = [sys.executable, "-m", "hack.pip", str(requirements)]
    done = subprocess.run(argv, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "No matching distribution found for no-such-package==1.0" in done.stderr


def test_the_cache_is_removed_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSTER_CACHE", str(tmp_path))
    for kept in ("testbed/bin/etcd", "image/layers/one", "packages/one/complete", "mine"):
        (tmp_path / kept).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / kept).touch()
    assert main(["clean"]) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert "Go's own caches stay" in capsys.readouterr().out


def test_the_cache_of_a_testbed_that_runs_is_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUSTER_CACHE", str(tmp_path))
    state = tmp_path / "testbed/state/default"
    process = spawn("etcd", ["sleep", "600"], state=state, env={}, tied=True)
    try:
        assert main(["clean"]) == 1
    finally:
        process.kill()
    assert capsys.readouterr().err == (
        f"testbed: a testbed runs in {state}: end it with `python -m hack.testbed down --state {state}`\n"
    )
    assert state.exists()
