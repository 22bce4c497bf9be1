"""`muster queues`: the queue tree with limits, usage and waiting gangs."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time

from muster.cli.connecting import NO_ANSWER, connected, find_settings
from muster.cli.queues.entries import queue_entries, remarks, tree_lines
from muster.cli.snapshot import ClusterSnapshot, load
from muster.cli.ui import as_long_as_read, print_data
from muster.model.texts import printable

_CANNOT_ASK = 2


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster queues`: 2 when the cluster does not answer."""
    try:
        picture = asyncio.run(_look(arguments))
    except NO_ANSWER as error:
        print(f"muster queues: {printable(str(error))}", file=sys.stderr)
        return _CANNOT_ASK
    entries = queue_entries(picture.ledger_snapshot(time.time()), whole=picture.whole)
    with as_long_as_read():
        if print_data({"queues": entries, "unknown": picture.missing}, arguments.output, sys.stdout):
            return 0
        print("\n".join(tree_lines(entries, sys.stdout)))
    for said in (*remarks(entries), *picture.missing):
        print(f"muster queues: {printable(said)}", file=sys.stderr)
    return 0


async def _look(arguments: argparse.Namespace) -> ClusterSnapshot:
    async with connected(arguments) as client:
        picture = ClusterSnapshot.empty(await find_settings(client, arguments.values))
        await load(client, arguments.namespace or client.namespace, picture)
        return picture
