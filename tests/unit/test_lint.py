"""`make lint` and the hooks that git runs before a commit make the same checks, by the same commands."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from hack.lint import CONFIGURATION, checks, lint

_ROOT = Path(__file__).parents[2]
_PRE_COMMIT = Path(sys.executable).with_name("pre-commit")


def test_each_hook_is_of_this_repository_and_a_check_of_make_lint() -> None:
    (repository,) = yaml.safe_load(CONFIGURATION.read_text())["repos"]
    assert repository["repo"] == "local", "a hook from elsewhere is fetched, and make lint does not run it"
    assert list(checks()) == ["mypy", "import-linter", "ruff-check", "ruff-format", "chart"]


def test_a_commit_with_a_fault_is_refused_and_the_fault_is_named(tmp_path: Path) -> None:
    """The real pre-commit, in a repository of its own that has this one's configuration and environment."""
    shutil.copy(CONFIGURATION, tmp_path)
    shutil.copy(_ROOT / "pyproject.toml", tmp_path)
    (tmp_path / ".venv").symlink_to(_PRE_COMMIT.parents[1])
    (tmp_path / "committed.py").write_text("import os\n")
    (tmp_path / "other.py").write_text("import sys\n")
    no_settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {**no_settings, "PYTHONPATH": str(_ROOT), "PRE_COMMIT_HOME": str(tmp_path / "home")}

    def run(*argv: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    assert run("git", "init", "--quiet").returncode == 0
    assert run("git", "add", "committed.py", ".pre-commit-config.yaml").returncode == 0
    done = run(_PRE_COMMIT, "run", "ruff-check")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "committed.py:1:8" in done.stdout
    assert "other.py" not in done.stdout
    (tmp_path / "committed.py").write_text('"""Nothing."""\n')
    assert run("git", "add", "committed.py").returncode == 0
    done = run(_PRE_COMMIT, "run", "ruff-check")
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_fails_is_printed_whole_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    good = [sys.executable, "-c", "print('nothing found')"]
    bad = [sys.executable, "-c", "import sys; print('a.py: a fault'); print(); sys.exit('1 fault')"]
    assert lint({"good": good})
    assert not lint({"good": good, "bad": bad})
    printed = capsys.readouterr().out
    assert "good         | nothing found (" in printed
    assert "a.py: a fault\n" in printed
    assert "bad          | FAILED: 1 fault (" in printed
