"""Reads manifests as kubectl does: files, directories, standard input, several documents, Lists, YAML or JSON."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from muster.cli.faults import FILL_IN, variable_hint
from muster.cli.parsing import InputError, Parsed, parse

Failed = Callable[[InputError], None]
"""The function that takes an error."""
_WITHOUT_NAMESPACE = {
    "ClusterTrainingRuntime",
    "CustomResourceDefinition",
    "Namespace",
    "PriorityClass",
    "Queue",
    "RuntimeClass",
}
_SUFFIXES = (".yaml", ".yml", ".json")
# In bytes: well above the limit of the apiserver for one object, and small enough to read into memory.
_LARGEST_FILE = 64 * 2**20
# Of one file; more errors have one cause.
_MOST_ERRORS = 20
_FORMS: dict[type, str] = {list: "a list", str: "a string", bool: "true or false", type(None): "nothing"}
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


@dataclass(frozen=True, slots=True)
class Document:
    """One object of the input.

    :ivar source: its position in words, for messages.
    :ivar manifest: the object.
    :ivar file: the file, as it was named, or `standard input`; "" for an object of the cluster.
    :ivar line: the line in which its document begins, 0 if that is not known.
    :ivar within: the template that it is, and of what; "" for an object that the input has itself.
    :ivar outer: the labels and annotations of the object whose template it is, each a path and a key.
    :ivar duplicates: the keys that occur twice in its YAML document, as in `Parsed`.
    """

    source: str
    manifest: dict[str, Any]
    file: str = ""
    line: int = 0
    within: str = ""
    outer: tuple[tuple[str, str], ...] = ()
    duplicates: tuple[tuple[str, int], ...] = ()

    @property
    def api_version(self) -> str:
        """Its `apiVersion`, "" when it has none."""
        return str(self.manifest.get("apiVersion", ""))

    @property
    def kind(self) -> str:
        """Its `kind`, "" when it has none."""
        return str(self.manifest.get("kind", ""))


def read_manifests(names: Sequence[str], errors: list[str]) -> list[Document]:
    """All objects of these files and directories, in order; `errors` gets a message for what cannot be read."""
    documents: list[Document] = []
    failed = _collecting(errors)
    for name in names:
        for source, text in _texts(name, failed):
            for parsed in _parsed(source, text, failed):
                documents += _objects(_document(source, parsed), failed)
    return documents


def _document(file: str, parsed: Parsed) -> Document:
    return Document(parsed.source, parsed.value, file, parsed.line, duplicates=parsed.duplicates)


def read_bytes(source: str, data: bytes, errors: list[str]) -> list[Document]:
    """All objects of a file's content; `errors` gets a message for each part that cannot be read."""
    failed = _collecting(errors)
    try:
        text = _decoded(source, data)
    except InputError as error:
        failed(error)
        return []
    return [one for parsed in _parsed(source, text, failed) for one in _objects(_document(source, parsed), failed)]


def read_object(source: str, value: dict[str, Any], errors: list[str]) -> list[Document]:
    """The object that a program has decoded, or the objects of a list; `errors` gets a message for what is neither."""
    return list(_objects(Document(source, value), _collecting(errors)))


def objects_in(value: object, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Each object in a manifest, the whole before its parts, with its path; a status is the cluster's, and left out."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from objects_in(item, f"{path}[{index}]")
    if isinstance(value, dict):
        yield path, value
        for name, item in value.items():
            if name != "status":
                yield from objects_in(item, f"{path}.{name}" if path else str(name))


def place(documents: Iterable[Document], namespace: str) -> None:
    """Put the objects that name no namespace into this one, but for those that have none, such as Queues."""
    for document in documents:
        meta = document.manifest.setdefault("metadata", {})
        if document.kind not in _WITHOUT_NAMESPACE and isinstance(meta, dict) and not meta.get("namespace"):
            meta["namespace"] = namespace


def _collecting(errors: list[str]) -> Failed:
    return lambda error: errors.append(str(error))


def _parsed(source: str, text: str, failed: Failed) -> Iterator[Parsed]:
    """The documents of a text; after an error the next one begins at the next line with `---`."""
    lines = None
    at = 0
    for _ in range(_MOST_ERRORS):
        try:
            yield from parse(source, text)
            return
        except InputError as error:
            failed(InputError(f"{error}{'' if FILL_IN in str(error) else rendering_hint(text)}"))
            if error.resume is None:
                return
            lines = lines or text.splitlines()
            following = (n for n in range(max(at + 1, error.resume), len(lines)) if lines[n].startswith("---"))
            at = next(following, len(lines))
            if at == len(lines):
                return
            # What was read is left out, but lines and documents keep their numbers.
            read = [line[:3] if line.startswith("---") else "" for line in lines[:at]]
            if not next((line for line in lines if line.strip()), "").startswith("---"):
                read[0] = "---"
            text = "\n".join([*read, *lines[at:]])
    failed(InputError(f"{source}: more than {_MOST_ERRORS} errors; the rest is not read"))


def _texts(name: str, failed: Failed) -> Iterator[tuple[str, str]]:
    for file in _files(name, failed):
        try:
            yield _text(file)
        except InputError as error:
            failed(error)


def _files(name: str, failed: Failed) -> list[Path | None]:
    """The files of a name, None for standard input."""
    if name == "-":
        return [None]
    if not name:
        # A variable of a script that is not set; as a path it would mean the folder of the command.
        failed(InputError("a file without a name: -f is empty"))
        return []
    path = Path(name)
    try:
        if hint := source_hint(name, path):
            failed(InputError(f"{name}: {hint}"))
            return []
        files = [path]
        if path.is_dir():
            files = sorted(one for one in path.iterdir() if one.suffix in _SUFFIXES and not one.is_dir())
    except OSError as error:
        failed(InputError(f"{name}: {error.strerror or error}"))
        return []
    if not files:
        failed(InputError(f"{name}: no manifests in this directory ({', '.join(_SUFFIXES)})"))
    return [*files]


def _text(file: Path | None) -> tuple[str, str]:
    """A source and its text; raises InputError."""
    if file is None:
        return "standard input", _decoded("standard input", sys.stdin.buffer.read(_LARGEST_FILE + 1))
    try:
        with file.open("rb") as opened:
            return str(file), _decoded(str(file), opened.read(_LARGEST_FILE + 1))
    except (OSError, ValueError) as error:  # ValueError: no name of a file
        raise InputError(f"{file}: {getattr(error, 'strerror', None) or error}") from error


def _decoded(source: str, data: bytes) -> str:
    if len(data) > _LARGEST_FILE:
        raise InputError(f"{source}: larger than {_LARGEST_FILE} bytes")
    encoding = _encoding(data)
    try:
        # Files of Windows that follow one another in one stream have a mark each.
        return data.decode(encoding).replace("\n\ufeff", "\n")
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, data[error.start]
        words = f"byte 0x{byte:02X} is not UTF-8" if encoding == "utf-8-sig" else "not UTF-16"
        raise InputError(f"{source}, line {line}: {words}; save the file as UTF-8") from error


def _encoding(data: bytes) -> str:
    """The encoding of a text: UTF-8, or UTF-16, as Windows PowerShell writes it, with a mark or without."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    # The first letter of a manifest is one of ASCII.
    return {b"\0": "utf-16-be"}.get(data[:1], "utf-16-le" if data[1:2] == b"\0" else "utf-8-sig")


def _objects(found: Document, failed: Failed) -> Iterator[Document]:
    """The object of a document, or the objects of a list."""
    manifest: Any = found.manifest
    if not isinstance(manifest, dict):
        failed(InputError(f"{found.source}: expected an object, found {_FORMS.get(type(manifest), 'a number')}"))
        return
    kind, items = manifest.get("kind"), manifest.get("items")
    if isinstance(kind, str) and kind.endswith("List") and isinstance(items, list):
        # In a list of one kind from the apiserver (RayClusterList), the items may lack apiVersion and kind.
        common = {"apiVersion": manifest.get("apiVersion"), "kind": kind.removesuffix("List")}
        for number, item in enumerate(items):
            whole = {**common, **item} if isinstance(item, dict) else item
            item_of = replace(found, source=f"{found.source}, item {number + 1}", manifest=whole)
            yield from _objects(item_of if not number else replace(item_of, duplicates=()), failed)
        return
    for name in ("apiVersion", "kind"):
        if isinstance(named := manifest.get(name), str) and (hint := variable_hint(named)):
            failed(InputError(f"{found.source}: {name}: {hint}"))
            return
    if not (kind and isinstance(kind, str) and (version := manifest.get("apiVersion")) and isinstance(version, str)):
        failed(InputError(f"{found.source}: no apiVersion and kind; is this a Kubernetes manifest?"))
        return
    yield found


def source_hint(name: str, path: Path) -> str:
    """A hint for a URL, a chart, or a kustomization; "" for anything else."""
    if name.startswith(("http://", "https://")):
        return f"plan does not download; use: curl -sSfL {name} | muster plan -f -"
    if path.name in _KUSTOMIZATIONS:
        return f"a kustomization; render it first: kubectl kustomize {path.parent} | muster plan -f -"
    if path.is_dir() and any((path / one).is_file() for one in _KUSTOMIZATIONS):
        return f"a kustomization; render it first: kubectl kustomize {name} | muster plan -f -"
    if path.is_dir() and (path / "Chart.yaml").is_file():
        return f"a Helm chart; render it first: helm template {name} | muster plan -f -"
    return ""


def rendering_hint(text: str) -> str:
    """A hint for a text that looks like a template; "" for any other text."""
    if "{{" in text:
        return '; "{{" looks like a Helm template: render it first: helm template CHART | muster plan -f -'
    return '; "{%" looks like a Jinja template: render it first' if "{%" in text else ""
