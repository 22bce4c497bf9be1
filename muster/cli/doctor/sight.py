"""The state of a cluster as values: the only input of the checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.model.objects import LocalObject, ObjectMeta

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.cli.doctor.diagnosis import Unseen
    from muster.cli.doctor.installed import Installation
    from muster.cli.doctor.rights import Right

__all__ = [
    "CLOSED",
    "Account",
    "Binding",
    "Container",
    "Deployment",
    "GangMember",
    "Group",
    "Lease",
    "Policy",
    "ProbeAnswer",
    "QueueSeen",
    "Rule",
    "Sight",
    "Webhook",
    "WebhookConfiguration",
    "flag",
]


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


class _Requirement(LocalObject, frozen=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class _Selector(LocalObject, frozen=True):
    match_expressions: tuple[_Requirement, ...] = ()


class _Condition(LocalObject, frozen=True):
    name: str = ""


class Webhook(LocalObject, frozen=True):
    """One entry of a webhook configuration."""

    name: str = ""
    client_config: _ClientConfig = _ClientConfig()
    rules: tuple[Rule, ...] = ()
    failure_policy: str = "Fail"
    namespace_selector: _Selector = _Selector()
    match_conditions: tuple[_Condition, ...] = ()

    @property
    def closed(self) -> bool:
        """Whether the apiserver does not call it yet, as during a first installation."""
        return any(condition.name == CLOSED for condition in self.match_conditions)


class WebhookConfiguration(LocalObject, frozen=True):
    """A MutatingWebhookConfiguration or a ValidatingWebhookConfiguration."""

    metadata: ObjectMeta = ObjectMeta()
    webhooks: tuple[Webhook, ...] = ()


class Policy(LocalObject, frozen=True):
    """A ValidatingAdmissionPolicy."""

    metadata: ObjectMeta = ObjectMeta()


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


class _QueueStatus(LocalObject, frozen=True):
    state: str = ""


class QueueSeen(LocalObject, frozen=True):
    """A queue: the state that Volcano has set on it, if any."""

    metadata: ObjectMeta = ObjectMeta()
    status: _QueueStatus = _QueueStatus()


@dataclass(frozen=True, slots=True)
class GangMember:
    """A pod of a gang, or of another PodGroup: `living` while it may still run; times are seconds since 1970."""

    namespace: str
    name: str
    group: str
    created: float
    gated: bool = False
    placed: bool = False
    living: bool = True


@dataclass(frozen=True, slots=True)
class Group:
    """A PodGroup; `state` and `message` are the annotations of muster."""

    namespace: str
    name: str
    created: float
    owned: bool = True
    ours: bool = True
    phase: str = ""
    state: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class Account:
    """A ServiceAccount of muster (`ours`) or of Volcano, and the permissions that it lacks."""

    namespace: str
    name: str
    ours: bool
    lacks: tuple[Right, ...] = ()

    @property
    def title(self) -> str:
        """`ServiceAccount namespace/name`."""
        return f"ServiceAccount {self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """The answer to a dry run: `refusal` is the error of the apiserver, "" when it admitted the object."""

    refusal: str = ""
    gated: bool = False
    group: str = ""
    queue: str = ""


@dataclass(frozen=True, slots=True)
class Sight:
    """The cluster at one moment, `now` in seconds since 1970 by the apiserver's clock.

    An `Unseen` replaces what the caller may not read; what does not exist is None, or absent from a tuple or mapping.
    """

    now: float
    kubernetes: str
    namespace: str
    installations: tuple[Installation, ...]
    deployments: tuple[Deployment, ...] | Unseen
    mutating: tuple[WebhookConfiguration, ...] | Unseen
    validating: tuple[WebhookConfiguration, ...] | Unseen
    secret: Mapping[str, str] | Unseen | None
    lease: Lease | Unseen | None
    policies: tuple[Policy, ...] | Unseen
    bindings: tuple[Binding, ...] | Unseen
    accounts: tuple[Account, ...] | Unseen
    served: Mapping[str, frozenset[str]] | Unseen
    queues: tuple[QueueSeen, ...] | Unseen
    members: tuple[GangMember, ...] | Unseen
    groups: tuple[Group, ...] | Unseen
    pod_answer: ProbeAnswer | Unseen
    job_answer: ProbeAnswer | Unseen
    kueue: Mapping[str, str] | Unseen = field(default_factory=dict)

    @property
    def installation(self) -> Installation | None:
        """The installation that is checked: the first, when there are several."""
        return self.installations[0] if self.installations else None


def flag(words: tuple[str, ...], name: str) -> str | None:
    """The value of a flag on a command line, the last where it stands twice; "" without a value, None without it."""
    found = None
    for at, word in enumerate(words):
        for dashes in (f"--{name}", f"-{name}"):
            if word.startswith(f"{dashes}="):
                found = word[len(dashes) + 1 :]
            elif word == dashes:
                after = words[at + 1] if at + 1 < len(words) else ""
                found = "" if after.startswith("-") else after
    return found
