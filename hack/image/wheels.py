"""The layers of Python packages: the locked requirements, and muster itself. Wheels are unpacked, nothing is run."""

import configparser
import email
import hashlib
import io
import os
import re
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from email.message import Message
from pathlib import Path, PurePosixPath

from hack.image.errors import ImageError, run
from hack.image.machine import PYTHON, Machine
from hack.image.places import appearing, image_cache, key_of
from hack.image.tree import EPOCH, Tree

SITE = f"usr/local/lib/python{PYTHON}/dist-packages"
# A thousand generated modules that muster's connection has to import and never uses, half of them docstrings.
BARE = f"{SITE}/kubernetes_asyncio/client/"
# Files that the interpreter never reads: stubs, sources of compiled modules, tests, and files outside of all packages.
_LEFT_OUT = re.compile(
    r".*\.(pyi|pyx|pxd|pxi|c|h|hash)$|.*_test\.py$|.*/tests?/|[^/]*-stubs/|[^/]*\.(md|toml|txt|rst)$|LICENSE$"
    r"|kubernetes_asyncio/(README\.md|.*/test_rest\.py)$|[^/]*\.dist-info/RECORD$|[^/]*\.data/scripts/"
)


@dataclass(frozen=True, slots=True)
class Wheel:
    """One wheel: its metadata and its files."""

    name: str
    version: str
    summary: str
    licence: str
    """An SPDX expression, or else the classifier's words; empty without either."""
    sha256: str
    source: str
    """The address of its sources, if it has one."""
    data: bytes


def downloaded(requirements: Path, machine: Machine) -> list[Wheel]:
    """Return the wheels of a locked file, each with one of the hashes that it lists, by the machine's own pip settings.

    Raises ImageError when one cannot be had or has another hash.
    """
    home = image_cache() / "wheels" / key_of(requirements.read_text(), machine.platforms, PYTHON)
    if not home.exists():
        with appearing(home) as folder:
            tags: list[str | Path] = [word for tag in machine.platforms for word in ("--platform", tag)]
            abis = [word for abi in (f"cp{PYTHON.replace('.', '')}", "abi3", "none") for word in ("--abi", abi)]
            run(
                [
                    *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
                    *("--no-deps", "--require-hashes", "--only-binary=:all:", "--dest", folder),
                    *("--python-version", PYTHON, "--implementation", "cp", *abis, *tags, "-r", requirements),
                ]
            )
    return sorted((read_wheel(path.read_bytes()) for path in home.glob("*.whl")), key=lambda wheel: wheel.name.lower())


def muster_wheel(checkout: Path, output: Path | None = None) -> Wheel:
    """Return the wheel of this checkout, which others would build alike; with `output` leave it there."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = output or Path(temporary)
        env = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)}
        run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder], cwd=checkout, env=env)
        (built,) = folder.glob("*.whl")
        return read_wheel(built.read_bytes())


def requirements_tree(wheels: list[Wheel]) -> Tree:
    """Return the layer of the requirements, without bytecode."""
    tree = Tree()
    for wheel in wheels:
        unpack(wheel, tree)
    # A client without authorities of its own, such as one with a kubeconfig that names none, uses certifi's.
    for path in ("usr/lib/ssl/cert.pem", "etc/ssl/certs/ca-certificates.crt"):
        tree.link(path, f"/{SITE}/certifi/cacert.pem")
    return tree


def unpack(wheel: Wheel, tree: Tree, *, commands: bool = False) -> None:
    """Add the files of a wheel that are needed at run time, and with `commands` its commands to usr/local/bin."""
    with zipfile.ZipFile(io.BytesIO(wheel.data)) as archive:
        for member in archive.infolist():
            path = member.filename
            if member.is_dir() or _LEFT_OUT.match(path):
                continue
            if PurePosixPath(path).parts[0].endswith(".data"):
                raise ImageError(f"{wheel.name} has {path}: teach hack/image/wheels.py where it belongs")
            tree.file(f"{SITE}/{path}", archive.read(member))
        if commands:
            for name, target in _commands(archive).items():
                module, _, function = target.partition(":")
                lines = (f"#!/usr/bin/python{PYTHON}", "import sys", f"from {module} import {function}")
                script = "\n".join((*lines, f"sys.exit({function}())", ""))
                tree.file(f"usr/local/bin/{name}", script, executable=True)


def _commands(archive: zipfile.ZipFile) -> dict[str, str]:
    (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt"))
    parser = configparser.ConfigParser(delimiters=("=",))
    parser.read_string(archive.read(path).decode())
    return dict(parser["console_scripts"])


def read_wheel(data: bytes) -> Wheel:
    """Return the metadata of a wheel."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (path,) = (name for name in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", name))
        metadata = email.message_from_bytes(archive.read(path))
    return Wheel(
        name=metadata["Name"],
        version=metadata["Version"],
        summary=metadata["Summary"] or "",
        licence=_licence(metadata),
        sha256=hashlib.sha256(data).hexdigest(),
        source=_source(metadata),
        data=data,
    )


def _licence(metadata: Message) -> str:
    classifiers = [str(one).split(" :: ") for one in metadata.get_all("Classifier", [])]
    named = [parts[-1] for parts in classifiers if parts[0] == "License" and len(parts) > 2]  # noqa: PLR2004
    first_line = str(metadata.get("License", "")).strip().split("\n")[0]
    return str(metadata.get("License-Expression") or "; ".join(named) or first_line)


def _source(metadata: Message) -> str:
    links = dict(str(one).split(", ", 1) for one in metadata.get_all("Project-URL", []))
    named = {name.lower(): url for name, url in links.items()}
    return next((named[name] for name in ("source", "repository", "source code") if name in named), "")
