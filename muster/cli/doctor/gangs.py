"""Checks of what users write and run: held pods, orphaned PodGroups, annotations that muster does not read."""

from collections.abc import Iterator, Mapping, Sequence

from muster.admitters import Admitter
from muster.cli.doctor.diagnosis import Diagnosis, Unseen, fine, first_of, problem, seen, unknown, warning
from muster.cli.doctor.installed import Installation
from muster.cli.doctor.sight import GroupSeen, Sight
from muster.cli.ui import counted, lasting
from muster.model.gang_states import GangState
from muster.model.modes import GateMode
from muster.model.names import ADMITTER, GATE, GATE_MODE, GROUP_NAME, MESSAGE, QUEUE_ANNOTATION, SCHEDULER, STATE
from muster.model.objects import Namespace, ObjectMeta, PodGroup
from muster.model.pods import Pod
from muster.model.texts import listed, unread_keys
from muster.model.times import seconds_of
from muster.schedulers import GangScheduler, gang_name

LONG = 3600.0
"""Seconds after which a held gang is reported, unless the caller sets another limit."""
GROUP_DELAY = 60.0
"""Seconds within which a healthy controller creates the PodGroup of a pod."""
_Key = tuple[str, str]
_READ = (ADMITTER, GATE_MODE, QUEUE_ANNOTATION, SCHEDULER)


def gates(sight: Sight, long: float = LONG) -> Iterator[Diagnosis]:
    """No gang is held for longer than `long` seconds, and none without a PodGroup."""
    gangs, groups = _gangs(seen(sight.members, "which pods are held")), _groups(sight.groups)
    if isinstance(sight.groups, Unseen):
        yield unknown(sight.groups, "the reason why pods are held")
    lost = set() if isinstance(sight.groups, Unseen) else gangs.keys() - groups
    held = {key: [one for one in members if one.gated(GATE)] for key, members in gangs.items()}
    since = {key: max(_age(one.metadata, sight.now) for one in pods) for key, pods in held.items() if pods}
    late = sorted((key for key, age in since.items() if age > long and key not in lost), key=lambda key: -since[key])
    yield from first_of(
        [_late(key, gangs[key], since[key], groups.get(key)) for key in late],
        f"gangs are held for more than {lasting(long)}",
        "see which:",
        "muster gangs --waiting",
    )
    waiting = {key: [one.metadata for one in gangs[key] if not one.spec.node_name] for key in lost}
    orphans = sorted(key for key, pods in waiting.items() if any(_age(meta, sight.now) > GROUP_DELAY for meta in pods))
    yield from first_of([_orphan(key, waiting[key]) for key in orphans], "gangs have no PodGroup")
    if not late and not orphans:
        yield fine(f"{counted(len(since), 'held gang')}, none held for more than {lasting(long)}")


def _gangs(members: Sequence[Pod]) -> dict[_Key, list[Pod]]:
    """The living pods of each gang."""
    gangs: dict[_Key, list[Pod]] = {}
    for one in members:
        if one.living and (group := one.metadata.annotations.get(GROUP_NAME)):
            gangs.setdefault((one.metadata.namespace, group), []).append(one)
    return gangs


def _groups(groups: Sequence[GroupSeen] | Unseen) -> dict[_Key, GroupSeen]:
    """The PodGroups by the names of their gangs."""
    seen = () if isinstance(groups, Unseen) else groups
    return {(one.group.metadata.namespace, gang_name(one.group)): one for one in seen}


def _age(meta: ObjectMeta, now: float) -> float:
    return now - (seconds_of(meta.creation_timestamp) or 0.0)


def _orphan(key: _Key, pods: Sequence[ObjectMeta]) -> Diagnosis:
    """The diagnosis of waiting pods without their PodGroup."""
    namespace, name = key
    names = [one.name for one in pods]
    return problem(
        f"PodGroup {namespace}/{name} of {counted(len(names), 'waiting pod')} does not exist; their scheduler cannot "
        f"place them ({listed(names, 3)})",
        "see whether its queue lets it have one, else the log of the controller; if muster is uninstalled, delete the "
        "pods: their operators recreate them",
        f"muster explain -n {namespace} pod/{names[0]}",
    )


def _late(key: _Key, members: Sequence[Pod], age: float, seen: GroupSeen | None) -> Diagnosis:
    """The diagnosis of a gang with held pods."""
    held = [one.metadata.name for one in members if one.gated(GATE)]
    namespace, name = key
    annotations = seen.group.metadata.annotations if seen is not None else {}
    state, text = annotations.get(STATE, ""), "muster reports no state for it"
    if seen is None:
        text = "its state could not be read"
    elif state:
        text = f"{state}: {annotations.get(MESSAGE, '')}"
    given = f"PodGroup {namespace}/{name}: {counted(len(held), 'pod')} held for {lasting(age)}; {text}"
    if seen is not None and not state:
        return problem(given, "see the checks `installation` and `lease`, and the controller's log")
    # Pods beyond the minimum of a gang that is admitted wait for room, as others do.
    whole = seen is not None and 0 < seen.group.spec.min_member <= len(members) - len(held)
    if state in {GangState.ADMITTED, GangState.RUNNING} and not whole:
        return problem(
            f"{given}, but its gates are still closed",
            "see the log of the controller; to open the gates now:",
            f"muster release -n {namespace} {name}",
        )
    return warning(
        given, "docs/reasons.md explains each state; see more:", f"muster explain -n {namespace} pod/{held[0]}"
    )


def pod_groups(sight: Sight) -> Iterator[Diagnosis]:
    """No PodGroup exists without an owner and without pods: its scheduler may keep room for it."""
    what = "PodGroups without an owner"
    groups, members = _groups(seen(sight.groups, what)), seen(sight.members, what)
    named = {(one.metadata.namespace, one.metadata.annotations.get(GROUP_NAME)) for one in members}
    # PodGroups of plain pods have no owner, and exist as long as their pods.
    left = [
        _left(scheduler, group, _age(group.metadata, sight.now))
        for key, (scheduler, group) in groups.items()
        if not group.metadata.owner_references and key not in named
        # Another tool may create its PodGroup shortly before its pods. Of a scheduler that keeps no room the pods of
        # others have not been read: such a PodGroup may be in use.
        if group.metadata.by_muster or (scheduler.keeps_room and _age(group.metadata, sight.now) > LONG)
    ]
    yield from first_of(left, "PodGroups have neither owner nor pods")
    if not left:
        yield fine(f"{len(groups)} PodGroups, each with an owner or with pods")


def _left(scheduler: GangScheduler, group: PodGroup, age: float) -> Diagnosis:
    """The diagnosis of a PodGroup that nothing uses."""
    meta, harm = group.metadata, "; its scheduler may keep room in its queue for it" if scheduler.keeps_room else ""
    return warning(
        f"PodGroup {meta.namespace}/{gang_name(group)} ({'muster' if meta.by_muster else 'not muster'}'s, "
        f"{group.status.phase or 'no phase'}) has had no owner and no pods for {lasting(age)}{harm}",
        "delete it:",
        f"kubectl -n {meta.namespace} delete podgroups.{scheduler.group} {meta.name}",
    )


def unread_annotations(sight: Sight) -> Iterator[Diagnosis]:
    """No Namespace has an annotation for muster that muster does not read: no webhook sees Namespaces."""
    installed, namespaces = sight.installed, seen(sight.namespaces, "the annotations of Namespaces")
    found = [one for namespace in namespaces for one in _of_namespace(namespace, installed)]
    yield from first_of(found, "annotations are not read")
    if not found:
        yield fine(f"every annotation for muster of {counted(len(namespaces), 'Namespace')} is read")


def _of_namespace(namespace: Namespace, installed: Installation) -> Iterator[Diagnosis]:
    name, found = namespace.metadata.name, namespace.metadata.annotations
    text = dict(_unknown(found, installed)) | unread_keys(found, _READ)
    for key, wrong in text.items():
        message = f"namespace {name}: metadata.annotations[{key}]: {wrong}"
        yield warning(message, "correct it, or remove it:", f"kubectl annotate namespace {name} {key}-")


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
