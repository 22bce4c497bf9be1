"""The subject of `muster explain`: the workload, the workloads that it creates, their pods and events."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from muster.cli.names import ObjectName, UnknownSubjectError, is_pod_group, kinds_of, pod_groups_meant
from muster.cli.snapshot import ClusterSnapshot
from muster.kube.client import Client
from muster.kube.concurrency import burst
from muster.kube.errors import ApiError
from muster.kube.listing import list_objects
from muster.model.objects import (
    InvalidObjectError,
    LocalObject,
    Object,
    ObjectMeta,
    OwnerReference,
    TimedCondition,
    decode,
)
from muster.model.pods import Pod, PodStatus
from muster.model.resource import EVENTS, PODS, Resource
from muster.model.times import seconds_of
from muster.workloads import KINDS, WATCHED_KINDS, Decoded, Kind, kind_of, owner_of

_OF_MUSTER = "muster.dev/controller"
# Of no pod and of no Job of others a user asks without its kind.
_UPPERMOST = tuple(kind for kind in WATCHED_KINDS if kind.owns_pod_group)
# Groups of kinds that Kubernetes' own role `view` has.
_KUBERNETES_OWN = ("", "apps", "batch")
HOW_TO_READ = "the chart value readerRole adds this right to the roles view, edit and admin of a namespace"
"""The hint for a user who cannot read an object that is not one of Kubernetes."""


class _TimedStatus(PodStatus, frozen=True):
    conditions: tuple[TimedCondition, ...] = ()


class TimedPod(Pod, frozen=True):
    """A pod whose conditions say since when they hold; the pods of a whole cluster are kept without that."""

    status: _TimedStatus = _TimedStatus()


def untimed(pod: Pod) -> TimedPod:
    """A pod without the times of its conditions."""
    return TimedPod(metadata=pod.metadata, spec=pod.spec, status=_TimedStatus(phase=pod.status.phase))


class _Series(LocalObject, frozen=True):
    count: int = 0
    last_observed_time: str = ""


class Event(Object, frozen=True):
    """An event of events.k8s.io, or of the core API."""

    event_time: str = ""
    deprecated_first_timestamp: str = ""
    deprecated_last_timestamp: str = ""
    deprecated_count: int = 0
    series: _Series = _Series()
    type: str = ""
    reason: str = ""
    note: str = ""
    reporting_controller: str = ""

    @property
    def time(self) -> str:
        """The time of its last occurrence (RFC 3339)."""
        known = (self.series.last_observed_time, self.deprecated_last_timestamp, self.event_time)
        return next((text for text in known if text), self.metadata.creation_timestamp)

    @property
    def first(self) -> str:
        """The time of its first occurrence (RFC 3339)."""
        return self.event_time or self.deprecated_first_timestamp or self.metadata.creation_timestamp

    @property
    def count(self) -> int:
        """The number of its occurrences."""
        return max(1, self.series.count, self.deprecated_count)

    @property
    def by_muster(self) -> bool:
        """True if muster's controller wrote it."""
        return self.reporting_controller == _OF_MUSTER


@dataclass(frozen=True, slots=True)
class Subject:
    """A workload, its pods (of any scheduler), and its last events, the oldest first.

    :ivar makes_none: for a workload that creates other workloads, the reason why none exists now
    :ivar makers: the workloads that were read on the way to it, because they have made it
    """

    kind: Kind
    decoded: Decoded
    pods: Sequence[TimedPod] = ()
    events: Sequence[Event] = ()
    makes_none: str = ""
    makers: Sequence[tuple[Kind, Decoded]] = ()

    @property
    def gang_name(self) -> str:
        """The name of its gang."""
        return gang_name(self.kind, self.decoded)


def gang_name(kind: Kind, decoded: Decoded) -> str:
    """The name of the PodGroup of a workload; plain pods, Jobs and StatefulSets name it in a label."""
    if not kind.owns_pod_group:
        with suppress(InvalidObjectError):
            return kind.read(decoded).pod_group
    return kind.pod_group_name(decoded.metadata.name)


ANY_KIND = ""
"""The kind of a name without one: a workload of that name is looked for among all kinds."""


async def find(client: Client, named: ObjectName, namespace: str | None, visible: ClusterSnapshot) -> list[Subject]:
    """The workload of that name, or the workloads that it created; a pod or PodGroup means its workload.

    `namespace` None means all namespaces. Raises UnknownSubjectError, and ApiError when the workload cannot be read.
    """
    if namespace is not None:
        return await _find_in(client, named, namespace, visible)
    kinds = _UPPERMOST if named.kind == ANY_KIND else kinds_of(named.kind) if not is_pod_group(named.kind) else ()
    resources = pod_groups_meant(named.kind) or [kind.resource for kind in kinds]
    namespaces: set[str] = set()
    refused: UnknownSubjectError | None = None
    for resource in resources:
        try:
            namespaces |= {found.metadata.namespace for found in await _everywhere(client, resource, named.name)}
        except UnknownSubjectError as error:
            # Without its CRD a kind is forbidden to most users, not missing.
            refused = refused or error
    if not namespaces and refused is not None:
        raise refused
    if not namespaces:
        kind = "workload" if named.kind == ANY_KIND else resources[-1].kind
        raise UnknownSubjectError(f'no {kind} "{named.name}" in any namespace')
    return [subject for one in sorted(namespaces) for subject in await _find_in(client, named, one, visible)]


async def _everywhere(client: Client, resource: Resource, name: str) -> list[Object]:
    try:
        return await list_objects(client, resource, Object, field_selector=f"metadata.name={name}")
    except ApiError as error:
        if error.not_found:  # the kind is not installed
            return []
        if error.forbidden:
            raise UnknownSubjectError(
                f'cannot look for {resource.kind} "{name}" in all namespaces: '
                f"you may not list {resource.full_name} there; name a namespace with -n"
            ) from error
        raise


async def _find_in(client: Client, named: ObjectName, namespace: str, visible: ClusterSnapshot) -> list[Subject]:
    name = named.name
    if named.kind == ANY_KIND:
        return await _of_any_kind(client, name, namespace, visible)
    kinds = [] if is_pod_group(named.kind) else kinds_of(named.kind)
    resource, raw = await _get(client, pod_groups_meant(named.kind) or [one.resource for one in kinds], name, namespace)
    # The workload of a pod or a PodGroup is what its user asks for.
    owner = owner_of(decode(raw, Pod)) if resource == PODS else None
    if not kinds:
        owner = decode(raw, Object).metadata.controller
    above = kind_of(owner.api_version, owner.kind) if owner else None
    if owner is not None and above is not None:
        _, raw = await _get(client, [above.resource], owner.name, namespace)
        return await _subjects_of(client, above, decode(raw, above.decoded), visible)
    if not kinds:
        raise UnknownSubjectError(f'PodGroup "{name}" does not belong to a workload that muster supports')
    kind = next(one for one in kinds if one.resource == resource)
    return await _subjects_of(client, kind, decode(raw, kind.decoded), visible)


async def _of_any_kind(client: Client, name: str, namespace: str, visible: ClusterSnapshot) -> list[Subject]:
    """The workloads of that name, of any kind. Raises UnknownSubjectError where there is none that may be read."""

    async def get(kind: Kind) -> Decoded | None:
        try:
            found: Decoded = decode(await client.get(kind.resource, name, namespace), kind.decoded)
        except ApiError as error:
            if error.not_found or error.forbidden:
                return None
            raise
        return found

    found = [(kind, one) for kind, one in zip(_UPPERMOST, await burst(get, _UPPERMOST), strict=True) if one is not None]
    if not found:
        raise UnknownSubjectError(f'no workload "{name}" in namespace "{namespace}", or none that you may read')
    uids = {decoded.metadata.uid for _, decoded in found}
    # A TrainJob's JobSet has its name.
    uppermost = [one for one in found if (one[1].metadata.controller or OwnerReference()).uid not in uids]
    return [one for kind, decoded in uppermost for one in await _subjects_of(client, kind, decoded, visible)]


async def named_objects(
    client: Client, resources: Sequence[Resource], name: str, namespace: str, *, most: int | None = None
) -> list[tuple[Resource, bytes]]:
    """The objects of that name of all these kinds, `most` at the most; a user need not know which of them there are.

    Raises UnknownSubjectError where there is none, and ApiError where none can be read.
    """
    found: list[tuple[Resource, bytes]] = []
    refused: ApiError | None = None
    missing = False
    for resource in resources:
        try:
            found.append((resource, await client.get(resource, name, namespace if resource.namespaced else None)))
        except ApiError as error:
            if not (error.not_found or error.forbidden):
                raise
            # Without its CRD a kind is forbidden to most users, not missing.
            refused = error if error.forbidden else refused
            missing = missing or error.not_found
        if len(found) == most:
            break
    if not found and refused is not None and not (missing and resources[0].namespaced):
        raise refused
    if not found:
        where = f' in namespace "{namespace}"' if resources[0].namespaced else ""
        raise UnknownSubjectError(f'no {resources[0].kind} "{name}"{where}')
    return found


async def _get(client: Client, resources: Sequence[Resource], name: str, namespace: str) -> tuple[Resource, bytes]:
    """The first object of that name, with its kind. Raises the errors of `named_objects`."""
    try:
        (found,) = await named_objects(client, resources, name, namespace, most=1)
    except ApiError as error:
        if error.forbidden and resources[0].group not in _KUBERNETES_OWN:
            raise UnknownSubjectError(f"{error}; {HOW_TO_READ}") from error
        raise
    return found


async def _subjects_of(
    client: Client,
    kind: Kind,
    decoded: Decoded,
    visible: ClusterSnapshot,
    makers: tuple[tuple[Kind, Decoded], ...] = (),
) -> list[Subject]:
    namespace = decoded.metadata.namespace
    if kind.owns_gang:
        return [replace(await subject_of(client, kind, decoded, visible), makers=makers)]
    found = [
        subject
        for one in made_by(kind)
        for made in await _allowed(client, one.resource, one.decoded, namespace, visible)
        if made.metadata.controller and made.metadata.controller.uid == decoded.metadata.uid
        # As listed: an object that is deleted in the meantime must not hide the others.
        for subject in await _subjects_of(client, one, made, visible, (*makers, (kind, decoded)))
    ]
    if found:
        return found
    names = " or ".join(one.kind for one in made_by(kind))
    why = f"it has no {names} now: its operator has not created one yet, or it has ended"
    return [Subject(kind, decoded, events=await events_about(client, decoded.metadata, visible), makes_none=why)]


def made_by(kind: Kind) -> list[Kind]:
    """The kinds that a kind without a gang creates: RayCronJobs create RayJobs, the others RayClusters."""
    wanted = "RayJob" if kind.kind == "RayCronJob" else "RayCluster"
    return [one for one in KINDS if one.kind == wanted]


async def subject_of(client: Client, kind: Kind, decoded: Decoded, visible: ClusterSnapshot) -> Subject:
    """A workload with the pods and events that this user may read. Raises ApiError when they cannot be read now."""
    meta = decoded.metadata
    named = meta.name if kind.owns_pod_group else gang_name(kind, decoded)
    selector = f"{kind.pod_label}={named}" if kind.pod_label else ""
    pods: list[TimedPod] = await _allowed(client, PODS, TimedPod, meta.namespace, visible, label_selector=selector)
    own = [pod for pod in pods if meta.uid in (pod.metadata.uid, (owner_of(pod) or pod.metadata).uid)]
    return Subject(kind, decoded, own, await events_about(client, decoded.metadata, visible))


async def events_about(client: Client, meta: ObjectMeta, visible: ClusterSnapshot) -> list[Event]:
    """The events about an object, the oldest first; none, and a note, where this user may not read them.

    Raises ApiError when they cannot be read now.
    """
    found: list[Event] = await _allowed(
        client, EVENTS, Event, meta.namespace, visible, field_selector=f"regarding.uid={meta.uid}"
    )
    # Not by their text: some have whole seconds, others microseconds.
    return sorted(found, key=lambda event: seconds_of(event.time) or 0.0)


async def _allowed(
    client: Client,
    resource: Resource,
    type_: type[Any],
    namespace: str,
    visible: ClusterSnapshot,
    *,
    label_selector: str = "",
    field_selector: str = "",
) -> list[Any]:
    """The objects; none, and a note, when they cannot be listed."""
    try:
        return await list_objects(
            client, resource, type_, namespace=namespace, label_selector=label_selector, field_selector=field_selector
        )
    except ApiError as error:
        if not error.forbidden:
            raise
        visible.unreadable.add(resource.full_name)
        visible.note(f'cannot list {resource.full_name} in "{namespace}": they are unknown')
        return []
