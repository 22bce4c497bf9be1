"""`muster explain`: why a workload waits, runs, or is none of muster's business; it reads and never writes.

What the controller has written down goes before what is reckoned here from the same objects by the same code: it knows
more (what it decided a moment ago), and a user may not see all that it sees.
"""

from __future__ import annotations

import asyncio
import sys
import time
from typing import TYPE_CHECKING, Any

from muster.cli.explained import print_explained
from muster.cli.output import as_long_as_read, print_data
from muster.cli.picture import LedgerSnapshot, Picture, look
from muster.cli.subjects import Subject, UnknownSubjectError, find, gang_name, parse_name
from muster.gangs.gang import Gang, gang_of
from muster.gangs.intent import find_intent
from muster.kube.client import Client
from muster.kube.config import ConfigError
from muster.kube.errors import ApiError
from muster.model.gang_states import GangState
from muster.model.names import GATE, MESSAGE, STATE
from muster.model.objects import InvalidObjectError
from muster.observe.candidates import candidate
from muster.observe.messages import at_rest, in_the_way, left_alone
from muster.observe.observing import observe
from muster.observe.view import Mark, View
from muster.queueing.ledger import Decision, GangKey, queue_not_found
from muster.resources.amounts import Resources, as_text, minus
from muster.validation.not_managed import why_not_managed
from muster.workloads import GANG_KINDS

if TYPE_CHECKING:
    import argparse

    from muster.gangs.intent import Intent
    from muster.model.objects import Pod
    from muster.workloads import Workload

__all__ = ["explain", "run"]

_CANNOT_ASK = 2
_EVENTS = 8


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster explain`: 2 when there is no such workload, or the cluster cannot be asked."""
    try:
        entries = asyncio.run(_explain(arguments))
    except (ApiError, ConfigError, UnknownSubjectError, InvalidObjectError) as error:
        print(f"muster explain: {error}", file=sys.stderr)
        return _CANNOT_ASK
    with as_long_as_read():
        if not print_data(entries, arguments.output, sys.stdout):
            print_explained(entries, sys.stdout, time.time())
    return 0


async def _explain(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    word, name = parse_name(arguments.workload)
    async with await Client.connect(
        kubeconfig=arguments.kubeconfig, context=arguments.context, user_agent="muster-explain"
    ) as client:
        namespace = arguments.namespace or client.namespace
        picture = Picture.begun(arguments)
        subjects = await find(client, word, name, namespace, picture)
        await look(client, namespace, picture)
    snapshot = picture.ledger_snapshot(time.time())
    return [explain(subject, picture, snapshot) for subject in subjects]


def explain(subject: Subject, picture: Picture, snapshot: LedgerSnapshot) -> dict[str, Any]:
    """All that there is to say of one workload; None where a thing does not apply or is not known."""
    meta = subject.decoded.metadata
    key = GangKey(meta.namespace, gang_name(subject.kind, subject.decoded))
    entry: dict[str, Any] = {
        "workload": {"kind": subject.kind.kind, "namespace": meta.namespace, "name": meta.name},
        "state": "",
        "message": "",
        "gang": None,
        "scheduling": None,
        "position": None,
        "needs": None,
        "holds": None,
        "queues": [],
        "holders": [],
        "roles": [],
        "events": [
            {"time": said.time, "type": said.type, "reason": said.reason, "note": said.note, "from": said.source}
            for said in subject.events[-_EVENTS:]
        ],
        "unknown": list(picture.missing),
    }
    if subject.makes_none:
        entry["message"] = subject.makes_none
        return entry
    if subject.kind not in GANG_KINDS and subject.kind.owns_pod_group:
        entry |= {
            "state": str(GangState.NOT_MANAGED),
            "message": f"muster plans {subject.kind.kind}s, and holds none yet",
        }
        return entry
    around = picture.cluster.around(subject.kind, subject.decoded)
    view = snapshot.views.get(key) or observe(key, picture.cluster, picture.defaults)
    try:
        workload = subject.kind.read(picture.cluster.whole(subject.kind, subject.decoded))
        intent = view.intent if view.withdrawn else find_intent(workload, picture.defaults, around)
        pod_defaults = picture.cluster.added.of(key.namespace)
        gang = gang_of(workload, intent, picture.cluster.priorities(), pod_defaults) if intent else None
    except InvalidObjectError as error:
        entry |= {"state": str(GangState.INVALID), "message": str(error)}
        return entry
    why_not = "" if intent else why_not_managed(subject.kind, subject.decoded, workload, picture.defaults, around)
    state, message = _standing(subject, view, workload, why_not, _lost(view, intent, picture, snapshot))
    entry |= {"state": state, "message": message, "gang": _group(key, view)}
    if intent is not None and gang is not None:
        entry["scheduling"] = {
            "scheduler": intent.scheduler,
            "queue": _queue(view, intent),
            "priorityClassName": intent.priority_class,
            "from": dict(intent.said),
        }
        entry["roles"] = _roles(subject, gang)
        if state != GangState.NOT_MANAGED:
            entry |= _room(view, gang, _queue(view, intent), picture, snapshot)
    return entry


def _lost(view: View, intent: Intent | None, picture: Picture, snapshot: LedgerSnapshot) -> Decision | None:
    """What is said where there is no queue for the gang; None where there is one, or where nobody can see whether."""
    tree, namespace = snapshot.ledger.tree, picture.cluster.namespaces.get("", view.key.namespace)
    if intent is None or not tree or namespace is None or tree.open_to(intent.queue, view.namespace):
        return None
    return queue_not_found(intent.queue)


def _standing(subject: Subject, view: View, workload: Workload, why_not: str, lost: Decision | None) -> tuple[str, str]:
    """State and sentence: the controller's own where there are any, else why there are none.

    `why_not` says why the workload is none of muster's, "" where it is; `lost` what is said of a queue that is not
    there for it, without which the gang gets no PodGroup.
    """
    group = view.pod_group
    living = [pod for pod in subject.pods if pod.living]
    if group is not None and view.ours and group.metadata.annotations.get(STATE):
        said = group.metadata.annotations
        return said[STATE], said.get(MESSAGE, "")
    if group is not None and not view.ours and (view.members or view.unmanaged_pods):
        return in_the_way(view)
    if why_not:
        return GangState.NOT_MANAGED, why_not
    if view.left_alone:
        return left_alone(view)
    if not workload.active:
        return at_rest(workload)
    if not living:
        return GangState.ASSEMBLING, "it has no pods yet; its operator makes them, and says in its events why not"
    if lost is not None:
        return lost.state, lost.message
    return (
        GangState.ASSEMBLING,
        "the controller has said nothing of it yet; when that lasts, is muster-controller running?",
    )


def _queue(view: View, intent: Intent) -> str:
    """Where it queues: while it is admitted, as it was admitted."""
    return view.pod_group.spec.queue if view.pod_group is not None and view.ours else intent.queue


def _group(key: GangKey, view: View) -> dict[str, Any]:
    group = view.pod_group
    if group is None:
        return {"podGroup": key.name, "exists": False, "phase": "", "minMember": None}
    return {"podGroup": key.name, "exists": True, "phase": group.status.phase, "minMember": group.spec.min_member}


def _roles(subject: Subject, gang: Gang) -> list[dict[str, Any]]:
    of_role: dict[str | None, list[Pod]] = {}
    for pod in subject.pods:
        if pod.living:
            of_role.setdefault(subject.kind.role_of(pod), []).append(pod)
    return [
        {
            "name": role.name,
            "wanted": role.replicas,
            "minimum": role.minimum,
            "there": len(pods := of_role.get(role.name, [])),
            "gated": sum(pod.gated(GATE) for pod in pods),
            "bound": sum(bool(pod.spec.node_name) for pod in pods),
            "requests": as_text(role.requests),
        }
        for role in gang.roles
    ]


def _room(view: View, gang: Gang, queue: str, picture: Picture, snapshot: LedgerSnapshot) -> dict[str, Any]:
    """What it needs or holds, what is free on every level above it, and who holds the rest."""
    ledger, key = snapshot.ledger, view.key
    held = ledger.holds(key)
    position = ledger.position(key, snapshot.now)
    need: Resources = gang.min_resources
    if view.gang is not None and view.intent is not None:
        need = candidate(view, picture.cluster.priorities(), Mark()).need
    place = ledger.tree.place(queue, view.namespace)
    levels = place.levels if place else ()
    shared = {level.queue for level in levels}
    holders = [
        (other, name, claim)
        for name in {view.name for view in ledger.tree} | {queue}
        if not shared.isdisjoint(ledger.tree.path(name))
        for other, claim in ledger.claims(name).items()
        if other != key
    ]
    return {
        "needs": as_text(need),
        "holds": None if held is None else as_text(held),
        # In a part of the cluster nobody can say who stands before whom.
        "position": {"position": position[0], "waiting": position[1]} if position and picture.whole else None,
        "queues": [
            {
                "name": level.queue,
                "limit": as_text(level.limit),
                "used": as_text(used) if picture.whole else None,
                "free": as_text(minus(level.limit, used)) if picture.whole else None,
            }
            for level in levels
            for used in [ledger.used(level.queue)]
        ],
        "holders": [
            {"namespace": other.namespace, "name": other.name, "queue": name, "claim": as_text(claim.resources)}
            for other, name, claim in sorted(holders, key=lambda holder: (holder[1] != queue, holder[1], holder[0]))
        ],
    }
