"""Errors of the build of the image, each in one line."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

_LAST = 400


class ImageError(Exception):
    """The image cannot be built; the message names the cause and the remedy."""


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    seconds: float = 300,
) -> bytes:
    """Return what a program prints. Raises ImageError: not there, failed (with its last words), or too slow."""
    name = " ".join(str(word) for word in command[:2])
    try:
        done = subprocess.run(command, capture_output=True, check=False, cwd=cwd, env=env, timeout=seconds)
    except FileNotFoundError as error:
        raise ImageError(f"{command[0]} is not on this machine: building the image needs it") from error
    except subprocess.TimeoutExpired as error:
        raise ImageError(f"{name} did not end within {seconds:.0f} seconds") from error
    if done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()
        raise ImageError(f"{name} failed ({done.returncode}): {words[-_LAST:]}")
    return done.stdout
