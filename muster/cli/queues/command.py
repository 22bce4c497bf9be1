"""`muster queues`: the queue tree with limits, usage and waiting gangs, once or as they change (`muster watch`)."""

import argparse
import asyncio
import sys
import time

from muster.cli.connecting import opened, start_error
from muster.cli.queues.entries import queue_entries, remarks, tree_lines
from muster.cli.snapshot import ClusterSnapshot, read_cluster
from muster.cli.ui import as_long_as_read, complain, print_data
from muster.gangs.start_errors import StartError


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster queues` and `muster watch`: 2 when the cluster does not answer at the beginning."""
    if arguments.watch:
        from muster.cli.queues.watch import watch  # noqa: PLC0415 - it loads much that one look does not need

        with as_long_as_read():
            asyncio.run(watch(arguments))
        return 0
    visible, starts = asyncio.run(_read(arguments))
    entries = queue_entries(visible.ledger_snapshot(time.time()), whole=visible.whole)
    with as_long_as_read():
        start_error_data = {"gangs": starts.gangs, "halfWithin": starts.factor} if starts is not None else None
        data = {"queues": entries, "startError": start_error_data, "unknown": visible.missing}
        if print_data(data, arguments.output, sys.stdout):
            return 0
        print("\n".join([*tree_lines(entries, sys.stdout), *(["", str(starts)] if starts is not None else [])]))
    source = visible.defaults.queue_source
    none = [] if entries else [f"there is no {source.kind} ({source.group}) in this cluster, or none that you may read"]
    complain("queues", *none, *remarks(entries), *visible.missing)
    return 0


async def _read(arguments: argparse.Namespace) -> tuple[ClusterSnapshot, StartError | None]:
    """The cluster as far as it can be read, and the error of its planned starts; notes are in `missing`."""
    async with opened(arguments) as (client, settings):
        visible = await read_cluster(client, settings, arguments.namespace or client.namespace)
        return visible, await start_error(client, settings, time.time())
