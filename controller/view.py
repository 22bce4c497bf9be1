"""One gang as it stands in the cluster, put together from the stores; no decision is made here."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from muster.gang import Gang, gang_of
from muster.intent import Defaults, Intent, find_intent
from muster.names import ADMITTED, GANG, GATE, MANAGED_BY, MUSTER, QUEUE_LABEL
from muster.objects import InvalidObjectError, Pod, PodGroup
from muster.requests import pod_requests
from muster.resources import total

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from controller.cluster import Cluster
    from muster.ledger import GangKey
    from muster.objects import OwnerReference
    from muster.resources import Resources
    from muster.workloads import Decoded, Kind, Workload

__all__ = ["Member", "View", "observe"]


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

    `decoded` is None when no living workload owns the gang; its members are then pods that outlived theirs. `workload`,
    `intent` and `gang` are None together when the workload is not muster's (`intent` alone None) or its numbers make no
    gang (`error` says why). `placed` is what the pods of a PodGroup that muster did not make ask for, as far as they
    have a node; `former` what pods of a former workload of the same name hold that still run, and `former_queue` where.
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

    @property
    def ours(self) -> bool:
        """Whether muster made the PodGroup."""
        return self.pod_group is not None and self.pod_group.metadata.labels.get(MANAGED_BY) == MUSTER

    @property
    def group_owner(self) -> OwnerReference | None:
        """The workload for which the PodGroup was made."""
        return self.pod_group.metadata.controller if self.pod_group else None

    @property
    def marked_for(self) -> str:
        """The UID of the workload that the PodGroup says is admitted."""
        return self.pod_group.metadata.annotations.get(ADMITTED, "") if self.pod_group else ""

    @property
    def assembled(self) -> bool:
        """Whether all pods exist without which the gang cannot start."""
        return self.gang is not None and all(
            sum(member.role == role.name for member in self.members) >= role.minimum for role in self.gang.roles
        )


def observe(
    key: GangKey,
    cluster: Cluster,
    defaults: Defaults,
    opened: Collection[str] = (),
    written: PodGroup | None = None,
) -> View:
    """The gang as the stores show it; pods whose UIDs are in `opened` count as opened already.

    `written` is the PodGroup as the last write left it; it counts until the watch shows that one or a later one.
    (Between writing something and seeing it in the watch there is a moment.)
    """
    group = _newer(cluster.pod_group(key), written)
    bound = [pod for pod in cluster.pods_of(key) if pod.living]
    view = _seen(
        key, cluster, defaults, opened, group=group, pods=[pod for pod in bound if GANG in pod.metadata.labels]
    )
    if group is None or view.ours:
        return view
    return replace(view, placed=total(other.requests for other in _orphans(bound) if other.pod.spec.node_name))


def _seen(
    key: GangKey,
    cluster: Cluster,
    defaults: Defaults,
    opened: Collection[str],
    *,
    group: PodGroup | None,
    pods: list[Pod],
) -> View:
    found = _workload(key, cluster, pods, group)
    if found is None:
        return View(key, group, tuple(_orphans(pods)))
    kind, decoded = found
    members = []
    error = ""
    strangers = [pod for pod in pods if pod.metadata.controller and pod.metadata.controller.uid != decoded.metadata.uid]
    former = total(stranger.requests for stranger in _orphans(strangers) if not stranger.held)
    queue = next((pod.metadata.labels[QUEUE_LABEL] for pod in strangers if QUEUE_LABEL in pod.metadata.labels), "")
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        role = kind.role_of(pod)
        owner = pod.metadata.controller
        if role is None or owner is None or owner.uid != decoded.metadata.uid:
            continue
        try:
            requests = pod_requests(pod.spec, status=pod.status)
        except InvalidObjectError as problem:
            error = f"pod {pod.metadata.name}: {problem}"
            continue
        members.append(Member(pod, role, requests, pod.gated(GATE) and pod.metadata.uid not in opened))
    view = View(key, group, tuple(members), kind, decoded, error=error, former=former, former_queue=queue)
    if error:
        return view
    try:
        workload = kind.read(decoded)
        intent = find_intent(workload, defaults)
        gang = gang_of(workload, intent, cluster.priorities()) if intent else None
    except InvalidObjectError as problem:
        return replace(view, error=str(problem))
    return replace(view, workload=workload, intent=intent, gang=gang)


def _newer(seen: PodGroup | None, written: PodGroup | None) -> PodGroup | None:
    if seen is None or written is None or seen.metadata.uid != written.metadata.uid:
        return seen
    # Versions of one object are compared as the numbers that they are (KEP-5504).
    return written if _version(seen) < _version(written) else seen


def _version(group: PodGroup) -> int:
    text = group.metadata.resource_version
    return int(text) if text.isascii() and text.isdigit() else 0


def _orphans(pods: list[Pod]) -> Iterable[Member]:
    """The pods of a workload that is gone: until the garbage collector takes them they use what they use."""
    for pod in pods:
        # The apiserver has checked the quantities of what is a pod.
        with suppress(InvalidObjectError):
            yield Member(pod, "", pod_requests(pod.spec, status=pod.status), pod.gated(GATE))


def _workload(
    key: GangKey,
    cluster: Cluster,
    pods: list[Pod],
    group: PodGroup | None,
) -> tuple[Kind, Decoded] | None:
    """The workload behind the gang: the one that the PodGroup was made for, or when that is gone a living pod's."""
    of_group = group.metadata.controller if group else None
    for owner in (of_group, *(pod.metadata.controller for pod in pods)):
        found = cluster.workload(key.namespace, owner) if owner else None
        if found:
            return found
    return None
