"""Where a command prints what it found, and for programs how: as JSON or as YAML."""

from __future__ import annotations

import json
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["as_long_as_read", "print_data"]


@contextmanager
def as_long_as_read() -> Iterator[None]:
    """What the block prints may be more than the reader wants (`| head`): the exit code is that of the whole anyway."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        # What Python still holds must go somewhere when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
