"""Prints the result of a command as JSON or YAML, and survives a reader that stops early."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

import yaml

from muster.cli.parsing import stays_text
from muster.cli.streams import UnwritableError

_FULL = (errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)


@contextmanager
def as_long_as_read() -> Iterator[None]:
    """Ignore a closed pipe (`| head`) in the block, so that it does not change the exit code.

    Raises UnwritableError where it cannot be written for another reason.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _give_up()
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _give_up()
        raise UnwritableError(error.strerror) from error


def _give_up() -> None:
    # Python flushes its buffer at exit, which must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def say(text: str) -> None:
    """Print a line at once; a command that changes a cluster goes on when nobody reads what it says."""
    try:
        with as_long_as_read():
            print(text)
    except UnwritableError as error:
        print(f"muster: what is done cannot be written any more: {error}", file=sys.stderr)


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes a repeated value in full each time, without anchors, and text so that kubectl reads it as text."""

    def ignore_aliases(self, data: object) -> bool:
        """Whether to write a value without an anchor: always."""
        del data
        return True


def _text(dumper: _Dumper, text: str) -> yaml.Node:
    # PyYAML knows by itself what it would take for something else, which is less than what kubectl does.
    style = None if "\n" in text or stays_text(text) else "'"
    node: yaml.Node = dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)
    return node


_Dumper.add_representer(str, _text)


def print_data(said: Any, form: str, out: TextIO) -> bool:  # noqa: ANN401
    """Print the data in order as `json` or `yaml`; False for any other form, which the command prints itself."""
    if form == "json":
        print(json.dumps(said, indent=2), file=out)
    elif form == "yaml":
        print(yaml.dump(said, Dumper=_Dumper, sort_keys=False, allow_unicode=True), end="", file=out)
    else:
        return False
    return True
