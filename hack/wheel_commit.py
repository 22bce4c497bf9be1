"""Build hook of the wheel: writes the commit of the checkout into the package, which the command prints."""

import runpy
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_CHECKOUT = Path(__file__).resolve().parents[1]


class CommitHook(BuildHookInterface[Any]):
    """Adds `muster/COMMIT`, unless the wheel is built outside of a checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the file and have it included."""
        del version
        # A build environment of its own does not have the package muster.
        revision = runpy.run_path(str(_CHECKOUT / "muster" / "process" / "revision.py"))
        commit = revision["in_checkout"](_CHECKOUT)
        if commit != revision["UNKNOWN"]:
            self._folder = tempfile.TemporaryDirectory()
            file = Path(self._folder.name) / revision["COMMIT_FILE"]
            file.write_text(f"{commit}\n")
            build_data["force_include"][str(file)] = f"muster/{file.name}"
