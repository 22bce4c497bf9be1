"""`muster hold` and `muster resume`: put queues and workloads on hold, and have them go on.

Both write one annotation with the user's own rights, and nothing else; the controller honours it. A pod or a PodGroup
means its workload. What a workload has made may have a copy of the annotation, which `resume` removes as well.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from muster.cli.connecting import connected
from muster.cli.explain.subjects import made_by, named_objects
from muster.cli.names import ObjectName, UnknownSubjectError, kinds_of, parse_names, pod_groups_meant, queues_meant
from muster.cli.ui import as_long_as_read, complain, print_data
from muster.cluster.owners import asks_to_wait
from muster.cluster.served import choose_versions
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.model.names import GANG, HOLD
from muster.model.objects import InvalidObjectError, Object, ObjectMeta, OwnerReference, decode
from muster.model.pods import Pod
from muster.model.resource import Resource
from muster.model.texts import printable
from muster.schedulers import SCHEDULERS
from muster.workloads import PLAIN_POD, WATCHED_KINDS, kind_of_owner, owner_of

_NOT_ALL = 1
_POD_GROUP = "PodGroup"


@dataclass(frozen=True, slots=True)
class _Target:
    """An object that may have the annotation."""

    resource: Resource
    metadata: ObjectMeta

    @property
    def called(self) -> str:
        """As kubectl calls it after a change."""
        group = f".{self.resource.group}" if self.resource.group else ""
        return f"{self.resource.kind.lower()}{group}/{self.metadata.name}"


def run(arguments: argparse.Namespace) -> int:
    """The exit code of both: 1 when one could not be changed, 2 for names that mean nothing or without an answer."""
    wanted, failures = [(named, _resources(named.kind)) for named in parse_names(arguments.object)], list[str]()
    entries = asyncio.run(_change(arguments, wanted, failures))
    with as_long_as_read():
        if not print_data(entries, arguments.output, sys.stdout):
            for entry in entries:
                print(printable(f"{entry['object']}: {_words(arguments, entry)}"))
    complain(arguments.command, *failures)
    return _NOT_ALL if failures else 0


def _resources(word: str) -> list[Resource]:
    """The kinds that a word may mean; raises UnknownSubjectError for one that is never on hold.

    A queue is of either source: a user need not know which of them the installation has.
    """
    if queues := queues_meant(word):
        return queues
    if groups := pod_groups_meant(word):
        return groups
    found = kinds_of(word)
    held = [kind for kind in found if kind in WATCHED_KINDS or kind is PLAIN_POD]
    if not held:
        kind = found[0].kind
        how = f"; name one of the pods of the {kind}" if any(not one.owns_pod_group for one in found) else ""
        raise UnknownSubjectError(f'a {kind} cannot be on hold: muster does not read "{HOLD}" there{how}')
    return [kind.resource for kind in held]


async def _change(
    arguments: argparse.Namespace, wanted: Sequence[tuple[ObjectName, Sequence[Resource]]], failures: list[str]
) -> list[dict[str, Any]]:
    """Change all that exists, and give its new state; `failures` gets what could not be changed.

    Raises BadNameError, and has changed nothing then.
    """
    hold, entries = arguments.command == "hold", list[dict[str, Any]]()
    async with connected(arguments) as client:
        client.on_warning(lambda text: print(f"Warning: {printable(text)}", file=sys.stderr))
        namespace = arguments.namespace or client.namespace
        if any(pod_groups_meant(named.kind) for named, _ in wanted):
            await choose_versions(client, SCHEDULERS.values())
            wanted = [(named, _resources(named.kind)) for named, _ in wanted]
        # Before anything is changed: a bad name later on would hide what was changed.
        for named, resources in wanted:
            for resource in resources:
                resource.path(namespace if resource.namespaced else None, named.name)
        for named, resources in wanted:
            try:
                targets = await _targets(client, resources, named.name, namespace)
                if not hold:
                    targets += [made for target in targets for made in await _made(client, target)]
            except (ApiError, InvalidObjectError, UnknownSubjectError) as error:
                failures.append(str(error))
                continue
            for target in targets:
                try:
                    entries.append(await _annotate(client, target, hold=hold, dry_run=arguments.dry_run))
                except ApiError as error:
                    queue = error.forbidden and not target.resource.namespaced
                    words = _may_not(target.metadata.name, [target.resource]) if queue else f"{target.called}: {error}"
                    failures.append(words)
    return entries


async def _targets(client: Client, resources: Sequence[Resource], name: str, namespace: str) -> list[_Target]:
    """The objects of that name. Raises UnknownSubjectError where there is none, ApiError where none can be read."""
    try:
        found = await named_objects(client, resources, name, namespace)
    except ApiError as error:
        if error.forbidden and not resources[0].namespaced:
            raise UnknownSubjectError(_may_not(name, resources)) from error
        raise
    return [await _workload_of(client, resource, raw) for resource, raw in found]


def _may_not(name: str, queues: Sequence[Resource]) -> str:
    """That this user may not change a queue, which may be of several kinds; not which of them the cluster has."""
    kinds = " or of ".join(one.full_name for one in queues)
    needs = f"which needs get and patch of {kinds}"
    return f'you may not put queue "{name}" on hold or resume it, {needs}; ask its administrator'


async def _workload_of(client: Client, resource: Resource, raw: bytes) -> _Target:
    """The object itself, or for a pod or a PodGroup the workload for which it was made."""
    meta = decode(raw, Object).metadata
    owner: OwnerReference | None = None
    is_group = resource.kind == _POD_GROUP
    if is_group:
        owner = meta.controller
    elif resource.kind == "Pod":
        owner = owner_of(decode(raw, Pod))
    kind = kind_of_owner(owner)
    if owner is not None and kind is not None:
        above = kind.resource
        return _Target(above, decode(await client.get(above, owner.name, meta.namespace), Object).metadata)
    if is_group:
        raise UnknownSubjectError(f'PodGroup "{meta.name}" belongs to no workload; name one of its pods')
    if resource.kind == "Pod" and GANG not in meta.labels:
        raise UnknownSubjectError(f'pod "{meta.name}" belongs to no gang of muster')
    return _Target(resource, meta)


async def _made(client: Client, target: _Target) -> list[_Target]:
    """The workloads on hold that a workload has made, and that those have made."""
    makers = {kind.resource: kind for kind in WATCHED_KINDS if not kind.owns_gang}
    if target.resource not in makers:
        return []
    made = []
    # No others: a cluster need not have them, nor this user the right to list them.
    for kind in made_by(makers[target.resource]):
        resource = kind.resource
        for one in await list_objects(client, resource, Object, namespace=target.metadata.namespace):
            meta = one.metadata
            if meta.controller is not None and meta.controller.uid == target.metadata.uid:
                below = _Target(resource, meta)
                made += [*([below] if asks_to_wait(meta) else []), *await _made(client, below)]
    return made


async def _annotate(client: Client, target: _Target, *, hold: bool, dry_run: bool) -> dict[str, Any]:
    """Write the annotation, or take it off, and give what the object is then."""
    meta, resource = target.metadata, target.resource
    there = HOLD in meta.annotations
    changes = not asks_to_wait(meta) if hold else there
    if changes:
        body = {"metadata": {"annotations": {HOLD: "true" if hold else None}}}
        namespace = meta.namespace if resource.namespaced else None
        await client.merge_patch(resource, meta.name, body, namespace, field_manager="muster", dry_run=dry_run)
    return {
        "object": target.called,
        "kind": resource.kind,
        "namespace": meta.namespace,
        "name": meta.name,
        "onHold": hold if changes and not dry_run else asks_to_wait(meta),
        "changed": changes and not dry_run,
        "wouldChange": changes,
    }


def _words(arguments: argparse.Namespace, entry: dict[str, Any]) -> str:
    hold = arguments.command == "hold"
    if not entry["wouldChange"]:
        return "on hold already" if hold else "not on hold"
    if arguments.dry_run:
        return f"would be {'put on hold' if hold else 'resumed'} (dry run)"
    return "on hold; running gangs continue" if hold else "resumed"
