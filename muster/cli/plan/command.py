"""`muster plan`: the answer of the webhook and the PodGroup of the controller, by the same code, without a cluster."""

import argparse
import sys
from collections.abc import Iterable

import msgspec

from muster.cli.parsing import InputError
from muster.cli.plan.context import PlanContext
from muster.cli.plan.entries import plan
from muster.cli.plan.entry import PlanEntry
from muster.cli.plan.manifests import Document, place, read_manifests
from muster.cli.plan.other_kinds import with_templates
from muster.cli.plan.text import print_entries, print_junit, print_summary, print_wide
from muster.cli.settings import any_scheduler
from muster.cli.ui import as_long_as_read, complain, print_data
from muster.gangs.intent import Defaults
from muster.workloads import kind_of

_REFUSED, _UNREADABLE, _NOT_MANAGED = 1, 2, 3


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster plan`."""
    errors: list[str] = []
    notes: list[str] = []
    entries = None
    try:
        documents = read_manifests(arguments.filename, errors)
        if not documents and not errors and not arguments.what_if:
            # In kubectl's words, and with its exit code.
            complain("plan", "no objects passed to plan")
            if arguments.output in {"json", "yaml"}:
                _print([], errors, arguments)
            return _REFUSED
        if arguments.namespace:
            place(documents, arguments.namespace)
        entries = plan(documents, *_known(arguments, documents, notes), errors)
    except InputError as error:
        errors.append(str(error))
    complain("plan", *notes, *(line for text in errors for line in text.split("\n")))
    if entries is None or (errors and arguments.what_if):
        return _UNREADABLE
    if arguments.what_if:
        from muster.cli.plan.what_if import run as what_if  # noqa: PLC0415 - as below

        try:
            return what_if(arguments, entries)
        except InputError as error:
            complain("plan", *str(error).split("\n"))
            return _UNREADABLE
    with as_long_as_read():
        _print(entries, errors, arguments)
    if errors:
        return _UNREADABLE
    if not all(entry.allowed for entry in entries):
        return _REFUSED
    return _NOT_MANAGED if arguments.strict and any(entry.slips for entry in entries) else 0


def _known(
    arguments: argparse.Namespace, documents: Iterable[Document], notes: list[str]
) -> tuple[Defaults, PlanContext]:
    if not arguments.cluster:
        defaults = (arguments.values or any_scheduler()).defaults
        return defaults, PlanContext(queue_source=defaults.queue_source, notes=notes)
    # Imported here, so that a plan without a cluster does not pay for the start of the client.
    from muster.cli.plan.reading import from_cluster  # noqa: PLC0415

    found = ((one.api_version, one.kind) for one in with_templates(documents))
    kinds = {one for one in found if kind_of(*one)}
    return from_cluster(arguments, kinds, notes)


def _print(entries: list[PlanEntry], errors: list[str], arguments: argparse.Namespace) -> None:
    match arguments.output:
        case "json":
            # Of thousands of manifests: json would take ten times as long.
            print(msgspec.json.format(msgspec.json.encode([one.data() for one in entries]), indent=2).decode())
        case "junit":
            print_junit(entries, errors, sys.stdout, strict=arguments.strict)
        case "wide":
            print_wide(entries, sys.stdout)
            print_summary(entries, errors, sys.stdout)
        case "yaml":
            print_data([one.data() for one in entries], "yaml", sys.stdout)
        case _:
            print_entries(entries, sys.stdout, patches=arguments.patches)
            print_summary(entries, errors, sys.stdout)
