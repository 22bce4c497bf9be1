"""Pods that have a node and do not become ready: no image, no container, a crash again and again, a failing probe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import NamedTuple

from muster.model.pods import Pod
from muster.planning.snapshot import Member

# What any new pod waits for.
_USUAL = frozenset({"", "ContainerCreating", "PodInitializing"})
# Between two crashes a container may be ready, for less than the kubelet's longest delay.
_CRASHES, _CALM = "CrashLoopBackOff", 600.0

_UNREADY = attrgetter("unready")


class Unready(NamedTuple):
    """Since when a pod has not been ready, when it was last seen so, and why (seconds of one clock)."""

    since: float
    seen: float
    reason: str


def unready(pod: Pod) -> str:
    """Why a living pod with a node is not ready, in the kubelet's word; "" for any other pod."""
    status = pod.status
    if not pod.spec.node_name or not pod.living:
        return ""
    statuses = (*status.init_container_statuses, *status.container_statuses)
    waiting = [one.state.waiting.reason for one in statuses if one.state.waiting is not None]
    ready = next((one.status for one in status.conditions if one.type == "Ready"), "")
    reason = next((one for one in waiting if one not in _USUAL), "")
    return reason or ("not started" if waiting else "not ready" if ready == "False" else "")


def followed(members: Iterable[Member], before: Mapping[str, Unready], now: float) -> dict[str, Unready]:
    """The pods that are not ready, by UID, as they are now; those that crash stay so for a while when they run."""
    found = {}
    for member in filter(_UNREADY, members):
        uid = member.pod.metadata.uid
        since = before[uid].since if uid in before else now
        found[uid] = Unready(since, now, member.unready)
    crashed = {uid: one for uid, one in before.items() if one.reason == _CRASHES and now < one.seen + _CALM}
    if crashed:
        there = {member.pod.metadata.uid for member in members}
        found = {**{uid: one for uid, one in crashed.items() if uid in there}, **found}
    return found


def too_long(pods: Mapping[str, Unready], now: float, grace: float) -> dict[str, str]:
    """Why those of the pods are not ready that have not been for so many seconds."""
    return {uid: one.reason for uid, one in pods.items() if one.since + grace <= now}


def ready_in(pods: Mapping[str, Unready], now: float, grace: float) -> float | None:
    """The seconds after which `too_long` may say more, or less, without any event."""
    late = (one.since + grace for one in pods.values() if one.since + grace > now)
    calm = (one.seen + _CALM for one in pods.values() if one.reason == _CRASHES)
    due = min((*late, *calm), default=None)
    return None if due is None else max(due - now, 1.0)
