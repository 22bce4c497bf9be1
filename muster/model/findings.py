"""Findings in objects that users apply: a message for people, and a stable reason for machines.

A message names the field, the fault, the rule, and the cure. `Reason` lists every finding, the most serious
first; `ABOUT` has the default severity, the cause and the cure of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """Effect of a finding: the object is refused, accepted with a warning, or accepted silently."""

    DENY = "deny"
    WARN = "warn"
    OFF = "off"


class Reason(StrEnum):
    """Reason of a refusal or a warning, stable for machines; the most serious first."""

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
    """A finding: its reason, the field at fault, and the message for people, which begins with the field."""

    reason: Reason
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class About:
    """Default severity of a reason, its cause, and its cure."""

    severity: Severity
    cause: str
    cure: str


_OTHER_WEBHOOKS = "If another webhook adds the amounts, set this reason to `warn`: muster does not see them."
_PODS_REFUSED = "The workload is accepted, because the class may come later; until then the apiserver refuses its pods."

ABOUT: Mapping[Reason, About] = {
    Reason.INVALID: About(
        Severity.DENY,
        "A number, a name or an amount that makes no gang: below 0, above the number of pods, not a quantity, not a "
        "name. Pods of such a workload are not created either, whatever the mode.",
        "Correct the named field.",
    ),
    Reason.QUEUE_NOT_FOUND: About(
        Severity.DENY,
        "The queue does not exist, or the namespace may not use it. PodGroups, and pods that name such a queue "
        "themselves, are always refused: nothing would hold them until the queue exists.",
        "Name another queue, create it first, or ask its administrator to open it to the namespace. If GitOps applies "
        "Queues after their users, set this reason to `warn`: the gang waits until its queue exists.",
    ),
    Reason.QUEUE_CLOSED: About(
        Severity.DENY,
        "The queue is closed (`vcctl queue operate --action close`), or is closing.",
        "Use another queue, or ask its administrator to open it.",
    ),
    Reason.QUEUE_NOT_LEAF: About(
        Severity.DENY,
        "The queue has child queues. With Volcano's capacity plugin a gang in it stops the scheduling of the whole "
        "cluster.",
        "Name one of its child queues.",
    ),
    Reason.EXCEEDS_CAPABILITY: About(
        Severity.DENY,
        "The minimum of the gang, or a later wave of it, is more than its queue or a parent can ever hold.",
        "Lower the replicas or the requests, use a larger queue, or ask its administrator to raise its capability.",
    ),
    Reason.EXCEEDS_RESOURCE_QUOTA: About(
        Severity.DENY,
        "A ResourceQuota of the namespace is too small for the minimum of the gang, for a later wave, or for a single "
        "pod: waiting pods count against it too, so the last ones would never be created. The submitter of a RayJob "
        "counts as well. For a quota with scopes, only pods that are certainly in them count (activeDeadlineSeconds, "
        "requests, affinity, PriorityClass).",
        "Lower the replicas, the requests or the limits of the pods, or ask an administrator to raise the quota first.",
    ),
    Reason.EXCEEDS_ELASTIC_QUOTA: About(
        Severity.DENY,
        "The minimum of the gang, or a later wave, is more than the `max` of its namespace's ElasticQuota, or more "
        "than the `min` of all namespaces together, which is all that scheduler-plugins lends. Only with the chart "
        "value `elasticQuotas`, for gangs of coscheduling.",
        "Lower the replicas or the requests, or ask an administrator to raise the quotas. If GitOps applies "
        "ElasticQuotas after their users, set this reason to `warn`.",
    ),
    Reason.REQUIRED_BY_RESOURCE_QUOTA: About(
        Severity.DENY,
        "A ResourceQuota of the namespace limits requests or limits of cpu or memory, and a container does not set "
        "its own: the apiserver refuses every such pod (`must specify limits.cpu for: …`).",
        f"Set them, or add a LimitRange that does. {_OTHER_WEBHOOKS}",
    ),
    Reason.OUTSIDE_LIMIT_RANGE: About(
        Severity.DENY,
        "A container or a pod is outside `min`, `max` or `maxLimitRequestRatio` of a LimitRange of the namespace, or "
        "gets a limit from it below its request: the apiserver refuses every such pod.",
        f"Change the amounts or the LimitRange. {_OTHER_WEBHOOKS}",
    ),
    Reason.SCHEDULER_CANNOT: About(
        Severity.DENY,
        "The scheduler cannot place such a gang. kube-scheduler places all pods of a PodGroup or none, with one "
        "priority for all of them.",
        "Follow the message, or name another scheduler in the label `ray.io/scheduler-name`.",
    ),
    Reason.POD_GROUP_TAKEN: About(
        Severity.DENY,
        "Another workload, or a gang of plain pods, has the PodGroup of that name, and two gangs cannot share one.",
        "Use another name, or delete the other one first.",
    ),
    Reason.UNKNOWN_PRIORITY_CLASS: About(
        Severity.DENY,
        "The PriorityClass does not exist; the apiserver would refuse every pod that names it.",
        "Name an existing class (`kubectl get priorityclasses`), or create it first.",
    ),
    Reason.TRAINING_RUNTIME_NOT_FOUND: About(
        Severity.DENY,
        "The runtime of a TrainJob does not exist, so its pods cannot be counted. Always a warning for a TrainJob that "
        "does not ask for gang scheduling itself.",
        "Create the runtime before the TrainJob.",
    ),
    Reason.QUEUE_HIERARCHY: About(
        Severity.DENY,
        "A Queue has no valid place in the tree: its parent is missing, is one of its children, or holds PodGroups; or "
        "its guarantee or capability is more than its parents have, or less than its children have. For some of these "
        "faults Volcano's capacity plugin stops the scheduling of the whole cluster.",
        "Correct the named field; move PodGroups out of a queue before you create child queues.",
    ),
    Reason.CAPABILITY_LOWERED: About(
        Severity.WARN,
        "The new capability of a Queue is below its present usage (`status.allocated`, unknown for GangQueues), or "
        "below the needs of a gang that waits in it. Running gangs keep running; no gang starts until the usage has "
        "fallen, and gangs that are too large wait until the capability is raised.",
        "Raise it again, or ask the owners to shrink or move the gangs.",
    ),
    Reason.UNKNOWN_RUNTIME_CLASS: About(
        Severity.WARN,
        f"A template names a RuntimeClass that does not exist. {_PODS_REFUSED}",
        "Name an existing class, or create it first.",
    ),
    Reason.OVERHEAD_MISMATCH: About(
        Severity.WARN,
        "The overhead in a template differs from its RuntimeClass; the apiserver refuses such pods.",
        "Leave the overhead to the RuntimeClass.",
    ),
    Reason.IN_NO_KUEUE_QUEUE: About(
        Severity.WARN,
        "Kueue admits the gangs of the namespace (annotation `muster.dev/admitter`, or chart value `admitters`), and "
        "the workload has no label `kueue.x-k8s.io/queue-name`: Kueue ignores it, and its pods stay gated.",
        "Label it with a LocalQueue of the namespace.",
    ),
    Reason.EXCEEDS_KUEUE_QUOTA: About(
        Severity.WARN,
        "No flavors of the ClusterQueue can hold the workload, even when nothing else runs. Its pods count as Kueue "
        "counts them, with a RayJob's submitter and an autoscaler's sidecar. Kueue queues it all the same. Not checked "
        "for a ClusterQueue in a cohort, which can borrow.",
        "Lower the replicas, or use a LocalQueue of a larger ClusterQueue.",
    ),
    Reason.TIME_LIMIT_WHILE_WAITING: About(
        Severity.WARN,
        "The operator counts this time from the creation of the workload, also while its gang waits for quota. After "
        "it the workload fails, whether it has run or not.",
        "Add the wait to the number, or leave it out.",
    ),
    Reason.BOUND_NOT_ENFORCED: About(
        Severity.WARN,
        "Waiting gangs are planned by the run time of this workload (`muster.dev/runs-at-most`), and its operator ends "
        "it later, or never. Nothing is deleted when it runs longer: gangs behind it then start later.",
        "If it must not run longer, set the time limit of its kind, too ([gangs.md](gangs.md#run-times)).",
    ),
    Reason.QUEUE_ON_HOLD: About(
        Severity.WARN,
        "The queue, or a parent, is on hold (`muster hold`): nothing starts in it, even with room. Only new workloads "
        "get this warning.",
        "Wait until its administrator resumes it, or use another queue.",
    ),
    Reason.QUEUE_NEARLY_FULL: About(
        Severity.WARN,
        "The queue, or a parent, could hold the gang, but not with its present pods (`status.allocated`, which lags by "
        "moments; unknown for GangQueues). Only for new workloads, and only if the queue and all queues above and "
        "below it are open to all namespaces: otherwise a direct call of the webhook could reveal the usage of others.",
        "Wait: events and `muster explain` show the position, `muster queues` shows the usage.",
    ),
    Reason.NO_ROOM_TO_UPGRADE: About(
        Severity.WARN,
        "During an upgrade of a RayService two clusters run side by side. Its queue can hold only one of them, so the "
        "new cluster waits, and the old one keeps serving.",
        "Raise the capability, or set `spec.upgradeStrategy.type: None` and recreate the service.",
    ),
    Reason.MIN_AVAILABLE_TOO_LOW: About(
        Severity.WARN,
        "The gang starts with `minAvailable` pods, but the job needs more: without an `elasticPolicy` the Training "
        "operator makes every pod expect all replicas, and with `WaitForWorkersReady` the MPI operator creates no "
        "launcher before all workers are ready. The running pods use quota and do nothing.",
        "Leave `minAvailable` out, or set `elasticPolicy.minReplicas` to the number of workers that the job needs. In "
        "Volcano's Job raise it to the sum of the tasks' own minimums, which Volcano ignores below that.",
    ),
    Reason.UNKNOWN_SCHEDULER: About(
        Severity.WARN,
        "muster is not configured for the scheduler that the label names, and leaves the workload alone.",
        "Write `volcano`, or nothing. If you mean another scheduler, ignore the warning.",
    ),
    Reason.MISSPELLED: About(
        Severity.WARN,
        "A label, an annotation or a replica type has no effect: it resembles one that muster or the operator reads, "
        "or is in the wrong place. If nothing else makes the workload a gang, only `muster plan --strict`, `muster "
        "explain` and `muster audit` report it.",
        "Correct it as the message shows. If it is for another program, ignore the warning.",
    ),
    Reason.VALUE_IGNORED: About(
        Severity.WARN,
        "A label or annotation of muster has a value that muster cannot read; it has no effect.",
        "Use one of the values in the message, or remove it.",
    ),
    Reason.SCHEDULE_TIMEOUT_IGNORED: About(
        Severity.WARN,
        "The scheduler has no such timeout; the gang waits without a limit.",
        "Leave it out. `muster.dev/requeue-after` requeues an admitted gang that cannot start.",
    ),
    Reason.BOUND_TO_POD_GROUP: About(
        Severity.WARN,
        "The templates name a PodGroup. muster leaves their pods alone and creates no PodGroup. If only some roles are "
        "bound, the pods of the others, named in the warning, are held for a gang that is never complete.",
        "Remove the binding from the templates to let muster manage the gang.",
    ),
    Reason.FIELD_DROPPED: About(
        Severity.WARN,
        "The installed CRD does not have the field, or the cluster does not serve the kind. `kubectl apply` refuses "
        "the object (strict decoding error); for other clients the apiserver drops the field.",
        "Use the version or field in the message.",
    ),
    Reason.POD_LEVEL_RESOURCES: About(
        Severity.WARN,
        "Volcano 1.14 ignores pod-level requests (`spec.resources`), and may place more on a node than it has. muster "
        "counts them.",
        "Write the requests in the containers.",
    ),
    Reason.RESOURCE_CLAIMS: About(
        Severity.WARN,
        "Pods get devices by a ResourceClaim (`spec.resourceClaims`, dynamic resource allocation), which neither "
        "muster nor Volcano counts in any queue. With the chart value `dra: deny` such workloads and pods are refused.",
        "Request the devices as an extended resource (`nvidia.com/gpu`), which a DeviceClass can offer, too.",
    ),
    Reason.REQUESTS_MISSING: About(
        Severity.WARN,
        "Pods without requests are not counted against their queue, however many there are; likewise for cpu or memory "
        "alone, if the queue limits it.",
        "Set requests, or add a LimitRange to the namespace.",
    ),
    Reason.CAPABILITY_OF_ZERO: About(
        Severity.WARN,
        "For Volcano a capability of 0 cpu or 0 memory means no limit; 0 of any other resource means none.",
        "The queue's administrator leaves the resource out, or closes the queue.",
    ),
    Reason.LIMITS_NOTHING: About(
        Severity.WARN,
        "The capability, guarantee or deserved share of a Queue names a resource that no pod requests: a number of "
        "pods, which Volcano ignores as well, or another name for a resource (`gpu`, `cpus`, `requests.cpu`).",
        "Use the name in the pods' requests (`nvidia.com/gpu`). Limit the number of pods by a ResourceQuota.",
    ),
    Reason.GROWS_BEYOND_CAPABILITY: About(
        Severity.WARN,
        "An autoscaler may create more pods than the queue can ever hold; the pods beyond that wait, gated. Or the "
        "queue can hold a later job of a JobSet or TrainJob, but not together with those that run then.",
        "Lower `maxReplicas` or the replicas, or raise the capability.",
    ),
    Reason.ELASTIC_WAITS_FOR_ALL: About(
        Severity.WARN,
        "The job could run with fewer workers, but its gang waits for all of them.",
        "Set `minAvailable` to start with fewer pods.",
    ),
    Reason.FOLLOWERS_COME_LATER: About(
        Severity.WARN,
        "JobSet places each Job alone in a topology domain, and creates only the first pod until that one has a node. "
        "The first pods start together, when the queue has room for all.",
        "Nothing, if domains are as large as a Job. Else label the nodes and set "
        "`alpha.jobset.sigs.k8s.io/node-selector`, with which all pods are created at once.",
    ),
    Reason.NO_PODS: About(
        Severity.WARN,
        "All replicas are 0; or a RayJob selects an existing RayCluster (`clusterSelector`).",
        "Raise the replicas to start it. Label the RayCluster that the RayJob selects.",
    ),
    Reason.POD_LEFT_ALONE: About(
        Severity.WARN,
        "A pod names another scheduler than its gang, by its template or by another webhook. muster does not change "
        "it.",
        "Leave `schedulerName` out of the template, or name the scheduler in the workload's label.",
    ),
}
