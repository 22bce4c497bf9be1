"""`muster release`: the emergency exit. It opens muster's gates and needs only the apiserver.

It reads no queue or workload, and opens all gates before it looks at PodGroups, so that it works when muster and the
scheduler are down, and when their CRDs are deleted. Then it makes the PodGroups that the pods lack: those that were
created while no controller ran would wait for theirs for ever. Released pods stay released: a gang with an open member
counts as admitted, and muster never adds a gate to an existing pod.
"""

import argparse
import asyncio
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from muster.cli.connecting import connected, find_settings
from muster.cli.release.pod_groups import make_missing
from muster.cli.settings import any_scheduler
from muster.cli.ui import CommandError, asks, complain, confirmed, counted, print_line
from muster.gangs.pod_patch import opening
from muster.kube.client import Client
from muster.kube.concurrency import burst
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.model.names import GANG, GATE, label_value
from muster.model.pods import Pod
from muster.model.resource import PODS

_NOT_ALL = 1
# The characters of a label's value; a longer name is shortened there.
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")


@dataclass(slots=True)
class _Outcome:
    """The outcome of one gang: the number of released pods, the gates of others that still hold some, and failures."""

    opened: int = 0
    others: set[str] = field(default_factory=set)
    failures: list[str] = field(default_factory=list)


Outcomes = dict[str, _Outcome]
"""The outcome of each gang, by `namespace/name`."""


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster release`: 1 when a gang may be held still, 2 when the cluster does not answer."""
    if bool(arguments.gang) is arguments.all:
        raise CommandError(
            "name gangs or use --all, not both" if arguments.all else "name at least one gang, or use --all"
        )
    # In a selector a comma would name two gangs, and a bracket anything.
    if bad := [name for name in arguments.gang if not _NAME.fullmatch(name)]:
        raise CommandError(f'"{bad[0]}" is no name of a gang')
    if asks(yes=arguments.yes, dry_run=arguments.dry_run):
        pods, where = asyncio.run(_held(arguments))
        gangs = len({(pod.metadata.namespace, pod.metadata.labels[GANG]) for pod in pods})
        what = f"{counted(gangs, 'gang')} ({counted(len(pods), 'pod')})"
        question = f"Open the gates of {what} at {where}, regardless of the queues?"
        if pods and not confirmed("release", question):
            return _NOT_ALL
    return asyncio.run(_release(arguments))


async def _held(arguments: argparse.Namespace) -> tuple[list[Pod], str]:
    """The held pods of these gangs, and the server that they are at."""
    async with connected(arguments) as client:
        return [pod for pod in await _pods(client, arguments) if pod.gated(GATE) and pod.living], client.server


async def _release(arguments: argparse.Namespace) -> int:
    async with connected(arguments) as client:
        pods = await _pods(client, arguments)
        outcomes = await open_gates(client, pods, dry_run=arguments.dry_run)
        print_opened(outcomes, dry_run=arguments.dry_run)
        settings = arguments.values or await find_settings(client, any_scheduler())
        complain("release", *filter(None, [settings.note]))
        namespace, schedulers = _namespace(client, arguments), settings.defaults.schedulers
        grouped = await make_missing(client, pods, schedulers, namespace=namespace, dry_run=arguments.dry_run)
        place = f"{namespace}/" if namespace else ""
    found = {pod.metadata.labels[GANG] for pod in pods}
    missing = [f"{place}{name}" for name in _names(arguments) if name not in found]
    return _report(outcomes, missing, grouped=grouped)


async def _pods(client: Client, arguments: argparse.Namespace) -> list[Pod]:
    names = _names(arguments)
    selector = f"{GANG} in ({','.join(names)})" if names else GANG
    return await list_objects(client, PODS, Pod, namespace=_namespace(client, arguments), label_selector=selector)


def _names(arguments: argparse.Namespace) -> list[str]:
    return sorted({label_value(name) for name in arguments.gang})


def _namespace(client: Client, arguments: argparse.Namespace) -> str | None:
    """The namespace of the gangs, None for all."""
    if arguments.all or arguments.all_namespaces:
        namespace: str | None = arguments.namespace
        return namespace
    return arguments.namespace or client.namespace


async def open_gates(client: Client, pods: Sequence[Pod], *, dry_run: bool = False) -> Outcomes:
    """Open the gate of every held pod, even after failures; returns the outcome of each gang.

    Where it is stopped, it prints the outcomes so far: these pods stay released.
    """
    outcomes: dict[str, _Outcome] = defaultdict(_Outcome)

    async def open_one(pod: Pod) -> None:
        meta = pod.metadata
        outcome = outcomes[f"{meta.namespace}/{meta.labels[GANG]}"]
        try:
            await client.strategic_merge_patch(PODS, meta.name, opening(meta), meta.namespace, dry_run=dry_run)
        except ApiError as error:
            if not error.not_found:
                outcome.failures.append(f"pod {meta.name}: {error}")
            return
        outcome.opened += 1
        outcome.others |= {gate.name for gate in pod.spec.scheduling_gates} - {GATE}

    try:
        await burst(open_one, (pod for pod in pods if pod.gated(GATE) and pod.living))
    except asyncio.CancelledError:
        print_opened(outcomes, dry_run=dry_run)
        raise
    return outcomes


def _report(outcomes: Outcomes, missing: Sequence[str], *, grouped: bool) -> int:
    failed = print_failures(outcomes, "release")
    complain("release", *(f"{gang}: no pods of a gang with this name" for gang in missing))
    if not outcomes and not missing:
        print_line("no pods are held by muster")
    return _NOT_ALL if failed or missing or not grouped else 0


def print_opened(outcomes: Outcomes, *, dry_run: bool = False) -> None:
    """Print the released pods of each gang, and the gates of others that remain."""
    would = "would be " if dry_run else ""
    for gang, outcome in sorted(outcomes.items()):
        if outcome.opened:
            others = f"; still held by other gates: {', '.join(sorted(outcome.others))}" if outcome.others else ""
            print_line(f"{gang}: {outcome.opened} pod{'s' * (outcome.opened > 1)} {would}opened{others}")


def print_failures(outcomes: Outcomes, command: str) -> bool:
    """Print each failure with its reason; returns whether there was one."""
    failures = [f"{gang}: {failure}" for gang, outcome in sorted(outcomes.items()) for failure in outcome.failures]
    complain(command, *failures)
    return bool(failures)
