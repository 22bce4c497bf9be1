"""Environments with packages of others, for docs/python.md: kept in the cache, with muster from the checkout."""

import os
import subprocess
import sys
import tomllib
import venv
from collections.abc import Mapping
from pathlib import Path

from hack.testbed.paths import cache_root, digest_of, locked

_CHECKOUT = Path(__file__).parents[2]


class Packages:
    """An environment with these packages, and with what the command line needs."""

    def __init__(self, *requirements: str) -> None:
        own = tomllib.loads((_CHECKOUT / "hack/cli/pyproject.toml").read_text())["project"]["dependencies"]
        wanted = [*own, *requirements]
        folder = cache_root().parent / "packages" / digest_of([sys.version.encode(), *map(str.encode, wanted)])[:16]
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_suffix(".lock")):
            if not (folder / "complete").is_file():
                venv.create(folder, clear=True, with_pip=True)
                pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
                subprocess.run([*pip, *wanted], check=True)
                (folder / "complete").touch()
        self._python = folder / "bin/python"

    def run(self, folder: Path, *parts: str, **environment: str) -> str:
        """Run a program that is made of these parts, and return what it prints; fails with its errors."""
        file = folder / "program.py"
        file.write_text("\n".join(parts))
        done = subprocess.run(
            [self._python, "-W", "ignore", file],
            cwd=folder,
            env=self._environment(environment),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        return done.stdout

    @staticmethod
    def _environment(more: Mapping[str, str]) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
        return {**kept, "PYTHONPATH": str(_CHECKOUT), **more}
