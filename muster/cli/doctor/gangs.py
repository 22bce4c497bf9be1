"""Checks of what users write and run: held pods, orphaned PodGroups, annotations that muster does not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from muster.admitters import Admitter
from muster.cli.doctor.diagnosis import Diagnosis, Unseen, fine, problem, unknown, warning
from muster.cli.doctor.installed import Installation
from muster.cli.doctor.objects import QueueSeen
from muster.cli.doctor.sight import GangMember, Group, Sight
from muster.cli.ui import counted, lasting, listed
from muster.model.gang_states import GangState
from muster.model.modes import GateMode
from muster.model.names import ADMITTER, GATE_MODE, HOLD, QUEUE_ANNOTATION, SCHEDULER
from muster.model.nearest import unread_keys
from muster.model.objects import Namespace, Queue
from muster.queueing.queue_view import read_queue
from muster.queueing.sources import QUEUE_SOURCES, QueueSource

LONG = 3600.0
"""Seconds after which a held gang is reported, unless the caller sets another limit."""
MOST = 20
"""The number of gangs or annotations that are reported; the others are counted."""
GROUP_DELAY = 60.0
"""Seconds within which a healthy controller creates the PodGroup of a pod."""
_Key = tuple[str, str]
_READ = (ADMITTER, GATE_MODE, QUEUE_ANNOTATION, SCHEDULER)


def gates(sight: Sight, long: float = LONG) -> Iterator[Diagnosis]:
    """No gang is held for longer than `long` seconds, and none without a PodGroup."""
    if isinstance(sight.members, Unseen):
        yield unknown(sight.members, "which pods are held")
        return
    groups: Mapping[_Key, Group] = {}
    if isinstance(sight.groups, Unseen):
        yield unknown(sight.groups, "the reason why pods are held")
    else:
        groups = {(one.namespace, one.name): one for one in sight.groups}
    gangs = _gangs(sight.members)
    lost = set() if isinstance(sight.groups, Unseen) else {key for key in gangs if key not in groups}
    held = {key: [one for one in members if one.gated] for key, members in gangs.items()}
    since = {key: sight.now - min(one.created for one in pods) for key, pods in held.items() if pods}
    late = sorted((key for key, age in since.items() if age > long and key not in lost), key=lambda key: -since[key])
    for key in late[:MOST]:
        yield _late(gangs[key], since[key], groups.get(key))
    if len(late) > MOST:
        yield warning(f"{len(late) - MOST} more gangs are held for more than {lasting(long)}", "muster queues")
    orphans = sorted(key for key in lost if _waits(gangs[key], sight.now))
    for namespace, name in orphans[:MOST]:
        waiting = [one.name for one in gangs[namespace, name] if not one.placed]
        yield problem(
            f"PodGroup {namespace}/{name} of {counted(len(waiting), 'waiting pod')} does not exist; their "
            f"scheduler cannot place them ({listed(waiting, 3)})",
            f"muster explain -n {namespace} pod/{waiting[0]} says whether its queue lets it have one; else see the "
            "log of the controller; if muster is uninstalled, delete the pods: their operators recreate them",
        )
    if len(orphans) > MOST:
        yield problem(f"{len(orphans) - MOST} more gangs have no PodGroup", "as above")
    if not late and not orphans:
        total = sum(map(bool, held.values()))
        yield fine(f"{counted(total, 'held gang')}, none held for more than {lasting(long)}")


def _gangs(members: Sequence[GangMember]) -> dict[_Key, list[GangMember]]:
    gangs: dict[_Key, list[GangMember]] = {}
    for one in members:
        if one.group and one.living:
            gangs.setdefault((one.namespace, one.group), []).append(one)
    return gangs


def _waits(members: Sequence[GangMember], now: float) -> bool:
    return any(not one.placed and now - one.created > GROUP_DELAY for one in members)


def _late(members: Sequence[GangMember], age: float, group: Group | None) -> Diagnosis:
    """The diagnosis of a gang with held pods."""
    held = [one for one in members if one.gated]
    namespace, name = held[0].namespace, held[0].group
    text = "muster reports no state for it"
    if group is None:
        text = "its state could not be read"
    elif group.state:
        text = f"{group.state}: {group.message}"
    given = f"PodGroup {namespace}/{name}: {counted(len(held), 'pod')} held for {lasting(age)}; {text}"
    if group is not None and not group.state:
        return problem(given, "see the checks `installation`, `lease` and `rights`, and the controller's log")
    # Pods beyond the minimum of a gang that is admitted wait for room, as others do.
    whole = group is not None and 0 < group.minimum <= len(members) - len(held)
    if group is not None and group.state in {GangState.ADMITTED, GangState.RUNNING} and not whole:
        return problem(
            f"{given}, but its gates are still closed",
            f"see the log of the controller; to open the gates now: muster release -n {namespace} {name}",
        )
    return warning(given, f"muster explain -n {namespace} pod/{held[0].name}; docs/reasons.md explains each state")


def pod_groups(sight: Sight) -> Iterator[Diagnosis]:
    """No PodGroup exists without an owner and without pods: its scheduler may keep room for it."""
    for unseen in (sight.groups, sight.members):
        if isinstance(unseen, Unseen):
            yield unknown(unseen, "PodGroups without an owner")
            return
    groups = () if isinstance(sight.groups, Unseen) else sight.groups
    members = () if isinstance(sight.members, Unseen) else sight.members
    named = {(one.namespace, one.group) for one in members}
    # PodGroups of plain pods have no owner, and exist as long as their pods.
    left = [
        one
        for one in groups
        if not one.owned and (one.namespace, one.name) not in named and (one.ours or _keeps_room(one, sight.now))
    ]
    for one in left[:MOST]:
        maker = "muster's" if one.ours else "not muster's"
        harm = "; its scheduler may keep room in its queue for it" if one.scheduler.keeps_room else ""
        yield warning(
            f"PodGroup {one.namespace}/{one.name} ({maker}, {one.phase or 'no phase'}) has had no owner and no pods "
            f"for {lasting(sight.now - one.created)}{harm}",
            f"kubectl -n {one.namespace} delete podgroups.{one.scheduler.group} {one.called}",
        )
    if len(left) > MOST:
        yield warning(f"{len(left) - MOST} more PodGroups have neither owner nor pods", "as above")
    if not left:
        yield fine(f"{len(groups)} PodGroups, each with an owner or with pods")


def _keeps_room(group: Group, now: float) -> bool:
    """True if a PodGroup without pods keeps room from others; another tool may create it shortly before its pods.

    Of a scheduler that keeps none the pods of others have not been read: such a PodGroup may be in use.
    """
    return group.scheduler.keeps_room and now - group.created > LONG


def unread_annotations(sight: Sight) -> Iterator[Diagnosis]:
    """No Namespace and no queue has an annotation for muster that muster does not read."""
    installed = sight.installation
    if installed is None:
        return
    source = installed.queue_source
    found: list[Diagnosis] = []
    counts: list[str] = []
    if isinstance(sight.namespaces, Unseen):
        yield unknown(sight.namespaces, "the annotations of Namespaces")
    else:
        counts.append(counted(len(sight.namespaces), "Namespace"))
        for namespace in sight.namespaces:
            found += _of_namespace(namespace, installed)
    if isinstance(sight.queues, Unseen):
        yield unknown(sight.queues, "the annotations of queues")
    else:
        counts.append(counted(len(sight.queues), "queue"))
        for queue in sight.queues:
            found += _of_queue(queue, source)
    yield from found[:MOST]
    if len(found) > MOST:
        yield warning(f"{len(found) - MOST} more annotations are not read", "as above")
    if not found and counts:
        yield fine(f"every annotation for muster of {' and '.join(counts)} is read")


def _of_queue(queue: QueueSeen, source: QueueSource) -> Iterator[Diagnosis]:
    kind, name = f"{source.plural}.{source.group}", queue.metadata.name
    if source is QUEUE_SOURCES["muster"]:
        # The settings that a Queue has in annotations are fields of a GangQueue.
        for key, wrong in unread_keys(queue.metadata.annotations, (HOLD,)).items():
            yield _ignored(kind, name, f"metadata.annotations[{key}]: {wrong}", key)
        return
    view = read_queue(Queue(metadata=queue.metadata))
    text = {one.field: f"{one}; {one.effect}" for one in view.problems} | {one.field: str(one) for one in view.unread}
    for field, wrong in text.items():
        yield _ignored(kind, name, wrong, field.partition("[")[2].rstrip("]"))


def _of_namespace(namespace: Namespace, installed: Installation) -> Iterator[Diagnosis]:
    name, found = namespace.metadata.name, namespace.metadata.annotations
    text = dict(_unknown(found, installed)) | unread_keys(found, _READ)
    for key, wrong in text.items():
        yield _ignored("namespace", name, f"metadata.annotations[{key}]: {wrong}", key)


def _unknown(found: Mapping[str, str], installed: Installation) -> Iterator[tuple[str, str]]:
    """The annotations whose values are not known, each with what counts in its place."""
    known: Mapping[str, tuple[tuple[str, ...], str]] = {
        GATE_MODE: (tuple(GateMode), "the chart value `gate` counts"),
        ADMITTER: (installed.admitters, f"{installed.admitters[0]} admits"),
    }
    for key, (values, instead) in known.items():
        value = found.get(key, "")
        if value and value not in values:
            more = ", or add it to the chart value `admitters`" if key == ADMITTER and value in tuple(Admitter) else ""
            yield key, f'"{value[:80]}" is not known; use {" or ".join(values)}{more}; it is ignored, and {instead}'
    scheduler, own = found.get(SCHEDULER, ""), installed.gang_schedulers
    if scheduler and own and scheduler not in own:
        left = "muster leaves workloads alone that name no other"
        yield SCHEDULER, f'"{scheduler[:80]}" is none of its schedulers; use {" or ".join(own)}; {left}'


def _ignored(kind: str, name: str, text: str, key: str) -> Diagnosis:
    cure = f"correct it, or remove it: kubectl annotate {kind} {name} {key}-"
    return warning(f"{kind} {name}: {text}", cure)
