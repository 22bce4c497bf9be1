"""`muster doctor`: reads the cluster, prints the findings, and returns an exit code for scripts."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TextIO

from muster.cli.connecting import connected, find_settings
from muster.cli.doctor.certificates import certificates
from muster.cli.doctor.diagnosis import Check, Diagnosis, Level, Unseen, diagnoses_of
from muster.cli.doctor.gangs import LONG, gates, pod_groups, unread_annotations
from muster.cli.doctor.installation import installation, lease, policies
from muster.cli.doctor.installed import Installation
from muster.cli.doctor.operators import operators
from muster.cli.doctor.probe import found, kubernetes, probe_all
from muster.cli.doctor.reading import look, server_version
from muster.cli.doctor.schedulers import coscheduling, kinds, volcano
from muster.cli.doctor.sight import GangProbe, Sight
from muster.cli.doctor.webhooks import answers, webhooks
from muster.cli.ui import (
    GREEN,
    RED,
    YELLOW,
    CommandError,
    as_long_as_read,
    colours,
    counted,
    painted,
    print_data,
    print_wrapped,
)
from muster.kube.client import Client
from muster.model.names import is_object_name
from muster.model.objects import InvalidObjectError
from muster.model.texts import printable
from muster.model.times import duration_of
from muster.schedulers import named

_PROBLEM, _CANNOT_LOOK = 1, 2
_GRAVEST = (Level.PROBLEM, Level.UNKNOWN, Level.WARNING, Level.OK)
_PAINT = {Level.OK: GREEN, Level.WARNING: YELLOW, Level.UNKNOWN: YELLOW, Level.PROBLEM: RED}
_COLUMNS = (9, 14)
_INDENT = sum(_COLUMNS)


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster doctor`: 1 for a problem, else 2 when a check could not run."""
    long = duration_of(arguments.held_for)
    if long is None:
        raise CommandError(f'--held-for "{arguments.held_for}": not a duration; use for example 30m or 1h')
    if arguments.namespace and not is_object_name(arguments.namespace):
        raise CommandError(f'"{arguments.namespace}" is not a valid namespace name')
    if arguments.probe == "only" and not arguments.image:
        raise CommandError("--probe=only does not look for muster: name an image for the pods with --image")
    try:
        data = asyncio.run(_report(arguments, long))
    except InvalidObjectError as error:
        raise CommandError(str(error)) from error
    except (asyncio.CancelledError, KeyboardInterrupt):
        raise CommandError("stopped by a signal") from None
    with as_long_as_read():
        print_report(data, arguments.output, sys.stdout)
    if data["problems"]:
        return _PROBLEM
    return _CANNOT_LOOK if data["unknown"] else 0


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
            settings = arguments.values or await find_settings(client)
            native = {name: one for name, one in settings.defaults.schedulers.items() if one.product == "kubernetes"}
            probes = await probe_all(client, native or named("kubernetes"), namespace, arguments.image)
            return report(version, None, [(Check.KUBERNETES, one) for one in found(probes)])
        sight = await look(client, namespace)
        probes = await _probes(client, sight, arguments.image)
        return report(sight.kubernetes, sight.installation, diagnose(replace(sight, probes=probes), long))


async def _probes(client: Client, sight: Sight, image: str) -> tuple[GangProbe | Unseen, ...]:
    """The probes of the schedulers of the installation, with its own image where no other is named."""
    installed = sight.installation
    if installed is None or installed.webhook is None:
        return (Unseen("the Deployment of muster-webhook is not seen", "use --probe=only"),)
    image = image or installed.webhook.programs[0].image
    return await probe_all(client, installed.gang_schedulers, sight.namespace, image)


def diagnose(sight: Sight, long: float = LONG) -> list[tuple[Check, Diagnosis]]:
    """All diagnoses, check by check, the most severe of each check first."""
    checks: dict[Check, Callable[[Sight], Iterable[Diagnosis]]] = {
        Check.INSTALLATION: installation,
        Check.LEASE: lease,
        Check.WEBHOOKS: webhooks,
        Check.CERTIFICATES: certificates,
        Check.ANSWERS: answers,
        Check.POLICIES: policies,
        Check.KINDS: kinds,
        Check.ANNOTATIONS: unread_annotations,
        Check.VOLCANO: volcano,
        Check.COSCHEDULING: coscheduling,
        Check.KUBERNETES: kubernetes,
        Check.GATES: partial(gates, long=long),
        Check.POD_GROUPS: pod_groups,
        Check.OPERATORS: operators,
    }
    return [
        (check, one)
        for check in Check
        for one in sorted(diagnoses_of(checks[check], sight), key=lambda one: _GRAVEST.index(one.level))
    ]


def report(version: str, installed: Installation | None, found: Iterable[tuple[Check, Diagnosis]]) -> dict[str, Any]:
    """The diagnoses as data for programs, with the version of Kubernetes."""
    entries = [
        {"check": str(check), "level": str(one.level), "message": one.message, "cure": one.cure, "command": one.command}
        for check, one in found
    ]
    counts = {level: sum(entry["level"] == level for entry in entries) for level in Level}
    return {
        "kubernetes": version,
        "release": installed.release if installed is not None else None,
        "namespace": installed.namespace if installed is not None else None,
        "problems": counts[Level.PROBLEM],
        "warnings": counts[Level.WARNING],
        "unknown": counts[Level.UNKNOWN],
        "diagnoses": entries,
    }


def print_report(data: Mapping[str, Any], form: str, out: TextIO) -> None:
    """Print the report: as json, as yaml, or as a table with a summary at the end."""
    if not print_data(data, form, out):
        _print_table(data["diagnoses"], out)
        level = (
            Level.PROBLEM if data["problems"] else Level.WARNING if data["warnings"] or data["unknown"] else Level.OK
        )
        print(painted(_sum(data), _PAINT[level], colour=colours(out)), file=out)


def _print_table(diagnoses: Sequence[Mapping[str, Any]], out: TextIO) -> None:
    for one in diagnoses:
        level = Level(one["level"])
        words = f"{level.upper() if level is Level.PROBLEM else level}".ljust(_COLUMNS[0])
        line = words + one["check"].ljust(_COLUMNS[1]) + printable(one["message"])
        print_wrapped(line, _INDENT, out, _PAINT[level], len(words))
        if one["cure"]:
            print_wrapped(f"{' ' * _INDENT}-> {printable(one['cure'])}", _INDENT + 3, out)
        if one["command"]:
            # On a line of its own and never wrapped: to copy.
            print(f"    {printable(one['command'])}", file=out)


def _sum(data: Mapping[str, Any]) -> str:
    words = [counted(data["problems"], "problem"), counted(data["warnings"], "warning")]
    if data["unknown"]:
        words.append(f"{data['unknown']} could not be checked")
    return ", ".join(words)
