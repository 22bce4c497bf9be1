"""ruff, mypy and import-linter beside each other: `python -m hack.lint`; each says what it found when it ends."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["TOOLS", "lint", "main"]

# Those of this environment.
_BIN = Path(sys.executable).parent
TOOLS: Mapping[str, Sequence[str]] = {
    "mypy": ("mypy",),
    "import-linter": ("lint-imports",),
    "ruff check": ("ruff", "check", "."),
    "ruff format": ("ruff", "format", "--check", "."),
}


def lint(tools: Mapping[str, Sequence[str]]) -> bool:
    """Run all of them, print what each says, and return whether all found nothing."""

    def run(name: str) -> tuple[str, subprocess.CompletedProcess[str], float]:
        started = time.monotonic()
        program, *arguments = tools[name]
        argv = [str(_BIN / program), *arguments]
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return name, done, time.monotonic() - started

    clean = True
    with ThreadPoolExecutor(len(tools)) as pool:
        for ended in as_completed([pool.submit(run, name) for name in tools]):
            name, done, seconds = ended.result()
            if done.returncode:
                print(done.stdout.rstrip())
            last = next(iter(reversed(done.stdout.split("\n\n")[-1].strip().splitlines())), "")
            print(f"{name:<13}| {'FAILED: ' if done.returncode else ''}{last.strip()} ({seconds:.1f} s)", flush=True)
            clean = clean and not done.returncode
    return clean


def main() -> None:
    """Run the four and exit, with 1 where one of them found something."""
    sys.exit(not lint(TOOLS))


if __name__ == "__main__":
    main()
