"""The page of one gang: the answer of `muster explain`, and a timeline of what happened to it.

No history is recorded: events go after an hour, as the apiserver is usually set, and pods take their times with them.
The timeline is what can still be read.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from muster.cli.explain.command import explain, explain_group
from muster.cli.explain.subjects import Event, Subject, TimedPod, events_about, subject_of, untimed
from muster.cli.page.state import PageState
from muster.cli.queues.gangs import GangEntry
from muster.cli.snapshot import ClusterSnapshot
from muster.cli.when import when_lines
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.model.times import seconds_of
from muster.planning.snapshot import GangSnapshot
from muster.queueing.ledger import GangKey
from muster.workloads import Decoded

# Events with the same words that are fewer seconds apart are one.
_SAME = 2.0
_OF_SCHEDULERS = ("Unschedulable", "FailedScheduling", "NotEnoughResources")
HOLDERS = 20
"""The number of gangs that hold the queue's resources and are named."""
MOMENTS = 200
"""The number of moments of the timeline that are shown: the last ones."""
# Seconds for the questions about one gang.
_PATIENCE = 4.0


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that happened.

    :ivar at: when, in seconds since 1970
    :ivar what: what, in a few words; of an event its reason
    :ivar detail: more of it, "" where there is no more
    :ivar source: the object it comes from: workload, PodGroup, pods, or the controller that wrote the event
    """

    at: float
    what: str
    detail: str
    source: str


def timeline(
    decoded: Decoded | None, view: GangSnapshot, pods: Sequence[TimedPod], events: Iterable[Event]
) -> list[Moment]:
    """All that is known of a gang, the oldest first.

    `decoded` is its workload, None where that is gone; `pods` are the workload's, of any scheduler, ended ones too.
    """
    # What a scheduler says of a gang that it may not place yet is no news: the gang waits for muster.
    skipped = _OF_SCHEDULERS if view.has_gated_members else ()
    news = [event for event in events if event.by_muster or event.reason not in skipped]
    found = [*_of_workload(decoded), *_of_group(view), *_of_pods(pods), *_of_events(news)]
    return sorted(found, key=lambda moment: moment.at)


def _of_workload(decoded: Decoded | None) -> Iterator[Moment]:
    if decoded is None:
        return
    meta = decoded.metadata
    yield from _at(meta.creation_timestamp, "Created", f"the workload {meta.name}", "workload")
    yield from _at(meta.deletion_timestamp, "Deletion asked for", f"of the workload {meta.name}", "workload")


def _of_group(view: GangSnapshot) -> Iterator[Moment]:
    if view.pod_group is None:
        return
    meta, mark = view.pod_group.metadata, view.record
    yield from _at(meta.creation_timestamp, "PodGroup created", meta.name, "PodGroup")
    passed = f'smaller gangs of queue "{mark.passed_in}" start before it' if mark.passed_in else ""
    yield from _at(mark.passed_since, "Passed for the first time", passed, "PodGroup")
    by = "by Kueue" if mark.admitter == "kueue" else f'in queue "{view.pod_group.spec.queue}"'
    yield from _at(mark.admitted_at, "Admitted", by if view.pod_group.spec.queue or mark.admitter else "", "PodGroup")
    yield from _at(mark.requeued_at, "Gave its place back", "and queues again", "PodGroup")


def _of_pods(pods: Sequence[TimedPod]) -> Iterator[Moment]:
    steps: tuple[tuple[str, Callable[[TimedPod], str]], ...] = (
        ("created", lambda pod: pod.metadata.creation_timestamp),
        ("placed on a node", lambda pod: _since(pod, ("PodScheduled", "True"))),
        ("ready", lambda pod: _since(pod, ("Ready", "True"))),
        ("ended", lambda pod: _since(pod, ("Ready", "PodCompleted"), ("Ready", "PodFailed"))),
    )
    for verb, when in steps:
        yield from _first_and_last(verb, pods, when)
    for pod in pods:
        for one in pod.status.conditions:
            if one.type == "DisruptionTarget" and one.status == "True":
                why = f"{pod.metadata.name}: {one.message or one.reason}"
                yield from _at(one.last_transition_time, "Pod evicted", why, "pods")


def _first_and_last(verb: str, pods: Sequence[TimedPod], when: Callable[[TimedPod], str]) -> Iterator[Moment]:
    known = sorted(
        (seconds, pod.metadata.name, pod.spec.node_name)
        for pod in pods
        if (seconds := seconds_of(when(pod))) is not None
    )
    if not known:
        return
    done = f"{len(known)} of {len(pods)} pods {verb}"
    if len(known) > 1:
        yield Moment(known[0][0], f"First pod {verb}", _named(*known[0][1:]), "pods")
    yield Moment(known[-1][0], done, ("the last was " if len(known) > 1 else "") + _named(*known[-1][1:]), "pods")


def _named(pod: str, node: str) -> str:
    return f"{pod} on {node}" if node else pod


def _since(pod: TimedPod, *states: tuple[str, str]) -> str:
    """Since when a condition has one of these types, with its status or its reason; "" for none."""
    for one in pod.status.conditions:
        if (one.type, one.status) in states or (one.type, one.reason) in states:
            return one.last_transition_time
    return ""


def _of_events(events: Iterable[Event]) -> Iterator[Moment]:
    before: dict[tuple[str, str, str], float] = {}
    for event in sorted(events, key=lambda event: event.time):
        # muster writes the same event for the workload and its PodGroup.
        at, words = seconds_of(event.time), (event.reason, event.note, event.reporting_controller)
        if at is None or at - before.get(words, float("-inf")) < _SAME:
            continue
        before[words] = at
        source = "muster" if event.by_muster else event.reporting_controller.removesuffix("/controller") or "an event"
        often = f" ({event.count} times since {event.first[:19].replace('T', ' ')})" if event.count > 1 else ""
        yield Moment(at, event.reason, event.note + often, source)


def _at(text: str, what: str, detail: str, source: str) -> Iterator[Moment]:
    seconds = seconds_of(text)
    if seconds is not None:
        yield Moment(seconds, what, detail, source)


@dataclass(frozen=True, slots=True)
class GangPage:
    """One gang as it is shown.

    :ivar entry: its entry of `muster explain -o json`
    :ivar when: when it starts, in the sentences of `muster explain`, each with its title
    :ivar listed: its entry of `muster gangs`; None for one that is not listed there
    :ivar made_by: what the user applied, where that is another object: `rayjob/train`
    :ivar lacks: what its queue, or one above, lacks for it; "" when nothing is lacking, or it is not known
    :ivar moments: its timeline, the oldest first
    :ivar older: how many older moments are left out
    :ivar troubles: why something may be missing, a sentence each
    """

    entry: Mapping[str, Any]
    when: Sequence[tuple[str, str]]
    listed: GangEntry | None
    made_by: str
    lacks: str
    moments: Sequence[Moment]
    older: int
    troubles: Sequence[str]


async def gang_page(key: GangKey, state: PageState) -> GangPage | None:
    """The page of that gang; None where there is none of that name."""
    snapshot = state.snapshot
    view = snapshot.views.get(key)
    if view is None:
        return None
    # Notes on what this user may not read of one gang are for its page alone.
    visible = replace(state.visible, missing=list(state.visible.missing), unreadable=set(state.visible.unreadable))
    troubles = []
    try:
        async with asyncio.timeout(_PATIENCE):
            subject, events = await _read(state.client, view, visible)
    except (ApiError, TimeoutError) as error:
        subject, events = _known(view), []
        why = str(error) or f"{state.client.server} takes too long"
        troubles.append(f"the events of this gang, and the times of its pods, cannot be read: {why}")
    entry = (
        explain_group(view, events, visible) if subject is None else explain(subject, visible, snapshot, state.starts)
    )
    pods: Sequence[TimedPod] = subject.pods if subject is not None else ()
    moments = timeline(view.decoded, view, pods, events)
    older = max(0, len(moments) - MOMENTS)
    when = [*when_lines(entry["when"], entry["message"], snapshot.now)] if entry["when"] is not None else []
    listed, own = state.board.gang(key), f"{entry['workload']['kind'].lower()}/{entry['workload']['name']}"
    return GangPage(
        entry,
        when,
        listed,
        made_by=listed.workload if listed is not None and listed.workload != own else "",
        lacks=state.board.lacks(key),
        moments=moments[older:],
        older=older,
        troubles=troubles,
    )


async def _read(client: Client, view: GangSnapshot, visible: ClusterSnapshot) -> tuple[Subject | None, list[Event]]:
    """The workload with its pods, None where it is gone; the events about it and about its PodGroup."""
    subject: Subject | None = None
    events: list[Event] = []
    if view.kind is not None and view.decoded is not None:
        subject = await subject_of(client, view.kind, view.decoded, visible)
        events += subject.events
    if view.pod_group is not None:
        events += await events_about(client, view.pod_group.metadata, visible)
    return subject, events


def _known(view: GangSnapshot) -> Subject | None:
    if view.kind is None or view.decoded is None:
        return None
    pods = [*(member.pod for member in view.members), *view.unmanaged_pods]
    return Subject(view.kind, view.decoded, [untimed(pod) for pod in pods])
