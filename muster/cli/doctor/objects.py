"""The objects of the cluster that the doctor reads, as values with only the fields that the checks need."""

from __future__ import annotations

from collections.abc import Mapping

from muster.model.objects import LocalObject, ObjectMeta
from muster.model.selectors import InvalidSelectorError, parse_selector
from muster.queueing.sources import LabelSelector, selector_text

CLOSED = "muster-has-been-reached"
"""The matchCondition that keeps a webhook inactive until the apiserver reaches it (`webhook.certificates.bundles`)."""


class Container(LocalObject, frozen=True):
    """A container of a Deployment: its image and its command line."""

    name: str = ""
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """Its command line."""
        return (*self.command, *self.args)


class _ConfigMapSource(LocalObject, frozen=True):
    name: str = ""


class _Volume(LocalObject, frozen=True):
    config_map: _ConfigMapSource | None = None


class _PodSpec(LocalObject, frozen=True):
    service_account_name: str = ""
    containers: tuple[Container, ...] = ()
    volumes: tuple[_Volume, ...] = ()


class _Template(LocalObject, frozen=True):
    spec: _PodSpec = _PodSpec()


class _DeploymentSpec(LocalObject, frozen=True):
    replicas: int = 1
    template: _Template = _Template()


class _DeploymentStatus(LocalObject, frozen=True):
    ready_replicas: int = 0


class Deployment(LocalObject, frozen=True):
    """A Deployment: its desired and Ready pods, and what they run."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _DeploymentSpec = _DeploymentSpec()
    status: _DeploymentStatus = _DeploymentStatus()

    @property
    def title(self) -> str:
        """`Deployment namespace/name`."""
        return f"Deployment {self.metadata.namespace}/{self.metadata.name}"

    @property
    def containers(self) -> tuple[Container, ...]:
        """The containers of its pods."""
        return self.spec.template.spec.containers

    @property
    def config_maps(self) -> list[str]:
        """The names of the ConfigMaps that are mounted into its pods."""
        return [volume.config_map.name for volume in self.spec.template.spec.volumes if volume.config_map]

    @property
    def account(self) -> str:
        """The ServiceAccount of its pods."""
        return self.spec.template.spec.service_account_name or "default"


class _Service(LocalObject, frozen=True):
    namespace: str = ""
    name: str = ""
    path: str = ""


class _ClientConfig(LocalObject, frozen=True):
    ca_bundle: str = ""
    service: _Service = _Service()
    url: str = ""


class Rule(LocalObject, frozen=True):
    """A rule of a webhook: the requests that it is called for."""

    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()


def selects(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """True if an object with these labels is selected; one without any requirement selects everything."""
    text = selector_text(selector)
    try:
        return not text or parse_selector(text, bounded=False).matches(labels)
    except InvalidSelectorError:
        return False  # an operator of a newer Kubernetes


class _Condition(LocalObject, frozen=True):
    name: str = ""


class Webhook(LocalObject, frozen=True):
    """One entry of a webhook configuration."""

    name: str = ""
    client_config: _ClientConfig = _ClientConfig()
    rules: tuple[Rule, ...] = ()
    failure_policy: str = "Fail"
    namespace_selector: LabelSelector = LabelSelector()
    match_conditions: tuple[_Condition, ...] = ()

    @property
    def closed(self) -> bool:
        """True if the apiserver does not call it yet, as during a first installation."""
        return any(condition.name == CLOSED for condition in self.match_conditions)


class WebhookConfiguration(LocalObject, frozen=True):
    """A MutatingWebhookConfiguration or a ValidatingWebhookConfiguration."""

    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[Webhook, ...] = ()


class _BindingSpec(LocalObject, frozen=True):
    policy_name: str = ""
    validation_actions: tuple[str, ...] = ()


class Binding(LocalObject, frozen=True):
    """A ValidatingAdmissionPolicyBinding, which puts a policy in force."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _BindingSpec = _BindingSpec()


class _LeaseSpec(LocalObject, frozen=True):
    holder_identity: str = ""
    lease_duration_seconds: int = 0
    renew_time: str = ""
    acquire_time: str = ""


class Lease(LocalObject, frozen=True):
    """The Lease of the controller: its holder and its last renewal."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _LeaseSpec = _LeaseSpec()


class _QueueSpec(LocalObject, frozen=True):
    closed: bool = False


class _QueueStatus(LocalObject, frozen=True):
    state: str = ""


class QueueSeen(LocalObject, frozen=True):
    """A queue: the state that Volcano has set on it, if any, or whether a GangQueue is closed."""

    metadata: ObjectMeta = ObjectMeta()
    spec: _QueueSpec = _QueueSpec()
    status: _QueueStatus = _QueueStatus()


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
