"""The messages of a gang that need more than a number from the ledger."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from muster.admitters.kueue import Awaited, KueueAnswer, reverted
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.model.pods import Pod
from muster.model.times import duration_text, seconds_of, text_of
from muster.planning.opening import Opening
from muster.planning.plan import GangPlan
from muster.planning.pod_group import deferred, desired
from muster.planning.snapshot import GangSnapshot
from muster.queueing.ledger import GangKey
from muster.queueing.verdicts import Decision
from muster.resources.amounts import Resources, describe, total
from muster.schedulers import SCHEDULERS
from muster.workloads import PLAIN_POD, Workload

# By Volcano's action, which stands at the end of what it writes on a pod; kube-scheduler names none, and only preempts.
_EVICTIONS = {
    **dict.fromkeys(("reclaim", "gangreclaim"), "reclaimed"),
    **dict.fromkeys(("preempt", "gangpreempt", ""), "preempted"),
}
# The report of `evicted` where it stands in a message. The names of Kubernetes have none of these signs.
_REPORT = re.compile(
    r"(?:^|; )([^; ]+ \w+ (\d{1,9}) of its pods \(([^;)]*)(?:(?! of its pods ).)*"
    r"; replacements beyond its minimum wait (?:no longer|[^;]+ their nodes))"
)
# How many pods a sentence names.
_NAMED = 3
# Words of kube-scheduler, and of all schedulers that are made from it.
_OF_NODES = "nodes are available"
# What Volcano binds pods to that name it and no PodGroup: it makes one by the UID of their owner.
_VOLCANOS_OWN = "podgroup-"


def of_the_scheduler(snapshot: GangSnapshot) -> str:
    """Why the scheduler finds no place, in its own words."""
    of_group = snapshot.pod_group.status.conditions if snapshot.pod_group else ()
    words = next((one.message for one in reversed(of_group) if one.type == "Unschedulable" and one.message), "")
    conditions = [
        one for member in snapshot.members for one in member.pod.status.conditions if one.type == "PodScheduled"
    ]
    of_pods = [one.message for one in conditions if one.message]
    # One pod tells why there is no node for it; the others of its group may only tell of the group.
    words = words or next((text for text in of_pods if _OF_NODES in text), of_pods[0] if of_pods else "")
    return f"the scheduler finds no place: {words or 'it has said nothing yet'}"


def at_rest(workload: Workload, kueue: KueueAnswer | None = None) -> tuple[GangState, str]:
    """State and sentence for a workload that has ended, or is suspended, by whom `kueue` tells where Kueue admits."""
    if workload.finished:
        return GangState.FINISHED, "the workload has ended"
    if kueue is not None and not kueue.admitted:
        return of_kueue(kueue), kueue.message
    if kueue is not None and kueue.workload is not None:
        return GangState.SUSPENDED, f"the workload is suspended; {reverted(kueue.workload.metadata.name)}"
    return GangState.SUSPENDED, "the workload is suspended"


def of_kueue(kueue: KueueAnswer) -> GangState:
    """The state of a gang that Kueue has not admitted."""
    return GangState.EXCEEDS_KUEUE_QUOTA if kueue.never else GangState.WAITING_FOR_KUEUE


def not_by_kueue(kueue: KueueAnswer) -> str:
    """Why a gang does not start whose pods are there, and that Kueue has not admitted."""
    waits = kueue.workload is not None and not kueue.workload.holds("Evicted")
    return f"{kueue.message}; it was resumed by hand, and Kueue suspends it again" if waits else kueue.message


def taken_back(awaited: Awaited) -> str:
    """When Kueue takes its quota back from a gang whose pods it awaits."""
    lack = "have no nodes" if awaited.nodes else "are not ready"
    return f"Kueue takes its quota back at {text_of(awaited.until)[:19]}Z if its pods {lack} by then"


def too_large(snapshot: GangSnapshot) -> str:
    """Why a gang that was admitted queues again: all its pods are new, and ask for more."""
    needs = describe(snapshot.gang.min_resources if snapshot.gang else {})
    return f"all its pods were replaced and need {needs}, which is more than it was admitted for"


def lacking(snapshot: GangSnapshot) -> str:
    """The pods that the gang still lacks."""
    if snapshot.gang is None:
        return ""
    missing = []
    for role in snapshot.gang.roles:
        there = sum(member.role == role.name for member in snapshot.members)
        if there < role.minimum:
            missing.append(f"{role.name} {there} of {role.minimum}")
    words = f"waiting for its pods: {', '.join(missing)}"
    return words if snapshot.on_hold_by is None else f"{words}; {snapshot.on_hold_by.sentence}"


def admitted(snapshot: GangSnapshot, plan: GangPlan, holds: str, more: str) -> tuple[GangState, str]:
    """State and sentence for an admitted gang; `holds` names its claim and queue, `more` has further notes."""
    waiting = beyond(plan.opening, plan.stuck, plan.on_hold) if plan.opening is not None else ""
    message = holds + waiting + more
    if snapshot.kueue is not None and snapshot.kueue.evicted:
        # A new leader reports no eviction that the message has.
        message += f"; {snapshot.kueue.message}"
    if later := deferred(snapshot):
        message += f"; {later}"
    if plan.soft and not (snapshot.members and not snapshot.open):
        return GangState.UNSCHEDULABLE, f"{message}; {of_the_scheduler(snapshot)}"
    return (GangState.RUNNING if _runs(snapshot) else GangState.ADMITTED), message


def _runs(snapshot: GangSnapshot) -> bool:
    """True if the gang runs: as its scheduler says it of the PodGroup, or else as its pods show."""
    phase = snapshot.pod_group.status.phase if snapshot.pod_group is not None else ""
    if phase or snapshot.gang is None:
        return phase == "Running"
    running = Counter([member.role for member in snapshot.members if member.pod.running])
    return all(running[role.name] >= role.minimum for role in snapshot.gang.roles)


def beyond(opening: Opening, stuck: Resources, on_hold: Decision | None = None) -> str:
    """The pods of an admitted gang that still wait, and for what; "" where none does.

    `stuck` is what its opened pods ask for that have found no node for too long; `on_hold` why no more may start.
    """
    words = f"; the scheduler finds no place for {describe(stuck)} of it, which others may use" if stuck else ""
    if opening.waiting:
        names = _named([member.pod for member in opening.waiting])
        more = f"{describe(total(one.requests for one in opening.waiting))} more ({names})"
        if on_hold is not None:
            words += f"; {more} do not start: {on_hold.message}"
        else:
            after = opening.after_minimum
            words += f"; {more} come when its minimum has nodes" if after else f"; no room yet for {more}"
    lacking = ", ".join(f"{count} of {role}" for role, count in opening.lacking.items())
    return f"{words}; what starts together lacks pods: {lacking}" if lacking else words


def notes(snapshot: GangSnapshot) -> str:
    """Notes for the owner of a gang in addition to its state, while pods of it are held; "" for none."""
    words = ""
    if snapshot.withdrawn and snapshot.intent is not None:
        words = f'; the workload asks for nothing any more, and what is held stays in queue "{snapshot.intent.queue}"'
    if kept := kept_class(snapshot):
        words += f"; {kept}"
    if snapshot.kueue is not None and snapshot.kueue.awaited is not None:
        words += f"; {taken_back(snapshot.kueue.awaited)}"
    if snapshot.next_run:
        named = _named(snapshot.next_run)
        words += f"; another Job of the same gang waits until it has ended ({named}): give each Job a gang of its own"
    if snapshot.has_gated_members and snapshot.left:
        words += f"; pods that left it, or take long to end, still hold {describe(snapshot.left)}"
    if snapshot.has_gated_members and snapshot.unmanaged_pods and not snapshot.left_alone:
        words += f"; pods that came without muster open nothing ({_named(snapshot.unmanaged_pods)})"
    return words


def kept_class(snapshot: GangSnapshot) -> str:
    """The note for an owner of held pods that asks for another priority class; "" where the pods have it."""
    if not snapshot.asked_class or snapshot.gang is None:
        return ""
    roles = {role.name for role in snapshot.gang.roles if not role.priority_class}
    held = (member.pod.spec.priority_class_name for member in snapshot.members if member.gated and member.role in roles)
    kept = next((name for name in held if name != snapshot.asked_class), None)
    if kept is None:
        return ""
    made_with = f'priority class "{kept}"' if kept else "no priority class"
    again = "delete the workload and apply it again"
    return f'its pods keep what they were made with, {made_with}; for "{snapshot.asked_class}" {again}'


def not_ready(snapshot: GangSnapshot, reasons: Mapping[str, str]) -> str:
    """The pods that have a node and are not ready for too long (`reasons` by UID); "" for none."""
    # A gang may have thousands of members, and mostly none is named.
    pods = [member.pod for member in snapshot.members if member.pod.metadata.uid in reasons] if reasons else []
    if not pods:
        return ""
    named = [f"{pod.metadata.name}: {reasons[pod.metadata.uid]}" for pod in pods[:_NAMED]]
    more = f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else ""
    return f"{len(pods)} of its {len(snapshot.members)} pods have nodes and are not ready ({', '.join(named)}{more})"


def evicted(pods: Sequence[Pod], requests: Resources, claimants: Sequence[str], waits: float, now: float) -> str:
    """The pods that the scheduler has evicted, and for which gangs; replacements wait for so many seconds.

    `requests` are of all of them, and `now` is of the wall clock.
    """
    action = next((one.message.rpartition(" ")[2] for one in pods[0].status.conditions if one.reason == "Evict"), "")
    verb = _EVICTIONS.get(action, "evicted")
    words = f"{pods[0].spec.scheduler_name} {verb} {_counted(pods, requests)}"
    words += f" for {' and '.join(claimants)}" if claimants else "; it does not say for which gang"
    wait = f"at least {duration_text(waits)}, until others have their nodes" if waits > 0 else "no longer"
    return f"{words}; {_run_of(pods, now)}replacements beyond its minimum wait {wait}"


class EvictionReport(NamedTuple):
    """A report of `evicted` as it was read from a message."""

    words: str = ""
    number: int = 0
    names: frozenset[str] = frozenset()


def eviction_in(message: str) -> EvictionReport:
    """The report on an eviction that is part of a gang's message; an empty one where there is none."""
    if (found := _REPORT.search(message)) is None:
        return EvictionReport()
    words, number, names = found.groups()
    return EvictionReport(words, int(number), frozenset(names.partition(" and ")[0].split(", ")))


def evicted_by_kueue(snapshot: GangSnapshot, kueue: KueueAnswer, jobs: frozenset[str], now: float) -> str:
    """The pods that a gang loses by Kueue's eviction of these Jobs (UIDs), and Kueue's reason.

    `now` is of the wall clock.
    """
    gone = snapshot.open
    if snapshot.kind is PLAIN_POD:
        # They may be of several Jobs.
        gone = tuple(one for one in gone if (job := one.pod.metadata.controller) and job.uid in jobs)
    pods = [one.pod for one in gone]
    lost = _counted(pods, total(one.requests for one in gone)) if pods else "it"
    return f"Kueue evicted {lost}; {_run_of(pods, now)}{kueue.message}"


def _counted(pods: Sequence[Pod], requests: Resources) -> str:
    """The number of evicted pods, some of their names, and what they held."""
    held = f"; {describe(requests)}" if requests else ""
    return f"{len(pods)} of its pods ({_named(pods)}{held})"


def _run_of(pods: Iterable[Pod], now: float) -> str:
    """For how long the pods have run, the longest of them."""
    started = [since for pod in pods if (since := seconds_of(pod.status.start_time)) is not None]
    if not started:
        return ""
    most = duration_text(max(0.0, now - min(started)))
    return f"it had run {most}; " if len(started) == 1 else f"they had run up to {most}; "


def claimant(snapshot: GangSnapshot, key: GangKey, queue: str) -> str:
    """The gang for which others are evicted, and its queue, as far as that is the business of this gang's user."""
    same = key.namespace == snapshot.key.namespace
    gang = f'gang "{key.name}"' if same else "another gang"
    return f'{gang} of queue "{queue}"' if queue else gang


def given_back(snapshot: GangSnapshot, after: str, reasons: Mapping[str, str]) -> str:
    """Why a gang gives its claim back `after` so long; `reasons` as for `not_ready`."""
    if snapshot.placed_nowhere:
        return f"no pod found a node within {after}, so that the place is given back; {of_the_scheduler(snapshot)}"
    return f"{not_ready(snapshot, reasons)} after {after}, so that the place is given back and its pods are deleted"


def still_held(snapshot: GangSnapshot) -> str:
    """The note for an owner of held pods that takes back what they were made for."""
    count = sum(member.gated for member in snapshot.members)
    queue = snapshot.intent.queue if snapshot.intent else ""
    stays = f'what is held ({count} pods) stays in queue "{queue}" as last asked for'
    return (
        f"the workload asks for nothing any more, but {stays}: "
        "delete the workload and apply it again, or name another queue to wait there"
    )


def in_the_way(snapshot: GangSnapshot) -> tuple[GangState, str]:
    """State and sentence for a gang whose PodGroup's name is taken by one that muster did not make."""
    if not snapshot.members and snapshot.unmanaged_pods:
        return _came_without(snapshot)
    # Not every scheduler's PodGroup has the gang's name.
    name = snapshot.pod_group.metadata.name if snapshot.pod_group is not None else snapshot.key.name
    message = f'a PodGroup "{name}" that muster did not make is in the way; delete or rename it'
    return GangState.FOREIGN_POD_GROUP, message


def left_alone(snapshot: GangSnapshot) -> tuple[GangState, str]:
    """State and sentence for a workload that asks for nothing any more, or has pods that came without muster."""
    if snapshot.gang is None and not snapshot.error:
        return GangState.NOT_MANAGED, "the workload has opted out of muster"
    return _came_without(snapshot)


def _came_without(snapshot: GangSnapshot) -> tuple[GangState, str]:
    names = (scheduler.bound_to(pod) for pod in snapshot.unmanaged_pods for scheduler in SCHEDULERS.values())
    bound = {name for name in names if name and not name.startswith(_VOLCANOS_OWN)}
    if bound:
        return (
            GangState.EXTERNAL,
            f'its pods came bound to the PodGroup "{min(bound)}"; muster leaves them to who made it',
        )
    named = _named(snapshot.unmanaged_pods)
    return GangState.NOT_MANAGED, f"left alone until the pods are gone that came without muster: {named}"


def _named(pods: Sequence[Pod]) -> str:
    """The first pods by name, and how many more there are."""
    named = ", ".join(pod.metadata.name for pod in pods[:_NAMED])
    return named + (f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else "")


def to_a_maker(snapshot: GangSnapshot, message: str) -> str:
    """The message of a gang for the maker of its workload, which may have made others."""
    if snapshot.kind is None or snapshot.decoded is None or not snapshot.kind.owns_pod_group:
        return f'gang "{snapshot.key.name}": {message}'
    return f'{snapshot.kind.kind} "{snapshot.decoded.metadata.name}": {message}'


def to_a_rival(snapshot: GangSnapshot) -> str:
    """The message for another workload whose pods are bound to this gang's PodGroup."""
    owner = (
        f'{snapshot.kind.kind} "{snapshot.decoded.metadata.name}"'
        if snapshot.kind and snapshot.decoded
        else "another workload"
    )
    waits = "this workload waits until the other is gone; rename one of them"
    return f'the PodGroup "{snapshot.key.name}" belongs to {owner}; {waits}'


def without_pod_group(snapshot: GangSnapshot, error: ApiError) -> str:
    """Why a gang has no PodGroup, or not the one that it should have."""
    scheduler = snapshot.intent.gang_scheduler if snapshot.intent is not None else None
    if error.not_found and scheduler is not None:
        return f"the apiserver serves no {scheduler.api_version}"
    what = "was refused" if error.refused else "cannot be written"
    return f'PodGroup "{desired(snapshot, admitted=False).group.metadata.name}" {what}: {error.message}'


def unmarked(snapshot: GangSnapshot, error: ApiError) -> str:
    """For a gang when nothing can be written on its PodGroup."""
    what = "its state" if snapshot.open else "it may start, but its admission"
    return f"{what} cannot be written on its PodGroup: {error.message}"


def shut(pods: Sequence[Pod], error: ApiError) -> str:
    """The pods that cannot be opened, and why, in the apiserver's words."""
    what = "the gate of pod" if len(pods) == 1 else "the gates of pods"
    return f"{what} {_named(pods)} cannot be taken off: {error.message}"


def set_aside(snapshot: GangSnapshot, refusal: str) -> str:
    """For a gang that stands in no line because the apiserver does not take what is written for it."""
    left = "what is open keeps its room, and others may take the rest" if snapshot.open else "others start before it"
    return f"{refusal}; {left}"
