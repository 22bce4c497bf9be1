"""The installation of muster, from its Deployments and webhook configurations: names and settings of the chart.

The apiserver has checked the shape of these objects: all but the custom resources are kinds of Kubernetes itself.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import msgspec

from muster.admitters import Admitter
from muster.cli.doctor.diagnosis import Unseen
from muster.model.objects import LocalObject, Object
from muster.model.selectors import InvalidSelectorError, parse_selector
from muster.model.times import duration_of
from muster.queueing.sources import QUEUE_SOURCES, LabelSelector, QueueSource, selector_text
from muster.schedulers import PRODUCTS, GangScheduler, named

LABELS = "app.kubernetes.io/name=muster"
"""The label selector of all objects of the chart."""
T = TypeVar("T")
_COMPONENT, _RELEASE = "app.kubernetes.io/component", "app.kubernetes.io/instance"
KUEUE = "kueue.x-k8s.io"
"""The API group of what Kueue makes."""


CLOSED = "muster-has-been-reached"
"""The matchCondition that keeps a webhook inactive until the apiserver reaches it (`webhook.certificates.bundles`)."""


class Program(NamedTuple):
    """A container of a Deployment: its name, its image, and the words of its command line."""

    name: str
    image: str
    words: tuple[str, ...]

    @property
    def image_name(self) -> str:
        """The last part of the image's name, without tag and digest: `vc-scheduler`."""
        return self.image.partition("@")[0].rpartition("/")[2].partition(":")[0]

    @property
    def tag(self) -> str:
        """The tag of the image."""
        return self.image.partition("@")[0].rpartition(":")[2]


class AnyObject(Object, frozen=True):
    """An object in its own terms: a queue of Volcano or a GangQueue, or the binding of an admission policy."""

    spec: dict[str, Any] = msgspec.field(default_factory=dict)
    status: dict[str, Any] = msgspec.field(default_factory=dict)


class Deployment(AnyObject, frozen=True):
    """A Deployment: its desired and Ready pods, and what they run."""

    @property
    def title(self) -> str:
        """`Deployment namespace/name`."""
        return f"Deployment {self.metadata.namespace}/{self.metadata.name}"

    @property
    def replicas(self) -> int:
        """The number of desired pods."""
        return int(self.spec.get("replicas", 1))

    @property
    def ready(self) -> int:
        """The number of Ready pods."""
        return int(self.status.get("readyReplicas", 0))

    @property
    def programs(self) -> list[Program]:
        """The containers of its pods."""
        return [
            Program(one.get("name", ""), one.get("image", ""), (*(one.get("command") or ()), *(one.get("args") or ())))
            for one in self._pod_spec.get("containers", ())
        ]

    @property
    def config_maps(self) -> list[str]:
        """The names of the ConfigMaps that are mounted into its pods."""
        return [one["configMap"]["name"] for one in self._pod_spec.get("volumes", ()) if "configMap" in one]

    @property
    def _pod_spec(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.spec.get("template", {}).get("spec", {})
        return found


class Webhook(LocalObject, frozen=True):
    """One entry of a webhook configuration."""

    name: str = ""
    client_config: dict[str, Any] = msgspec.field(default_factory=dict)
    failure_policy: str = "Fail"
    namespace_selector: LabelSelector = LabelSelector()
    match_conditions: tuple[dict[str, str], ...] = ()

    @property
    def closed(self) -> bool:
        """True if the apiserver does not call it yet, as during a first installation."""
        return any(condition["name"] == CLOSED for condition in self.match_conditions)

    @property
    def ca_bundle(self) -> str:
        """The certificates that the apiserver trusts, in base64."""
        return str(self.client_config.get("caBundle", ""))

    @property
    def namespace(self) -> str:
        """The namespace of the Service that it calls; "" if it calls a URL."""
        return str(self.client_config.get("service", {}).get("namespace", ""))

    @property
    def target(self) -> str:
        """The URL that it calls, or the Service and path: `namespace/name/path`."""
        service: Mapping[str, str] = self.client_config.get("service", {})
        named = f"{service.get('namespace', '')}/{service.get('name', '')}{service.get('path', '')}"
        return str(self.client_config.get("url", "")) or named

    def selects(self, labels: Mapping[str, str]) -> bool:
        """True if it is called for objects of a namespace with these labels."""
        text = selector_text(self.namespace_selector)
        try:
            return not text or parse_selector(text, bounded=False).matches(labels)
        except InvalidSelectorError:
            return False  # an operator of a newer Kubernetes


class WebhookConfiguration(Object, frozen=True):
    """A MutatingWebhookConfiguration or a ValidatingWebhookConfiguration."""

    webhooks: tuple[Webhook, ...] = ()


def flag(words: tuple[str, ...], name: str) -> str | None:
    """The value of a flag on a command line, the last when it is repeated; "" without a value, None without it."""
    found = None
    for at, word in enumerate(words):
        for dashes in (f"--{name}", f"-{name}"):
            if word.startswith(f"{dashes}="):
                found = word[len(dashes) + 1 :]
            elif word == dashes:
                after = words[at + 1] if at + 1 < len(words) else ""
                found = "" if after.startswith("-") else after
    return found


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
    def own_certificates(self) -> bool:
        """True if the webhook issues its own certificates."""
        return self._argument(self.webhook, "certificate-directory") is None

    @property
    def validation(self) -> str:
        """The chart value `validation`, "" when the Deployment could not be read."""
        return self._argument(self.webhook, "validation") or ""

    @property
    def default_queue(self) -> str:
        """The queue of workloads that name no queue."""
        return self._argument(self.controller, "default-queue") or "default"

    @property
    def products(self) -> set[str]:
        """Its gang schedulers, as the chart value `schedulers` names them."""
        return {one.product for one in self.gang_schedulers.values()}

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
    def kueue(self) -> Mapping[str, float]:
        """The timeouts of Kueue's waitForPodsReady as the controller has them, in seconds, by Kueue's names."""
        names = {"timeout": "kueue-timeout", "unscheduledTimeout": "kueue-unscheduled-timeout"}
        found = ((name, duration_of(self._argument(self.controller, flag) or "")) for name, flag in names.items())
        return {name: seconds for name, seconds in found if seconds is not None}

    @property
    def queue_source(self) -> QueueSource:
        """Whose queues count."""
        return QUEUE_SOURCES.get(self._argument(self.controller, "queue-source") or "", QUEUE_SOURCES["volcano"])

    @property
    def upgrade(self) -> str:
        """The command that recreates missing objects of the chart."""
        return f"helm upgrade {self.release} CHART --namespace {self.namespace} --reset-then-reuse-values"

    @property
    def overwrite(self) -> str:
        """The command that restores edited objects: Helm 4 needs a flag for that, Helm 3 has none."""
        return f"{self.upgrade} --force-conflicts"

    @staticmethod
    def _argument(deployment: Deployment | None, name: str) -> str | None:
        words = (word for one in deployment.programs for word in one.words) if deployment is not None else ()
        return flag(tuple(words), name)


AS_INSTALLED = Installation("", "", "")
"""An installation with the defaults of the chart, where there is none."""


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
            called = Counter(webhook.namespace for webhook in configuration.webhooks)
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
