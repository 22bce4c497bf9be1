"""Which commit this is: from the image's file, from git, or honestly unknown."""

import subprocess
from pathlib import Path

import pytest

from muster.process.revision import COMMIT_FILE, built_in_commit, in_checkout, revision
from tests.support.cases import cases


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com")
    done = subprocess.run(["git", "-C", folder, *who, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("one")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--quiet", "--message=one")
    return tmp_path


def test_a_checkout_says_its_commit(checkout: Path) -> None:
    assert in_checkout(checkout) == git(checkout, "rev-parse", "HEAD")


def test_a_tag_does_not_stand_in_for_the_commit(checkout: Path) -> None:
    git(checkout, "tag", "--annotate", "v1", "--message=v1")
    assert in_checkout(checkout) == git(checkout, "rev-parse", "HEAD")


def test_a_changed_checkout_says_that_it_is_not_the_commit(checkout: Path) -> None:
    (checkout / "file").write_text("two")
    assert in_checkout(checkout) == git(checkout, "rev-parse", "HEAD") + "-dirty"


def test_a_folder_within_somebody_elses_checkout_is_unknown(checkout: Path) -> None:
    inside = checkout / "venv"
    inside.mkdir()
    assert in_checkout(inside) == "unknown"


def test_a_broken_checkout_is_unknown(tmp_path: Path) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere")
    assert in_checkout(tmp_path) == "unknown"


def test_without_git_it_is_unknown(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert in_checkout(checkout) == "unknown"


@cases(
    "content, said",
    ("as the image's build writes it", b"abc123\n", "abc123"),
    ("empty", b"", "unknown"),
    ("no text", b"\xff", "unknown"),
    ("no file", None, "unknown"),
)
def test_the_package_says_what_was_written_into_it(tmp_path: Path, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / COMMIT_FILE).write_bytes(content)
    assert built_in_commit(tmp_path) == said


def test_without_an_images_file_it_is_the_commit_of_the_checkout(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These tests run from no image; the checkout is one of which the test knows the commit."""
    monkeypatch.setattr("muster.process.revision._PACKAGE", checkout / "muster")
    assert revision() == git(checkout, "rev-parse", "HEAD")
