"""The context of a plan: queues, priority classes, namespaces and quotas, from the input or from a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from muster.cli.malformed import unreadable
from muster.cli.manifests import Document
from muster.cli.schemas import Schemas
from muster.gangs.gang import priority_values
from muster.gangs.intent import Defaults, Surroundings
from muster.model.findings import Finding, Reason
from muster.model.objects import InvalidObjectError, Namespace, ObjectMeta, PriorityClass, Queue, convert
from muster.queueing.namespace_quota import NamespaceLimits, limit_of
from muster.queueing.queue_tree import QueueTree, labels_of
from muster.queueing.queue_view import read_queue
from muster.queueing.sources import QUEUE_SOURCES, GangQueue, QueueSource
from muster.resources.amounts import parse_resources
from muster.resources.elastic_quotas import ElasticQuota
from muster.resources.limit_ranges import LimitRange
from muster.resources.pod_defaults import PodDefaults, RuntimeClass
from muster.resources.resource_quotas import ResourceQuota
from muster.resources.resource_quotas import limits as limits_of
from muster.validation.workload import Context
from muster.workloads import SOURCES, Reference


@dataclass(slots=True)
class PlanContext:
    """The context of a plan. Without queues, queue checks are skipped; without classes, any class name is accepted.

    `of_source` are the names of the queues of `queue_source`, before which those of the other source do not count;
    `of_cluster` says that it has all queues of a cluster, `unserved` which kinds of the input that does not serve, each
    an `apiVersion` and a `kind`.

    ElasticQuotas of the input are those of some namespaces, whose sum says nothing; of a cluster all may be known.
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

    def learn(self, document: Document) -> bool:
        """Add a document to the context; False for a kind that is not context. Raises InputError."""
        group = document.api_version.rpartition("/")[0]
        known = _CONTEXT.get((group, document.kind))
        if known is None:
            return self._learn_source(document) or self.schemas.learn_crd(document)
        type_, check = known
        try:
            decoded = convert(document.manifest, type_)
            check(decoded)
        except InvalidObjectError as error:
            raise unreadable(document.source, document.manifest, type_, partial(_faults, check)) from error
        match decoded:
            case Queue():  # GangQueues are, too
                self._learn_queue(decoded)
            case PriorityClass():
                self.classes[decoded.metadata.name] = decoded
            case Namespace():
                self.namespaces[decoded.metadata.name] = decoded.metadata
            case RuntimeClass():
                self.runtimes[decoded.metadata.name] = decoded
            case LimitRange() | ResourceQuota() | ElasticQuota():
                self._learn_for_namespace(decoded, decoded.metadata.namespace or "default")
        return True

    def _learn_queue(self, queue: Queue) -> None:
        """Queues of the other source count in a plan as well, but for those that the source has itself."""
        name = queue.metadata.name
        if type(queue) is self.queue_source.decoded:
            self.of_source.add(name)
        elif name in self.of_source:
            return
        self.queues.set(read_queue(queue))

    def _learn_for_namespace(self, decoded: LimitRange | ResourceQuota | ElasticQuota, namespace: str) -> None:
        name = decoded.metadata.name
        match decoded:
            case LimitRange():
                self.ranges.setdefault(namespace, {})[name] = decoded
            case ResourceQuota():
                self.quotas.setdefault(namespace, {})[name] = decoded
            case ElasticQuota():
                there = self.elastic_quotas.setdefault(namespace, {})
                there[name] = decoded
                if (limit := limit_of(there.values())) is not None:
                    self.elastic_limits.set(namespace, limit)

    def _learn_source(self, document: Document) -> bool:
        for source in SOURCES:
            if document.api_version == f"{source.group}/{source.version}" and document.kind == source.kind:
                try:
                    found = convert(document.manifest, source.decoded)
                except InvalidObjectError as error:
                    raise unreadable(document.source, document.manifest, source.decoded, lambda _: ()) from error
                namespace = (found.metadata.namespace or "default") if source.namespaced else ""
                self.origins[Reference(source, namespace, found.metadata.name)] = found
                return True
        return False

    def context(self, namespace: str, defaults: Defaults) -> Context:
        """The context of the rules for a workload in that namespace."""
        around = self.namespaces.get(namespace, ObjectMeta(name=namespace))
        return Context(
            queue=partial(self.queues.place, namespace=labels_of(around)) if self.queues else None,
            queue_names=partial(self.queues.names_for, labels_of(around)),
            priorities=priority_values(self.classes.values()) if self.classes else None,
            defaults=defaults,
            around=Surroundings(namespace=around, unselected=not defaults.namespaces.matches(labels_of(around))),
            pod_defaults=PodDefaults(
                tuple(self.ranges.get(namespace, {}).values()),
                self.runtimes or None,
                tuple(self.quotas.get(namespace, {}).values()),
            ),
            origin=self.origins.get,
            ceiling=self.elastic_limits.ceiling(namespace),
        )


def _faults(check: Callable[[Any], object], decoded: object) -> Sequence[Finding]:
    try:
        check(decoded)
    except InvalidObjectError as error:
        return (Finding(Reason.INVALID, error.field, str(error)),)
    return ()


def _check_elastic(quota: ElasticQuota) -> None:
    limit_of([quota])


def _check_runtime(runtime: RuntimeClass) -> None:
    parse_resources(runtime.overhead.pod_fixed, path="overhead.podFixed")


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
    ("scheduling.x-k8s.io", "ElasticQuota"): (ElasticQuota, _check_elastic),
    ("node.k8s.io", "RuntimeClass"): (RuntimeClass, _check_runtime),
}
"""The type of each kind of context, and what raises InvalidObjectError for a malformed one."""
