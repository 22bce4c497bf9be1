"""The common model of all kinds of workload, and the interface that a family file implements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from muster.model.findings import Finding
from muster.model.objects import HasMetadata, InvalidObjectError, LocalObject, ObjectMeta, ResourceList
from muster.model.pods import Pod, PodTemplate, TemplateMeta
from muster.model.resource import Resource
from muster.model.topology import Topology

_MULTI_KUEUE = "kueue.x-k8s.io/multikueue"
_WORKLOAD = "metadata"
_TEMPLATE = "spec.template.metadata"


class SchedulingPolicy(LocalObject, frozen=True):
    """`spec.runPolicy.schedulingPolicy` of the Kubeflow jobs."""

    queue: str = ""
    priority_class: str = ""
    min_available: int | None = None
    min_resources: ResourceList | None = None
    schedule_timeout_seconds: int | None = None


_NO_POLICY = SchedulingPolicy()
Decoded = HasMetadata
"""A decoded workload of any kind, as the stores keep it."""


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """The bounds of an autoscaler for the pods of a role, and the path of the field that sets them."""

    most: int
    path: str


@dataclass(frozen=True, slots=True)
class Unit:
    """A number of pods of a role that are useful only together, and the label whose value groups them."""

    pods: int
    label: str


@dataclass(frozen=True, slots=True)
class RoleSpec:
    """A group of equal pods as the workload describes it.

    A gang waits for all pods of its minimum. For pods that the operator creates only after others run, there are:

    - a whole role comes in a later wave, and waits for resources then: `of_wave(now=False)` (`together`, no minimum);
    - a part of the role comes when the first pods of it have nodes, and its resources are reserved from the beginning:
      `made_first` and `of_wave(now=True)` (the first pods are the minimum, the others `reserved`);
    - the role comes when the others run: no minimum, all of it `reserved`, and a `group` with the others;
    - a role like that which must never wait: `gated` is False;
    - an autoscaler adds them: the minimum is what it keeps at least, and `grows`.
    """

    name: str
    """Its name, in small letters."""
    replicas: int
    """The number of pods that the operator makes."""
    minimum: int
    """The number of them that the workload needs to start."""
    template: PodTemplate
    """The pod template."""
    path: str
    """The path of the template's spec in the manifest."""
    leads: bool = False
    """True if the role comes first among equals: head, master, launcher."""
    gated: bool = True
    """True if its pods are held; pods that come when the gang runs must never wait."""
    reserved: int = 0
    """The number of pods beyond `minimum` that count in the needs of the gang from the beginning."""
    together: bool = False
    """True if its pods, which come in a later wave, start together or not at all."""
    grows: bool = False
    """True if an autoscaler adds pods to it."""
    growth: Autoscaling | None = None
    """The bounds of that autoscaler, where it has any."""
    made_first: int = 0
    """The number of pods that are made first; the others follow when these have nodes. 0 if all are made at once."""
    runs_with: int = 0
    """The roles that must be ready before its pods are made, and hold their room when these come: a bit for each.

    Bit n is the role in place n; the names of each would be as many as all roles, for each of them.
    """
    group: int = 0
    """The group of roles that run at the same time: the first to start requests the room of all; 0 for none."""
    unit: Unit | None = None
    """The units in which its pods start beyond the minimum; None if each is useful by itself."""
    done: int = 0
    """The number of its pods that have succeeded and are not made again, if its operator reports it."""
    added: int = 0
    """The number of init containers at the end of `template` that its operator adds: no manifest has them."""

    @property
    def makes_pods(self) -> bool:
        """True if pods of it are still to be made, or an autoscaler may make some."""
        return self.replicas > self.done or (self.growth is not None and self.growth.most > 0)

    def of_wave(self, *, now: bool, joins: bool = False) -> RoleSpec:
        """Return the role as one of the wave that starts `now`, or of a later one, which joins the gang.

        With `joins` it comes when others of that wave run.
        """
        first = 0 if joins else self.made_first or self.replicas
        return replace(
            self, minimum=first if now else 0, reserved=self.replicas - first if now else 0, together=not now
        )


@dataclass(frozen=True, slots=True)
class TimeLimit:
    """A time limit of the workload by its operator, which runs while its gang waits.

    :ivar path: the path of the field that sets it, and :ivar text: its value.
    :ivar since: its start (seconds of the wall clock); None if that is not known.
    :ivar seconds: its length.
    :ivar frees_after: the seconds from its end until the workload's pods are deleted; None if they are not.
    :ivar exact: False if the operator looks at its end only when something else happens.
    :ivar role: the role whose first pod is made when it begins; "" if the operator's status has its start.
    """

    path: str
    text: str
    since: float | None = None
    seconds: float = 0.0
    frees_after: float | None = None
    exact: bool = True
    role: str = ""

    @property
    def ends(self) -> float | None:
        """The end of the limit, in seconds of the wall clock."""
        return None if self.since is None else self.since + self.seconds

    @property
    def near(self) -> float | None:
        """The time from which on the end is near."""
        return None if self.ends is None else nearly_over(self.ends, self.seconds)


def nearly_over(ends: float, seconds: float) -> float:
    """Return when the end of a limit of so many seconds is near: in its last tenth, but a minute at least."""
    return ends - max(seconds / 10, 60.0)


@dataclass(frozen=True, slots=True)
class Workload:
    """One workload of any kind."""

    kind: Kind
    """Its kind."""
    api_version: str
    """The `apiVersion` of its manifest."""
    metadata: ObjectMeta
    """Its metadata; for kinds that opt in on the pod template, the template's labels and annotations go before."""
    pod_group: str = ""
    """The name of its PodGroup."""
    roles: tuple[RoleSpec, ...] = ()
    """Its groups of equal pods, leaders first."""
    policy: SchedulingPolicy = _NO_POLICY
    """The user's scheduling policy, which is not in labels."""
    policy_path: str = ""
    """The path of that policy."""
    priority_field: str = "priorityClass"
    """The field of the priority class there."""
    priority_of_pods: bool = True
    """True if the gang has the priority of its pods if none is set for the workload."""
    suspended: bool = False
    """True if it is suspended: it holds nothing and waits for nothing."""
    finished: bool = False
    """True if it has ended; pods of it may still run."""
    failed: bool = False
    """True if it has ended without success."""
    lasts: bool = False
    """True if it does not end by itself: its pods stay until it is deleted."""
    template: TemplateMeta | None = None
    """The metadata of the pod template, for kinds that opt in there."""
    topology: Topology | None = None
    """The network topology that it requests by fields; labels take precedence."""
    scheduler: str = ""
    """The scheduler that it names at `policy_path` for all its pods."""
    findings: tuple[Finding, ...] = ()
    """Findings for its user: where it is handled differently from its manifest."""
    time_limits: tuple[TimeLimit, ...] = ()
    """The time limits that run while its gang waits."""
    remaining_roles: tuple[RoleSpec, ...] = ()
    """The roles that are left, if a part is done for good; empty if nothing is done yet."""
    needs: int = 0
    """The number of pods with which the workload can work by its own fields; 0 if these set none."""
    outside_gang: tuple[RoleSpec, ...] = ()
    """Pods that its operator makes for it outside the gang, such as the submitter of a RayJob."""
    managed_by: str = ""
    """The controller that it names to make its pods, in place of its operator; "" for none."""
    upgrade_doubles: str = ""
    """The field by which a second gang like this one runs at the same time during an upgrade; "" for none."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return self.metadata.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return self.metadata.annotations

    def label_path(self, key: str) -> str:
        """Return the path of a label of the workload, which may be missing."""
        on_template = self.template and (key in self.template.labels or key not in self.metadata.labels)
        return f"{_TEMPLATE if on_template else _WORKLOAD}.labels[{key}]"

    def annotation_path(self, key: str) -> str:
        """Return the path of an annotation of the workload, which may be missing."""
        on_template = self.template and (key in self.template.annotations or key not in self.metadata.annotations)
        return f"{_TEMPLATE if on_template else _WORKLOAD}.annotations[{key}]"

    @property
    def deadline(self) -> TimeLimit | None:
        """The time limit that ends first, among the limits with a known end."""
        known = [(limit.ends, limit) for limit in self.time_limits if limit.ends is not None]
        return min(known, key=lambda one: one[0])[1] if known else None

    @property
    def elsewhere(self) -> bool:
        """True if its pods are made in another cluster: its operator leaves it to MultiKueue."""
        return self.managed_by == _MULTI_KUEUE

    @property
    def active(self) -> bool:
        """True if the workload runs or wants to run."""
        return not (self.suspended or self.finished or self.metadata.deletion_timestamp)

    def role(self, name: str) -> RoleSpec | None:
        """Return the role of that name."""
        return next((role for role in self.roles if role.name == name), None)


@dataclass(frozen=True, slots=True)
class IntentSource:
    """Labels and annotations that set the intent of a workload; `where` names their object and field."""

    where: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]

    def label_path(self, key: str) -> str:
        """Return the path of a label."""
        return f"{self.where}.labels[{key}]"

    def annotation_path(self, key: str) -> str:
        """Return the path of an annotation."""
        return f"{self.where}.annotations[{key}]"


@dataclass(frozen=True, slots=True)
class Source:
    """A kind of object that workloads are made from, and the type that it is decoded as."""

    resource: Resource
    decoded: type[Any]


@dataclass(frozen=True, slots=True)
class Reference:
    """One object that a workload is made from; `namespace` is "" for cluster-scoped kinds."""

    source: Source
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The other object that holds a part of a workload, and the functions that join both.

    `of` returns the reference to that object, which is of one of the `sources`; for an unknown kind None, and `read`
    raises. `joined` puts both together, decoded; the other functions of the kind take the result. `path` is the field
    of the workload that refers to the object.
    """

    sources: tuple[Source, ...]
    path: str
    of: Callable[[Any], Reference | None]
    joined: Callable[[Any, Any], Decoded]
    makes: Kind
    """The kind of the object that the operator makes of both, under the workload's name, and does not change again."""
    as_made: Callable[[Any, Any], Decoded]
    """Joins both with the object made of them, which counts from then on, even if the other object changes."""


def label_of(key: str) -> Callable[[Pod], str | None]:
    """Return `Kind.role_of` for pods whose label names their role."""
    return lambda pod: pod.metadata.labels.get(key)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Kind:
    """One kind of workload: its names at the apiserver, and the functions that read its manifests and pods.

    `read` raises InvalidObjectError when the manifest cannot be a gang.
    """

    group: str
    """Its API group; "" for the core group."""
    versions: tuple[str, ...]
    """The versions that muster reads, the preferred one first."""
    kind: str
    """Its `kind`."""
    plural: str
    """Its resource name."""
    pod_label: str
    """The label by which the operator marks the workload's pods.

    With `pods_of_jobs` its value must be the workload's name.
    """
    pod_group_name: Callable[[str], str] = lambda name: name
    """Returns the name of the PodGroup for a workload's name."""
    decoded: type[Any]
    """The type as which its manifests are decoded."""
    policy: Callable[[Any], SchedulingPolicy] = lambda _: _NO_POLICY
    """Returns the user's scheduling policy, which is not in labels, of a decoded workload."""
    read: Callable[[Any], Workload]
    """Returns the workload of a decoded one; for a kind without a gang of its own, the workload that it makes.

    A valid manifest without a gang (a RayJob that selects a cluster, a Job whose template names no gang) is a workload
    without `roles` and with `pod_group` "": it and its pods are left alone.
    """
    role_of: Callable[[Pod], str | None]
    """Returns the role of a pod that the workload controls; None for a pod that is no member.

    It reads only labels and fields that the pod has from its template: muster may see it before webhooks of the
    operator, which add labels of their own.
    """
    pod_labels: Callable[[Workload, RoleSpec], Mapping[str, str]]
    """Returns the labels that the operator puts on a role's pods; `role_of` a pod with them is that role."""
    longest_name: int = 0
    """The most characters of a name with which its operator makes pods; it is a DNS label then. 0 for any name."""
    maker: str = ""
    """The maker of its pods, by its name in documents: letters alone, and one name for each `pod_label`.

    In small letters it names the webhook that sees these pods, `<maker>.pods.muster.dev`; "" for kinds without watched
    pods of an operator.
    """
    owns_gang: bool = True
    """True if it has a gang of its own; otherwise it makes a workload that has one."""
    owns_pod_group: bool = True
    """True if the workload owns its PodGroup; plain gangs are known by their pods alone."""
    in_waves: bool = False
    """True if its roles may come in waves; the first wave is the gang."""
    pods_of_jobs: bool = False
    """True if batch Jobs of the workload control some of its pods."""
    hears_touches: bool = True
    """True if the operator tries again at once when the workload, or such a Job, is touched."""
    scaled: Callable[[Any, int], Any] | None = None
    """Returns the decoded workload with another number in its scale subresource; None for kinds without one."""
    carried_on_by: Callable[[Any], tuple[str, ...]] = lambda _: ()
    """Returns the names of workloads that carry on its work; the first that exists takes its place in the queue."""
    intent_metadata: Callable[[Any], ObjectMeta] = attrgetter("metadata")
    """Returns the metadata of a decoded one by which it asks for gang scheduling."""
    intent_sources: Callable[[Any], tuple[IntentSource, ...]] = lambda _: ()
    """Returns the sources of a workload's intent after its metadata and before its owners, the nearest first."""
    origin: Origin | None = None
    """The other object that is needed to read a workload; None for kinds that need none."""

    @property
    def resource(self) -> Resource:
        """Its resource at the apiserver, in the version that muster reads."""
        return Resource(self.group, self.versions[0], self.plural, self.kind)

    def whole(
        self, decoded: Decoded, origin: Callable[[Reference], object | None], made: Decoded | None = None
    ) -> Decoded:
        """Return the workload joined with its origin, found by `origin`, and with the object `made` of both.

        Raises InvalidObjectError if that does not exist.
        """
        reference = self.origin.of(decoded) if self.origin else None
        if self.origin is None or reference is None:
            return decoded
        found = origin(reference)
        if found is not None:
            joined = self.origin.joined(decoded, found)
            return joined if made is None else self.origin.as_made(joined, made)
        place = f' in namespace "{reference.namespace}"' if reference.namespace else ""
        raise InvalidObjectError(
            self.origin.path,
            f'{reference.source.resource.kind} "{reference.name}" is not known{place}: the pods cannot be counted; '
            "create it first (for muster plan: add its manifest to the input, or use --cluster)",
        )
