"""The state of a cluster as values: the only input of the checks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.cli.doctor.diagnosis import CannotCheckError, Unseen
from muster.cli.doctor.installed import AnyObject, Deployment, Installation, WebhookConfiguration
from muster.model.objects import Lease, Namespace, Object, PodGroup
from muster.model.pods import Pod
from muster.resources.elastic_quotas import ElasticQuota
from muster.schedulers import GangScheduler


class GroupSeen(NamedTuple):
    """A PodGroup, and the scheduler whose kind it is."""

    scheduler: GangScheduler
    group: PodGroup


@dataclass(frozen=True, slots=True)
class DryRun:
    """The answer to the dry run of a pod of a gang: `refusal` is the error of the apiserver, "" when it is admitted."""

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
    `members` are the pods of gangs and of other PodGroups, `probes` None unless the caller asks for them: they create
    objects.
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
    policies: tuple[Object, ...] | Unseen
    bindings: tuple[AnyObject, ...] | Unseen
    served: Mapping[str, frozenset[str]] | Unseen
    queues: tuple[AnyObject, ...] | Unseen
    members: tuple[Pod, ...] | Unseen
    groups: tuple[GroupSeen, ...] | Unseen
    pod_answer: DryRun | Unseen
    namespaces: tuple[Namespace, ...] | Unseen = ()
    elastic_quotas: tuple[ElasticQuota, ...] | Unseen = ()
    kueue: Mapping[str, str] | Unseen = field(default_factory=dict)
    probes: tuple[GangProbe | Unseen, ...] | None = None

    @property
    def installation(self) -> Installation | None:
        """The installation that is checked: the first, when there are several."""
        return self.installations[0] if self.installations else None

    @property
    def installed(self) -> Installation:
        """The same, for a check of an installation. Raises CannotCheckError where there is none."""
        if self.installation is None:
            raise CannotCheckError
        return self.installation
