"""Results that are the same whenever they are made of the same: kept in the checkout from one run to the next."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

__all__ = ["CACHE", "digest", "kept"]

CACHE = Path(__file__).parents[3] / ".pytest_cache"
"""What `make clean` removes, and git does not see."""


def digest(*made_from: bytes) -> str:
    """Return a name for these bytes and their order, of 32 characters."""
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in made_from)).hexdigest()[:32]


def kept(what: str, *made_from: bytes, cache: Path = CACHE) -> Path:
    """Return a folder for results that depend on nothing but `made_from`; those of anything else are removed."""
    folder = cache / what / digest(*made_from)
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for other in folder.parent.iterdir():
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)
    return folder
