"""The states of a gang: the stable words in events, annotations and metrics."""

from enum import StrEnum


class GangState(StrEnum):
    """The state of a gang, and the reason why it waits; docs/reasons.md has the cure for each."""

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
    EVICTED = "Evicted"
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
"""The states of a PodGroup whose gang may not start yet."""
