"""The desired PodGroup of a gang, and whether the present one matches it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import structs

from muster.gangs.roles import Gang
from muster.model.names import MANAGED_BY, MUSTER, queue_named
from muster.model.objects import PodGroup, PodGroupSpec, convert
from muster.planning.record import readable, written_spec_of
from muster.planning.snapshot import GangSnapshot
from muster.resources.amounts import Resources, as_text, times, total
from muster.resources.quantity import ZERO
from muster.schedulers import SCHEDULERS, GangScheduler, scheduler_of_group
from muster.schedulers.model import asked, group_metadata, owner_reference

RESERVING = frozenset({"Pending", "Inqueue"})
"""Phases in which Volcano keeps room for a group that nothing runs of, or may from the next moment on."""

WORKLOAD_MANAGER = MUSTER
"""The field manager of what the workload says."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A PodGroup as it should be: the manifest to apply, and `group`, what the apiserver makes of it, to compare."""

    manifest: dict[str, Any]
    group: PodGroup


def _wanted(scheduler: GangScheduler, manifest: dict[str, Any]) -> Wanted:
    return Wanted(manifest, convert(manifest, scheduler.pod_groups))


def desired(snapshot: GangSnapshot, *, admitted: bool) -> Wanted:
    """The PodGroup of a gang that has workload, intent and gang.

    While the gang is admitted its numbers never rise (Volcano would block the replacement of a crashed member) and its
    queue and priority stay (its usage would move unchecked); what changed acts at the next admission. That holds for
    what muster wrote, as far as it is remembered or a mark tells; of a PodGroup without that mark, as far as muster's
    field manager owns it, and else as the workload says.
    """
    if snapshot.gang is None or snapshot.intent is None or snapshot.workload is None:
        raise ValueError(f"{snapshot.key} has no gang to make a PodGroup for")
    scheduler, group, spec = snapshot.intent.gang_scheduler, snapshot.pod_group, asked(snapshot.gang, snapshot.intent)
    terms = written_spec_of(snapshot)
    if admitted and terms is not None:
        spec = _frozen(spec, snapshot.gang, terms, {})
    # Without both it is a relaxed one, of a time in which the workload was left alone.
    elif admitted and group is not None and (group.spec.min_task_member or group.spec.min_resources):
        spec = _frozen(spec, snapshot.gang, group.spec, group.metadata.applied_by(WORKLOAD_MANAGER).spec)
    if scheduler.counts_living:
        due, done = sum(spec.min_task_member.values()), sum(role in spec.min_task_member for role in snapshot.ended)
        # What has failed and was made again is there twice.
        living = sum(member.role in spec.min_task_member for member in snapshot.members)
        spec = structs.replace(spec, min_member=max(1, due - min(done, max(due - living, 0))))
    if group is not None and not spec.min_resources:
        # What an apply leaves of a map that loses its last key is null, which the CRD refuses.
        spec = structs.replace(spec, min_resources=dict.fromkeys(group.spec.min_resources, "0"))
    metadata = group_metadata(snapshot.gang, snapshot.workload)
    return _wanted(scheduler, scheduler.manifest(spec, metadata, snapshot.workload.policy))


def _frozen(spec: PodGroupSpec, gang: Gang, now: PodGroupSpec, owned: Mapping[str, Any]) -> PodGroupSpec:
    """The spec with the recorded queue, priority and numbers, as far as muster owns them; all if owners are unknown."""
    claim, kept = claim_of(now), dict[str, Any]()

    def ours(field: str, key: str | None = None) -> bool:
        inside = owned.get(f"f:{field}")
        return not owned or (inside is not None and (key is None or f"f:{key}" in inside))

    if ours("queue"):
        kept["queue"] = now.queue
    if not now.priority_class_name or ours("priorityClassName"):
        kept["priority_class_name"] = now.priority_class_name
    if ours("minMember"):
        kept["min_member"] = min(gang.min_member, now.min_member)
    # A role or a resource that is not there came with a later change; but nothing left of all of them was taken away.
    if ours("minTaskMember"):
        kept["min_task_member"] = {
            role: min(count, now.min_task_member[role]) if ours("minTaskMember", role) else count
            for role, count in gang.min_task_member.items()
            if role in now.min_task_member
        }
    if "min_member" in kept and "min_task_member" in kept:
        # Of pods that moved from one role to another those that are growth there are not owed.
        kept["min_member"] = min(kept["min_member"], max(1, sum(kept["min_task_member"].values())))
    if claim and not any(amount.nano for amount in claim.values()):
        # Its claim was soft when this was written: it is what the gang was admitted for.
        kept["min_resources"] = as_text(_least(gang, now.min_task_member))
    elif ours("minResources"):
        kept["min_resources"] = as_text(
            {
                name: min(amount, claim[name]) if ours("minResources", name) else amount
                for name, amount in gang.min_resources.items()
                if name in claim
            },
        )
    return structs.replace(spec, **kept)


def _least(gang: Gang, owed: Mapping[str, int]) -> Resources:
    """What the gang needs with so many pods of each role, at most what it needs by now."""
    if sum(owed.values()) >= gang.min_member:
        # As many as now: what it needs may be the user's own word.
        return gang.min_resources
    counts = ((role.requests, min(role.minimum, owed.get(role.name, 0)) + role.reserved) for role in gang.roles)
    needed = total(times(requests, count) for requests, count in counts if count)
    return {name: min(amount, needed[name]) for name, amount in gang.min_resources.items() if name in needed}


def of_what_is_open(snapshot: GangSnapshot, queue: str) -> PodGroupSpec:
    """What a gang in `queue` counts as admitted for where only open members tell that it was: these alone."""
    if snapshot.gang is None or snapshot.intent is None:
        raise ValueError(f"{snapshot.key} has no gang")
    counts = {
        role.name: min(role.minimum, sum(member.role == role.name for member in snapshot.open))
        for role in snapshot.gang.roles
    }
    return PodGroupSpec(
        min_member=max(1, sum(counts.values())),
        min_task_member={name: count for name, count in counts.items() if count},
        min_resources={**as_text(total(member.requests for member in snapshot.open))},
        queue=queue or snapshot.intent.queue,
        priority_class_name=snapshot.intent.priority_class,
    )


def unreserved(snapshot: GangSnapshot, wanted: Wanted) -> Wanted:
    """The PodGroup for a gang for which no room is to be kept: it cannot use any, or its workload is at rest.

    Volcano keeps room for the minResources of every group that is Inqueue but for what its held pods ask for, and none
    leaves that phase before it is placed: it would hold up gangs that muster admits.
    """
    spec = wanted.manifest["spec"]
    scheduler = snapshot.intent.gang_scheduler if snapshot.intent else None
    if scheduler is None or not scheduler.keeps_room:
        return wanted
    # Zeros, as in `desired`.
    zeros = dict.fromkeys(spec["minResources"], "0")
    return _wanted(scheduler, {**wanted.manifest, "spec": {**spec, "minResources": zeros}})


def while_assembling(snapshot: GangSnapshot, wanted: Wanted) -> Wanted:
    """The PodGroup of a gang that lacks pods: of plain pods, which come one by one, it keeps the minResources it has.

    Each pod would change them, and be a write of its own; they are written when all pods are there.
    """
    if snapshot.pod_group is None or snapshot.kind is None or snapshot.kind.owns_pod_group:
        return wanted
    spec, present = wanted.manifest["spec"], snapshot.pod_group.spec.min_resources
    if not present or "minResources" not in spec:
        return wanted
    return _wanted(scheduler_of(snapshot), {**wanted.manifest, "spec": {**spec, "minResources": dict(present)}})


def deferred(snapshot: GangSnapshot) -> str:
    """What the workload says by now and an admitted gang's PodGroup cannot follow, in words; "" where it has."""
    if snapshot.gang is None or snapshot.intent is None or snapshot.pod_group is None:
        return ""
    now = snapshot.pod_group.spec
    changes = []
    if snapshot.intent.queue != now.queue:
        changes.append(f'queue "{snapshot.intent.queue}"')
    if snapshot.intent.priority_class != now.priority_class_name:
        changes.append(
            f'priority "{snapshot.intent.priority_class}"' if snapshot.intent.priority_class else "no priority"
        )
    if snapshot.gang.min_member > now.min_member:
        changes.append(f"minMember {snapshot.gang.min_member}")
    return f"from its next admission on: {', '.join(changes)}" if changes else ""


def relaxed_pod_group(snapshot: GangSnapshot) -> Wanted:
    """A PodGroup that holds no pod back: for bound pods whose workload is no gang any more."""
    if snapshot.decoded is None or snapshot.kind is None:
        raise ValueError(f"{snapshot.key} has no workload to make a PodGroup for")
    api_version = snapshot.kind.resource.api_version
    owners = (
        [owner_reference(api_version, snapshot.kind, snapshot.decoded.metadata)] if snapshot.kind.owns_pod_group else []
    )
    of_group = snapshot.pod_group.spec.queue if snapshot.pod_group else ""
    pods = (member.pod.metadata for member in snapshot.members)
    queues = (queue_named(meta.labels, meta.annotations) for meta in pods)
    metadata = {
        "name": snapshot.key.name,
        "namespace": snapshot.key.namespace,
        "labels": {MANAGED_BY: MUSTER},
        "ownerReferences": owners,
    }
    scheduler, queue = scheduler_of(snapshot), of_group or next((queue for queue in queues if queue), "default")
    return _wanted(scheduler, scheduler.relaxed_pod_group(queue, metadata))


def scheduler_of(snapshot: GangSnapshot) -> GangScheduler:
    """The scheduler of a gang: by its PodGroup where there is one, then by its workload, then by its pods."""
    if snapshot.pod_group is not None:
        return scheduler_of_group(snapshot.pod_group)
    if snapshot.intent is not None:
        return snapshot.intent.gang_scheduler
    named = (member.pod.spec.scheduler_name for member in snapshot.members)
    return SCHEDULERS[next((name for name in named if name in SCHEDULERS), "volcano")]


def applicable(manifest: dict[str, Any], group: PodGroup | None) -> dict[str, Any]:
    """The manifest, such that applying it can meet this very PodGroup only, or with None only make a new one.

    A foreign PodGroup of that name may come at any moment (an operator whose own gang flag is on), and an apply
    would be merged into it. No object has resource version 1, and the apiserver compares only where there is one.
    """
    condition = {"resourceVersion": "1"} if group is None else {"uid": group.metadata.uid}
    return {**manifest, "metadata": {**manifest["metadata"], **condition}}


def up_to_date(group: PodGroup, wanted: Wanted) -> bool:
    """True if the PodGroup says what it should, and nothing more by our word; what others added stays theirs.

    Applying takes away what we own and do not say any more, and nothing else, so that only that counts here.
    """
    manifest, spec, meta = wanted.manifest, wanted.group.spec, wanted.group.metadata
    owned = group.metadata.applied_by(WORKLOAD_MANAGER)
    return (
        group.spec.min_member == spec.min_member
        and spec.min_task_member.items() <= group.spec.min_task_member.items()
        and group.spec.queue == spec.queue
        and spec.priority_class_name in ("", group.spec.priority_class_name)
        and ("networkTopology" not in manifest["spec"] or group.spec.network_topology == spec.network_topology)
        and claim_of(spec).items() <= claim_of(group.spec).items()
        and set(meta.owner_references) <= set(group.metadata.owner_references)
        and meta.labels.items() <= group.metadata.labels.items()
        and meta.annotations.items() <= group.metadata.annotations.items()
        and not _beyond(owned.metadata, manifest["metadata"])
        and not _beyond(owned.spec, manifest["spec"])
    )


def _beyond(owned: Mapping[str, Any], manifest: Mapping[str, Any]) -> bool:
    """True if fields are owned that the manifest does not set; in FieldsV1 `.` is the object, `k:` a list item."""
    for path, inner in owned.items():
        if not path.startswith("f:"):
            continue
        value = manifest.get(path[2:])
        if value is None or (inner and isinstance(value, dict) and _beyond(inner, value)):
            return True
    return False


def outgrown(snapshot: GangSnapshot, spec: PodGroupSpec) -> bool:
    """True if the templates ask for more by now, for as many pods, than the gang was admitted for.

    What a user wrote in place of that (`schedulingPolicy.minResources`) is believed.
    """
    if snapshot.gang is None or snapshot.workload is None or snapshot.workload.policy.min_resources is not None:
        return False
    claim = claim_of(spec)
    needs = _least(snapshot.gang, spec.min_task_member)
    return any(amount > claim.get(name, ZERO) for name, amount in needs.items())


def own_claim(group: PodGroup) -> Resources:
    """What a PodGroup claims by muster's own writes; its whole claim where their owner is unknown."""
    owned = group.metadata.applied_by(WORKLOAD_MANAGER).spec
    ours = owned.get("f:minResources") or {}
    return {name: amount for name, amount in claim_of(group.spec).items() if not owned or f"f:{name}" in ours}


def claim_of(spec: PodGroupSpec) -> Resources:
    """The claim of a PodGroup on its queue; nothing when its numbers cannot be read."""
    return readable(spec.min_resources)


def newer(seen: PodGroup | None, written: PodGroup | None) -> PodGroup | None:
    """The PodGroup as the watch shows it, or as it was last written where the watch is behind.

    It may be so far behind that it still shows the one of a former life: of two, the younger counts.
    """
    if seen is None or written is None:
        return seen or written
    # Versions of one resource are compared as the numbers that they are (KEP-5504).
    behind, last = _version(seen), _version(written)
    if seen.metadata.uid != written.metadata.uid:
        made = seen.metadata.creation_timestamp, written.metadata.creation_timestamp
        return written if (made[0], behind) < (made[1], last) else seen
    return written if behind < last else seen


def shown(seen: PodGroup | None, written: PodGroup | None) -> bool:
    """True if the watch shows, or has shown, the PodGroup that was written (None: none was)."""
    if seen is None or written is None:
        return seen is not None
    return seen.metadata.uid == written.metadata.uid or newer(seen, written) is seen


def _version(group: PodGroup) -> int:
    text = group.metadata.resource_version
    return int(text) if text.isascii() and text.isdigit() else 0
