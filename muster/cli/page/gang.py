"""What the page of one gang shows: the answer of `muster explain`, and the gang's timeline.

Pods and events are read when the page is asked for. When the apiserver does not answer in time, the page shows what the
watches know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from muster.cli.explain import explain, explain_group
from muster.cli.picture import Picture
from muster.cli.subjects import Said, Subject, events_about, subject_of
from muster.cli.timeline import Moment, TimedPod, timeline, untimed
from muster.cli.when import when_lines
from muster.kube.client import Client
from muster.kube.errors import ApiError
from muster.observe.view import View
from muster.queueing.ledger import GangKey

if TYPE_CHECKING:
    from muster.cli.page.state import PageState


HOLDERS = 20
"""How many of the gangs that hold the queue's resources are named."""
MOMENTS = 200
"""How many moments of the timeline are shown: the last ones."""

# Seconds for the questions about one gang.
_PATIENCE = 4.0


@dataclass(frozen=True, slots=True)
class GangPage:
    """One gang as it is shown.

    :ivar entry: what `muster explain -o json` says of it
    :ivar when: when it starts, as `muster explain` says it, each sentence with its title
    :ivar lacks: what its queue, or one above, lacks for it; "" where nothing is lacking, or nobody can know
    :ivar moments: its timeline, the oldest first
    :ivar older: how many older moments are left out
    :ivar troubles: why something may be missing, a sentence each
    """

    entry: Mapping[str, Any]
    when: Sequence[tuple[str, str]]
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
    # What this user may not read of one gang is said on its page alone.
    picture = replace(state.picture, missing=list(state.picture.missing))
    troubles = []
    try:
        async with asyncio.timeout(_PATIENCE):
            subject, events = await _read(state.client, view, picture)
    except (ApiError, TimeoutError) as error:
        subject, events = _known(view), []
        why = str(error) or f"{state.client.server} takes too long"
        troubles.append(f"the events of this gang, and the times of its pods, cannot be read: {why}")
    entry = (
        explain_group(view, events, picture) if subject is None else explain(subject, picture, snapshot, state.starts)
    )
    pods: Sequence[TimedPod] = subject.pods if subject is not None else ()
    moments = timeline(view.decoded, view, pods, events)
    older = max(0, len(moments) - MOMENTS)
    when = [*when_lines(entry["when"], entry["message"], snapshot.now)] if entry["when"] is not None else []
    return GangPage(entry, when, state.board.lacks(key), moments[older:], older, troubles)


async def _read(client: Client, view: View, picture: Picture) -> tuple[Subject | None, list[Said]]:
    """The workload with its pods, None where it is gone; the events about it and about its PodGroup."""
    subject: Subject | None = None
    events: list[Said] = []
    if view.kind is not None and view.decoded is not None:
        subject = await subject_of(client, view.kind, view.decoded, picture)
        events += subject.events
    if view.pod_group is not None:
        events += await events_about(client, view.pod_group.metadata, picture)
    return subject, events


def _known(view: View) -> Subject | None:
    if view.kind is None or view.decoded is None:
        return None
    pods = [*(member.pod for member in view.members), *view.unmanaged_pods]
    return Subject(view.kind, view.decoded, [untimed(pod) for pod in pods])
