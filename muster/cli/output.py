"""What a command found, for programs: as JSON or as YAML."""

from __future__ import annotations

import json
from typing import Any, TextIO

import yaml

__all__ = ["print_data"]


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes what stands twice twice, as people would."""

    def ignore_aliases(self, data: object) -> bool:
        """No value gets a name of its own."""
        del data
        return True


def print_data(said: Any, form: str, out: TextIO) -> bool:  # noqa: ANN401
    """Print it whole and in its order, as `json` or `yaml`; False for any other form, which is the command's own."""
    if form == "json":
        print(json.dumps(said, indent=2), file=out)
    elif form == "yaml":
        print(yaml.dump(said, Dumper=_Dumper, sort_keys=False, allow_unicode=True), end="", file=out)
    else:
        return False
    return True
