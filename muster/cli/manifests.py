"""Reads manifests as kubectl does: files, folders, standard input, several documents, Lists, YAML or JSON."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Document", "InputError", "read_manifests"]

_SUFFIXES = (".yaml", ".yml", ".json")
# Well above what the apiserver takes of one object, and far below what would hurt.
_LARGEST_FILE = 64 * 2**20
# Manifests are a handful of levels deep and have thousands of values, not millions.
_DEEPEST = 100
_LARGEST_TREE = 2_000_000


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads YAML as kubectl does: safely, in C where there is C, and a time stays the text that it is."""

    yaml_implicit_resolvers: ClassVar = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


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
    loader = _Loader(text)
    index = 0
    try:
        while loader.check_node():
            index += 1
            node = loader.get_node()
            where = f"{source}, document {index}"
            _check(node, where)
            manifest = loader.construct_document(node)
            if manifest is not None:
                yield from _objects(where, manifest)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f", line {mark.line + 1}" if mark else ""
        raise InputError(f"{source}{at}: {getattr(error, 'problem', None) or 'not YAML'}") from error
    except (RecursionError, ValueError, OverflowError) as error:
        raise InputError(f"{source}, document {index}: {error}") from error
    finally:
        loader.dispose()


def _check(root: yaml.Node, where: str) -> None:
    """Refuse what would cost more to look at than it can be worth: aliases that multiply, and depth without end.

    Keys that stand twice are refused as well: whichever of the two is meant, the other one was not.
    """
    sizes: dict[int, int] = {}

    def size(node: yaml.Node, depth: int) -> int:
        # An alias is the node that it stands for: counted each time it is used, but walked through once.
        known = sizes.get(id(node))
        if known is not None:
            return known
        if depth > _DEEPEST:
            raise InputError(f"{where}, line {node.start_mark.line + 1}: nested more than {_DEEPEST} deep")
        # A node within itself would never end; it is as large as can be.
        sizes[id(node)] = _LARGEST_TREE
        total = 1
        for child in _children(node, where):
            total += size(child, depth + 1)
        sizes[id(node)] = total
        return total

    if size(root, 0) > _LARGEST_TREE:
        raise InputError(f"{where}: its aliases stand for more than {_LARGEST_TREE} values")


def _children(node: yaml.Node, where: str) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            # `<<` merges, and may stand more than once.
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise InputError(f'{where}, line {key.start_mark.line + 1}: key "{key.value[:80]}" stands twice')
                seen.add(key.value)
            yield key
            yield value


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
