"""Builds: the same from the same, kept by what went in, and clear words where something is missing."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from hack.image import errors, machine, places
from hack.image.build import CHECKOUT, Built, source
from hack.image.debian import PACKAGES, Package, fetched, resolved
from hack.image.errors import ImageError
from hack.image.tree import EPOCH, Tree

_BUILD = [sys.executable, "-m", "hack.image"]
_DOCKERFILE = (CHECKOUT / "hack/image/Dockerfile").read_text()


def build(*arguments: str, env: Mapping[str, str]) -> None:
    done = subprocess.run(
        [*_BUILD, *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False, env=os.environ | env
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_two_builds_have_one_digest(image: Built, tmp_path: Path) -> None:
    """Another process, hour, mask and hash seed, and nothing that the first has made.

    Its layers are compared once for each content that they can have, and remembered; they take 20 s to make.
    """
    cache = tmp_path / "cache"
    layers = [one.digest for one in image.layers[:2]]
    seen = places.image_cache() / "rebuilt" / places.key_of(layers)
    (cache / "image").mkdir(parents=True)
    # Downloads are the same by their hashes.
    kept = ("apt", "debs", "wheels") if not seen.exists() else ("apt", "debs", "wheels", "layers", "interpreters")
    for folder in kept:
        (cache / "image" / folder).symlink_to(places.image_cache() / folder)
    other = {"MUSTER_CACHE": str(cache), "TZ": "Pacific/Auckland", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    mask = os.umask(0o077)
    try:
        build("--output", str(tmp_path / "out"), env=other)
    finally:
        os.umask(mask)
    assert (tmp_path / "out" / "digest").read_text() == f"{image.image.digest}\n"
    seen.parent.mkdir(exist_ok=True)
    seen.touch()


@pytest.mark.long
def test_the_dockerfile_makes_the_same_files(image_tree: Tree, image: Built, tmp_path: Path) -> None:
    """Its one step that builds is run as it stands there; the rest of it needs Docker."""
    step = re.search(r"^RUN \.venv/bin/python -m hack\.image (.*)$", _DOCKERFILE, re.MULTILINE)
    assert step, "the Dockerfile does not build with hack.image"
    arguments = [word.replace("$COMMIT", image.source.commit) for word in shlex.split(step[1])]
    assert arguments[-2:] == ["--root", "/image"]
    build(*arguments[:-1], str(tmp_path / "root"), env={"SOURCE_DATE_EPOCH": str(image.source.epoch)})
    made = {
        str(path.relative_to(tmp_path / "root")): path
        for path in (tmp_path / "root").rglob("*")
        if path.is_symlink() or path.is_file()
    }
    files = {path: entry for path, entry in image_tree.entries.items() if entry.data is not None or entry.target}
    assert made.keys() == files.keys()
    for path, entry in files.items():
        if entry.target is None:
            assert made[path].read_bytes() == entry.data, path
            assert made[path].stat().st_mode & 0o7777 == entry.mode, path
        else:
            assert str(made[path].readlink()) == entry.target, path


def test_the_dockerfile_tells_runtimes_the_same(image: Built) -> None:
    """User, environment, command, and the labels that do not depend on when it is built."""
    config = image.image.config["config"]
    final = _DOCKERFILE.split("FROM scratch\n")[1]
    variables = re.findall(r'(\w+)="([^"]*)"', "".join(re.findall(r"^ENV (.*)$", final, re.MULTILINE)))
    assert [f"{name}={value}" for name, value in variables] == config["Env"]
    assert re.findall(r"^USER (.*)$", final, re.MULTILINE) == [config["User"]]
    assert re.findall(r"^WORKDIR (.*)$", final, re.MULTILINE) == [config["WorkingDir"]]
    assert re.findall(r"^CMD (.*)$", final, re.MULTILINE) == [str(config["Cmd"]).replace("'", '"')]
    labels = dict(re.findall(r'(org\.opencontainers\.image\.\w+)="([^"]*)"', final))
    assert labels.pop("org.opencontainers.image.revision") == "$COMMIT"
    assert labels.items() <= config["Labels"].items()
    assert config["Labels"].keys() - labels.keys() == {
        f"org.opencontainers.image.{name}" for name in ("created", "revision")
    }


def test_a_commit_is_built_with_its_own_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    said = subprocess.run(
        ["git", "-C", CHECKOUT, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=True
    ).stdout
    assert source(CHECKOUT).epoch == int(said)
    assert source(tmp_path) == source(tmp_path, "unknown")
    assert source(tmp_path).epoch == EPOCH


def test_a_time_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(ImageError, match="SOURCE_DATE_EPOCH is 'yesterday': set it to seconds since 1970 or unset it"):
        source(CHECKOUT)


def test_elsewhere_than_on_debian_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ImageError, match="dpkg is not on this machine: building the image needs it"):
        machine.this_machine()


def test_a_machine_without_wheels_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dpkg = tmp_path / "dpkg"
    dpkg.write_text("#!/bin/sh\necho s390x\n")
    dpkg.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(ImageError, match="this machine is s390x: the image can be built on amd64 and arm64"):
        machine.this_machine()


def test_what_apt_gives_has_the_hash_that_its_lists_say(image: Built) -> None:
    """The kept files are named by it; a damaged download is never kept."""
    del image
    for package in resolved(machine.this_machine()):
        assert fetched(package).exists(), package.name


@pytest.fixture
def fake_apt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose apt does what the test writes; nothing is kept from before."""
    monkeypatch.setenv("MUSTER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name in ("apt-cache", "apt-get"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def shown(*names: str) -> str:
    fields = "Version: 1\nArchitecture: amd64\nSHA256: 00"
    return "#!/bin/sh\ncat <<'END'\n" + "\n".join(f"Package: {name}\n{fields}\n" for name in names) + "END\n"


def test_another_release_of_debian_is_refused(fake_apt: Path) -> None:
    (fake_apt / "apt-cache").write_text(shown(*(set(PACKAGES) - {"libssl3", "zlib1g"})))
    with pytest.raises(ImageError, match="apt here has no libssl3, zlib1g: the image is made of Debian 12's packages"):
        resolved(machine.this_machine())


def test_a_damaged_download_is_refused_and_not_kept(fake_apt: Path) -> None:
    """And new lists are asked for once: the old ones may name what the mirror has no more."""
    (fake_apt / "apt-cache").write_text(shown(*PACKAGES))
    (fake_apt / "apt-get").write_text(
        '#!/bin/sh\necho "$*" >>"$MUSTER_CACHE/calls"\ncase "$*" in *" download "*) echo damaged >one.deb;; esac\n'
    )
    with pytest.raises(ImageError, match=r"what apt downloaded for base-files, .* has not the SHA-256"):
        resolved(machine.this_machine())
    calls = (fake_apt / "cache" / "calls").read_text().splitlines()
    assert [call.endswith(" update") for call in calls].count(True) == 1
    assert not any(fetched(Package(name, "1", "amd64", "00")).exists() for name in PACKAGES)


def test_a_failing_program_is_quoted() -> None:
    with pytest.raises(ImageError, match=r"git nonsense failed \(1\): git: 'nonsense' is not a git command"):
        errors.run(["git", "nonsense"])


def test_a_tar_is_the_same_whatever_the_order() -> None:
    one, other = Tree(), Tree()
    one.file("a/b", "x")
    one.link("a/c", "b")
    other.link("a/c", "b")
    other.file("a/b", "x")
    assert one.tar() == other.tar()
    assert Tree.of_tar(one.tar()).tar() == one.tar()


def test_two_files_of_one_name_are_refused() -> None:
    tree = Tree()
    tree.file("a", "x")
    tree.file("a", "x")
    with pytest.raises(ImageError, match="two different files want to be a in the image"):
        tree.file("a", "y")


@pytest.mark.parametrize("path", ["/etc/passwd", "../etc/passwd", "usr/../../x"])
def test_no_package_reaches_outside_the_image(path: str) -> None:
    with pytest.raises(ImageError, match="would lie outside the image"):
        Tree().file(path, "x")


def test_the_cache_forgets_what_was_not_used_for_longest(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        os.utime(tmp_path / str(number), (number, number))
    places.forget_all_but_newest(tmp_path, keep=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["2", "3"]


def test_what_is_half_made_is_never_found(tmp_path: Path) -> None:
    folder = tmp_path / "layer"
    with pytest.raises(FileNotFoundError), places.appearing(folder) as partial:
        (partial / "missing").read_bytes()
    assert list(tmp_path.iterdir()) == []
