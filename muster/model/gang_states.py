"""The states of a gang: the stable words that stand in events, annotations and metrics."""

from __future__ import annotations

from enum import StrEnum


class GangState(StrEnum):
    """Where a gang stands, and why it waits; docs/reasons.md says of each what to do."""

    ASSEMBLING = "Assembling"
    WAITING_FOR_QUOTA = "WaitingForQuota"
    WAITING_FOR_KUEUE = "WaitingForKueue"
    EXCEEDS_KUEUE_QUOTA = "ExceedsKueueQuota"
    EXCEEDS_CAPABILITY = "ExceedsCapability"
    EXCEEDS_ELASTIC_QUOTA = "ExceedsElasticQuota"
    QUEUE_NOT_FOUND = "QueueNotFound"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_NOT_LEAF = "QueueNotLeaf"
    ON_HOLD = "OnHold"
    DEADLINE_NEAR = "DeadlineNear"
    DEADLINE_PASSED = "DeadlinePassed"
    ADMITTED = "Admitted"
    UNSCHEDULABLE = "Unschedulable"
    REQUEUED = "Requeued"
    RUNNING = "Running"
    NOT_READY = "NotReady"
    RUNS_LONGER = "RunsLonger"
    FINISHED = "Finished"
    STILL_HELD = "StillHeld"
    SUSPENDED = "Suspended"
    INVALID = "Invalid"
    FOREIGN_POD_GROUP = "ForeignPodGroup"
    EXTERNAL = "External"
    NOT_MANAGED = "NotManaged"


BEFORE_ADMISSION = frozenset(
    {
        *(GangState.ASSEMBLING, GangState.WAITING_FOR_QUOTA, GangState.WAITING_FOR_KUEUE, GangState.ON_HOLD),
        *(GangState.EXCEEDS_CAPABILITY, GangState.EXCEEDS_ELASTIC_QUOTA, GangState.EXCEEDS_KUEUE_QUOTA),
        *(GangState.QUEUE_NOT_FOUND, GangState.QUEUE_CLOSED, GangState.QUEUE_NOT_LEAF),
        *(GangState.DEADLINE_NEAR, GangState.DEADLINE_PASSED, GangState.REQUEUED),
    }
)
"""What a PodGroup says while its gang may not start yet."""
