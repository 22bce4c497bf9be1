"""The checks of `make lint` and of the pre-commit hooks: `python -m hack.lint` runs all of them beside each other.

`python -m hack.lint NAME [FILE ...]` runs one of them, on these files alone where it can: so the hooks call it. Each
check prints what it found when it ends.
"""

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

# The programs of this environment.
_BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Check:
    """One program of the virtual environment, and what it is given.

    :ivar command: The program and the arguments that it always has.
    :ivar default: What follows where no files are named: the whole repository.
    :ivar takes_files: Whether files may follow instead; if not, they are left out.
    """

    command: tuple[str, ...]
    default: tuple[str, ...] = ()
    takes_files: bool = True

    def argv(self, files: Sequence[str] = ()) -> list[str]:
        """Return what is run for these files, or for the whole repository."""
        program, *arguments = self.command
        return [str(_BIN / program), *arguments, *(files if files and self.takes_files else self.default)]


CHECKS: Mapping[str, Check] = {
    "mypy": Check(("mypy",)),
    "import-linter": Check(("lint-imports",), takes_files=False),
    "ruff-check": Check(("ruff", "check"), (".",)),
    "ruff-format": Check(("ruff", "format", "--check"), (".",)),
    "chart": Check(("python", "-m", "hack.chart"), takes_files=False),
}


def lint(checks: Mapping[str, Check], files: Sequence[str] = ()) -> bool:
    """Run these checks, print what each says, and return whether all found nothing."""

    def run(name: str) -> tuple[str, subprocess.CompletedProcess[str], float]:
        started = time.monotonic()
        argv = checks[name].argv(files)
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return name, done, time.monotonic() - started

    clean = True
    with ThreadPoolExecutor(len(checks)) as pool:
        for ended in as_completed([pool.submit(run, name) for name in checks]):
            name, done, seconds = ended.result()
            if done.returncode:
                print(done.stdout.rstrip())
            last = next(iter(reversed(done.stdout.split("\n\n")[-1].strip().splitlines())), "")
            print(f"{name:<13}| {'FAILED: ' if done.returncode else ''}{last.strip()} ({seconds:.1f} s)", flush=True)
            clean = clean and not done.returncode
    return clean


def main() -> None:
    """Run all checks, or the named one, and exit with 1 where one found something."""
    name, *files = sys.argv[1:] or [""]
    if name and name not in CHECKS:
        sys.exit(f"no check is named {name}; known: {', '.join(CHECKS)}")
    sys.exit(not lint({name: CHECKS[name]} if name else CHECKS, files))


if __name__ == "__main__":
    main()
