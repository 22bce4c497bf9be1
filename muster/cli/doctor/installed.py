"""The installation of muster, from its Deployments and webhook configurations: names and settings of the chart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from muster.admitters import Admitter, chosen_admitter
from muster.cli.doctor.diagnosis import Unseen
from muster.cli.doctor.objects import Deployment, WebhookConfiguration, flag
from muster.gangs.history import SHARDS
from muster.model.findings import Reason, Severity
from muster.model.names import SCHEDULER
from muster.model.strictness import read_validation
from muster.model.times import duration_of
from muster.queueing.sources import QUEUE_SOURCES, QueueSource
from muster.schedulers import PRODUCTS, GangScheduler, named
from muster.workloads import GANG_KINDS, SOURCES, WATCHED_KINDS

LABELS = "app.kubernetes.io/name=muster"
"""The label selector of all objects of the chart."""
T = TypeVar("T")
_COMPONENT, _RELEASE = "app.kubernetes.io/component", "app.kubernetes.io/instance"
KUEUE = "kueue.x-k8s.io"
"""The API group of what Kueue makes."""
_READ = ("get", "list", "watch")
_ADMISSION = "admissionregistration.k8s.io"
_VOLCANO = "scheduling.volcano.sh"
_KUEUES_QUEUES = ("localqueues", "clusterqueues")


@dataclass(frozen=True, slots=True)
class Installation:
    """One release; `name` is the name of its webhook configurations, and the prefix of all its other names."""

    namespace: str
    name: str
    release: str
    webhook: Deployment | None = None
    controller: Deployment | None = None

    @property
    def secret(self) -> str:
        """The Secret with the certificate of the webhook."""
        return self._argument(self.webhook, "secret") or f"{self.name}-webhook-tls"

    @property
    def service(self) -> str:
        """The Service that the apiserver calls."""
        return self._argument(self.webhook, "service") or f"{self.name}-webhook"

    @property
    def port(self) -> str:
        """The port of the webhook's pods that the Service leads to."""
        return self._argument(self.webhook, "port") or "9443"

    @property
    def lease(self) -> str:
        """The Lease that elects the leader among the controllers."""
        return self._argument(self.controller, "lease") or f"{self.name}-controller"

    @property
    def histories(self) -> tuple[str, ...]:
        """The ConfigMaps in which the controller keeps run times, and the errors of planned starts."""
        name = self._argument(self.controller, "history")
        return tuple(f"{name}-{part}" for part in (*range(SHARDS), "starts")) if name else ()

    @property
    def own_certificates(self) -> bool:
        """True if the webhook issues its own certificates."""
        return self._argument(self.webhook, "certificate-directory") is None

    @property
    def validation(self) -> str:
        """The chart value `validation`, "" when the Deployment could not be read."""
        return self._argument(self.webhook, "validation") or ""

    def refuses_lost_queues(self, namespace: Mapping[str, str]) -> bool:
        """True if a workload in a queue that does not exist is refused, according to the Deployment.

        `namespace` has the annotations of its Namespace, which may choose for whom a queue counts.
        """
        if not self.validation or not self._queues_count(namespace):
            return False
        reasons = [word.split("=", 1)[1] for word in _words(self.webhook) if word.startswith("--validation-reason=")]
        try:
            validation = read_validation(self.validation, reasons)
        except ValueError:
            return False  # from a newer version of muster
        return validation.severity(Reason.QUEUE_NOT_FOUND) is Severity.DENY

    def _queues_count(self, namespace: Mapping[str, str]) -> bool:
        """True if the queue counts for who admits a gang of that namespace, or for who places it."""
        if chosen_admitter(namespace, self.admitters) is Admitter.LEDGER:
            return True
        schedulers = self.gang_schedulers
        first = next(iter(schedulers.values()), None)
        scheduler = schedulers.get(namespace.get(SCHEDULER, ""), first)
        return scheduler is not None and scheduler.enforces_limits

    @property
    def default_queue(self) -> str:
        """The queue of workloads that name no queue."""
        return self._argument(self.controller, "default-queue") or "default"

    @property
    def schedulers(self) -> tuple[type[GangScheduler], ...]:
        """Its gang schedulers."""
        return tuple(dict.fromkeys(map(type, self.gang_schedulers.values())))

    @property
    def gang_schedulers(self) -> dict[str, GangScheduler]:
        """Its gang schedulers by the schedulerName of their pods, without those that only a newer muster knows."""
        chosen = (self._argument(self.controller, "schedulers") or "volcano").split(",")
        try:
            return named(*(text for text in chosen if text.partition("=")[0] in PRODUCTS))
        except ValueError:
            return {}

    @property
    def admitters(self) -> tuple[Admitter, ...]:
        """The admitters of gangs, without those that only a newer muster knows."""
        given = (self._argument(self.controller, "admitters") or Admitter.LEDGER).split(",")
        return tuple(Admitter(one) for one in given if one in tuple(Admitter)) or (Admitter.LEDGER,)

    @property
    def elastic_quotas(self) -> bool:
        """The chart value `elasticQuotas`: whether ElasticQuotas of scheduler-plugins count."""
        return self._argument(self.controller, "elastic-quotas") is not None

    @property
    def kueues_timeout(self) -> float | None:
        """Kueue's waitForPodsReady.timeout as the controller has it, in seconds; None when it is not set."""
        return duration_of(self._argument(self.controller, "kueue-timeout") or "")

    @property
    def pod_groups(self) -> tuple[str, ...]:
        """The API groups of the PodGroups of its gang schedulers."""
        return tuple(scheduler.group for scheduler in self.schedulers)

    @property
    def queue_source(self) -> QueueSource:
        """Whose queues count."""
        return QUEUE_SOURCES.get(self._argument(self.controller, "queue-source") or "", QUEUE_SOURCES["volcano"])

    def account(self, component: str) -> str:
        """The ServiceAccount of the `webhook` or the `controller`."""
        deployment = self.webhook if component == "webhook" else self.controller
        return deployment.account if deployment is not None else f"{self.name}-{component}"

    @property
    def upgrade(self) -> str:
        """The command that recreates missing objects of the chart."""
        return f"helm upgrade {self.release} CHART --namespace {self.namespace} --reset-then-reuse-values"

    @property
    def overwrite(self) -> str:
        """The command that restores edited objects: Helm 4 needs a flag for that."""
        return f"{self.upgrade} --force-conflicts (Helm 3 needs no --force-conflicts)"

    @staticmethod
    def _argument(deployment: Deployment | None, name: str) -> str | None:
        return flag(_words(deployment), name)


def _words(deployment: Deployment | None) -> tuple[str, ...]:
    return tuple(word for one in deployment.containers for word in one.words) if deployment is not None else ()


def installations(
    deployments: tuple[Deployment, ...] | Unseen, *configurations: tuple[WebhookConfiguration, ...] | Unseen
) -> tuple[Installation, ...]:
    """All installations, also incomplete ones; complete ones first."""
    parts: dict[tuple[str, str], dict[str, Deployment]] = {}
    releases: dict[tuple[str, str], str] = {}
    for deployment in _seen(deployments):
        meta = deployment.metadata
        component = meta.labels.get(_COMPONENT, "")
        if component in {"webhook", "controller"} and meta.name.endswith(f"-{component}"):
            key = meta.namespace, meta.name.removesuffix(f"-{component}")
            parts.setdefault(key, {})[component] = deployment
            releases[key] = meta.labels.get(_RELEASE, "")
    for several in configurations:
        for configuration in _seen(several):
            meta = configuration.metadata
            called = Counter(webhook.client_config.service.namespace for webhook in configuration.webhooks)
            del called[""]
            # The Service in it may have been edited; its name is unique to the release.
            if called and all(name != meta.name for _, name in parts):
                key = called.most_common(1)[0][0], meta.name
                parts[key] = {}
                releases[key] = meta.labels.get(_RELEASE, "")
    return tuple(
        Installation(namespace, name, releases[namespace, name] or name, found.get("webhook"), found.get("controller"))
        for (namespace, name), found in sorted(parts.items(), key=lambda item: (-len(item[1]), item[0]))
    )


def _seen(things: tuple[T, ...] | Unseen) -> Iterable[T]:
    return () if isinstance(things, Unseen) else things


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
