"""A gang as a value: its roles and its least needs."""

from dataclasses import dataclass
from functools import reduce

from muster.model.names import label_value
from muster.resources.amounts import Resources, largest, times, total
from muster.resources.quantity import Quantity
from muster.workloads.model import Unit


@dataclass(frozen=True, slots=True)
class Role:
    """A group of equal pods in a gang.

    `replicas` pods exist when all is well; the gang cannot start without `minimum` of them. `requests` are one pod's.
    Pods of a role that is not `gated` come later and are never held; the gang keeps quota for `reserved` of them. Pods
    of a role that comes in a later wave start `together`. Roles of one `group` run at the same time. An autoscaler adds
    pods to a role that `grows`. The operator makes `made_first` pods before the others, which follow when the first
    have nodes. `priority_class` is the class that its template names, "" if it names none. Beyond the minimum its pods
    start `unit` by unit, if it has units. `done` of its pods have succeeded and are not made again. `granted` is the
    request of its pods together with which the gang was admitted; None if that is not recorded.
    """

    name: str
    replicas: int
    minimum: int
    requests: Resources
    leads: bool
    gated: bool = True
    reserved: int = 0
    together: bool = False
    grows: bool = False
    made_first: int = 0
    priority_class: str = ""
    unit: Unit | None = None
    done: int = 0
    group: int = 0
    granted: Resources | None = None

    @property
    def whole(self) -> dict[str, Quantity]:
        """The requests of all of its pods together."""
        return times(self.requests, self.replicas)

    @property
    def awaited(self) -> int:
        """The number of its pods that must exist before the first of them starts."""
        return self.made_first or self.replicas

    @property
    def exceeds(self) -> bool:
        """True if it has, or may get, more pods than its minimum."""
        return self.grows or self.replicas > self.minimum

    @property
    def elastic(self) -> bool:
        """True if some of its pods can be spared: those beyond its minimum, unless they come as a whole."""
        return self.exceeds and self.gated and not (self.together or self.made_first or self.reserved)


@dataclass(frozen=True, slots=True)
class Gang:
    """The pods of one workload that must start together: one gang, one PodGroup.

    `roles` are in the order in which they count towards `min_member`. `min_resources` are the requests of the first
    `min_member` pods, or the user's own.
    """

    namespace: str
    name: str
    roles: tuple[Role, ...]
    min_member: int
    min_resources: Resources
    uid: str = ""
    """The UID of the workload that owns its PodGroup; "" for none."""

    @property
    def label(self) -> str:
        """The gang's name as a label value of its pods."""
        return label_value(self.name)

    @property
    def min_task_member(self) -> dict[str, int]:
        """The number of pods of each role that the gang needs to start."""
        return {role.name: role.minimum for role in self.roles if role.minimum}

    @property
    def requested(self) -> dict[str, Quantity]:
        """The requests of the pods of its minimum together, and of those that come with it."""
        counts = [(role.requests, role.minimum + role.reserved) for role in self.roles]
        return total(times(requests, count) for requests, count in counts if count)

    @property
    def needed(self) -> Resources:
        """Its usage of its queue at the start: its minResources, or the requests if these are more.

        The user may have written less than the pods request; the ledger counts the requests.
        """
        return largest(self.min_resources, self.requested)

    @property
    def waves(self) -> tuple[tuple[Role, ...], ...]:
        """Its roles that come in a later wave, by group; each group starts as a whole or not at all."""
        groups: dict[int | str, list[Role]] = {}
        for role in self.roles:
            if role.together:
                groups.setdefault(role.group or role.name, []).append(role)
        return tuple(map(tuple, groups.values()))

    @property
    def most(self) -> Resources:
        """The most of each resource that the gang, or a later wave of it, needs at once."""
        return reduce(largest, (total(role.whole for role in wave) for wave in self.waves), self.needed)

    @property
    def exceeds(self) -> bool:
        """True if it has, or may get, more pods than its minimum."""
        return any(role.exceeds for role in self.roles)

    def role(self, name: str) -> Role | None:
        """Return the role of that name."""
        return next((role for role in self.roles if role.name == name), None)
