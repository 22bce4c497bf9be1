"""The context of a plan: queues, priority classes, namespaces and quotas, from the input or from a cluster."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from muster.cli.parsing import InputError
from muster.cli.plan.manifests import Document
from muster.cli.plan.schemas import Schemas
from muster.cli.plan.shape import misplaced, spec_type, unfilled, unnamed, unreadable
from muster.gangs.gang import priority_values
from muster.gangs.intent import Defaults, Intent, IntentScope
from muster.model.findings import Finding, Reason
from muster.model.objects import InvalidObjectError, Namespace, ObjectMeta, PriorityClass, Queue, convert
from muster.model.texts import nearest
from muster.queueing.queue_tree import QueueTree, labels_of
from muster.queueing.queue_view import read_queue
from muster.queueing.sources import QUEUE_SOURCES, GangQueue, QueueSource
from muster.queueing.verdicts import no_such_queue
from muster.resources.amounts import parse_resources
from muster.resources.elastic_quotas import ElasticQuota, NamespaceLimits, limit_of
from muster.resources.pod_defaults import LimitRange, PodDefaults, RuntimeClass
from muster.resources.resource_quotas import ResourceQuota
from muster.resources.resource_quotas import limits as limits_of
from muster.validation.context import Context
from muster.validation.workload import Verdict
from muster.workloads import KINDS, SOURCES, Decoded, Kind, Reference, Workload


@dataclass(slots=True)
class PlanContext:
    """The context of a plan. Without queues, queue checks are skipped; without classes, any class name is accepted.

    `of_source` are the names of the queues of `queue_source`, before which those of the other source do not count;
    `of_cluster` is true if it has all queues of a cluster; `unserved` are the kinds of the input that the cluster does
    not serve, each an `apiVersion` and a `kind`; `notes` is what a command prints on standard error.

    ElasticQuotas of the input are those of some namespaces, whose sum is of no use; of a cluster all may be known.
    """

    queues: QueueTree = field(default_factory=QueueTree)
    classes: dict[str, PriorityClass] = field(default_factory=dict)
    namespaces: dict[str, ObjectMeta] = field(default_factory=dict)
    ranges: dict[str, dict[str, LimitRange]] = field(default_factory=dict)
    quotas: dict[str, dict[str, ResourceQuota]] = field(default_factory=dict)
    elastic_quotas: dict[str, dict[str, ElasticQuota]] = field(default_factory=dict)
    elastic_limits: NamespaceLimits = field(default_factory=partial(NamespaceLimits, whole=False))
    runtimes: dict[str, RuntimeClass] = field(default_factory=dict)
    origins: dict[Reference, Any] = field(default_factory=dict)
    schemas: Schemas = field(default_factory=Schemas)
    queue_source: QueueSource = QUEUE_SOURCES["volcano"]
    of_source: set[str] = field(default_factory=set)
    of_cluster: bool = False
    unserved: set[tuple[str, str]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def learn(self, document: Document) -> bool:
        """Add a document to the context; False for a kind that is not context. Raises InputError."""
        group = document.api_version.rpartition("/")[0]
        known = _CONTEXT.get((group, document.kind))
        if known is None:
            return self._learn_source(document) or self.schemas.learn_crd(document)
        decoded = _decoded(document, *known)
        name, namespace = decoded.metadata.name, decoded.metadata.namespace or "default"
        match decoded:
            case Queue():  # GangQueues are, too
                self._learn_queue(decoded)
            case PriorityClass():
                self.classes[name] = decoded
            case Namespace():
                self.namespaces[name] = decoded.metadata
            case RuntimeClass():
                self.runtimes[name] = decoded
            case LimitRange():
                self.ranges.setdefault(namespace, {})[name] = decoded
            case ResourceQuota():
                self.quotas.setdefault(namespace, {})[name] = decoded
            case ElasticQuota():
                there = self.elastic_quotas.setdefault(namespace, {})
                there[name] = decoded
                if (limit := limit_of(there.values())) is not None:
                    self.elastic_limits.put(namespace, limit)
        return True

    def note(self, text: str) -> None:
        """Add a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def ignore(self, error: InputError) -> None:
        """Add notes on a malformed object of the cluster, which its user alone can mend."""
        for line in str(error).split("\n"):
            self.note(f"{line}; ignoring it, as the webhook does")

    def _learn_queue(self, queue: Queue) -> None:
        """Queues of the other source count in a plan as well, but for those that the source has itself."""
        name = queue.metadata.name
        if type(queue) is self.queue_source.decoded:
            self.of_source.add(name)
        elif name in self.of_source:
            return
        self.queues.set(read_queue(queue))

    def _learn_source(self, document: Document) -> bool:
        for source in SOURCES:
            if (document.api_version, document.kind) == (source.resource.api_version, source.resource.kind):
                found = _decoded(document, source.decoded)
                namespace = (found.metadata.namespace or "default") if source.resource.namespaced else ""
                self.origins[Reference(source, namespace, found.metadata.name)] = found
                return True
        return False

    def _origin_names(self, asked: Reference) -> list[str]:
        """The names of the objects of that kind and place."""
        return [one.name for one in self.origins if (one.source, one.namespace) == (asked.source, asked.namespace)]

    def context(self, namespace: str, defaults: Defaults) -> Context:
        """The context of the rules for a workload in that namespace."""
        metadata = self.namespaces.get(namespace, ObjectMeta(name=namespace))
        return Context(
            queue=partial(self.queues.place, namespace=labels_of(metadata)) if self.queues else None,
            queue_names=partial(self.queues.names_for, labels_of(metadata)),
            priorities=priority_values(self.classes.values()) if self.classes else None,
            defaults=defaults,
            scope=IntentScope(namespace=metadata, unselected=not defaults.namespaces.matches(labels_of(metadata))),
            pod_defaults=PodDefaults(
                tuple(self.ranges.get(namespace, {}).values()),
                self.runtimes or None,
                tuple(self.quotas.get(namespace, {}).values()),
            ),
            origin=self.origins.get,
            origin_names=self._origin_names,
            ceiling=self.elastic_limits.ceiling(namespace),
        )


def _decoded(document: Document, type_: type[Any], check: Callable[[Any], object] = bool) -> Any:  # noqa: ANN401
    """The object of a document. Raises InputError for one that is malformed, as `check` finds by InvalidObjectError.

    It needs a name, and no variable in it that is not filled in.
    """
    if faults := [*unnamed(document.manifest), *unfilled(document.manifest, type_)]:
        if faults[0].field == "metadata.name":
            faults += misplaced(document.manifest, spec_type(type_))
        raise unreadable(document, type_, faults)
    try:
        decoded = convert(document.manifest, type_)
        check(decoded)
    except InvalidObjectError as error:
        raise unreadable(document, type_, error=error) from error
    return decoded


def _check_limits(limits: LimitRange) -> None:
    """Raises InvalidObjectError for malformed quantities, which would later look like an error of the pods."""
    for index, item in enumerate(limits.spec.limits):
        for name, amounts in (
            ("default", item.default),
            ("defaultRequest", item.default_request),
            ("max", item.max),
            ("min", item.min),
            ("maxLimitRequestRatio", item.max_limit_request_ratio),
        ):
            parse_resources(amounts, path=f"spec.limits[{index}].{name}")


_CONTEXT: dict[tuple[str, str], tuple[type[Any], Callable[[Any], object]]] = {
    ("scheduling.volcano.sh", "Queue"): (Queue, read_queue),
    ("muster.dev", "GangQueue"): (GangQueue, read_queue),
    ("scheduling.k8s.io", "PriorityClass"): (PriorityClass, bool),
    ("", "Namespace"): (Namespace, bool),
    ("", "LimitRange"): (LimitRange, _check_limits),
    ("", "ResourceQuota"): (ResourceQuota, limits_of),
    ("scheduling.x-k8s.io", "ElasticQuota"): (ElasticQuota, lambda quota: limit_of([quota])),
    ("node.k8s.io", "RuntimeClass"): (
        RuntimeClass,
        lambda runtime: parse_resources(runtime.overhead.pod_fixed, path="overhead.podFixed"),
    ),
}
"""The type of each kind of context, and what raises InvalidObjectError for a malformed one."""


def default_queue_unknown(verdict: Verdict, known: PlanContext) -> str:
    """A note for a workload that names no queue, if the input has queues without the default one; else "".

    On a cluster with Volcano that queue exists.
    """
    intent = verdict.intent
    if known.of_cluster or intent is None or "queue" in intent.paths or known.queues.get(intent.queue) is not None:
        return ""
    where = f'the default queue "{intent.queue}" is not in the input'
    return f"the workload names no queue, and {where}: its limits are not checked" if known.queues else ""


def as_of_input(verdict: Verdict, intent: Intent | None, namespace: str, known: PlanContext) -> Verdict:
    """The verdict; a queue that was not found is called missing in the input, if only the input was read.

    `intent` is that of the metadata where the pods cannot be counted.
    """
    if known.of_cluster or intent is None or known.queues.get(intent.queue) is not None:
        return verdict
    refusals, warnings = (
        tuple(_of_input(one, intent.queue, namespace) if one.reason is Reason.QUEUE_NOT_FOUND else one for one in found)
        for found in (verdict.refusals, verdict.warnings)
    )
    return replace(verdict, refusals=refusals, warnings=warnings)


def _of_input(finding: Finding, queue: str, namespace: str) -> Finding:
    before, _, rest = finding.message.partition(no_such_queue(queue, namespace))
    meant = rest.partition(";")[0]
    words = f'queue "{queue}" is not among the Queues of the input{meant}'
    return replace(finding, message=f"{before}{words}; name one of those, add it to the input, or use --cluster")


def readable(kind: Kind, decoded: Decoded, known: PlanContext) -> Workload | None:
    """A workload that asks for nothing, read for the reason; None if it cannot be read."""
    with suppress(InvalidObjectError):
        return kind.read(kind.whole(decoded, known.origins.get))
    return None


def unserved(document: Document, known: PlanContext) -> Iterator[Finding]:
    """The finding in an object of a kind that the cluster does not serve."""
    served = document.api_version, document.kind
    if served not in known.unserved or known.schemas.has(*served):  # its CRD may be in the input
        return
    words = f"the cluster does not serve {document.kind} of {document.api_version}; kubectl apply fails there"
    yield Finding(Reason.FIELD_DROPPED, "kind", f"kind: {words} until its operator is installed")


def near_kind(document: Document) -> str:
    """The probable intention of the document, in a sentence; "" when no kind is near."""
    group, _, version = document.api_version.rpartition("/")
    same = [kind for kind in KINDS if kind.kind == document.kind]
    if versions := [one for kind in same if kind.group == group for one in kind.versions]:
        known = " and ".join(versions)
        return f'muster supports {document.kind} of {group or "the core group"} in {known}, not in "{version[:80]}"'
    groups = {kind.group for kind in KINDS if kind.group}
    near = group if group in groups else nearest(group, groups) if group else ""
    candidates = {kind.kind: kind for kind in KINDS if kind.group == near}
    found = candidates.get(nearest(document.kind, candidates))
    if found is None:
        return ""
    meant = f"{found.group}/{found.versions[0]} {found.kind}" if found.group else f"{found.versions[0]} {found.kind}"
    return f'unknown kind "{document.api_version[:80]} {document.kind[:80]}"; did you mean {meant}?'
