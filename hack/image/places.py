"""The folders of downloads and finished layers: outside the checkout, and named by content."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.testbed.paths import cache_root


def image_cache() -> Path:
    """Return the folder `image` next to the testbed's: `~/.cache/muster/image`, or below `$MUSTER_CACHE`."""
    return cache_root().parent / "image"


def key_of(*facts: object) -> str:
    """Return a short name for these facts (what JSON can hold); other facts have another."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]


@contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """Give a new folder that takes this one's place when the block ends well, and is removed otherwise."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = folder.parent / f".{folder.name}.{os.getpid()}"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        if not folder.exists():
            partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def forget_all_but_newest(home: Path, keep: int = 6) -> None:
    """Remove the folders that have not been used for longest, so that the cache does not grow for ever."""
    folders = [folder for folder in home.iterdir() if not folder.name.startswith(".")]
    for folder in sorted(folders, key=lambda one: one.stat().st_mtime, reverse=True)[keep:]:
        shutil.rmtree(folder)
