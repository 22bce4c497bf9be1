"""`muster doctor`: reads the cluster, prints the findings, and returns an exit code for scripts."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

from muster.cli.connecting import NO_ANSWER, connected
from muster.cli.doctor.reading import look
from muster.cli.doctor.report import diagnose, print_report, report
from muster.cli.output import as_long_as_read
from muster.model.names import is_object_name
from muster.model.objects import InvalidObjectError
from muster.model.texts import printable
from muster.model.times import duration_of

if TYPE_CHECKING:
    import argparse

    from muster.cli.doctor.sight import Sight

__all__ = ["run"]

_PROBLEM, _CANNOT_LOOK = 1, 2


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster doctor`: 1 for a problem, else 2 when a check could not run."""
    long = duration_of(arguments.held_for)
    if long is None:
        print(
            f'muster doctor: --held-for "{arguments.held_for}": not a duration; use for example 30m or 1h',
            file=sys.stderr,
        )
        return _CANNOT_LOOK
    if arguments.namespace and not is_object_name(arguments.namespace):
        print(f'muster doctor: "{printable(arguments.namespace)}" is not a valid namespace name', file=sys.stderr)
        return _CANNOT_LOOK
    try:
        sight = asyncio.run(_look(arguments))
    except (*NO_ANSWER, InvalidObjectError) as error:
        print(f"muster doctor: {printable(str(error))}", file=sys.stderr)
        return _CANNOT_LOOK
    said = report(sight, diagnose(sight, long))
    with as_long_as_read():
        print_report(said, arguments.output, sys.stdout)
    if said["problems"]:
        return _PROBLEM
    return _CANNOT_LOOK if said["unknown"] else 0


async def _look(arguments: argparse.Namespace) -> Sight:
    async with connected(arguments) as client:
        return await look(client, arguments.namespace or client.namespace)
