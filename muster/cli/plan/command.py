"""`muster plan`: the answer of the webhook and the PodGroup of the controller, by the same code, without a cluster."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from muster.cli.parsing import InputError
from muster.cli.plan.context import PlanContext
from muster.cli.plan.entries import metadata_of, note, note_lines, plan
from muster.cli.plan.manifests import Document, place, read_manifests
from muster.cli.plan.text import print_junit, print_summary, print_table, print_wide
from muster.cli.settings import any_scheduler
from muster.cli.ui import as_long_as_read, print_data
from muster.gangs.intent import Defaults
from muster.model.objects import InvalidObjectError, convert
from muster.queueing.entries import GangKey
from muster.validation.workload import Verdict, judge
from muster.workloads import kind_of

_REFUSED, _UNREADABLE, _NOT_MANAGED = 1, 2, 3


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster plan`."""
    errors: list[str] = []
    try:
        documents = read_manifests(arguments.filename, errors)
        if not documents and not errors and not arguments.what_if:
            # In kubectl's words, and with its exit code.
            note("no objects passed to plan")
            return _REFUSED
        if arguments.namespace:
            place(documents, arguments.namespace)
        defaults, known = _known(arguments, documents)
        if arguments.what_if:
            from muster.cli.plan.what_if import run as what_if  # noqa: PLC0415 - as below

            return what_if(arguments, _gangs(documents, known, defaults))
        entries = plan(documents, defaults, known, errors)
    except InputError as error:
        note_lines(str(error))
        return _UNREADABLE
    with as_long_as_read():
        _print(entries, errors, arguments)
    for text in errors:
        note_lines(text)
    if errors:
        return _UNREADABLE
    verdicts = [entry["verdict"] for entry in entries]
    if not all(verdict["allowed"] for verdict in verdicts):
        return _REFUSED
    slips = any(not verdict["managed"] or verdict["misspelled"] for verdict in verdicts)
    return _NOT_MANAGED if arguments.strict and slips else 0


def _gangs(documents: Iterable[Document], known: PlanContext, defaults: Defaults) -> list[tuple[GangKey, Verdict]]:
    """The gangs that admission would let come, each with the verdict. Raises InputError for one that it refuses."""
    found = []
    for document in documents:
        kind = kind_of(document.api_version, document.kind)
        if kind is None:
            continue
        meta, _ = metadata_of(document)
        manifest = {**document.manifest, "metadata": meta}
        try:
            verdict = judge(kind, convert(manifest, kind.decoded), known.context(meta["namespace"], defaults))
        except InvalidObjectError as error:
            raise InputError(f"{document.source}: {error}") from error
        if verdict.refusals:
            raise InputError(f"{document.source}: {verdict.refusals[0].message}")
        if verdict.gang is not None and verdict.intent is not None:
            found.append((GangKey(meta["namespace"], verdict.gang.name), verdict))
    return found


def _known(arguments: argparse.Namespace, documents: Iterable[Document]) -> tuple[Defaults, PlanContext]:
    if not arguments.cluster:
        defaults = (arguments.values or any_scheduler()).defaults
        return defaults, PlanContext(queue_source=defaults.queue_source)
    # Imported here, so that a plan without a cluster does not pay for the start of the client.
    from muster.cli.plan.reading import from_cluster  # noqa: PLC0415

    kinds = {(one.api_version, one.kind) for one in documents if kind_of(one.api_version, one.kind)}
    return from_cluster(arguments, kinds)


def _print(entries: list[dict[str, Any]], errors: list[str], arguments: argparse.Namespace) -> None:
    if errors and not entries and arguments.output in {"json", "yaml"}:
        return  # An empty list would look like an answer.
    match arguments.output:
        case "json":
            # Of thousands of manifests: json would take ten times as long.
            print(msgspec.json.format(msgspec.json.encode(entries), indent=2).decode())
        case "junit":
            print_junit(entries, errors, sys.stdout, strict=arguments.strict)
        case "wide":
            print_wide(entries, sys.stdout)
            print_summary(entries, errors, sys.stdout)
        case form if not print_data(entries, form, sys.stdout):
            print_table(entries, sys.stdout, patches=arguments.patches)
            print_summary(entries, errors, sys.stdout)
