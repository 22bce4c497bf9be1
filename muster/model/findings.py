"""What is found wrong, or surprising, in what users apply: one line for people, one stable reason for machines.

A line says the field, what was found, the rule, and what to do. `Reason` is everything that muster may find, the
gravest first; `ABOUT` says of each what comes of it where nothing is configured, its cause and its cure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


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
    EXCEEDS_ELASTIC_QUOTA = "ExceedsElasticQuota"
    REQUIRED_BY_RESOURCE_QUOTA = "RequiredByResourceQuota"
    OUTSIDE_LIMIT_RANGE = "OutsideLimitRange"
    SCHEDULER_CANNOT = "SchedulerCannot"
    POD_GROUP_TAKEN = "PodGroupTaken"
    UNKNOWN_PRIORITY_CLASS = "UnknownPriorityClass"
    TRAINING_RUNTIME_NOT_FOUND = "TrainingRuntimeNotFound"

    QUEUE_HIERARCHY = "QueueHierarchy"

    CAPABILITY_LOWERED = "CapabilityLowered"
    UNKNOWN_RUNTIME_CLASS = "UnknownRuntimeClass"
    OVERHEAD_MISMATCH = "OverheadMismatch"
    IN_NO_KUEUE_QUEUE = "InNoKueueQueue"
    EXCEEDS_KUEUE_QUOTA = "ExceedsKueueQuota"
    TIME_LIMIT_WHILE_WAITING = "TimeLimitWhileWaiting"
    BOUND_NOT_ENFORCED = "BoundNotEnforced"
    QUEUE_ON_HOLD = "QueueOnHold"
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
    LIMITS_NOTHING = "LimitsNothing"
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


_OTHER_WEBHOOKS = (
    "Where another webhook writes the amounts into pods, set this reason to `warn`: muster does not see them."
)
_PODS_REFUSED = (
    "muster accepts the workload, because the class may come later; until then the apiserver refuses its pods."
)

ABOUT: Mapping[Reason, About] = {
    Reason.INVALID: About(
        Severity.DENY,
        "A number, a name or an amount that makes no gang: below 0, above the number of pods, not a quantity, not a "
        "name. Pods of such a workload are not created either, whatever the mode.",
        "Correct the field that the line names.",
    ),
    Reason.QUEUE_NOT_FOUND: About(
        Severity.DENY,
        "The queue does not exist, or the namespace may not use it. muster always refuses PodGroups, and pods that "
        "name such a queue themselves: nothing would hold them until the queue exists.",
        "Name another queue, create it first, or ask its administrator to open it to the namespace. Where GitOps "
        "applies Queues after their users, set this reason to `warn`: the gang waits until its queue exists.",
    ),
    Reason.QUEUE_CLOSED: About(
        Severity.DENY,
        "The queue is closed (`vcctl queue operate --action close`), or is closing.",
        "Use another queue, or ask its administrator to open it.",
    ),
    Reason.QUEUE_NOT_LEAF: About(
        Severity.DENY,
        "The queue has queues below it. With Volcano's capacity plugin a gang in it stops the scheduling of the whole"
        " cluster.",
        "Name one of the queues below it.",
    ),
    Reason.EXCEEDS_CAPABILITY: About(
        Severity.DENY,
        "The minimum of the gang, or a later wave of it, is more than its queue, or one above it, can ever hold.",
        "Lower the replicas or the requests, use a larger queue, or ask its administrator to raise its capability.",
    ),
    Reason.EXCEEDS_RESOURCE_QUOTA: About(
        Severity.DENY,
        "A ResourceQuota of the namespace is too small for the minimum of the gang, for a later wave of it, or for a "
        "single pod: waiting pods count against the quota too, and the last of them would never be created. The "
        "submitter of a RayJob counts beside its cluster. Of a quota with scopes the pods count that are certainly in "
        "them: by activeDeadlineSeconds, requests, affinity, and a PriorityClass that the template or the workload "
        "names.",
        "Lower the replicas, the requests or the limits of the pods, or ask an administrator to raise the quota first.",
    ),
    Reason.EXCEEDS_ELASTIC_QUOTA: About(
        Severity.DENY,
        "The minimum of the gang, or a later wave of it, is more than the `max` of its namespace's ElasticQuota, or "
        "more than the `min` of the ElasticQuotas of all namespaces together, which is all that scheduler-plugins ever "
        "lends. Only with the chart value `elasticQuotas`, for gangs of the scheduler coscheduling.",
        "Lower the replicas or the requests of the pods, or ask an administrator to raise the quotas. Where GitOps "
        "applies ElasticQuotas after their users, set this reason to `warn`.",
    ),
    Reason.REQUIRED_BY_RESOURCE_QUOTA: About(
        Severity.DENY,
        "A ResourceQuota of the namespace limits requests or limits of cpu or memory, and a container does not say its "
        "own: the apiserver refuses every such pod (`must specify limits.cpu for: …`).",
        f"Write them, or have a LimitRange of the namespace give them. {_OTHER_WEBHOOKS}",
    ),
    Reason.OUTSIDE_LIMIT_RANGE: About(
        Severity.DENY,
        "A container, or a pod as a whole, is outside `min`, `max` or `maxLimitRequestRatio` of a LimitRange of the "
        "namespace, or gets a limit from it that is below its request: the apiserver refuses every such pod.",
        f"Change the amounts, or have the LimitRange changed. {_OTHER_WEBHOOKS}",
    ),
    Reason.SCHEDULER_CANNOT: About(
        Severity.DENY,
        "The gang asks for what its scheduler cannot do. kube-scheduler places all pods of a PodGroup or none, with "
        "one priority for all of them.",
        "Do as the line says, or name another scheduler in the label `ray.io/scheduler-name`.",
    ),
    Reason.POD_GROUP_TAKEN: About(
        Severity.DENY,
        "Another workload, or a gang of plain pods, exists and has the PodGroup of that name. Two gangs cannot share "
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
        "The runtime of a TrainJob does not exist, so muster cannot count its pods. For a TrainJob that does not ask "
        "for gang scheduling itself it is always a warning.",
        "Create the runtime before the TrainJob.",
    ),
    Reason.QUEUE_HIERARCHY: About(
        Severity.DENY,
        "A Queue has no valid place in the tree: its parent is missing, is below it, or holds PodGroups itself; or "
        "its guarantee or capability is more than the queues above it have, or less than those below it. For some of "
        "these faults Volcano's capacity plugin stops the scheduling of the whole cluster.",
        "Correct the field that the line names; move PodGroups out of a queue before you create queues below it.",
    ),
    Reason.CAPABILITY_LOWERED: About(
        Severity.WARN,
        "A Queue's new capability is below its present usage (Volcano's `status.allocated`; of GangQueues it is not "
        "known), or below the needs of single gangs that wait in it or in a queue below it. Running gangs keep "
        "running; no new gang starts until the usage has fallen, and the waiting gangs wait until the capability is "
        "raised again.",
        "Raise it again, or ask the owners to shrink or move the gangs.",
    ),
    Reason.UNKNOWN_RUNTIME_CLASS: About(
        Severity.WARN,
        f"A template names a RuntimeClass that does not exist. {_PODS_REFUSED}",
        "Name an existing class, or create it first.",
    ),
    Reason.OVERHEAD_MISMATCH: About(
        Severity.WARN,
        "A template has another overhead than its RuntimeClass; the apiserver refuses such pods.",
        "Leave the overhead to the RuntimeClass.",
    ),
    Reason.IN_NO_KUEUE_QUEUE: About(
        Severity.WARN,
        "Kueue admits the gangs of the namespace (its annotation `muster.dev/admitter`, or the chart's value "
        "`admitters`), and the workload has no label `kueue.x-k8s.io/queue-name`: Kueue makes no Workload of it, and "
        "its pods stay gated.",
        "Label it with a LocalQueue of the namespace.",
    ),
    Reason.EXCEEDS_KUEUE_QUOTA: About(
        Severity.WARN,
        "No choice of flavors in the ClusterQueue can hold the workload, also when nothing else runs: its pods with "
        "the submitter of a RayJob and the sidecar of an autoscaler, as Kueue counts them. Kueue queues it all the "
        "same. Only where the ClusterQueue is in no cohort, from which it could borrow.",
        "Lower the replicas, or use a LocalQueue of a larger ClusterQueue.",
    ),
    Reason.TIME_LIMIT_WHILE_WAITING: About(
        Severity.WARN,
        "The operator counts this time from the creation of the workload, also while its gang waits for quota. When "
        "it is over the workload fails, whether it has run or not.",
        "Add the wait to the number, or leave it out.",
    ),
    Reason.BOUND_NOT_ENFORCED: About(
        Severity.WARN,
        "Gangs that wait are planned by what the workload says of its run time (`muster.dev/runs-at-most`), and its "
        "operator ends it later, or never. Nothing is deleted when it runs longer: gangs behind it then start later.",
        "Set the time limit of its kind, too, if it must not run longer ([gangs.md](gangs.md#run-times)).",
    ),
    Reason.QUEUE_ON_HOLD: About(
        Severity.WARN,
        "The queue, or one above it, is on hold (`muster hold`): nothing starts in it, whether there is room or not. "
        "Only new workloads get this warning.",
        "Wait until its administrator resumes it, or use another queue.",
    ),
    Reason.QUEUE_NEARLY_FULL: About(
        Severity.WARN,
        "The queue, or one above it, could hold the gang, but not beside its present pods (Volcano's "
        "`status.allocated`, which lags by moments; of GangQueues it is not known). Only new workloads get this "
        "warning, and only for queues that are open to all namespaces, with all queues above and below them: a client "
        "that calls the webhook directly could otherwise learn the usage of others.",
        "Wait: events and `muster explain` show the position. `muster queues` shows which gangs use the quota.",
    ),
    Reason.NO_ROOM_TO_UPGRADE: About(
        Severity.WARN,
        "During an upgrade of a RayService two clusters of its size run side by side. Its queue can hold only one of "
        "them, so the new cluster waits, and the old one keeps serving.",
        "Raise the capability, or set `spec.upgradeStrategy.type: None` and recreate the service.",
    ),
    Reason.MIN_AVAILABLE_TOO_LOW: About(
        Severity.WARN,
        "The gang starts with `minAvailable` pods, but the job itself needs more: without an `elasticPolicy` the "
        "Training operator tells every pod to expect all replicas, and with `WaitForWorkersReady` the MPI operator "
        "makes no launcher before all workers are ready. The running pods use quota and do nothing.",
        "Leave `minAvailable` out, or set `elasticPolicy.minReplicas` to the number of workers that the job needs. In"
        " Volcano's Job raise it to the sum of the tasks' own minimums, which Volcano ignores below that.",
    ),
    Reason.UNKNOWN_SCHEDULER: About(
        Severity.WARN,
        "The label names a scheduler that muster is not configured for: perhaps another program's, perhaps a typo. "
        "muster leaves the workload alone.",
        "Write `volcano`, or nothing; where you mean another scheduler, ignore the warning.",
    ),
    Reason.MISSPELLED: About(
        Severity.WARN,
        "A label, an annotation or a replica type that nothing reads, and that resembles one that muster or the "
        "operator reads; or one in a place where nothing reads it. It has no effect. Of a workload that nothing else "
        "makes a gang, `kubectl apply` prints no warning: `muster plan --strict`, `muster explain` and `muster audit` "
        "name it.",
        "Write it as the line says. Where it is for another program, ignore the warning.",
    ),
    Reason.VALUE_IGNORED: About(
        Severity.WARN,
        "A label or annotation of muster has a value that muster cannot read; it has no effect.",
        "Write one of the values that the line names, or remove it.",
    ),
    Reason.SCHEDULE_TIMEOUT_IGNORED: About(
        Severity.WARN,
        "The scheduler has no such timeout; the gang waits without a limit.",
        "Leave it out. `muster.dev/requeue-after` requeues an admitted gang that cannot start.",
    ),
    Reason.BOUND_TO_POD_GROUP: About(
        Severity.WARN,
        "The templates name a PodGroup themselves. muster leaves the pods to it, holds none of them and creates no "
        "PodGroup. Where only some roles are bound, the pods of the others, which the warning names, are held, and "
        "wait for a whole gang that never comes.",
        "Remove the binding from the templates to let muster manage the gang.",
    ),
    Reason.FIELD_DROPPED: About(
        Severity.WARN,
        "The installed CRD does not have the field, or the cluster does not serve the kind. `kubectl apply` refuses "
        "the object (strict decoding error); for other clients the apiserver drops the field.",
        "Use the version, or the field, that the line names.",
    ),
    Reason.POD_LEVEL_RESOURCES: About(
        Severity.WARN,
        "Volcano 1.14 counts containers only: it ignores pod-level requests (`spec.resources`), and may place more on"
        " a node than it has. muster counts them.",
        "Write the requests in the containers.",
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
        "Pods without requests use no quota of their queue, however many there are; the same for cpu or memory alone,"
        " where their queue limits it.",
        "Give their containers requests, or a LimitRange to the namespace.",
    ),
    Reason.CAPABILITY_OF_ZERO: About(
        Severity.WARN,
        "For Volcano a capability of 0 cpu or 0 memory means no limit, where many users mean none of it. 0 of any other"
        " resource is none.",
        "The queue's administrator leaves the resource out, or closes the queue.",
    ),
    Reason.LIMITS_NOTHING: About(
        Severity.WARN,
        "The capability of a Queue, its guarantee or what it deserves names what no pod requests: a number of pods, "
        "which Volcano ignores there, too, or a resource by another name than pods request it by (`gpu`, `cpus`, "
        "`requests.cpu`).",
        "Write the name as pods request it (`nvidia.com/gpu`). Limit the number of pods by a ResourceQuota.",
    ),
    Reason.GROWS_BEYOND_CAPABILITY: About(
        Severity.WARN,
        "An autoscaler may create more pods than the queue can ever hold; pods beyond that wait, gated. Or a job of a "
        "JobSet or TrainJob comes when others are ready, and the queue can hold it alone, but not beside these.",
        "Lower `maxReplicas` or the replicas, or raise the capability.",
    ),
    Reason.ELASTIC_WAITS_FOR_ALL: About(
        Severity.WARN,
        "The job could go on with fewer workers, but its gang waits for all of them.",
        "Set `minAvailable` to start with fewer pods.",
    ),
    Reason.FOLLOWERS_COME_LATER: About(
        Severity.WARN,
        "JobSet places each Job alone in a topology domain, and refuses all of its pods but the first until the first "
        "has a node. The first pods start together, when the queue has room for all.",
        "Nothing, where domains are as large as a Job. Else label the nodes and say "
        "`alpha.jobset.sigs.k8s.io/node-selector`, with which all pods are made at once.",
    ),
    Reason.NO_PODS: About(
        Severity.WARN,
        "All replicas are 0; or a RayJob selects a RayCluster (`clusterSelector`) and makes none of its own.",
        "Raise them when it is to start. Label the RayCluster that the RayJob selects.",
    ),
    Reason.POD_LEFT_ALONE: About(
        Severity.WARN,
        "A pod of a gang names another scheduler than its gang, by its template or by another webhook. muster does "
        "not change it.",
        "Leave `schedulerName` out of the template, or name the scheduler in the workload's label.",
    ),
}
