"""The permissions that the ServiceAccounts of muster and Volcano need.

tests/chart/test_rights.py compares those of muster with the rules of the chart, both ways. Those of Volcano are the
part of its installer's permissions that gangs need.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from muster.workloads import GANG_KINDS, SOURCES, WATCHED_KINDS

if TYPE_CHECKING:
    from muster.cli.doctor.installed import Installation


KUEUE = "kueue.x-k8s.io"
"""The API group of what Kueue makes."""

_READ = ("get", "list", "watch")
_ADMISSION = "admissionregistration.k8s.io"
_VOLCANO = "scheduling.volcano.sh"
_KUEUES_QUEUES = ("localqueues", "clusterqueues")


class Right(NamedTuple):
    """A verb on a resource or subresource (`pods/binding`), on one object or all; namespace "" means all namespaces."""

    verb: str
    group: str
    resource: str
    name: str = ""
    namespace: str = ""

    @property
    def thing(self) -> str:
        """The resource and the object, as kubectl writes them."""
        full = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{full} {self.name}" if self.name else full

    @property
    def attributes(self) -> dict[str, str]:
        """The `resourceAttributes` of an access review for this permission."""
        resource, _, part = self.resource.partition("/")
        return {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": part,
            "name": self.name,
            "namespace": self.namespace,
        }


def needed(component: str, installation: Installation) -> list[Right]:
    """All permissions of the `webhook` or the `controller`, as the chart grants them."""
    return list(_webhook(installation) if component == "webhook" else _controller(installation))


def _webhook(installation: Installation) -> Iterator[Right]:
    yield from _rights(_READ, "", "pods")
    yield from _workloads(())
    yield from _rights(("get",), "batch", "jobs")
    for group in installation.pod_groups:
        yield from _rights(("get", "list"), group, "podgroups")
    if "kueue" in installation.admitters:
        for queues in _KUEUES_QUEUES:
            yield from _rights(("get",), KUEUE, queues)
    yield from _common(installation)
    for resource in ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"):
        yield from _rights((*_READ, "patch"), _ADMISSION, resource, installation.name)
    if installation.own_certificates:
        yield from _rights((*_READ, "update"), "", "secrets", installation.secret, installation.namespace)
    yield from _rights(("create",), "events.k8s.io", "events", "", installation.namespace)


def _controller(installation: Installation) -> Iterator[Right]:
    yield from _rights((*_READ, "patch", "delete"), "", "pods")
    yield from _rights(_READ, "", "nodes")
    yield from _workloads(("patch",))
    yield from _rights(("list", "patch"), "batch", "jobs")
    for group, plural in _gangs():
        yield from _rights(("update",), group, f"{plural}/finalizers")
    for group in installation.pod_groups:
        yield from _rights((*_READ, "create", "patch", "delete"), group, "podgroups")
    if "kueue" in installation.admitters:
        for resource in ("workloads", *_KUEUES_QUEUES):
            yield from _rights(_READ, KUEUE, resource)
    yield from _common(installation)
    yield from _rights(("create",), "events.k8s.io", "events")
    yield from _rights(("release",), "muster.dev", "gangs")
    yield from _rights(("get", "update"), "coordination.k8s.io", "leases", installation.lease, installation.namespace)
    yield from _rights(("create",), "coordination.k8s.io", "leases", "", installation.namespace)
    for name in installation.histories:
        yield from _rights(("get", "patch"), "", "configmaps", name, installation.namespace)


def _common(installation: Installation) -> Iterator[Right]:
    queues = installation.queue_source
    yield from _rights(_READ, queues.group, queues.plural)
    if installation.elastic_quotas:
        yield from _rights(_READ, "scheduling.x-k8s.io", "elasticquotas")
    yield from _rights(_READ, "scheduling.k8s.io", "priorityclasses")
    yield from _rights(_READ, "", "limitranges")
    yield from _rights(_READ, "", "resourcequotas")
    yield from _rights(_READ, "node.k8s.io", "runtimeclasses")
    yield from _rights(_READ, "", "namespaces")


def _workloads(more: tuple[str, ...]) -> Iterator[Right]:
    gangs = _gangs()
    speakers = {(kind.group, kind.plural) for kind in WATCHED_KINDS}
    speakers |= {(source.group, source.plural) for source in SOURCES}
    for group, plural in sorted(speakers):
        yield from _rights((*_READ, *(more if (group, plural) in gangs else ())), group, plural)


def _gangs() -> list[tuple[str, str]]:
    return sorted({(kind.group, kind.plural) for kind in GANG_KINDS})


def _rights(verbs: tuple[str, ...], group: str, resource: str, name: str = "", namespace: str = "") -> Iterator[Right]:
    for verb in verbs:
        yield Right(verb, group, resource, name, namespace)


VOLCANO: dict[str, tuple[Right, ...]] = {
    "vc-scheduler": (
        *_rights(("list", "watch", "patch", "delete"), "", "pods"),
        *_rights(("create",), "", "pods/binding"),
        *_rights(("update",), "", "pods/status"),
        *_rights(("list", "watch"), "", "nodes"),
        *_rights(("list", "watch"), "", "namespaces"),
        *_rights(("create",), "", "events"),
        *_rights(("list", "watch"), "scheduling.k8s.io", "priorityclasses"),
        *_rights(("list", "watch", "update"), _VOLCANO, "podgroups"),
        *_rights(("list", "watch"), _VOLCANO, "queues"),
        *_rights(("update",), _VOLCANO, "queues/status"),
    ),
    "vc-controller-manager": (
        *_rights(("list", "watch"), "", "pods"),
        *_rights(("list", "watch", "create", "update"), _VOLCANO, "podgroups"),
        *_rights(("get", "list", "watch", "update"), _VOLCANO, "queues"),
        *_rights(("update",), _VOLCANO, "queues/status"),
    ),
}
"""The permissions that gangs need, by the last part of the image name of each Volcano component."""
