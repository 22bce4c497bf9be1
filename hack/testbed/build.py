"""Compiles programs once and keeps the finished binaries, so that only the first `up` of a machine is slow.

A binary is finished when the small JSON next to it, written last, agrees with its size and SHA-256; anything else
is a leftover of an interrupted build and is built again. One builder works at a time; a second waits and then finds
everything done.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from hack.testbed.debian import Debian
from hack.testbed.errors import TestbedError, log_tail
from hack.testbed.modules import family_dir
from hack.testbed.pace import COMPILED, Pace
from hack.testbed.part import Part
from hack.testbed.paths import cache_root, digest_of, locked, write_atomically
from hack.testbed.toolchain import Go, find_go

DEBIAN = "debian"
"""The family of programs that come from Debian's packages instead."""

_HEARTBEAT_SECONDS = 12
# What Go's build and module caches grow to: with all programs, with none, and with each.
_ALL_BYTES, _LEAST_BYTES, _PROGRAM_BYTES = 15 << 30, 2 << 30, 700 << 20


def binaries(parts: Iterable[Part], progress: Callable[[str], None]) -> dict[str, Path]:
    """Return the path of each part's program by the part's name, compiling the missing ones.

    Raises TestbedError: no Go to be had, disk full, or the log file of a compile that failed.
    """
    wanted = list(parts)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    found = {part.name: _asset(Path(assets), part) for part in wanted if assets and part.asset}
    packaged = [part for part in wanted if part.family == DEBIAN]
    if packaged:
        debian = Debian()
        debian.ensure(progress)
        found |= {part.name: debian.program(part.package) for part in packaged}
    go = find_go()
    built = [part for part in wanted if part.name not in found]
    missing = [part for part in built if not is_finished(binary_path(part, go))]
    if missing:
        with locked(cache_root() / "build.lock"):
            missing = [part for part in missing if not is_finished(binary_path(part, go))]
            if missing:
                _build_all(missing, go, progress)
    return found | {part.name: binary_path(part, go) for part in built}


def binary_path(part: Part, go: Go) -> Path:
    """Return where the part's program is kept: what could change its bytes is in the folder's name."""
    family = family_dir(part.family)
    digest = digest_of(
        (
            (family / "go.mod").read_bytes(),
            (family / "go.sum").read_bytes(),
            part.ldflags.encode(),
            go.version.encode(),
            *(source.read_bytes() for source in sorted(family.glob("*.go"))),
        )
    )
    return cache_root() / "bin" / f"{part.family}-{digest[:16]}" / (part.program or part.name)


def is_finished(binary: Path) -> bool:
    """True if the binary is whole. The SHA-256 is read again only when size or time differ from the record."""
    record = _record(binary)
    try:
        facts = json.loads(record.read_text())
        seen = binary.stat()
    except (OSError, ValueError):
        return False
    if not isinstance(facts, dict) or seen.st_size != facts.get("size"):
        return False
    return seen.st_mtime_ns == facts.get("mtime_ns") or _sha256(binary) == facts.get("sha256")


def finish(partial: Path, binary: Path) -> None:
    """Move a compiled file to its place, durably, and then record that it is whole."""
    with partial.open("rb") as stream:
        os.fsync(stream.fileno())
    partial.replace(binary)
    seen = binary.stat()
    facts = {"size": seen.st_size, "mtime_ns": seen.st_mtime_ns, "sha256": _sha256(binary)}
    write_atomically(_record(binary), json.dumps(facts))


def _asset(assets: Path, part: Part) -> Path:
    binary = assets / part.name
    if not os.access(binary, os.X_OK):
        raise TestbedError(f"KUBEBUILDER_ASSETS is {assets}, but it has no {part.name}: complete it or unset it")
    return binary


def _build_all(parts: list[Part], go: Go, progress: Callable[[str], None]) -> None:
    go.ensure(progress)
    _check_disk(go, len(parts))
    families: dict[str, dict[str, Part]] = {}
    for part in parts:
        families.setdefault(part.family, {})[part.package] = part
    started, programs = time.monotonic(), sum(len(family) for family in families.values())
    progress(f"compiling {programs} programs from their released sources, once")
    pace = Pace(go, {name: list(family) for name, family in families.items()}, progress)
    try:
        for name, family in families.items():
            _build(name, family, go, pace)
    finally:
        pace.close()
    progress(f"compiled {programs} programs in {time.monotonic() - started:.0f} s")


def _build(name: str, family: Mapping[str, Part], go: Go, pace: Pace) -> None:
    """Build the programs of one Go module by one command, which links some while it compiles others."""
    partial = cache_root() / "bin" / f".{name}.{os.getpid()}"
    log = cache_root() / "logs" / f"build-{name}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    partial.mkdir(parents=True)
    flags = [f"-ldflags={package}={part.ldflags}" for package, part in family.items()]
    argv = [str(go.command), "build", "-v", *COMPILED, *flags, "-o", f"{partial}/", *family]
    try:
        pace.begin(name)
        with (
            log.open("w") as stream,
            subprocess.Popen(
                argv, cwd=family_dir(name), env=go.environment(), stdout=stream, stderr=subprocess.STDOUT
            ) as compiler,
        ):
            while (code := _wait(compiler)) is None:
                pace.report(name, log.read_text().splitlines())
        if code:
            _explain_failure(name, log)
        pace.end(name)
        for part in family.values():
            binary = binary_path(part, go)
            binary.parent.mkdir(parents=True, exist_ok=True)
            _record(binary).unlink(missing_ok=True)
            finish(partial / _executable(part), binary)
    finally:
        shutil.rmtree(partial)


def _executable(part: Part) -> str:
    """The name that Go gives a program: the last word of its import path that is no version."""
    words = [part.family, *part.package.strip(".").split("/")]
    return next(word for word in reversed(words) if word and not re.fullmatch(r"v\d+", word))


def _wait(compiler: subprocess.Popen[bytes]) -> int | None:
    try:
        return compiler.wait(_HEARTBEAT_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    except BaseException:
        compiler.kill()
        raise


def _explain_failure(family: str, log: Path) -> None:
    if "no space left on device" in log.read_text(errors="replace"):
        raise TestbedError(f"disk full while compiling {family}: free some space and try again; log: {log}")
    raise TestbedError(f"{family} does not compile; {log_tail(log)}")


def _check_disk(go: Go, programs: int) -> None:
    answer = subprocess.run(
        [go.command, "env", "GOCACHE"], env=go.environment(), capture_output=True, text=True, check=True
    )
    cache = Path(answer.stdout.strip())
    compiled = sum(entry.stat().st_size for entry in cache.glob("??/*-d")) if cache.is_dir() else 0
    need = max(_LEAST_BYTES, min(_ALL_BYTES, _LEAST_BYTES + programs * _PROGRAM_BYTES) - compiled)
    place = next(folder for folder in (cache, *cache.parents) if folder.is_dir())
    free = shutil.disk_usage(place).free
    if free < need:
        raise TestbedError(
            f"{free / 2**30:.1f} GB free at {place}, compiling needs {need / 2**30:.0f} GB: "
            "free some space, or set GOCACHE and GOMODCACHE to a larger disk"
        )


def _record(binary: Path) -> Path:
    return binary.with_name(f"{binary.name}.json")


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
