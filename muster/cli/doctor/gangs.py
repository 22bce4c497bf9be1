"""Checks of the gangs in the cluster: pods that are held for a long time, and orphaned PodGroups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from muster.cli.doctor.diagnosis import Check, Diagnosis, Unseen, fine, problem, unknown, warning
from muster.cli.words import counted, lasting, listed
from muster.model.gang_states import GangState

if TYPE_CHECKING:
    from muster.cli.doctor.sight import GangMember, Group, Sight


LONG = 3600.0
"""Seconds after which a held gang is reported, unless the caller sets another limit."""
MOST = 20
"""How many gangs are reported, those held longest; of the others only the number."""
GROUP_DELAY = 60.0
"""Seconds within which a healthy controller creates the PodGroup of a pod."""

_Key = tuple[str, str]


def gates(sight: Sight, long: float = LONG) -> Iterator[Diagnosis]:
    """No gang is held for longer than `long` seconds, and none without a PodGroup."""
    if isinstance(sight.members, Unseen):
        yield unknown(Check.GATES, sight.members, "which pods are held")
        return
    groups: Mapping[_Key, Group] = {}
    if isinstance(sight.groups, Unseen):
        yield unknown(Check.GATES, sight.groups, "the reason why pods are held")
    else:
        groups = {(one.namespace, one.name): one for one in sight.groups}
    gangs = _gangs(sight.members)
    lost = set() if isinstance(sight.groups, Unseen) else {key for key in gangs if key not in groups}
    held = {key: [one for one in members if one.gated] for key, members in gangs.items()}
    since = {key: sight.now - min(one.created for one in pods) for key, pods in held.items() if pods}
    late = sorted((key for key, age in since.items() if age > long and key not in lost), key=lambda key: -since[key])
    options = sight.installation.options if sight.installation is not None else ""
    explain = f"muster explain{options}"
    for key in late[:MOST]:
        yield _late(gangs[key], since[key], groups.get(key), explain)
    if len(late) > MOST:
        yield warning(
            Check.GATES,
            f"{len(late) - MOST} more gangs are held for more than {lasting(long)}",
            f"muster queues{options}",
        )
    orphans = sorted(key for key in lost if _waits(gangs[key], sight.now))
    for namespace, name in orphans[:MOST]:
        waiting = [one.name for one in gangs[namespace, name] if not one.placed]
        yield problem(
            Check.GATES,
            f"PodGroup {namespace}/{name} of {counted(len(waiting), 'waiting pod')} does not exist; their "
            f"scheduler cannot place them ({listed(waiting, 3)})",
            f"{explain} -n {namespace} pod/{waiting[0]} says whether its queue lets it have one; else see the "
            "log of the controller; if muster is uninstalled, delete the pods: their operators recreate them",
        )
    if len(orphans) > MOST:
        yield problem(Check.GATES, f"{len(orphans) - MOST} more gangs have no PodGroup", "as above")
    if not late and not orphans:
        total = sum(map(bool, held.values()))
        yield fine(Check.GATES, f"{counted(total, 'held gang')}, none held for more than {lasting(long)}")


def _gangs(members: Sequence[GangMember]) -> dict[_Key, list[GangMember]]:
    gangs: dict[_Key, list[GangMember]] = {}
    for one in members:
        if one.group and one.living:
            gangs.setdefault((one.namespace, one.group), []).append(one)
    return gangs


def _waits(members: Sequence[GangMember], now: float) -> bool:
    return any(not one.placed and now - one.created > GROUP_DELAY for one in members)


def _late(members: Sequence[GangMember], age: float, group: Group | None, explain: str) -> Diagnosis:
    """What to say of a gang with held pods; `explain` is the command that tells more."""
    held = [one for one in members if one.gated]
    namespace, name = held[0].namespace, held[0].group
    said = "muster reports no state for it"
    if group is None:
        said = "its state could not be read"
    elif group.state:
        said = f"{group.state}: {group.message}"
    told = f"PodGroup {namespace}/{name}: {counted(len(held), 'pod')} held for {lasting(age)}; {said}"
    if group is not None and not group.state:
        return problem(
            Check.GATES, told, "see the checks `installation`, `lease` and `rights`, and the controller's log"
        )
    # Pods beyond the minimum of a gang that is admitted wait for room, as others do.
    whole = group is not None and 0 < group.minimum <= len(members) - len(held)
    if group is not None and group.state in {GangState.ADMITTED, GangState.RUNNING} and not whole:
        return problem(
            Check.GATES,
            f"{told}, but its gates are still closed",
            f"see the log of the controller; to open the gates now: muster release -n {namespace} {name}",
        )
    return warning(
        Check.GATES, told, f"{explain} -n {namespace} pod/{held[0].name}; docs/reasons.md explains each state"
    )


def pod_groups(sight: Sight) -> Iterator[Diagnosis]:
    """No PodGroup exists without an owner and without pods: its scheduler may keep room for it."""
    for unseen in (sight.groups, sight.members):
        if isinstance(unseen, Unseen):
            yield unknown(Check.POD_GROUPS, unseen, "PodGroups without an owner")
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
            Check.POD_GROUPS,
            f"PodGroup {one.namespace}/{one.name} ({maker}, {one.phase or 'no phase'}) has had no owner and no pods "
            f"for {lasting(sight.now - one.created)}{harm}",
            f"kubectl -n {one.namespace} delete podgroups.{one.scheduler.group} {one.called}",
        )
    if len(left) > MOST:
        yield warning(Check.POD_GROUPS, f"{len(left) - MOST} more PodGroups have neither owner nor pods", "as above")
    if not left:
        yield fine(Check.POD_GROUPS, f"{len(groups)} PodGroups, each with an owner or with pods")


def _keeps_room(group: Group, now: float) -> bool:
    """Whether a PodGroup without pods keeps room from others; another tool may create it shortly before its pods.

    Of a scheduler that keeps none the pods of others have not been read: such a PodGroup may be in use.
    """
    return group.scheduler.keeps_room and now - group.created > LONG
