"""What is found wrong, or surprising, in what users apply: one line for people, one stable reason for machines.

A line says the field, what was found, the rule, and what to do. `Reason` is everything that muster may find, the
gravest first; `ABOUT` says of each what comes of it where nothing is configured, its cause and its cure.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["ABOUT", "About", "Finding", "Reason", "Severity"]


class Severity(StrEnum):
    """What comes of a finding: the object is refused, it is taken with a warning, or nothing is said."""

    DENY = "deny"
    WARN = "warn"
    OFF = "off"


class Reason(StrEnum):
    """Why something is refused or warned of; stable, for machines. In the order of importance."""

    INVALID = "Invalid"
    QUEUE_NOT_FOUND = "QueueNotFound"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_NOT_LEAF = "QueueNotLeaf"
    EXCEEDS_CAPABILITY = "ExceedsCapability"
    EXCEEDS_RESOURCE_QUOTA = "ExceedsResourceQuota"
    POD_GROUP_TAKEN = "PodGroupTaken"
    UNKNOWN_PRIORITY_CLASS = "UnknownPriorityClass"
    TRAINING_RUNTIME_NOT_FOUND = "TrainingRuntimeNotFound"

    QUEUE_HIERARCHY = "QueueHierarchy"

    CAPABILITY_LOWERED = "CapabilityLowered"
    UNKNOWN_RUNTIME_CLASS = "UnknownRuntimeClass"
    OVERHEAD_MISMATCH = "OverheadMismatch"
    MANAGED_BY_KUEUE = "ManagedByKueue"
    TIME_LIMIT_WHILE_WAITING = "TimeLimitWhileWaiting"
    QUEUE_NEARLY_FULL = "QueueNearlyFull"
    NO_ROOM_TO_UPGRADE = "NoRoomToUpgrade"
    MIN_AVAILABLE_TOO_LOW = "MinAvailableTooLow"
    UNKNOWN_SCHEDULER = "UnknownScheduler"
    MISSPELLED = "Misspelled"
    VALUE_IGNORED = "ValueIgnored"
    SCHEDULE_TIMEOUT_IGNORED = "ScheduleTimeoutIgnored"
    BOUND_TO_POD_GROUP = "BoundToPodGroup"
    FIELD_DROPPED = "FieldDropped"
    POD_LEVEL_RESOURCES = "PodLevelResources"
    RESOURCE_CLAIMS = "ResourceClaims"
    REQUESTS_MISSING = "RequestsMissing"
    CAPABILITY_OF_ZERO = "CapabilityOfZero"
    GROWS_BEYOND_CAPABILITY = "GrowsBeyondCapability"
    ELASTIC_WAITS_FOR_ALL = "ElasticWaitsForAll"
    FOLLOWERS_COME_LATER = "FollowersComeLater"
    NO_PODS = "NoPods"
    POD_LEFT_ALONE = "PodLeftAlone"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found: its reason, the field at fault, and the line for people, which begins with the field."""

    reason: Reason
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class About:
    """What comes of a reason by default, when it is found, and what to do about it."""

    severity: Severity
    cause: str
    cure: str


_PODS_REFUSED = "The workload is taken, for the class may come later; until then the apiserver refuses its pods."

ABOUT: Mapping[Reason, About] = {
    Reason.INVALID: About(
        Severity.DENY,
        "A number, a name or an amount with which no gang can be made: below 0, above the pods that there are, no "
        "quantity, no name. Pods of such a workload are not created either, whatever the mode.",
        "Correct the field that the line names.",
    ),
    Reason.QUEUE_NOT_FOUND: About(
        Severity.DENY,
        "The queue does not exist, or its namespace may not use it. PodGroups, and pods that name a queue themselves, "
        "are refused for it whatever is configured: nothing would hold them until it is there.",
        "Name another queue, create it first, or ask whoever keeps it to open it to the namespace. Where GitOps "
        "applies Queues after their users, set this reason to `warn`: the gang waits until its queue is there.",
    ),
    Reason.QUEUE_CLOSED: About(
        Severity.DENY,
        "The queue was closed (`vcctl queue operate --action close`), or is being closed.",
        "Use another queue, or have this one opened.",
    ),
    Reason.QUEUE_NOT_LEAF: About(
        Severity.DENY,
        "Queues stand below this one. Under Volcano's capacity plugin a gang there stops the scheduling of the whole "
        "cluster.",
        "Name one of the queues below it.",
    ),
    Reason.EXCEEDS_CAPABILITY: About(
        Severity.DENY,
        "What the gang cannot start without is more than its queue, or one above it, may ever hold.",
        "Lower the replicas or the requests, use a larger queue, or have its capability raised.",
    ),
    Reason.EXCEEDS_RESOURCE_QUOTA: About(
        Severity.DENY,
        "A ResourceQuota of the namespace never holds all pods that the gang cannot start without: pods are charged "
        "while they wait, too, and the last of them would never be made.",
        "Lower the replicas or what the pods ask for, or have the quota raised first.",
    ),
    Reason.POD_GROUP_TAKEN: About(
        Severity.DENY,
        "Another workload, or a gang of plain pods, lives and has the PodGroup of that name. Two gangs cannot share "
        "one, and this workload would not start before the other is gone.",
        "Give the workload another name, or delete the other one first.",
    ),
    Reason.UNKNOWN_PRIORITY_CLASS: About(
        Severity.DENY,
        "The PriorityClass does not exist; the apiserver would refuse every pod that names it.",
        "Name an existing class (`kubectl get priorityclasses`), or create it first.",
    ),
    Reason.TRAINING_RUNTIME_NOT_FOUND: About(
        Severity.DENY,
        "The runtime of a TrainJob is not there, so that nobody can count its pods. Of a TrainJob that says nothing of "
        "gang scheduling itself it is a warning, whatever is configured.",
        "Create the runtime before the TrainJob.",
    ),
    Reason.QUEUE_HIERARCHY: About(
        Severity.DENY,
        "A Queue that has no sound place in the tree: its parent is missing, is below it, or holds PodGroups itself; "
        "or it promises or allows more than the queues above it have. For some of these Volcano's capacity plugin "
        "stops the scheduling of the whole cluster.",
        "Correct the field that the line names; move PodGroups out of a queue before others are put below it.",
    ),
    Reason.CAPABILITY_LOWERED: About(
        Severity.WARN,
        "A Queue's capability is set below what its pods hold now, or below what single gangs need that wait there or "
        "in a queue below it. "
        "What runs goes on; nothing new starts until less is held, and those gangs wait until it is raised again.",
        "Raise it again, or have the gangs made smaller or moved.",
    ),
    Reason.UNKNOWN_RUNTIME_CLASS: About(
        Severity.WARN,
        f"A template names a RuntimeClass that does not exist. {_PODS_REFUSED}",
        "Name an existing class, or create it first.",
    ),
    Reason.OVERHEAD_MISMATCH: About(
        Severity.WARN,
        "A template writes an overhead that is not its RuntimeClass's; the apiserver refuses such pods.",
        "Leave the overhead to the RuntimeClass.",
    ),
    Reason.MANAGED_BY_KUEUE: About(
        Severity.WARN,
        "The label `kueue.x-k8s.io/queue-name` gives the workload to Kueue, and something beside it to muster. Both "
        "hold it back, each by a queue of its own, and it starts when both let it go.",
        "Take one of the two out.",
    ),
    Reason.TIME_LIMIT_WHILE_WAITING: About(
        Severity.WARN,
        "The operator counts this time from the making of the workload, also while its gang waits for room. When it is "
        "over the workload fails, whether it has run or not.",
        "Allow for the wait in the number, or leave it out.",
    ),
    Reason.QUEUE_NEARLY_FULL: About(
        Severity.WARN,
        "The queue, or one above it, could hold the gang, but not beside what Volcano says its pods hold now "
        "(`status.allocated`, which lags by moments). Said of new workloads only, and only of queues that are open to "
        "all namespaces, with all above and below them: whoever asks the webhook itself would learn what others use.",
        "Wait: events and `muster explain` tell the position. `muster queues` shows who holds the room.",
    ),
    Reason.NO_ROOM_TO_UPGRADE: About(
        Severity.WARN,
        "While a RayService is upgraded two clusters of its size run beside each other. Its queue holds one of them "
        "only, so that the new one waits, and the old one serves on.",
        "Raise the capability, or set `spec.upgradeStrategy.type: None` and recreate the service.",
    ),
    Reason.MIN_AVAILABLE_TOO_LOW: About(
        Severity.WARN,
        "The gang starts with `minAvailable` pods, but the job says itself that it needs more: without an "
        "`elasticPolicy` the Training operator tells every pod to expect all replicas. Those that run hold their room "
        "and do nothing.",
        "Leave `minAvailable` out, or say in `elasticPolicy.minReplicas` with how many workers the job can go on. In "
        "Volcano's Job raise it to the sum of the tasks' own, which count for nothing below that.",
    ),
    Reason.UNKNOWN_SCHEDULER: About(
        Severity.WARN,
        "The label names a scheduler that muster is not configured for: perhaps another's, perhaps a slip. muster "
        "leaves the workload alone.",
        "Write `volcano`, or nothing; where another scheduler is meant all is well.",
    ),
    Reason.MISSPELLED: About(
        Severity.WARN,
        "A label, an annotation or a replica type that nothing reads, and that is nearly one that muster or the "
        "operator reads; or one that stands where it is not read. It counts for nothing.",
        "Write it as the line says. Where it is meant for another program all is well.",
    ),
    Reason.VALUE_IGNORED: About(
        Severity.WARN,
        "A label or annotation of muster's has a value that it cannot read; it counts for nothing.",
        "Write one of the values that the line names, or take it out.",
    ),
    Reason.SCHEDULE_TIMEOUT_IGNORED: About(
        Severity.WARN,
        "The scheduler has no such timeout; the gang waits for as long as it must.",
        "Leave it out. `muster.dev/requeue-after` gives a place back on which a gang cannot start.",
    ),
    Reason.BOUND_TO_POD_GROUP: About(
        Severity.WARN,
        "The templates name a PodGroup themselves. muster leaves the pods to it, holds none of them and makes no "
        "PodGroup of its own.",
        "Take the binding out of the templates to have muster manage the gang.",
    ),
    Reason.FIELD_DROPPED: About(
        Severity.WARN,
        "The CRD that is installed does not know the field, and the apiserver drops it.",
        "Use the version, or the field, that the line names.",
    ),
    Reason.POD_LEVEL_RESOURCES: About(
        Severity.WARN,
        "Volcano 1.14 counts containers only: what a pod asks for as a whole (`spec.resources`) is nothing to it, and "
        "a node may be given more than it has. muster counts it.",
        "Ask for it in the containers.",
    ),
    Reason.RESOURCE_CLAIMS: About(
        Severity.WARN,
        "Pods get devices by a ResourceClaim (`spec.resourceClaims`, dynamic resource allocation). No request says how "
        "many, so that neither muster nor Volcano counts them in any queue. The chart's value `dra: deny` refuses such "
        "workloads, and pods that come with claims all the same.",
        "Ask for the devices as an extended resource (`nvidia.com/gpu`), which a DeviceClass can offer, too.",
    ),
    Reason.REQUESTS_MISSING: About(
        Severity.WARN,
        "Pods that request nothing take no room of their queue, however many there are; the same for cpu or memory "
        "alone, where their queue limits that.",
        "Give their containers requests, or a LimitRange to the namespace.",
    ),
    Reason.CAPABILITY_OF_ZERO: About(
        Severity.WARN,
        "Volcano takes a capability of 0 for no limit, where many mean none.",
        "Whoever keeps the queue leaves the resource out, or gives it another queue.",
    ),
    Reason.GROWS_BEYOND_CAPABILITY: About(
        Severity.WARN,
        "An autoscaler may ask for more pods than the queue can ever hold; those beyond it wait, gated.",
        "Lower `maxReplicas`, or raise the capability.",
    ),
    Reason.ELASTIC_WAITS_FOR_ALL: About(
        Severity.WARN,
        "The job could go on with fewer workers, but its gang waits for all of them.",
        "Say `minAvailable` to start with fewer pods.",
    ),
    Reason.FOLLOWERS_COME_LATER: About(
        Severity.WARN,
        "JobSet places each Job alone in a topology domain, and refuses all of its pods but the first until that has a "
        "node. The first ones start together, when the queue has room for all.",
        "Nothing, where domains are as large as a Job. Else label the nodes and say "
        "`alpha.jobset.sigs.k8s.io/node-selector`, with which all pods are made at once.",
    ),
    Reason.NO_PODS: About(
        Severity.WARN,
        "All replicas are 0.",
        "Raise them when it is to start.",
    ),
    Reason.POD_LEFT_ALONE: About(
        Severity.WARN,
        "A pod of a gang names another scheduler than its gang: somebody's choice, or another webhook's. muster does "
        "not touch it.",
        "Leave `schedulerName` out of the template, or name the scheduler in the workload's label.",
    ),
}
