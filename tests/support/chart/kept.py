"""Results that are the same whenever they are made of the same: kept from one run to the next, for every checkout."""

import hashlib
import os
import shutil
from pathlib import Path

from hack.testbed.paths import cache_root

MOST = 8
"""So many folders are kept of each sort of results: those that were used last."""


def digest(*made_from: bytes) -> str:
    """Return a name for these bytes and their order, of 32 characters."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in made_from)).hexdigest()[:32]


def kept(what: str, *made_from: bytes, cache: Path | None = None) -> Path:
    """Return a folder for results that depend on nothing but `made_from`, beside the testbed's programs.

    Of other results of this sort those that nobody has used for longest are removed.
    """
    sort = (cache or cache_root().parent) / "results" / what
    folder = sort / digest(*made_from)
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    for other in sorted(sort.iterdir(), key=_last_used, reverse=True)[MOST:]:
        shutil.rmtree(other, ignore_errors=True)
    return folder


def _last_used(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    # Another worker has removed it.
    except FileNotFoundError:
        return 0
