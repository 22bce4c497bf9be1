"""The state of a cluster as values: the only input of the checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.cli.doctor.diagnosis import Unseen
    from muster.cli.doctor.installed import Installation, Right
    from muster.cli.doctor.objects import Binding, Deployment, Lease, QueueSeen, WebhookConfiguration
    from muster.model.objects import Namespace, PartialObjectMetadata
    from muster.resources.elastic_quotas import ElasticQuota
    from muster.schedulers import GangScheduler


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
    """A PodGroup of that scheduler; `state` and `message` are the annotations of muster.

    `name` is the name of its gang, which its pods have as well; `called` is the name of the PodGroup itself. `minimum`
    is how many pods start together.
    """

    namespace: str
    name: str
    created: float
    scheduler: GangScheduler
    called: str = ""
    minimum: int = 0
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
class GangProbe:
    """The result of a probe: a gang of two pods, one of them gated, and a plain pod that was created after them.

    `served` and `kept` are about the apiserver: whether it has the PodGroups, and keeps the group of a pod. The reasons
    are the scheduler's, `left` what the probe could not delete.
    """

    scheduler: str
    namespace: str
    served: bool = True
    kept: bool = True
    open_placed: bool = False
    plain_placed: bool = False
    open_reason: str = ""
    plain_reason: str = ""
    left: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sight:
    """The cluster at one moment, `now` in seconds since 1970 by the apiserver's clock.

    An `Unseen` replaces what the caller may not read; what does not exist is None, or absent from a tuple or mapping.
    `probes` is None unless the caller asks for them: they create objects.
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
    policies: tuple[PartialObjectMetadata, ...] | Unseen
    bindings: tuple[Binding, ...] | Unseen
    accounts: tuple[Account, ...] | Unseen
    served: Mapping[str, frozenset[str]] | Unseen
    queues: tuple[QueueSeen, ...] | Unseen
    members: tuple[GangMember, ...] | Unseen
    groups: tuple[Group, ...] | Unseen
    pod_answer: ProbeAnswer | Unseen
    job_answer: ProbeAnswer | Unseen
    namespaces: tuple[Namespace, ...] | Unseen = ()
    elastic_quotas: tuple[ElasticQuota, ...] | Unseen = ()
    kueue: Mapping[str, str] | Unseen = field(default_factory=dict)
    probes: tuple[GangProbe | Unseen, ...] | None = None

    @property
    def installation(self) -> Installation | None:
        """The installation that is checked: the first, when there are several."""
        return self.installations[0] if self.installations else None
