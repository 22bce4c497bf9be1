"""`muster migrate-queues`: copies the queues of one source into the other, and changes none that is there already."""

import argparse
import asyncio
import time
from typing import Any

from muster.cli.connecting import connected
from muster.cli.ui import asks, complain, confirmed, counted, print_line
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.kube.listing import list_all
from muster.model.names import HOLD, NAMESPACE_SELECTOR
from muster.model.objects import InvalidObjectError, Queue, decode
from muster.model.resource import Resource
from muster.model.selectors import InvalidSelectorError, Requirement, parse_selector
from muster.queueing.queue_view import ROOT
from muster.queueing.sources import FIELDS, QUEUE_SOURCES, GangQueue, selector_text

_NOT_ALL = 1
# Seconds for which a queue is tried again whose parent was made just before, and between two tries.
_PATIENCE, _PAUSE = 15.0, 0.2
# Volcano makes it itself; a GangQueue of this name is needed only if it has settings.
_ROOT = "root"


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster migrate-queues`: 1 when a queue was not copied, 2 when the cluster does not answer."""
    return asyncio.run(_migrate(arguments))


async def _migrate(arguments: argparse.Namespace) -> int:
    kind = QUEUE_SOURCES[arguments.to].resource
    async with connected(arguments) as client:
        manifests, failures = await _copies(client, arguments.to)
        if asks(yes=arguments.yes, dry_run=arguments.dry_run):
            question = f"Make {counted(len(manifests), kind.kind)} at {client.server}?"
            if manifests and not confirmed("migrate-queues", question):
                return _NOT_ALL
        made = set[str]()
        for manifest in manifests:
            failures += await _make(client, arguments, manifest, made)
    complain("migrate-queues", *failures)
    if arguments.dry_run:
        print_line("nothing was changed (dry run)")
    return _NOT_ALL if failures else 0


async def _copies(client: Client, to: str) -> tuple[list[dict[str, Any]], list[str]]:
    """The manifests of all queues in the words of that source, parents first, and what cannot be copied."""
    source = QUEUE_SOURCES["volcano" if to == "muster" else "muster"]
    manifests: list[dict[str, Any]] = []
    failures: list[str] = []

    def read(raw: bytes) -> None:
        try:
            queue = decode(raw, source.decoded)
        except InvalidObjectError as error:
            failures.append(f"skipping a malformed {source.kind}: {error}")
            return
        try:
            manifest = queue_of(queue) if isinstance(queue, GangQueue) else gang_queue_of(queue)
        except (InvalidObjectError, InvalidSelectorError) as error:
            failures.append(f"{source.kind} {queue.metadata.name}: {error}; not copied")
            return
        if queue.metadata.name != _ROOT or manifest["spec"] or manifest["metadata"].get("annotations"):
            manifests.append(manifest)

    await list_all(client, source.resource, read, deadline=15.0)
    return _parents_first(manifests), failures


def _parents_first(manifests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Volcano's own webhook refuses a queue whose parent does not exist yet."""
    parents = {one["metadata"]["name"]: one["spec"].get("parent", "") for one in manifests}

    def depth(manifest: dict[str, Any]) -> int:
        name, seen = manifest["metadata"]["name"], set[str]()
        while name in parents and name not in seen:
            seen.add(name)
            name = parents[name]
        return len(seen)

    return sorted(manifests, key=lambda one: (depth(one), one["metadata"]["name"]))


async def _make(client: Client, arguments: argparse.Namespace, manifest: dict[str, Any], made: set[str]) -> list[str]:
    """Make one queue, and add it to those that were `made`; gives what went wrong."""
    kind, name = QUEUE_SOURCES[arguments.to].resource, manifest["metadata"]["name"]
    below = manifest["spec"].get("parent", "") in made
    there = f"{kind.kind.lower()} {name}: exists already, and stays as it is"
    try:
        if not (below and arguments.dry_run):
            await _create(client, kind, manifest, dry_run=arguments.dry_run, patience=_PATIENCE if below else 0.0)
        elif await _exists(client, kind, name):  # its parent is not there yet: it would be refused
            print_line(there)
            return []
    except ApiError as error:
        if error.already_exists:
            print_line(there)
            return []
        return [f"{kind.kind} {name}: {error}"]
    made.add(name)
    print_line(f"{kind.kind.lower()} {name}: {'would be made' if arguments.dry_run else 'made'}")
    return []


async def _exists(client: Client, kind: Resource, name: str) -> bool:
    """True if there is a queue of that name; not, where it may not be read. Raises ApiError."""
    try:
        await client.get(kind, name)
    except ApiError as error:
        if error.not_found or error.forbidden:
            return False
        raise
    return True


async def _create(client: Client, kind: Resource, manifest: dict[str, Any], *, dry_run: bool, patience: float) -> None:
    """Create a queue; try it again for so many seconds, in which Volcano's webhook comes to know its parent."""
    until = time.monotonic() + patience
    while True:
        try:
            await client.create(kind, manifest, dry_run=dry_run)
            return
        except ApiError as error:
            if error.already_exists or time.monotonic() > until:
                raise
        await asyncio.sleep(_PAUSE)


def gang_queue_of(queue: Queue) -> dict[str, Any]:
    """The manifest of the GangQueue with the settings of a Queue.

    Raises InvalidSelectorError for a selector of namespaces that cannot be read.
    """
    annotations = queue.metadata.annotations
    spec = _amounts(queue)
    if queue.spec.weight != 1:
        spec["weight"] = queue.spec.weight
    # An empty annotation sets nothing, and the CRD refuses an empty field.
    spec |= {_camel(name): annotations[key] for key, name in FIELDS.items() if annotations.get(key)}
    if NAMESPACE_SELECTOR in annotations:
        requirements = parse_selector(annotations[NAMESPACE_SELECTOR]).requirements
        spec["namespaceSelector"] = {"matchExpressions": [_expression(one) for one in requirements]}
    if queue.status.state in ("Closed", "Closing"):
        spec["closed"] = True
    manifest = _manifest("muster", queue.metadata.name, spec)
    if HOLD in annotations:
        manifest["metadata"]["annotations"] = {HOLD: annotations[HOLD]}
    return manifest


def queue_of(queue: GangQueue) -> dict[str, Any]:
    """The manifest of the Queue with the settings of a GangQueue; only Volcano can close it."""
    spec = queue.spec
    manifest = _manifest("volcano", queue.metadata.name, {"weight": spec.weight, **_amounts(queue)})
    # As `GangQueue` has them from its fields.
    annotations = dict(queue.metadata.annotations)
    if spec.namespace_selector is not None and (text := selector_text(spec.namespace_selector)):
        annotations[NAMESPACE_SELECTOR] = text
    if annotations:
        manifest["metadata"]["annotations"] = annotations
    return manifest


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.title, others))


def _amounts(queue: Queue) -> dict[str, Any]:
    spec = queue.spec
    found: dict[str, Any] = {}
    if spec.capability:
        found["capability"] = {**spec.capability}
    if spec.deserved:
        found["deserved"] = {**spec.deserved}
    if spec.guarantee.resource:
        found["guarantee"] = {"resource": {**spec.guarantee.resource}}
    if spec.parent and spec.parent != ROOT:
        found["parent"] = spec.parent
    return found


def _expression(one: Requirement) -> dict[str, Any]:
    """A part of a selector as a LabelSelector has it."""
    if one.values is None:
        return {"key": one.key, "operator": "DoesNotExist" if one.negated else "Exists"}
    return {"key": one.key, "operator": "NotIn" if one.negated else "In", "values": sorted(one.values)}


def _manifest(source: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    there = QUEUE_SOURCES[source]
    api_version = f"{there.group}/{there.version}"
    return {"apiVersion": api_version, "kind": there.kind, "metadata": {"name": name}, "spec": spec}
