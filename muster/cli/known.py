"""What a plan knows beside the workloads: queues, classes, namespaces and LimitRanges, of the input or of a cluster."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

from muster.admission import Context
from muster.cli.manifests import Document, InputError
from muster.gang import priority_values
from muster.intent import Defaults, Surroundings
from muster.objects import InvalidObjectError, LimitRange, LocalObject, ObjectMeta, PriorityClass, Queue, convert
from muster.queues import read_queue

if TYPE_CHECKING:
    from muster.queues import QueueView

__all__ = ["Known", "from_cluster"]


class _Namespace(LocalObject, frozen=True):
    metadata: ObjectMeta = ObjectMeta()


@dataclass(slots=True)
class Known:
    """The context of a plan. Without any queue nothing is judged by queues; without any class none is unknown."""

    queues: dict[str, QueueView] = field(default_factory=dict)
    parents: set[str] = field(default_factory=set)
    classes: dict[str, PriorityClass] = field(default_factory=dict)
    namespaces: dict[str, ObjectMeta] = field(default_factory=dict)
    ranges: dict[str, list[LimitRange]] = field(default_factory=dict)

    def learn(self, document: Document) -> bool:
        """Take in a document; False when it is of no kind that says anything here. Raises InputError."""
        group = document.api_version.rpartition("/")[0]
        try:
            match group, document.kind:
                case "scheduling.volcano.sh", "Queue":
                    queue = convert(document.manifest, Queue)
                    self.queues[queue.metadata.name] = read_queue(queue)
                    self.parents.add(queue.spec.parent)
                case "scheduling.k8s.io", "PriorityClass":
                    class_ = convert(document.manifest, PriorityClass)
                    self.classes[class_.metadata.name] = class_
                case "", "Namespace":
                    namespace = convert(document.manifest, _Namespace).metadata
                    self.namespaces[namespace.name] = namespace
                case "", "LimitRange":
                    limits = convert(document.manifest, LimitRange)
                    self.ranges.setdefault(limits.metadata.namespace or "default", []).append(limits)
                case _:
                    return False
        except InvalidObjectError as error:
            raise InputError(f"{document.source}: {error}") from error
        return True

    def _queue(self, name: str) -> QueueView | None:
        view = self.queues.get(name)
        return view and replace(view, leaf=view.leaf and name not in self.parents)

    def context(self, namespace: str, defaults: Defaults) -> Context:
        """What the rules need to judge a workload of that namespace."""
        return Context(
            queue=self._queue if self.queues else None,
            priorities=priority_values(self.classes.values()) if self.classes else None,
            defaults=defaults,
            around=Surroundings(namespace=self.namespaces.get(namespace, ObjectMeta(name=namespace))),
            ranges=self.ranges.get(namespace, ()),
        )


def from_cluster(kubeconfig: str | None) -> Known:
    """Queues, classes, namespaces and LimitRanges of a cluster; raises InputError saying what could not be read."""
    # Only here: without a cluster nobody should pay for the client's start.
    from muster.kube.client import Client  # noqa: PLC0415
    from muster.kube.config import ConfigError  # noqa: PLC0415
    from muster.kube.errors import ApiError  # noqa: PLC0415
    from muster.kube.resource import LIMIT_RANGES, NAMESPACES, PRIORITY_CLASSES, QUEUES, Resource  # noqa: PLC0415

    async def read() -> Known:
        known = Known()
        async with await Client.connect(kubeconfig=kubeconfig, user_agent="muster-plan") as client:
            for resource in (QUEUES, PRIORITY_CLASSES, NAMESPACES, LIMIT_RANGES):
                for item in await _all(client, resource):
                    manifest = {"apiVersion": resource.api_version, "kind": resource.kind, **item}
                    known.learn(Document(f"{resource.full_name} of the cluster", manifest))
        return known

    async def _all(client: Client, resource: Resource) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        continue_ = ""
        while True:
            try:
                page = msgspec.json.decode(await client.list_page(resource, continue_=continue_))
            except ApiError as error:
                raise InputError(f"cannot list {resource.full_name} of the cluster: {error}") from error
            items += page["items"]
            continue_ = page["metadata"].get("continue", "")
            if not continue_:
                return items

    try:
        return asyncio.run(read())
    except ConfigError as error:
        raise InputError(f"cluster: {error}") from error
