"""A queue of one source in the words of the other: Volcano's Queue as a GangQueue, and back."""

from __future__ import annotations

from typing import Any

from muster.model.names import HOLD, NAMESPACE_SELECTOR
from muster.model.objects import Queue
from muster.model.selectors import Requirement, parse_selector
from muster.queueing.queue_view import ROOT
from muster.queueing.sources import FIELDS, QUEUE_SOURCES, GangQueue, selector_text


def gang_queue_of(queue: Queue) -> dict[str, Any]:
    """The manifest of the GangQueue that says what a Queue says.

    Raises InvalidSelectorError for a selector of namespaces that cannot be read.
    """
    annotations = queue.metadata.annotations
    spec = _amounts(queue)
    if queue.spec.weight != 1:
        spec["weight"] = queue.spec.weight
    # An empty annotation says nothing, and the CRD refuses an empty field.
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
    """The manifest of the Queue that says what a GangQueue says; only Volcano can close it."""
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
