"""The commit of muster that runs.

An image knows it from the file that its build wrote into the package, a checkout from git. For a package from elsewhere
it is `unknown`.
"""

import subprocess
from pathlib import Path

UNKNOWN = "unknown"
# The file's name; the image's build writes it into the package, so a checkout has none.
COMMIT_FILE = "COMMIT"
_PACKAGE = Path(__file__).parents[1]
_GIT_SECONDS = 5


def built_in_commit(package: Path = _PACKAGE) -> str:
    """Return the commit that was written into the package, or `unknown`; reads one small file."""
    try:
        return (package / COMMIT_FILE).read_text(encoding="utf-8").strip() or UNKNOWN
    except (OSError, UnicodeDecodeError):
        return UNKNOWN


def in_checkout(folder: Path) -> str:
    """Return the commit of the checkout whose top is this folder, with `-dirty` appended when files differ from it.

    `unknown` when it is no such folder, or when git is not there, refuses, or does not answer in five seconds.
    """
    if not (folder / ".git").exists():
        return UNKNOWN
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_GIT_SECONDS)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    return done.stdout.strip() if done.returncode == 0 else UNKNOWN


def revision() -> str:
    """Return the running commit, from the package or else from the checkout that contains it."""
    known = built_in_commit()
    return in_checkout(_PACKAGE.parent) if known == UNKNOWN else known
