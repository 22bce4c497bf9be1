"""One gang as it stands in the cluster, as a value; `muster.cluster.observe` puts it together from the stores."""

import enum
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, field
from operator import attrgetter
from typing import NamedTuple

from muster.admitters import Admitter
from muster.admitters.kueue import KueueAnswer
from muster.gangs.intent import Intent, requeue_after
from muster.gangs.pod_patch import is_free
from muster.gangs.roles import Gang
from muster.model import names
from muster.model.modes import GateMode
from muster.model.objects import OwnerReference, PodGroup, PodGroupSpec
from muster.model.pods import Pod
from muster.model.times import seconds_of
from muster.queueing.ledger import GangKey
from muster.resources.amounts import Resources
from muster.workloads import PLAIN_POD, Decoded, Kind, Workload
from muster.workloads.model import TimeLimit
from muster.workloads.plain import run_of

# A gang may have thousands of members, and is reconciled for each of them.
_GATED = attrgetter("gated")


class Pause(enum.Enum):
    """The new members of an admitted gang that wait: none, those beyond the minimums of its roles, or all."""

    NONE = enum.auto()
    SURPLUS = enum.auto()
    ALL = enum.auto()


@dataclass(frozen=True, slots=True)
class AdmissionRecord:
    """The decisions on a gang, each an annotation of its PodGroup (`names.RECORD`); "" for what was not decided."""

    admitted: str = ""
    """The UID of the workload whose gang is admitted."""
    admitted_at: str = ""
    """The time of its admission (RFC 3339)."""
    passed_since: str = ""
    """The time of its first bypass by a smaller gang (RFC 3339)."""
    passed_in: str = ""
    """The queue in which it was passed."""
    requeued_at: str = ""
    """The time at which it last gave its claim back (RFC 3339)."""
    admitted_for: str = ""
    """With which minimums, and in which queue, it was admitted (`muster.planning.record`)."""
    admitter: str = ""
    """The admitter that has admitted it; "" for the ledger."""
    drain_after: str = ""
    """The time after its first bypass at which its queue drains for it, where the queue sets none."""
    runs_about: str = field(default="", compare=False)
    """The run times of former gangs, by which its own is estimated. New ones alone are nothing to write."""

    @property
    def annotations(self) -> dict[str, str]:
        """As annotations of the PodGroup."""
        return {name: text for name, text in zip(names.RECORD, astuple(self), strict=True) if text}


class Member(NamedTuple):
    """A living pod of the gang."""

    pod: Pod
    role: str
    """The role of the workload to which the pod belongs."""
    requests: Resources
    """The requests of the pod, as the scheduler counts them."""
    gated: bool
    """True if muster's gate is on it."""
    unready: str = ""
    """The reason why it has a node and is not ready (`muster.planning.expectations.unready`); "" for any other."""


@dataclass(frozen=True, slots=True)
class Above:
    """The owners above a workload.

    :ivar makers: references to the objects that control it, the nearest first.
    :ivar since: when the work was first asked for (RFC 3339), if the workload is one more try of it; "" where it is the
        first.
    :ivar time_limits: the limits of the RayJob that made it.
    :ivar leaves: whether that RayJob leaves it there when it has ended.
    """

    makers: tuple[OwnerReference, ...] = ()
    since: str = ""
    time_limits: tuple[TimeLimit, ...] = ()
    leaves: bool = False


class OnHold(NamedTuple):
    """An object with the annotation: the workload, an owner of it, or a pod of a gang of plain pods."""

    kind: str
    namespace: str
    name: str

    @property
    def sentence(self) -> str:
        """That it is on hold, by what, and how to resume it."""
        resume = f"muster resume {self.kind.lower()}/{self.name} -n {self.namespace}"
        return f'{self.kind} "{self.name}" is on hold (its annotation {names.HOLD}); to resume it: {resume}'


@dataclass(frozen=True, slots=True)
class GangSnapshot:
    """A gang as the stores show it."""

    key: GangKey
    """The namespace and name of its PodGroup."""
    pod_group: PodGroup | None
    """The PodGroup of that name, muster's or not; None where there is none."""
    members: tuple[Member, ...]
    """Its living pods."""
    kind: Kind | None = None
    """The kind of its workload; None where no workload is known."""
    decoded: Decoded | None = None
    """Its workload; None where there is none: the members have outlived it."""
    workload: Workload | None = None
    """The workload as muster reads it; None where it asks for nothing, or `error` says why it cannot be read."""
    intent: Intent | None = None
    """Scheduler, queue and priority that its user wants; None where the workload is not managed."""
    gang: Gang | None = None
    """The gang that the workload asks for; None where the workload is not managed."""
    error: str = ""
    """The reason why the workload makes no gang; "" where it makes one."""
    placed: Resources = field(default_factory=dict)
    """Held on nodes by pods that others bound to the PodGroup: all of a foreign PodGroup, else non-members."""
    running: Resources = field(default_factory=dict)
    """The requests of its pods that really run and are no members."""
    former: Resources = field(default_factory=dict)
    """The requests of running pods of a former workload of the same name."""
    former_queue: str = ""
    """The queue in which they hold it."""
    leaving: Resources = field(default_factory=dict)
    """The requests of its own pods that are being deleted."""
    former_until: float | None = None
    """The time by which all of these, and what `left`, are gone (seconds of the wall clock); None for not known."""
    leaving_until: float | None = None
    """The time by which `leaving` is gone."""
    left: Resources = field(default_factory=dict)
    """The requests of pods of its PodGroup that are no members any more, or have been terminating for too long."""
    leaving_queue: str = ""
    """The queue in which they hold it: they may outlive workload and PodGroup."""
    gate: GateMode = GateMode.QUEUE
    """The gate mode where its queue sets none."""
    unmanaged_pods: tuple[Pod, ...] = ()
    """The workload's living pods that came without muster."""
    ended: tuple[str, ...] = ()
    """The roles of its finished pods, one entry for each pod."""
    rivals: tuple[tuple[Kind, Decoded], ...] = ()
    """Other living workloads whose pods are bound to a PodGroup of this name."""
    next_run: tuple[Pod, ...] = ()
    """The held pods of other Jobs that name the same gang of plain pods, and wait until it has ended."""
    written_spec: PodGroupSpec | None = None
    """The spec that this leader last wrote into the PodGroup, whatever others made of it; None before that."""
    pause: Pause = Pause.NONE
    """The new members that wait because the scheduler has just evicted others."""
    follows: bool = False
    """True if the workload takes the place of an older one that is still there."""
    asked_class: str = ""
    """The priority class that the workload asks for outside its templates; "" where it asks for none."""
    withdrawn: bool = False
    """True if the workload asks for nothing any more while pods are held: `intent` is what it asked for last."""
    namespace: Mapping[str, str] = field(default_factory=dict)
    """The labels of its namespace, by which queues are open to it."""
    admitter: Admitter = Admitter.LEDGER
    """The admitter that admits it, or has admitted it."""
    elastic_quotas: bool = False
    """True if ElasticQuotas bound the gangs whose scheduler enforces them."""
    kueue: KueueAnswer | None = None
    """Kueue's answer; None where Kueue is not asked."""
    above: Above = field(default_factory=Above)
    """The owners of the workload, and when its work was first asked for."""
    priorities: Mapping[str, int] = field(default_factory=dict, compare=False, repr=False)
    """The value of each PriorityClass, by name; under "" what a pod without a class gets."""
    away: Collection[str] = frozenset()
    """The nodes that are known to take no pods, whether members are there or not."""
    on_hold_by: OnHold | None = None
    """The object that has put it on hold; None where it may start when it is its turn."""
    believed: bool = True
    """True if the PodGroup's mark counts also while no member is open."""

    @property
    def ours(self) -> bool:
        """True if the PodGroup is muster's."""
        return self.pod_group is not None and self.pod_group.metadata.by_muster

    @property
    def group_owner(self) -> OwnerReference | None:
        """The workload for which the PodGroup was made."""
        return self.pod_group.metadata.controller if self.pod_group else None

    @property
    def uid(self) -> str:
        """The UID that admission records: the workload's; for plain pods their Job's, or else their PodGroup's."""
        if self.kind is not None and not self.kind.owns_pod_group:
            run = run_of(self.decoded) if isinstance(self.decoded, Pod) else ""
            return run or (self.pod_group.metadata.uid if self.pod_group else "")
        return self.decoded.metadata.uid if self.decoded else ""

    @property
    def stale(self) -> bool:
        """True if the PodGroup is of another workload of the name; a mark counts more than an owner reference."""
        if self.marked_for and self.marked_for == self.uid:
            return False
        owner = self.group_owner
        if self.kind is not None and not self.kind.owns_pod_group:
            return owner is not None
        return owner is None or owner.uid != self.uid

    @property
    def record(self) -> AdmissionRecord:
        """The decisions that stand on the PodGroup."""
        annotations = self.pod_group.metadata.annotations if self.pod_group else {}
        return AdmissionRecord(*(annotations.get(name, "") for name in names.RECORD))

    @property
    def marked_for(self) -> str:
        """The UID of the workload that the PodGroup says is admitted; "" where that is not believed."""
        uid = self.pod_group.metadata.annotations.get(names.ADMITTED, "") if self.pod_group else ""
        return uid if uid and (self.believed or not all(map(_GATED, self.members))) else ""

    @property
    def has_gated_members(self) -> bool:
        """True if muster's gate is on a member."""
        return any(map(_GATED, self.members))

    @property
    def open(self) -> tuple[Member, ...]:
        """The members that no gate of muster's holds."""
        return tuple([member for member in self.members if not member.gated])

    @property
    def unplaced(self) -> bool:
        """True if a member that no gate of muster's holds has no node."""
        return any(not member.gated and not member.pod.spec.node_name for member in self.members)

    @property
    def left_alone(self) -> bool:
        """True if pods that came without muster keep it out of muster's hands.

        Where members are held, only older pods count: otherwise one more pod would release all of them.
        """
        return bool(self.unmanaged_pods and (not self.has_gated_members or _came_first(self)))

    @property
    def placed_nowhere(self) -> bool:
        """True if no member has a node."""
        return not any(member.pod.spec.node_name for member in self.members)

    @property
    def since(self) -> float | None:
        """The creation time of its first member, in seconds of the wall clock; None without members."""
        created = (seconds_of(member.pod.metadata.creation_timestamp) for member in self.members)
        return min((moment for moment in created if moment is not None), default=None)

    @property
    def requeue_delay(self) -> float | None:
        """The seconds after which the user wants a gang without nodes to queue again; None where the user sets none.

        Also None where batch Jobs make the pods: a Job counts each deleted pod as failed; and where Kueue admits, which
        has a time limit of its own.
        """
        if self.decoded is None or self.kind is None or self.kind.pods_of_jobs or self.admitter is Admitter.KUEUE:
            return None
        meta = self.decoded.metadata
        if meta.controller is not None and (meta.controller.api_version, meta.controller.kind) == ("batch/v1", "Job"):
            return None
        asked = requeue_after(meta.annotations.get(names.REQUEUE_AFTER, ""))
        return asked.seconds if asked is not None else None

    @property
    def requeues_unready(self) -> bool:
        """True if pods count for that which have nodes and are not ready, as the workload and all of its pods say."""
        if self.requeue_delay is None or self.intent is None or not self.intent.requeue_after:
            return False
        requested = (
            one.pod.metadata.annotations.get(names.REQUEUE_AFTER, "") for one in self.members if one.pod.spec.node_name
        )
        return all(asked is not None and asked.not_ready for asked in map(requeue_after, requested))

    @property
    def short(self) -> bool:
        """True if the operator has made fewer pods than the workload asks for."""
        if self.gang is None or self.kind is PLAIN_POD:
            return False
        # Roles without a minimum may come later: in another wave of a JobSet.
        roles = [role for role in self.gang.roles if role.gated and role.minimum]
        there = Counter([member.role for member in self.members])
        in_two_steps = any(role.made_first for role in roles)
        placed = Counter([one.role for one in self.members if in_two_steps and one.pod.spec.node_name])
        due = sum(role.replicas if placed[role.name] >= role.awaited else role.awaited for role in roles)
        return sum(there[role.name] for role in roles) + len(self.ended) < due

    @property
    def assembled(self) -> bool:
        """True if all pods that the gang needs to start exist."""
        return self.gang is not None and all(
            sum(member.role == role.name for member in self.members) >= role.minimum for role in self.gang.roles
        )


def _came_first(snapshot: GangSnapshot) -> tuple[Pod, ...]:
    """The pods that came without muster before any member: the workload ran before muster managed it.

    Times are whole seconds. A pod of the same second as the first member counts as older where the webhook would
    otherwise have held it: the webhook never holds a pod without a role, of another scheduler, or with a node.
    """
    first = min((member.pod.metadata.creation_timestamp for member in snapshot.members), default=None)
    if first is None:
        return snapshot.unmanaged_pods
    return tuple(
        pod
        for pod in snapshot.unmanaged_pods
        if pod.metadata.creation_timestamp < first
        or (pod.metadata.creation_timestamp == first and _might_be_held(snapshot, pod))
    )


def _might_be_held(snapshot: GangSnapshot, pod: Pod) -> bool:
    role = snapshot.kind.role_of(pod) if snapshot.kind else None
    known = snapshot.gang is not None and role is not None and snapshot.gang.role(role) is not None
    scheduler = snapshot.intent.gang_scheduler if snapshot.intent else None
    return known and scheduler is not None and is_free(pod, scheduler)
