"""`muster report`: reads the records of the leader, and prints or draws what was used."""

import argparse
import asyncio
import sys
import time
from pathlib import Path

from muster.cli.connecting import opened
from muster.cli.report.figures import Report, first_day
from muster.cli.report.text import csv_text, table_lines
from muster.cli.settings import Settings
from muster.cli.ui import CommandError, as_long_as_read, print_data
from muster.gangs.accounts import Accounts
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.model.objects import ConfigMap, InvalidObjectError, decode
from muster.model.resource import CONFIG_MAPS

_USE = "use"


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster report`. Raises CommandError where there is nothing to report, and says why."""
    try:
        since = first_day(arguments.since, time.time())
        report = Report.of(asyncio.run(_read(arguments)), arguments.by, since, arguments.queue)
    except ValueError as error:
        raise CommandError(str(error)) from error
    if not report.rows:
        raise CommandError(f"nothing is recorded since {since.isoformat()}")
    with as_long_as_read():
        if arguments.output == "csv":
            print(csv_text(report), end="")
        elif not print_data(report.data, arguments.output, sys.stdout):
            print("\n".join(table_lines(report)))
    if arguments.svg:
        from muster.cli.report.drawing import drawing  # noqa: PLC0415 - few reports are drawn

        try:
            Path(arguments.svg).write_text(drawing(report))
        except OSError as error:
            raise CommandError(f"{arguments.svg}: {error.strerror}") from error
    return 0


async def _read(arguments: argparse.Namespace) -> Accounts:
    async with opened(arguments) as (client, settings):
        return await read_accounts(client, settings)


async def read_accounts(client: Client, settings: Settings) -> Accounts:
    """The records of the leader. Raises CommandError, which says why they cannot be read, and ApiError."""
    namespace, _, name = settings.history.partition("/")
    if not name:
        raise CommandError(settings.note or "muster keeps no records here: the chart value history.enabled is false")
    where = f"ConfigMap {name} of namespace {namespace}"
    try:
        text = decode(await client.get(CONFIG_MAPS, name, namespace), ConfigMap).data.get(_USE, "")
        if not text:
            raise CommandError(f"nothing is recorded yet: the leader writes its records into {where} once a minute")
        accounts = Accounts()
        accounts.read(text)
    except ApiError as error:
        if error.forbidden:
            raise CommandError(f"the records need the right to get {where}, which you do not have") from error
        if error.not_found:
            raise CommandError(f"{where} with the records does not exist; muster's chart creates it") from error
        raise
    except InvalidObjectError as error:
        raise CommandError(f"{where} holds no records as this version of muster reads them: {error}") from error
    return accounts
