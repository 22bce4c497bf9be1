"""Reads manifests as kubectl does: files, folders, standard input, several documents, Lists, YAML or JSON."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Document", "InputError", "read_manifests"]

_SUFFIXES = (".yaml", ".yml", ".json")
# Well above what the apiserver takes of one object, and far below what would hurt.
_LARGEST_FILE = 64 * 2**20
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class InputError(Exception):
    """The input cannot be read; the message names the file and the place in it."""


@dataclass(frozen=True, slots=True)
class Document:
    """One object of the input and where it stood."""

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
    """All objects of these files and folders, in order; raises InputError."""
    documents: list[Document] = []
    for name in names:
        for source, text in _texts(name):
            documents += _documents(source, text)
    return documents


def _texts(name: str) -> Iterator[tuple[str, str]]:
    if name == "-":
        yield "standard input", sys.stdin.read(_LARGEST_FILE)
        return
    path = Path(name)
    files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{name}: no manifests in this folder ({', '.join(_SUFFIXES)})")
    for file in files:
        try:
            if file.stat().st_size > _LARGEST_FILE:
                raise InputError(f"{file}: larger than {_LARGEST_FILE} bytes")
            yield str(file), file.read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"{file}: {error.strerror or error}") from error
        except UnicodeDecodeError as error:
            raise InputError(f"{file}: not UTF-8 text at byte {error.start}") from error


def _documents(source: str, text: str) -> Iterator[Document]:
    try:
        for index, manifest in enumerate(
            yaml.load_all(text, Loader=_Loader)
        ):  # the safe loader, in C where there is one
            if manifest is not None:
                yield from _objects(f"{source}, document {index + 1}", manifest)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"{source}{where}: {getattr(error, 'problem', None) or 'not YAML'}") from error
    except RecursionError as error:
        raise InputError(f"{source}: nested too deeply") from error


def _objects(source: str, manifest: Any) -> Iterator[Document]:  # noqa: ANN401 - whatever the file holds
    if not isinstance(manifest, dict):
        raise InputError(f"{source}: an object was expected, found {type(manifest).__name__}")
    if manifest.get("kind") == "List" and isinstance(manifest.get("items"), list):
        for number, item in enumerate(manifest["items"]):
            yield from _objects(f"{source}, item {number + 1}", item)
        return
    if not manifest.get("kind") or not manifest.get("apiVersion"):
        raise InputError(f"{source}: no apiVersion and kind; is this a Kubernetes manifest?")
    yield Document(source, manifest)
