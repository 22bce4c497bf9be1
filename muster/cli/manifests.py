"""Reads manifests as kubectl does: files, directories, standard input, several documents, Lists, YAML or JSON."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muster.cli.parsing import InputError, parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Document", "InputError", "read_manifests"]

_SUFFIXES = (".yaml", ".yml", ".json")
# In bytes: well above the limit of the apiserver for one object, and small enough to read into memory.
_LARGEST_FILE = 64 * 2**20


@dataclass(frozen=True, slots=True)
class Document:
    """One object of the input and its position."""

    source: str
    manifest: dict[str, Any]

    @property
    def api_version(self) -> str:
        """Its `apiVersion`, "" when it has none."""
        return str(self.manifest.get("apiVersion", ""))

    @property
    def kind(self) -> str:
        """Its `kind`, "" when it has none."""
        return str(self.manifest.get("kind", ""))


def read_manifests(names: Sequence[str]) -> list[Document]:
    """All objects of these files and directories, in order; raises InputError."""
    documents: list[Document] = []
    for name in names:
        for source, text in _texts(name):
            for where, value in parse(source, text):
                documents += _objects(where, value)
    return documents


def _texts(name: str) -> Iterator[tuple[str, str]]:
    if name == "-":
        yield "standard input", _decoded("standard input", sys.stdin.buffer.read(_LARGEST_FILE + 1))
        return
    path = Path(name)
    try:
        files = sorted(filter(_is_manifest, path.iterdir())) if path.is_dir() else [path]
    except OSError as error:
        raise InputError(f"{name}: {error.strerror or error}") from error
    if not files:
        raise InputError(f"{name}: no manifests in this directory ({', '.join(_SUFFIXES)})")
    for file in files:
        try:
            with file.open("rb") as opened:
                data = opened.read(_LARGEST_FILE + 1)
        except OSError as error:
            raise InputError(f"{file}: {error.strerror or error}") from error
        yield str(file), _decoded(str(file), data)


def _is_manifest(path: Path) -> bool:
    return path.suffix in _SUFFIXES and not path.is_dir()


def _decoded(source: str, data: bytes) -> str:
    if len(data) > _LARGEST_FILE:
        raise InputError(f"{source}: larger than {_LARGEST_FILE} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{source}: not UTF-8 text at byte {error.start}") from error


def _objects(source: str, manifest: Any) -> Iterator[Document]:  # noqa: ANN401 - whatever the file holds
    if not isinstance(manifest, dict):
        raise InputError(f"{source}: expected an object, found {type(manifest).__name__}")
    kind, items = manifest.get("kind"), manifest.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        # In a list of one kind from the apiserver (RayClusterList), the items may lack apiVersion and kind.
        common = {"apiVersion": manifest.get("apiVersion"), "kind": kind.removesuffix("List")}
        for number, item in enumerate(items):
            yield from _objects(f"{source}, item {number + 1}", {**common, **item} if isinstance(item, dict) else item)
        return
    if not kind or not manifest.get("apiVersion"):
        raise InputError(f"{source}: no apiVersion and kind; is this a Kubernetes manifest?")
    yield Document(source, manifest)
