"""The files of a layer in memory, and the one way in which they become a tar: the same bytes for the same files."""

import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Self

from hack.image.errors import ImageError

# 1980-01-01, the first time that a zip can say. Files carry no other, so a layer is the same whenever it is built.
EPOCH = 315532800


@dataclass(frozen=True, slots=True)
class Entry:
    """A file with its bytes, a symbolic link with its target, or (neither) a folder. All belong to root."""

    mode: int
    data: bytes | None = None
    target: str | None = None


@dataclass(slots=True)
class Tree:
    """Files by path (`usr/bin/python3.11`); the folders above them need no mention."""

    entries: dict[str, Entry] = field(default_factory=dict)

    def file(self, path: str, data: bytes | str, *, executable: bool = False) -> None:
        """Add a file that all users may read."""
        content = data.encode() if isinstance(data, str) else data
        self._add(path, Entry(0o755 if executable else 0o644, data=content))

    def link(self, path: str, target: str) -> None:
        """Add a symbolic link."""
        self._add(path, Entry(0o777, target=target))

    def folder(self, path: str, mode: int = 0o755) -> None:
        """Add a folder: an empty one, or one with a mode of its own."""
        self._add(path, Entry(mode))

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Yield path and bytes of every file, in order."""
        for path, entry in sorted(self.entries.items()):
            if entry.data is not None:
                yield path, entry.data

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(len(data) for _, data in self.files())

    def tar(self) -> bytes:
        """Return a tar of all entries in order, each after the folders above it."""
        everything = {str(above): Entry(0o755) for path in self.entries for above in PurePosixPath(path).parents}
        everything.pop(".", None)
        everything.update(self.entries)
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path, entry in sorted(everything.items(), key=lambda item: PurePosixPath(item[0]).parts):
                archive.addfile(_header(path, entry), io.BytesIO(entry.data or b""))
        return buffer.getvalue()

    def write(self, folder: Path) -> None:
        """Write the files below a folder, owned by the caller."""
        for path, entry in sorted(self.entries.items()):
            place = folder / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if entry.target is not None:
                place.symlink_to(entry.target)
            elif entry.data is not None:
                place.write_bytes(entry.data)
                place.chmod(entry.mode)
            else:
                place.mkdir(exist_ok=True)
                place.chmod(entry.mode)

    @classmethod
    def of_tar(cls, data: bytes) -> Self:
        """Read a layer back."""
        tree = cls()
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                content = archive.extractfile(member).read() if member.isreg() else None  # type: ignore[union-attr]
                tree.entries[member.name] = Entry(member.mode, content, member.linkname if member.issym() else None)
        return tree

    def _add(self, path: str, entry: Entry) -> None:
        if path.startswith("/") or ".." in PurePosixPath(path).parts:
            raise ImageError(f"{path} would lie outside the image")
        if self.entries.get(path, entry) != entry:
            raise ImageError(f"two different files want to be {path} in the image")
        self.entries[path] = entry


def _header(path: str, entry: Entry) -> tarfile.TarInfo:
    header = tarfile.TarInfo(path)
    header.mtime = EPOCH
    header.mode = entry.mode
    header.uname = header.gname = "root"
    if entry.target is not None:
        header.type, header.linkname = tarfile.SYMTYPE, entry.target
    elif entry.data is not None:
        header.size = len(entry.data)
    else:
        header.type = tarfile.DIRTYPE
    return header
