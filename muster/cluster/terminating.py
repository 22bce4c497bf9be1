"""Pods that are being deleted: each holds its quota until it is gone.

Its containers run for as long as their grace period lasts. On a node that is not Ready no kubelet ends them, so that
such a pod may stay for ever: there it counts until the time at which it should be gone. A replacement runs with it
only if it ends soon.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from muster.cluster.cluster import Cluster
from muster.model.objects import InvalidObjectError
from muster.model.pods import Pod
from muster.model.times import seconds_of
from muster.planning.run_times import GONE_IN
from muster.resources.amounts import Resources, total

# Seconds after which nodes are looked at again on which pods should be gone, and are not.
_LOOK_AGAIN = 15.0
# Seconds before and after the time at which a pod should be gone in which it does not keep its replacement waiting.
_SOON = 600.0


def leaving(cluster: Cluster, pods: Iterable[Pod], now: float) -> list[Pod]:
    """The pods among these that still hold quota; `now` in seconds of the wall clock."""
    deleted = [pod for pod in pods if pod.metadata.deletion_timestamp]
    return [pod for pod in deleted if _leaves(pod) and not (_due(pod) <= now and _lost(cluster, pod.spec.node_name))]


def look_again_in(pods: Iterable[Pod], now: float) -> float | None:
    """The seconds after which one of these may stop counting without any event."""
    due = [_due(pod) for pod in pods if pod.metadata.deletion_timestamp and _leaves(pod)]
    return max(min(one if one < now + _SOON else one - _SOON for one in due) - now, _LOOK_AGAIN) if due else None


def ends_soon(pod: Pod, now: float) -> bool:
    """True if a pod that is being deleted is gone in ten minutes, or should have been for no longer than that.

    Without a grace period only the second is known.
    """
    longer = pod.metadata.deletion_grace_period_seconds is not None and _due(pod) - now > _SOON
    return not longer and now - _due(pod) <= _SOON


def gone_by(pods: Iterable[Pod]) -> float | None:
    """The time at which the last of these pods is gone (wall clock, seconds); None if one is not being deleted."""
    pods = list(pods)
    if not pods or not all(pod.metadata.deletion_timestamp for pod in pods):
        return None
    return max(map(_due, pods)) + GONE_IN


def requests_of(cluster: Cluster, pods: Iterable[Pod]) -> Resources:
    """The requests of these pods together."""
    asked = []
    for pod in pods:
        with suppress(InvalidObjectError):  # the apiserver has checked the quantities of every pod
            asked.append(cluster.requests_of(pod))
    return total(asked)


def _leaves(pod: Pod) -> bool:
    """True if it is being deleted and has not left its node yet."""
    leaves = pod.metadata.deletion_timestamp and pod.spec.node_name
    return bool(leaves) and not pod.finished


def _due(pod: Pod) -> float:
    return seconds_of(pod.metadata.deletion_timestamp) or 0.0


def _lost(cluster: Cluster, name: str) -> bool:
    """True if the node is not Ready, or gone; where nodes may not be read it is taken for Ready."""
    if not cluster.nodes.synced:
        return False
    node = cluster.nodes.get("", name)
    return node is None or not node.ready
