"""`muster gangs`: the gangs that wait, run or cannot start, and since when; also for `muster watch` and the page."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.cli.connecting import opened
from muster.cli.snapshot import ClusterSnapshot, LedgerSnapshot, read_cluster
from muster.cli.ui import CommandError, age, aligned, amounts, as_long_as_read, complain, print_data
from muster.gangs.gang import priority_value
from muster.model.gang_states import GangState
from muster.model.names import MESSAGE, STATE
from muster.model.texts import did_you_mean
from muster.model.times import seconds_of, stamp_of
from muster.planning.messages import in_the_way
from muster.planning.snapshot import GangSnapshot
from muster.queueing.entries import EntryKey
from muster.queueing.ledger import GangKey
from muster.resources.amounts import Resources, as_text
from muster.workloads import kind_of_owner

_AT_REST = (GangState.FINISHED, GangState.NOT_MANAGED, GangState.EXTERNAL)


@dataclass(frozen=True, slots=True)
class GangEntry:
    """A gang that waits, runs or cannot start.

    :ivar key: the namespace and the name of the gang
    :ivar workload: what the user applied: `rayjob/train`; "" where it is not known
    :ivar queue: the queue in which it waits, or holds
    :ivar state: its state
    :ivar message: why it is in this state
    :ivar priority: the value of its PriorityClass
    :ivar since: when it began to wait or was admitted (seconds of the wall clock); None where it is not known
    :ivar position: its place among the waiting gangs of its queue; None where it does not queue
    :ivar needs: what a waiting gang needs
    :ivar holds: what it holds of its queue; None while it holds nothing
    """

    key: GangKey
    workload: str
    queue: str
    state: str
    message: str
    priority: int
    since: float | None
    position: int | None = None
    needs: Resources | None = None
    holds: Resources | None = None

    @property
    def title(self) -> str:
        """The workload, as kubectl takes it; the PodGroup where no workload is known."""
        return self.workload or f"podgroup/{self.key.name}"

    @property
    def data(self) -> dict[str, Any]:
        """The entry for programs."""
        return {
            "namespace": self.key.namespace,
            "name": self.key.name,
            "workload": self.workload or None,
            "queue": self.queue,
            "state": self.state,
            "message": self.message,
            "priority": self.priority,
            "since": stamp_of(self.since) if self.since is not None else None,
            "position": self.position,
            "needs": as_text(self.needs) if self.needs is not None else None,
            "holds": as_text(self.holds) if self.holds is not None else None,
        }


@dataclass(frozen=True, slots=True)
class Gangs:
    """The gangs of a snapshot.

    :ivar waiting: those that wait in a queue, by queue, each in the order in which its gangs start
    :ivar holding: those that are admitted or run, by queue
    :ivar others: those that hold nothing and do not queue: they assemble, or cannot start
    """

    waiting: Sequence[GangEntry]
    holding: Sequence[GangEntry]
    others: Sequence[GangEntry]

    @classmethod
    def of(cls, snapshot: LedgerSnapshot) -> Gangs:
        """The gangs of a snapshot."""
        ledger, waiting, holding = snapshot.ledger, list[GangEntry](), list[GangEntry]()
        # What a PodGroup holds that is not muster's has a key of its own.
        views: dict[EntryKey, GangSnapshot] = dict(snapshot.views.items())
        views |= {key.part("bound"): view for key, view in snapshot.views.items() if not view.ours}
        for queue in sorted({name for key in views if (name := ledger.queue_of(key)) is not None}):
            for place, key in enumerate(ledger.waiting(queue), 1):
                candidate = ledger.candidate(key)
                if key in views and candidate is not None:
                    entry = _entry(snapshot, views[key], queue, candidate.priority, views[key].record.requeued_at)
                    waiting.append(replace(entry, position=place, needs=candidate.need))
            for key, claim in sorted(ledger.claims(queue).items()):
                if key in views:
                    entry = _entry(snapshot, views[key], queue, claim.priority, views[key].record.admitted_at)
                    holding.append(replace(entry, holds=claim.whole))
        return cls(waiting, holding, list(_others(snapshot, {one.key for one in (*waiting, *holding)})))


def _others(snapshot: LedgerSnapshot, known: set[GangKey]) -> Iterator[GangEntry]:
    for key, view in sorted(snapshot.views.items()):
        if key not in known and view.intent is not None:
            priority = priority_value(view.intent.priority_class, view.priorities)
            entry = _entry(snapshot, view, view.intent.queue, priority)
            if entry.state not in _AT_REST:
                yield entry


def _entry(snapshot: LedgerSnapshot, view: GangSnapshot, queue: str, priority: int, since: str = "") -> GangEntry:
    """The entry of a gang; without a time `since` when, from when its first pod or its workload was created."""
    created = view.decoded.metadata.creation_timestamp if view.decoded is not None else ""
    began = seconds_of(since) or view.since or seconds_of(created)
    return GangEntry(view.key, workload_of(view), queue, *reported_state(view, snapshot), priority, began)


def workload_of(view: GangSnapshot) -> str:
    """The workload of a gang that the user has applied, as kubectl takes it; "" where it is not known."""
    plain = view.kind is not None and not view.kind.owns_pod_group
    made = [owner for owner in view.above.makers if plain or kind_of_owner(owner) is not None]
    if made:
        return f"{made[-1].kind.lower()}/{made[-1].name}"
    if plain or view.kind is None or view.decoded is None:
        return ""
    return f"{view.kind.kind.lower()}/{view.decoded.metadata.name}"


def reported_state(view: GangSnapshot, snapshot: LedgerSnapshot) -> tuple[str, str]:
    """State and message of a gang: those on its PodGroup, or else why it has none of its own."""
    if view.pod_group is not None and not view.ours and (view.members or view.unmanaged_pods):
        state, message = in_the_way(view)
        return str(state), message
    if (kept_out := snapshot.kept_out.get(view.key)) is not None:
        return str(kept_out.state), kept_out.message
    annotations = view.pod_group.metadata.annotations if view.pod_group is not None else {}
    if annotations.get(STATE):
        return annotations[STATE], annotations.get(MESSAGE, "")
    return unreported(pods=bool(view.members or view.unmanaged_pods))


def unreported(*, pods: bool) -> tuple[str, str]:
    """State and message of a gang for which the controller has reported none; `pods` is true if it has any."""
    if not pods:
        return (
            str(GangState.ASSEMBLING),
            "it has no pods yet; if its operator cannot create them, the events of the operator say why",
        )
    down = "muster-controller may be down"
    message = f"the controller has not reported a state yet; if this lasts, tell your administrator: {down}"
    return str(GangState.ASSEMBLING), message


def run(arguments: argparse.Namespace) -> int:
    """The exit code of `muster gangs`. Raises CommandError for a queue that does not exist."""
    visible = asyncio.run(_read(arguments))
    snapshot = visible.ledger_snapshot(time.time())
    found = _chosen(arguments, Gangs.of(snapshot), snapshot)
    with as_long_as_read():
        if not print_data(
            {"gangs": [one.data for one in found], "unknown": visible.missing}, arguments.output, sys.stdout
        ):
            wide = arguments.output == "wide"
            print("\n".join(gang_lines(found, snapshot.now, wide=wide) if found else ["no gangs"]))
    complain("gangs", *visible.missing)
    return 0


async def _read(arguments: argparse.Namespace) -> ClusterSnapshot:
    async with opened(arguments) as (client, settings):
        return await read_cluster(client, settings, arguments.namespace or client.namespace)


def _chosen(arguments: argparse.Namespace, gangs: Gangs, snapshot: LedgerSnapshot) -> list[GangEntry]:
    """The gangs that the options ask for, those that wait first."""
    found = [*gangs.waiting, *gangs.others, *(() if arguments.waiting else gangs.holding)]
    if arguments.queue:
        tree = snapshot.ledger.tree
        if tree.get(arguments.queue) is None:
            hint = did_you_mean(arguments.queue, (view.name for view in tree))
            raise CommandError(f'there is no queue "{arguments.queue}", or none that you may read{hint}')
        below = set(tree.with_below(arguments.queue))
        found = [one for one in found if one.queue in below]
    return [one for one in found if arguments.namespace in (None, one.key.namespace)]


def gang_lines(entries: Sequence[GangEntry], now: float, *, wide: bool = False) -> list[str]:
    """The gangs as a table; `wide` with their messages."""
    head = ["NAMESPACE", "WORKLOAD", "QUEUE", "STATE", "POSITION", "PRIORITY", "AGE", "NEEDS OR HOLDS"]
    rows = [
        [
            *(one.key.namespace, one.title, one.queue, one.state),
            str(one.position or "-"),
            str(one.priority),
            age(now - one.since) if one.since is not None else "-",
            amounts(as_text(one.needs or one.holds or {})) if one.needs or one.holds else "-",
            *([one.message] if wide else []),
        ]
        for one in entries
    ]
    return aligned([*head, *(["MESSAGE"] if wide else [])], rows, right=(4, 5, 6))
