"""One gang as it stands in the cluster, as a value; `muster.observe.observing` puts it together from the stores."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from muster.gangs.pod_patch import is_free
from muster.model.modes import GateMode
from muster.model.names import (
    ADMITTED,
    ADMITTED_AT,
    ADMITTED_FOR,
    MANAGED_BY,
    MUSTER,
    PASSED_IN,
    PASSED_SINCE,
    REQUEUE_AFTER,
    REQUEUED_AT,
)
from muster.model.times import duration_of, seconds_of
from muster.observe.users_objects import Above
from muster.schedulers import SCHEDULERS
from muster.workloads import PLAIN_POD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from muster.gangs.gang import Gang
    from muster.gangs.intent import Intent
    from muster.model.objects import OwnerReference, Pod, PodGroup, PodGroupSpec
    from muster.queueing.ledger import GangKey
    from muster.resources.amounts import Resources
    from muster.workloads import Decoded, Kind, Workload

__all__ = ["Mark", "Member", "Pause", "View"]


class Pause(enum.Enum):
    """Which new members of an admitted gang wait: none, those beyond the minimums of its roles, or all."""

    NONE = enum.auto()
    SURPLUS = enum.auto()
    ALL = enum.auto()


@dataclass(frozen=True, slots=True)
class Mark:
    """What was decided of a gang, as it stands in its PodGroup's annotations; "" for what was not.

    `admitted` is the UID of the workload whose gang is admitted and `admitted_at` when it was, `passed_since` when a
    smaller gang first passed it in the queue `passed_in`, `requeued_at` when it gave its place back (all RFC 3339);
    `admitted_for` is with what minimums, and in which queue (`muster.observe.admitted_terms`).
    """

    admitted: str = ""
    admitted_at: str = ""
    passed_since: str = ""
    passed_in: str = ""
    requeued_at: str = ""
    admitted_for: str = ""

    @property
    def annotations(self) -> dict[str, str]:
        """As annotations of the PodGroup."""
        said = {
            ADMITTED: self.admitted,
            ADMITTED_AT: self.admitted_at,
            PASSED_SINCE: self.passed_since,
            PASSED_IN: self.passed_in,
            REQUEUED_AT: self.requeued_at,
            ADMITTED_FOR: self.admitted_for,
        }
        return {name: text for name, text in said.items() if text}


@dataclass(frozen=True, slots=True)
class Member:
    """A living pod of the gang; `held` while our gate is on it."""

    pod: Pod
    role: str
    requests: Resources
    held: bool


@dataclass(frozen=True, slots=True)
class View:
    """A gang as it stands.

    `decoded` is None when there is no workload for the gang; its members are then pods that outlived theirs. `intent`
    and `gang` are None when the workload is not muster's, and `workload` too when it asks for nothing or when its
    numbers make no gang (`error` says why). `placed` is what pods with a node ask for that others than muster bound to
    the PodGroup: all pods of one that muster did not make, else those that are no members. `former` is what pods of a
    former workload of the same name hold that still run, `former_queue` where, `leaving` what its own that are being
    deleted hold. `outsiders` are the workload's
    living pods that came without muster, `ended` are the roles of its pods that have finished, one for each, `rivals`
    are other living workloads whose pods are bound to a PodGroup of this name. `gate` says what holds the gang back
    where its queue does not say. `terms` is what muster last said in the gang's PodGroup, whatever somebody has made of
    that since; None where this leader has said nothing yet.
    `pause` tells which new members are to wait, for the scheduler has just taken others back, `follows` that the
    workload takes the place of an older one that is there yet, `withdrawn` that it asks for nothing any more while pods
    of it are held: what it last asked for stands, in `intent` and `gang`. `namespace` are the labels of its namespace,
    by which queues are open to it, `above` is who made the workload.
    """

    key: GangKey
    pod_group: PodGroup | None
    members: tuple[Member, ...]
    kind: Kind | None = None
    decoded: Decoded | None = None
    workload: Workload | None = None
    intent: Intent | None = None
    gang: Gang | None = None
    error: str = ""
    placed: Resources = field(default_factory=dict)
    former: Resources = field(default_factory=dict)
    former_queue: str = ""
    leaving: Resources = field(default_factory=dict)
    gate: GateMode = GateMode.QUEUE
    unmanaged_pods: tuple[Pod, ...] = ()
    ended: tuple[str, ...] = ()
    rivals: tuple[tuple[Kind, Decoded], ...] = ()
    terms: PodGroupSpec | None = None
    pause: Pause = Pause.NONE
    follows: bool = False
    withdrawn: bool = False
    namespace: Mapping[str, str] = field(default_factory=dict)
    above: Above = field(default_factory=Above)

    @property
    def ours(self) -> bool:
        """Whether muster made the PodGroup."""
        return self.pod_group is not None and self.pod_group.metadata.labels.get(MANAGED_BY) == MUSTER

    @property
    def group_owner(self) -> OwnerReference | None:
        """The workload for which the PodGroup was made."""
        return self.pod_group.metadata.controller if self.pod_group else None

    @property
    def uid(self) -> str:
        """Whose admission is recorded: the workload's UID; of plain pods, which come and go, that of their PodGroup."""
        if self.kind is not None and not self.kind.owns_pod_group:
            return self.pod_group.metadata.uid if self.pod_group else ""
        return self.decoded.metadata.uid if self.decoded else ""

    @property
    def stale(self) -> bool:
        """Whether the PodGroup was made for another workload of the name."""
        owner = self.group_owner
        if self.kind is not None and not self.kind.owns_pod_group:
            return owner is not None
        return owner is None or owner.uid != self.uid

    @property
    def mark(self) -> Mark:
        """What the PodGroup says was decided."""
        said = self.pod_group.metadata.annotations if self.pod_group else {}
        names = (ADMITTED, ADMITTED_AT, PASSED_SINCE, PASSED_IN, REQUEUED_AT, ADMITTED_FOR)
        return Mark(*(said.get(name, "") for name in names))

    @property
    def marked_for(self) -> str:
        """The UID of the workload that the PodGroup says is admitted."""
        return self.mark.admitted

    @property
    def holds(self) -> bool:
        """Whether a member is held."""
        return any(member.held for member in self.members)

    @property
    def open(self) -> tuple[Member, ...]:
        """The members that no gate of muster's holds."""
        return tuple(member for member in self.members if not member.held)

    @property
    def left_alone(self) -> bool:
        """Whether pods that came without muster keep it out of muster's hands.

        Where members are held these are the older ones only: else one more pod would let all of them go.
        """
        return bool(self.unmanaged_pods and (not self.holds or _came_first(self)))

    @property
    def placed_nowhere(self) -> bool:
        """Whether no member has a node."""
        return not any(member.pod.spec.node_name for member in self.members)

    @property
    def since(self) -> float | None:
        """When the first of its members was created, in seconds of the wall clock; None without members."""
        created = (seconds_of(member.pod.metadata.creation_timestamp) for member in self.members)
        return min((moment for moment in created if moment is not None), default=None)

    @property
    def requeue_after(self) -> float | None:
        """The seconds after which the user wants a place given back that the gang cannot use; None where not said.

        Also None where batch Jobs make the pods: to them each pod that is deleted has failed.
        """
        if self.decoded is None or self.kind is None or self.kind.pods_of_jobs:
            return None
        meta = self.decoded.metadata
        if meta.controller is not None and (meta.controller.api_version, meta.controller.kind) == ("batch/v1", "Job"):
            return None
        return duration_of(meta.annotations.get(REQUEUE_AFTER, "")) or None

    @property
    def short(self) -> bool:
        """Whether the operator has made fewer pods than the workload asks for."""
        if self.gang is None or self.kind is PLAIN_POD:
            return False
        # Roles without a minimum may come later: in another wave of a JobSet.
        roles = [role for role in self.gang.roles if role.gated and role.minimum]
        there = Counter(member.role for member in self.members)
        placed = Counter(member.role for member in self.members if member.pod.spec.node_name)
        due = sum(role.replicas if placed[role.name] >= role.awaited else role.awaited for role in roles)
        return sum(there[role.name] for role in roles) + len(self.ended) < due

    @property
    def assembled(self) -> bool:
        """Whether all pods exist without which the gang cannot start."""
        return self.gang is not None and all(
            sum(member.role == role.name for member in self.members) >= role.minimum for role in self.gang.roles
        )


def _came_first(view: View) -> tuple[Pod, ...]:
    """Those pods that came without muster before any member came: the workload ran before it was muster's.

    Times are whole seconds: of the same one as the first member are those that the webhook would have held, had it seen
    no older one. A pod of no role of the workload, of another scheduler or with a node is not held, whenever it comes.
    """
    first = min((member.pod.metadata.creation_timestamp for member in view.members), default=None)
    if first is None:
        return view.unmanaged_pods
    return tuple(
        pod
        for pod in view.unmanaged_pods
        if pod.metadata.creation_timestamp < first
        or (pod.metadata.creation_timestamp == first and _might_be_held(view, pod))
    )


def _might_be_held(view: View, pod: Pod) -> bool:
    role = view.kind.role_of(pod) if view.kind else None
    known = view.gang is not None and role is not None and view.gang.role(role) is not None
    scheduler = SCHEDULERS[view.intent.scheduler] if view.intent else None
    return known and scheduler is not None and is_free(pod, scheduler)
