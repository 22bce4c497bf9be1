"""How far a build is, and the time that is left, at the pace of the packages that are compiled already.

A package is as much work as its bytes of source and its dependencies say, and a link as the bytes that are linked. The
seconds per byte are measured while the build runs, on the machine where it runs.
"""

import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from hack.testbed.modules import family_dir
from hack.testbed.toolchain import Go

COMPILED = ("-trimpath", "-gcflags=all=-dwarf=false")
"""Flags of every build. The linker leaves debug information out, so it is not made: a sixth of the time."""
# The cost of a dependency, in bytes of source, and of linking a program, as a share of its source: fitted to the CPU
# seconds of the 3,791 packages of Kubernetes 1.36 and Volcano 1.14.
_DEPENDENCY, _LINK = 230, 0.02
# Seconds of compiling before an estimate is worth anything.
_FIRST = 20.0
_FACTS = '{{.Stale}}\t{{.Dir}}\t{{.ImportPath}}\t{{join .GoFiles " "}}\t{{join .Imports " "}}\t{{len .Deps}}'


class _Family(NamedTuple):
    """The work of one `go build`: bytes by import path of the packages that it compiles, and bytes to link."""

    packages: Mapping[str, float]
    links: float


class Pace:
    """The progress of the builds of some families of programs, in their order.

    Their sources are listed, and downloaded, on a thread of its own while the first families are compiled.
    """

    def __init__(self, go: Go, programs: Mapping[str, Sequence[str]], progress: Callable[[str], None]) -> None:
        """`programs` has the main packages of each family."""
        self._programs = {family: set(packages) for family, packages in programs.items()}
        self._progress = progress
        self._pool = ThreadPoolExecutor(1)
        known: dict[str, int] = {}
        self._families: dict[str, Future[_Family]] = {
            family: self._pool.submit(_listed, go, family, packages, known) for family, packages in programs.items()
        }
        self._done, self._spent, self._began = 0.0, 0.0, 0.0

    def close(self) -> None:
        """Stop listing sources."""
        self._pool.shutdown(cancel_futures=True)

    def begin(self, family: str) -> None:
        """Wait until the sources of a family are there; its build begins."""
        if not self._families[family].done():
            self._progress(f"downloading the sources of {family}")
        self._families[family].result()
        self._began = time.monotonic()

    def report(self, family: str, compiled: Iterable[str]) -> None:
        """Print the work that is left while a family is built; `compiled` are the packages that its build named."""
        seen = set(compiled)
        packages = self._families[family].result().packages
        done = self._done + sum(packages[path] for path in seen & packages.keys())
        left = sum(len(of - seen if one == family else of) for one, of in self._programs.items())
        seconds = self._spent + time.monotonic() - self._began
        words = f"compiling {family}, programs left: {left}" if left else f"linking {family}"
        if done and seconds >= _FIRST and all(one.done() for one in self._families.values()):
            whole = sum(_work(one.result()) for one in self._families.values())
            words += f", {done / whole:.0%} done, {minutes((whole - done) * seconds / done)} left"
        self._progress(words)

    def end(self, family: str) -> None:
        """Count a family as built."""
        self._spent += time.monotonic() - self._began
        self._done += _work(self._families[family].result())
        self._programs[family].clear()


def minutes(seconds: float) -> str:
    """Return a duration in words."""
    count = round(seconds / 60)
    return f"about {count} minutes" if count > 1 else "about a minute" if seconds > 30 else "less than a minute"  # noqa: PLR2004


def _work(family: _Family) -> float:
    return sum(family.packages.values()) + family.links


def _listed(go: Go, family: str, packages: Sequence[str], known: dict[str, int]) -> _Family:
    """The work of a family's build; nothing where Go cannot list it, which its build explains.

    `known` has a hash of each package of the families before, by its folder: of the folders of its source and of all
    that it imports. A package that is the same in two families is compiled once.
    """
    argv = [str(go.command), "list", *COMPILED, "-deps", "-f", _FACTS, *packages]
    done = subprocess.run(
        argv, cwd=family_dir(family), env=go.environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        return _Family({}, 0)
    own: dict[str, int] = {}
    work, total = {}, 0.0
    # Imports come before the package that imports them.
    for line in done.stdout.splitlines():
        stale, folder, path, files, imports, dependencies = line.split("\t")
        own[path] = hash((folder, *map(own.get, imports.split())))
        size = sum(Path(folder, file).stat().st_size for file in files.split())
        total += size
        if stale == "true" and known.get(folder) != own[path]:
            work[path] = size + _DEPENDENCY * int(dependencies)
        known[folder] = own[path]
    return _Family(work, _LINK * total * len(packages))
