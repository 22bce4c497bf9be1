"""`muster doctor`: reads the cluster, prints the findings, and returns an exit code for scripts."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from dataclasses import replace
from typing import Any

from muster.cli.connecting import NO_ANSWER, connected
from muster.cli.doctor.diagnosis import Unseen
from muster.cli.doctor.probed import found
from muster.cli.doctor.probing import probe_all
from muster.cli.doctor.reading import look, server_version
from muster.cli.doctor.report import diagnose, print_report, report
from muster.cli.doctor.sight import GangProbe, Sight
from muster.cli.output import as_long_as_read
from muster.kube.client import Client
from muster.model.names import is_object_name
from muster.model.objects import InvalidObjectError
from muster.model.texts import printable
from muster.model.times import duration_of
from muster.schedulers import named

_PROBLEM, _CANNOT_LOOK = 1, 2


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster doctor`: 1 for a problem, else 2 when a check could not run."""
    long = duration_of(arguments.held_for)
    if long is None:
        return _cannot(f'--held-for "{arguments.held_for}": not a duration; use for example 30m or 1h')
    if arguments.namespace and not is_object_name(arguments.namespace):
        return _cannot(f'"{printable(arguments.namespace)}" is not a valid namespace name')
    if arguments.probe == "only" and not arguments.image:
        return _cannot("--probe=only does not look for muster: name an image for the pods with --image")
    try:
        said = asyncio.run(_report(arguments, long))
    except (*NO_ANSWER, InvalidObjectError) as error:
        return _cannot(printable(str(error)))
    except (asyncio.CancelledError, KeyboardInterrupt):
        return _cannot("stopped by a signal")
    with as_long_as_read():
        print_report(said, arguments.output, sys.stdout)
    if said["problems"]:
        return _PROBLEM
    return _CANNOT_LOOK if said["unknown"] else 0


def _cannot(why: str) -> int:
    print(f"muster doctor: {why}", file=sys.stderr)
    return _CANNOT_LOOK


async def _report(arguments: argparse.Namespace, long: float) -> dict[str, Any]:
    async with connected(arguments) as client:
        namespace = arguments.namespace or client.namespace
        if not arguments.probe:
            sight = await look(client, namespace)
            return report(sight.kubernetes, sight.installation, diagnose(sight, long))
        # The probe deletes its objects when it is stopped: Ctrl-C is a cancellation already.
        task = asyncio.current_task()
        if task is not None:
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        if arguments.probe == "only":
            version = await server_version(client)
            probes = await probe_all(client, arguments.schedulers or named("kubernetes"), namespace, arguments.image)
            return report(version, None, found(probes))
        sight = await look(client, namespace)
        probes = await _probes(client, sight, arguments.image)
        return report(sight.kubernetes, sight.installation, diagnose(replace(sight, probes=probes), long))


async def _probes(client: Client, sight: Sight, image: str) -> tuple[GangProbe | Unseen, ...]:
    """The probes of the schedulers of the installation, with its own image where no other is named."""
    installed = sight.installation
    if installed is None or installed.webhook is None:
        return (Unseen("the Deployment of muster-webhook is not seen", "use --probe=only"),)
    image = image or installed.webhook.containers[0].image
    return await probe_all(client, installed.gang_schedulers, sight.namespace, image)
