"""`muster explain`: why a workload waits, runs, or is not managed by muster. It only reads.

The state that the controller has recorded takes precedence over the state computed here from the same objects by the
same code: the controller knows its latest decisions, and a user may not be allowed to read all objects.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from typing import Any

from muster.admitters import Admitter
from muster.cli.connecting import opened, silence
from muster.cli.explain.reading import load_gang
from muster.cli.explain.state import (
    hidden_parts,
    hold_of_maker,
    hold_on,
    of_maker,
    other_scheduler,
    recorded,
    state_of,
    unreadable_origin,
)
from muster.cli.explain.subjects import ANY_KIND, Event, Subject, find, gang_name
from muster.cli.explain.text import print_explained
from muster.cli.explain.what_helps import what_helps
from muster.cli.names import ObjectName, UnknownSubjectError, is_pod_group, is_queue, kinds_of, parse_names
from muster.cli.snapshot import ClusterSnapshot, LedgerSnapshot, load
from muster.cli.ui import as_long_as_read, complain, print_data
from muster.cli.when import ExpectedStarts
from muster.cluster.observe import observe
from muster.gangs.gang import gang_of
from muster.gangs.intent import Intent, find_intent
from muster.gangs.roles import Gang
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.model.names import GATE, is_object_name
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.model.resource import BadNameError
from muster.planning.candidate import candidate
from muster.planning.snapshot import AdmissionRecord, GangSnapshot
from muster.queueing.ledger import Decision, GangKey, queue_not_found
from muster.resources.amounts import Resources, as_text, minus, parse_resources
from muster.validation.not_managed import why_not_managed
from muster.workloads import GANG_KINDS

_CANNOT_ASK = 2
# Seconds of CPU for the forecast of all workloads of one command.
_FORECAST = 5.0
_EVENTS = 8


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster explain`: 2 when a workload does not exist, or the cluster does not answer."""
    unknown: list[Exception] = []
    words: list[str] = arguments.workload
    bare = len(words) == 1 and is_object_name(words[0])
    names = [ObjectName(ANY_KIND, words[0])] if bare else _supported(parse_names(words), unknown)
    entries = asyncio.run(explain_each(arguments, names, unknown)) if names else []
    if entries:
        with as_long_as_read():
            if not print_data(entries, arguments.output, sys.stdout):
                print_explained(entries, sys.stdout, time.time())
    complain("explain", *unknown)
    return _CANNOT_ASK if unknown else 0


def _supported(names: Sequence[ObjectName], unknown: list[Exception]) -> list[ObjectName]:
    """The names of supported kinds; `unknown` gets an error for each other one."""
    found = []
    for named in names:
        try:
            if is_queue(named.kind):
                unknown.append(UnknownSubjectError(f"explain is for workloads; for queue {named.name}: muster queues"))
                continue
            if not is_pod_group(named.kind):
                kinds_of(named.kind)
            found.append(named)
        except UnknownSubjectError as error:
            unknown.append(error)
    return found


async def explain_each(
    arguments: argparse.Namespace, names: Sequence[ObjectName], unknown: list[Exception]
) -> list[dict[str, Any]]:
    """An entry for each workload that is found; `unknown` gets an error for each name without one."""
    helps = arguments.what_would_help
    found: list[tuple[Subject, ClusterSnapshot]] = []
    async with opened(arguments) as (client, settings):
        namespace = arguments.namespace or client.namespace
        everything = ClusterSnapshot.empty(settings) if arguments.ledger or helps else None
        for named in names:
            snapshot = everything or ClusterSnapshot.empty(settings)
            try:
                subjects = await find(client, named, None if arguments.all_namespaces else namespace, snapshot)
            except (ApiError, BadNameError, UnknownSubjectError, InvalidObjectError) as error:
                unknown.append(error)
                continue
            found += [(subject, snapshot) for subject in subjects]
            if everything is None:
                for subject in subjects:
                    await load_gang(client, subject, snapshot)
        if everything is not None and found:
            await load(client, namespace, everything)
        # What runs does not need a controller.
        silent = await silence(client, settings) if any(_waits(subject) for subject, _ in found) else ""
    if silent:
        for visible in {id(one): one for _, one in found}.values():
            visible.missing.insert(0, silent)
    if everything is None:
        return [explain(subject, one, one.ledger_snapshot(time.time()), None) for subject, one in found]
    ledgers = everything.ledger_snapshot(time.time())
    starts = ExpectedStarts(ledgers.ledger, ledgers.now, seconds=_FORECAST, whole=everything.whole)
    return [explain(subject, everything, ledgers, starts, helps=helps) for subject, _ in found]


def _waits(subject: Subject) -> bool:
    living = [pod for pod in subject.pods if pod.living]
    return not living or any(not pod.spec.node_name for pod in living)


def explain(
    subject: Subject,
    visible: ClusterSnapshot,
    snapshot: LedgerSnapshot,
    starts: ExpectedStarts | None,
    *,
    helps: bool = False,
) -> dict[str, Any]:
    """The entry of one workload; a field is None when it does not apply, is not known, or was not asked for (help)."""
    meta = subject.decoded.metadata
    key = GangKey(meta.namespace, gang_name(subject.kind, subject.decoded))
    entry = _blank(subject.kind.kind, GangKey(meta.namespace, meta.name), subject.events, visible)
    if unlike := other_scheduler(subject, visible):
        entry["unknown"].append(unlike)
    if subject.makes_none:
        state, message = of_maker(subject)
        return entry | {"state": state, "message": message, "onHold": hold_of_maker(subject) or None}
    if subject.kind not in GANG_KINDS and subject.kind.owns_pod_group:
        entry |= {
            "state": str(GangState.NOT_MANAGED),
            "message": f"`muster plan` shows {subject.kind.kind}s; muster does not hold their pods",
        }
        return entry
    scope = visible.cluster.scope_of(subject.kind, subject.decoded)
    view = snapshot.views.get(key) or observe(key, visible.cluster, visible.defaults)
    try:
        workload = subject.kind.read(visible.cluster.whole(subject.kind, subject.decoded))
        intent = view.intent if view.withdrawn else find_intent(workload, visible.defaults, scope)
        pod_defaults = visible.cluster.added.of(key.namespace)
        if not workload.roles:
            # Plain pods that join no gang: their Job may name a queue all the same.
            intent = None
        gang = gang_of(workload, intent, visible.cluster.priorities(), pod_defaults) if intent else None
    except InvalidObjectError as error:
        state, message = recorded(view) or unreadable_origin(subject, visible) or (GangState.INVALID, str(error))
        return entry | {"state": str(state), "message": message, "gang": _group(key, view)}
    why_not = "" if intent else why_not_managed(subject.kind, subject.decoded, workload, visible.defaults, scope)
    hidden = hidden_parts(view, intent, visible)
    lost = _lost(view, intent, visible, snapshot)
    state, message = state_of(subject, view, workload, why_not, lost=lost, hidden=hidden)
    entry |= {"state": state, "message": message, "gang": _group(key, view, hidden="PodGroups" in hidden)}
    if intent is not None and gang is not None:
        queue = _queue(view, intent)
        entry["scheduling"] = {
            "scheduler": intent.scheduler,
            "admitter": str(view.admitter),
            "queue": queue,
            "priorityClassName": intent.priority_class,
            "from": dict(intent.paths),
        }
        entry["roles"] = _roles(subject, gang)
        if state != GangState.NOT_MANAGED:
            entry |= _room(view, gang, queue, visible, snapshot)
            entry["when"] = starts.when(key) if starts is not None else None
            if helps and visible.whole and snapshot.ledger.candidate(key) is not None:
                entry["help"] = what_helps(snapshot.ledger, key, snapshot.now, gang.roles, view.namespace)
            gone = visible.is_lost(view, queue, snapshot.ledger)
            entry["onHold"] = hold_on(view, snapshot.ledger.tree, queue, lost=gone) or None
    return entry


def explain_group(view: GangSnapshot, events: Sequence[Event], visible: ClusterSnapshot) -> dict[str, Any]:
    """The entry of a PodGroup whose workload is gone, or cannot be read."""
    entry = _blank("PodGroup", view.key, events, visible)
    state, message = recorded(view) or ("", "no workload of it is there, or none that you may read")
    return entry | {"state": state, "message": message, "gang": _group(view.key, view)}


def _blank(kind: str, named: GangKey, events: Sequence[Event], visible: ClusterSnapshot) -> dict[str, Any]:
    return {
        "workload": {"kind": kind, "namespace": named.namespace, "name": named.name},
        "state": "",
        "message": "",
        **dict.fromkeys(("gang", "scheduling", "onHold", "position", "when", "help", "needs", "holds")),
        "queues": [],
        "holders": [],
        "roles": [],
        "events": [
            {
                "time": event.time,
                "type": event.type,
                "reason": event.reason,
                "note": event.note,
                "from": event.reporting_controller,
            }
            for event in _latest(events)
        ],
        "unknown": list(visible.missing),
    }


def _latest(events: Sequence[Event]) -> list[Event]:
    """The last events, and the last ones of muster, which those of the pods would push out; the oldest first."""
    own = [event for event in events if event.by_muster][-_EVENTS:]
    last = events[-_EVENTS:]
    return [event for event in events if event in own or event in last]


def _lost(
    view: GangSnapshot, intent: Intent | None, visible: ClusterSnapshot, snapshot: LedgerSnapshot
) -> Decision | None:
    """The decision on a gang that gets no PodGroup: its queue does not exist, or takes no gangs. None for others."""
    if intent is not None and visible.is_lost(view, intent.queue, snapshot.ledger):
        return queue_not_found(intent.queue, view.key.namespace)
    return snapshot.kept_out.get(view.key)


def _queue(view: GangSnapshot, intent: Intent) -> str:
    """The queue of the gang; for an admitted gang the queue of its PodGroup."""
    return view.pod_group.spec.queue if view.pod_group is not None and view.ours else intent.queue


def _group(key: GangKey, view: GangSnapshot, *, hidden: bool = False) -> dict[str, Any] | None:
    """The PodGroup; `exists` is None where it may be there, and this user may not read it. None without a name."""
    group = view.pod_group
    if group is None:
        exists = None if hidden else False
        return {"podGroup": key.name, "exists": exists, "phase": "", "minMember": None} if key.name else None
    # Not every scheduler's has the gang's name.
    named = group.metadata.name
    return {"podGroup": named, "exists": True, "phase": group.status.phase, "minMember": group.spec.min_member}


def _roles(subject: Subject, gang: Gang) -> list[dict[str, Any]]:
    of_role: dict[str | None, list[Pod]] = {}
    for pod in subject.pods:
        if pod.living:
            of_role.setdefault(subject.kind.role_of(pod), []).append(pod)
    return [
        {
            "name": role.name,
            "replicas": role.replicas,
            "minMember": role.minimum,
            "there": len(pods := of_role.get(role.name, [])),
            "gated": sum(pod.gated(GATE) for pod in pods),
            "bound": sum(bool(pod.spec.node_name) for pod in pods),
            "requests": as_text(role.requests),
        }
        for role in gang.roles
    ]


def _room(
    view: GangSnapshot, gang: Gang, queue: str, visible: ClusterSnapshot, snapshot: LedgerSnapshot
) -> dict[str, Any]:
    """The need or claim of the gang, the free room of its queue and those above, and the gangs that hold the rest."""
    ledger, key = snapshot.ledger, view.key
    by_queue = view.admitter is Admitter.LEDGER
    held = ledger.holds(key) if view.ours else ledger.holds(key) or ledger.holds(key.part("bound"))
    position = ledger.position(key, snapshot.now)
    need: Resources = gang.min_resources
    if view.gang is not None and view.intent is not None:
        need = candidate(view, AdmissionRecord()).need
    if view.ours and view.pod_group is not None and not visible.cluster.added.ranges.synced:
        # The defaults of the namespace, which the controller has counted, have not been read.
        need = parse_resources(view.pod_group.spec.min_resources, path="spec.minResources") or need
    # If another one admits the gang, the free room of a queue does not matter to it.
    place = ledger.tree.place(queue, view.namespace) if by_queue else None
    levels = place.levels if place else ()
    shared = {level.queue for level in levels}
    holders = [
        (other, name, claim)
        for name in {view.name for view in ledger.tree} | {queue}
        if by_queue and not shared.isdisjoint(ledger.tree.path(name))
        for other, claim in ledger.claims(name).items()
        if other != key
    ]
    return {
        "needs": as_text(need),
        "holds": None if held is None else as_text(held),
        # The position is known only when all namespaces can be read.
        "position": {"position": position[0], "waiting": position[1]} if position and visible.whole else None,
        "queues": [
            {
                "name": level.queue,
                "limit": as_text(level.limit),
                "used": as_text(used) if visible.whole else None,
                "free": as_text(minus(level.limit, used)) if visible.whole else None,
            }
            for level in levels
            for used in [ledger.used(level.queue)]
        ],
        "holders": [
            {
                "namespace": other.namespace,
                "name": str(other).partition("/")[2],
                "queue": name,
                "claim": as_text(claim.whole),
            }
            for other, name, claim in sorted(holders, key=lambda holder: (holder[1] != queue, holder[1], holder[0]))
        ],
    }
