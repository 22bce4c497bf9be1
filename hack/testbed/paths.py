"""The testbed's files: always outside the checkout, so that a clone stays clean and shares its binaries."""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


def cache_root() -> Path:
    """Return `${MUSTER_CACHE:-${XDG_CACHE_HOME:-~/.cache}/muster}/testbed`."""
    muster_cache = os.environ.get("MUSTER_CACHE")
    if muster_cache:
        return Path(muster_cache) / "testbed"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muster" / "testbed"


def default_state() -> Path:
    """Return the state folder of the testbed that the command line starts when no other is named."""
    return cache_root() / "state" / "default"


def digest_of(facts: Iterable[bytes]) -> str:
    """Return a digest of facts in their order: the key under which a result of them is cached."""
    digest = hashlib.sha256()
    for fact in facts:
        digest.update(hashlib.sha256(fact).digest())
    return digest.hexdigest()


def write_atomically(path: Path, content: str) -> None:
    """Write a file so that a reader, or a crash at any moment, finds the whole of it or nothing."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("w") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(path)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; the kernel drops it when the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
