"""What every kind of workload is reduced to, and the interface that a family file fills in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from muster.model.objects import (
    InvalidObjectError,
    LocalObject,
    ObjectMeta,
    Pod,
    PodTemplate,
    ResourceList,
    TemplateMeta,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from muster.model.findings import Finding
    from muster.model.topology import Topology

__all__ = [
    "Decoded",
    "Growth",
    "Kind",
    "Origin",
    "Reference",
    "RoleSpec",
    "SchedulingPolicy",
    "Source",
    "TimeLimit",
    "Voice",
    "Workload",
    "time_limits_of",
]


_WORKLOAD = "metadata"
_TEMPLATE = "spec.template.metadata"


class SchedulingPolicy(LocalObject, frozen=True):
    """`spec.runPolicy.schedulingPolicy` of the Kubeflow jobs."""

    queue: str = ""
    priority_class: str = ""
    min_available: int | None = None
    min_resources: ResourceList | None = None
    schedule_timeout_seconds: int | None = None


class Decoded(Protocol):
    """A decoded workload of any kind, as the stores keep it."""

    @property
    def metadata(self) -> ObjectMeta:
        """Its metadata."""


@dataclass(frozen=True, slots=True)
class Growth:
    """To how many pods an autoscaler may take a role, and where that is said."""

    most: int
    path: str


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """A group of equal pods as the workload describes it.

    `replicas` is how many pods the operator makes, `minimum` how many of them the workload cannot start without;
    `leads` marks the role that comes first among equals: head, master, launcher. `path` is where the template stands.
    A role that is not `gated` has pods that come later, when the gang runs, and must never wait; `reserved` of them
    count in what the gang needs from the beginning, so that their room is there when they come. The pods of one that
    comes later as a whole, in another wave, start `together` or not at all. A role that `grows` gets more pods without
    anybody's asking: an autoscaler works on it, within its `growth` where it has bounds. Where so many of its pods are
    `made_first`, the others are made when these have nodes; 0 where all are made at once.
    """

    name: str
    replicas: int
    minimum: int
    template: PodTemplate
    path: str
    leads: bool = False
    gated: bool = True
    reserved: int = 0
    together: bool = False
    grows: bool = False
    growth: Growth | None = None
    made_first: int = 0

    def of_wave(self, *, now: bool) -> RoleSpec:
        """The role as one of the wave that starts `now`, or of a later one, which joins the gang."""
        first = self.made_first or self.replicas
        return replace(
            self, minimum=first if now else 0, reserved=self.replicas - first if now else 0, together=not now
        )


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """A time after which the operator gives the workload up, and which runs while its gang waits.

    It stands at `path` as `text`; `since` is when it began (seconds of the wall clock, None where that is not known)
    and `seconds` how long it is.
    """

    path: str
    text: str
    since: float | None = None
    seconds: float = 0.0

    @property
    def ends(self) -> float | None:
        """When the workload is given up, in seconds of the wall clock."""
        return None if self.since is None else self.since + self.seconds

    @property
    def near(self) -> float | None:
        """From when on the end is near: the last tenth of the time, but a minute at least."""
        return None if self.ends is None else self.ends - max(self.seconds / 10, 60.0)


def time_limits_of(seconds: int | None, path: str) -> tuple[TimeLimit, ...]:
    """The limit of a number of seconds that stands at `path`; none where there is no number."""
    return () if seconds is None else (TimeLimit(path, f"{seconds} s"),)


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload, whatever its kind.

    `policy` stands at `policy_path`, its priority class in `priority_field` there; where nobody named one for the
    workload, its gang has that of the pods, unless `priority_of_pods` is False.
    `template` is what the pod template says of itself, for kinds that opt in there: it goes before what the workload's
    own metadata says, and is part of `metadata`.
    `suspended` and `finished` workloads hold nothing and wait for nothing; a finished one may still have running pods.
    `topology` is what it asks for otherwise than by labels, which go before it; `scheduler` is the one that it names at
    `policy_path` for all its pods. `findings` tell the user what is done otherwise than the manifest says.
    `time_limits` are those that run while the gang waits. `left` are the roles of what is left to do, where a part is
    done for good: what starts, or starts again, from here. Nothing where nothing is done yet. `needs` is with how many
    pods the workload says that it can work at all, 0 where it does not say; `twice` is the field by which a second gang
    like this one runs beside it for a while.
    """

    kind: Kind
    api_version: str
    metadata: ObjectMeta
    pod_group: str
    roles: tuple[RoleSpec, ...]
    policy: SchedulingPolicy
    policy_path: str = ""
    priority_field: str = "priorityClass"
    priority_of_pods: bool = True
    suspended: bool = False
    finished: bool = False
    template: TemplateMeta | None = None
    topology: Topology | None = None
    scheduler: str = ""
    findings: tuple[Finding, ...] = ()
    time_limits: tuple[TimeLimit, ...] = ()
    remaining_roles: tuple[RoleSpec, ...] = ()
    needs: int = 0
    upgrade_doubles: str = ""

    def label_path(self, key: str) -> str:
        """Where a label of the workload stands, or should stand when it is missing."""
        on_template = self.template and (key in self.template.labels or key not in self.metadata.labels)
        return f"{_TEMPLATE if on_template else _WORKLOAD}.labels[{key}]"

    def annotation_path(self, key: str) -> str:
        """Where an annotation of the workload stands, or should stand when it is missing."""
        on_template = self.template and (key in self.template.annotations or key not in self.metadata.annotations)
        return f"{_TEMPLATE if on_template else _WORKLOAD}.annotations[{key}]"

    @property
    def deadline(self) -> TimeLimit | None:
        """The time limit that ends first, of those of which that is known."""
        known = [(limit.ends, limit) for limit in self.time_limits if limit.ends is not None]
        return min(known, key=lambda one: one[0])[1] if known else None

    @property
    def deleting(self) -> bool:
        """Whether the workload is being deleted."""
        return bool(self.metadata.deletion_timestamp)

    @property
    def active(self) -> bool:
        """Whether the workload runs or wants to run."""
        return not (self.suspended or self.finished or self.deleting)

    def role(self, name: str) -> RoleSpec | None:
        """The role of that name."""
        return next((role for role in self.roles if role.name == name), None)


@dataclass(frozen=True, slots=True)
class Voice:
    """Labels and annotations that speak for a workload; `where` says in which field of what object they stand."""

    where: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    def label_path(self, key: str) -> str:
        """Where a label stands."""
        return f"{self.where}.labels[{key}]"

    def annotation_path(self, key: str) -> str:
        """Where an annotation stands."""
        return f"{self.where}.annotations[{key}]"


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of object that workloads are made from, and the type that it is decoded as."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    decoded: type[Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """One object that a workload is made from; `namespace` is "" where its kind has none."""

    source: Source
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Origin:
    """How a workload is read of which only a part stands in its own manifest, and the rest in another object.

    `of` names that object, which is of one of the `sources`; None where there is no such kind, and then `read` says so.
    `joined` puts both together, decoded: the other functions of the kind take that. `path` is where the workload
    refers to the object.
    """

    sources: tuple[Source, ...]
    path: str
    of: Callable[[Any], Reference | None]
    joined: Callable[[Any, Any], Decoded]


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """One kind of workload: how it is named at the apiserver and how its manifests and pods are read.

    `pod_group_name` gives the PodGroup's name for a workload's; `policy` what the user wrote of scheduling beside
    labels. `read` raises InvalidObjectError when the manifest cannot be a gang. `role_of` gives the role of a pod that
    the workload controls, or None for a pod that is no member; `pod_labels` are what the operator puts on a role's pod.
    A kind without a gang of its own (`owns_gang`) makes a workload that has one; `read` gives that workload. A PodGroup
    is owned by its workload, but for gangs that are known by their pods alone (`owns_pod_group`). `pods_of_jobs` tells
    that batch Jobs stand between the workload and some of its pods, whose `pod_label` then has the workload's name.
    `scaled` is the workload with another number in its scale subresource, for kinds that have one.
    `hears_touches` tells that who makes the pods tries again at once when the workload, or such a Job, is touched.
    `carried_on_by` names the workloads that carry on the work of one without a gang of its own: the first of them that
    is there has its place in the line. `voices` are what speaks for a workload beside its metadata and before its
    owners, the nearest first; `origin` is for kinds whose workloads cannot be read alone.
    """

    group: str
    versions: tuple[str, ...]
    kind: str
    plural: str
    pod_label: str
    pod_group_name: Callable[[str], str]
    decoded: type[Any]
    policy: Callable[[Any], SchedulingPolicy]
    read: Callable[[Any], Workload]
    role_of: Callable[[Pod], str | None]
    pod_labels: Callable[[Workload, RoleSpec], Mapping[str, str]]
    owns_gang: bool = True
    owns_pod_group: bool = True
    pods_of_jobs: bool = False
    hears_touches: bool = True
    scaled: Callable[[Any, int], Any] | None = None
    carried_on_by: Callable[[Any], tuple[str, ...]] = lambda _: ()
    voices: Callable[[Any], tuple[Voice, ...]] = lambda _: ()
    origin: Origin | None = None

    def whole(self, decoded: Decoded, origin: Callable[[Reference], object | None]) -> Decoded:
        """The workload together with what it is made from, which `origin` finds.

        Raises InvalidObjectError where that is not there.
        """
        reference = self.origin.of(decoded) if self.origin else None
        if self.origin is None or reference is None:
            return decoded
        found = origin(reference)
        if found is not None:
            return self.origin.joined(decoded, found)
        place = f' in namespace "{reference.namespace}"' if reference.namespace else ""
        raise InvalidObjectError(
            self.origin.path,
            f'{reference.source.kind} "{reference.name}" is not known{place}: the pods cannot be counted; '
            "create it first (for muster plan: add its manifest to the input, or use --cluster)",
        )
