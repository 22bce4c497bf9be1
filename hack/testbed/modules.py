"""The sources of Go modules: CRDs, kwok stages and sample manifests are read from there, never copied here."""

import hashlib
import json
import re
import subprocess
from pathlib import Path

from hack.testbed.errors import TestbedError
from hack.testbed.paths import cache_root, locked, write_atomically
from hack.testbed.toolchain import find_go
from hack.testbed.versions import family_of

_FAMILIES = Path(__file__).parent / "modules"


def family_dir(family: str) -> Path:
    """Return the folder with the go.mod and go.sum of a family of programs."""
    return _FAMILIES / family


def required(family: str, package: str) -> tuple[str, str]:
    """Return the module that has a package, and its version, as a family's go.mod requires it."""
    known = dict(re.findall(r"^(?:require)?\s+(\S+) (v\S+)", (family_dir(family) / "go.mod").read_text(), re.MULTILINE))
    module = max((name for name in known if f"{package}/".startswith(f"{name}/")), key=len)
    return module, known[module]


def module_dir(module: str) -> Path:
    """Return a module's folder in Go's module cache, downloading that one module when it is not there.

    Raises TestbedError when no go.mod here has a tool of that module, or when it cannot be downloaded.
    """
    family = _family_of(module)
    key = hashlib.sha256((family / "go.mod").read_bytes()).hexdigest()[:16]
    known = cache_root() / "modules" / f"{family.name}-{key}-{module.replace('/', '_')}"
    if known.exists() and (found := Path(known.read_text())).is_dir():
        return found
    with locked(cache_root() / "modules.lock"):
        found = _download(module, family)
        known.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(known, str(found))
    return found


def _family_of(module: str) -> Path:
    tool = re.compile(rf"^(?:tool)?\s+{re.escape(module)}(?:/\S*)?$", re.MULTILINE)
    for candidate in sorted(_FAMILIES.iterdir()):
        if tool.search((candidate / "go.mod").read_text()):
            wanted = family_dir(family_of(candidate.name))
            # Another version of Kubernetes has no kwok of its own.
            return wanted if tool.search((wanted / "go.mod").read_text()) else candidate
    raise TestbedError(f"no go.mod below {_FAMILIES} has a tool of {module}: add one")


def _download(module: str, family: Path) -> Path:
    go = find_go()
    go.ensure(print)
    done = subprocess.run(
        [go.command, "mod", "download", "-json", module],
        cwd=family,
        env=go.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = {}
    if "Dir" not in answer:
        raise TestbedError(f"Go module {module} cannot be downloaded: {answer.get('Error') or done.stderr.strip()}")
    return Path(answer["Dir"])
