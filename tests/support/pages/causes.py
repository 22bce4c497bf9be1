"""Cause and cure of every refusal and warning, for docs/denials.md."""

from collections.abc import Mapping
from typing import NamedTuple

from muster.model.findings import Reason


class About(NamedTuple):
    """A reason in docs/denials.md.

    :ivar cause: what the message does not explain, in sentences.
    :ivar cure: what to do, if the message does not tell it all; "" otherwise.
    """

    cause: str
    cure: str = ""


_OTHER_WEBHOOKS = "If another webhook adds the amounts, set this reason to `warn`."

ABOUT: Mapping[Reason, About] = {
    Reason.INVALID: About(
        "A number, a name or an amount makes no gang. Its pods are refused as well, whatever the mode. `muster plan` "
        "also names values that the apiserver refuses.",
    ),
    Reason.QUEUE_NOT_FOUND: About(
        "PodGroups, and pods that name such a queue themselves, are refused whatever the mode.",
        "If GitOps applies Queues after their users, set this reason to `warn`: the gang waits for its queue.",
    ),
    Reason.QUEUE_CLOSED: About("The queue was closed (`vcctl queue operate --action close`), or is closing."),
    Reason.QUEUE_NOT_LEAF: About(
        "With Volcano's capacity plugin, a gang in such a queue stops all scheduling of the cluster."
    ),
    Reason.EXCEEDS_CAPABILITY: About(
        "The minimum of the gang, or a later wave, is more than its queue or a parent can ever hold."
    ),
    Reason.EXCEEDS_RESOURCE_QUOTA: About(
        "A ResourceQuota is too small for the gang, a later wave, or one pod. Waiting pods count against it, "
        "and so does the submitter of a RayJob. For a quota with scopes, only pods certainly in them count.",
    ),
    Reason.EXCEEDS_ELASTIC_QUOTA: About(
        "The gang needs more than the `max` of its namespace's ElasticQuota, or than the `min` of all namespaces "
        "together. Only for gangs of coscheduling, with the chart value `elasticQuotas`.",
        "If GitOps applies ElasticQuotas after their users, set this reason to `warn`.",
    ),
    Reason.REQUIRED_BY_RESOURCE_QUOTA: About(
        "The apiserver refuses every pod that does not set what a ResourceQuota limits (`must specify limits.cpu for: "
        "…`).",
        _OTHER_WEBHOOKS,
    ),
    Reason.OUTSIDE_LIMIT_RANGE: About(
        "A pod is outside `min`, `max` or `maxLimitRequestRatio` of a LimitRange, or gets a limit below its request.",
        _OTHER_WEBHOOKS,
    ),
    Reason.SCHEDULER_CANNOT: About(
        "kube-scheduler places all pods of a PodGroup or none, with one priority for all of them."
    ),
    Reason.POD_GROUP_TAKEN: About("The other one is a workload, or a gang of plain pods."),
    Reason.UNKNOWN_PRIORITY_CLASS: About("The apiserver would refuse every pod."),
    Reason.TRAINING_RUNTIME_NOT_FOUND: About(
        "For a TrainJob that does not itself ask for gang scheduling, always a warning."
    ),
    Reason.QUEUE_HIERARCHY: About(
        "The parent of a Queue is missing, is one of its children, or holds PodGroups; or guarantee and capability "
        "contradict those of parents or children. With some of these faults Volcano's capacity plugin stops all "
        "scheduling.",
    ),
    Reason.CAPABILITY_LOWERED: About(
        "The new capability is below the usage of the queue (`status.allocated`, unknown for GangQueues), or below the "
        "needs of a waiting gang, which waits until it is raised.",
    ),
    Reason.UNKNOWN_RUNTIME_CLASS: About("The workload is accepted, because the class may be created later."),
    Reason.OVERHEAD_MISMATCH: About("The RuntimeClass sets the overhead of its pods."),
    Reason.IN_NO_KUEUE_QUEUE: About(
        "Kueue admits the gangs of the namespace (annotation `muster.dev/admitter`, or chart value `admitters`), and "
        "ignores workloads without its label.",
    ),
    Reason.EXCEEDS_KUEUE_QUOTA: About(
        "No flavors of the ClusterQueue can hold the workload, with a RayJob's submitter and an autoscaler's sidecar. "
        "Not checked for a ClusterQueue in a cohort, which can borrow.",
    ),
    Reason.TIME_LIMIT_WHILE_WAITING: About(
        "The operator counts from the creation of the workload.", "Add the wait to the number."
    ),
    Reason.BOUND_NOT_ENFORCED: About(
        "muster plans by `muster.dev/runs-at-most`, and deletes nothing when the workload runs longer.",
        "Set the time limit of its kind as well ([gangs.md](gangs.md#run-times)).",
    ),
    Reason.QUEUE_ON_HOLD: About("Nothing starts in the queue, even with room (`muster hold`). Only for new workloads."),
    Reason.QUEUE_NEARLY_FULL: About(
        "Usage is `status.allocated`, which lags by moments and is unknown for GangQueues. Only for new workloads, and "
        "only if the queue and all queues above and below it are open to all namespaces, so that it reveals no usage.",
    ),
    Reason.NO_ROOM_TO_UPGRADE: About(
        "The old cluster of the RayService keeps serving while the new one waits.",
        "Raise the capability, or set `spec.upgradeStrategy.type: None` and recreate the service.",
    ),
    Reason.MIN_AVAILABLE_TOO_LOW: About(
        "Without an `elasticPolicy` the Training operator makes each pod expect all replicas; with "
        "`WaitForWorkersReady` the MPI operator creates no launcher before all workers are ready.",
        "Leave `minAvailable` out, or set `elasticPolicy.minReplicas`. In Volcano's Job, raise it to the sum of the "
        "tasks' minimums.",
    ),
    Reason.UNKNOWN_SCHEDULER: About(
        "muster leaves the workload alone.",
        "Write `volcano`, or nothing, unless you mean the other one.",
    ),
    Reason.MISSPELLED: About(
        "A label, annotation or replica type resembles one that muster or the operator reads, or is in a wrong place. "
        "If nothing else makes the workload a gang, only `muster plan`, `explain` and `audit` report it.",
    ),
    Reason.VALUE_IGNORED: About(
        "A label or annotation of muster has no effect. For `muster plan` also: a key is written twice, and the last "
        "value counts.",
    ),
    Reason.SCHEDULE_TIMEOUT_IGNORED: About(
        "The scheduler has no such timeout.",
        "Use `muster.dev/requeue-after`, which requeues an admitted gang that cannot start.",
    ),
    Reason.BOUND_TO_POD_GROUP: About(
        "muster creates no PodGroup. If only some roles are bound, the other pods are held for a gang that is never "
        "complete.",
        "To let muster manage the gang, remove the binding.",
    ),
    Reason.FIELD_DROPPED: About(
        "The field does not exist at that place, or the cluster does not serve the kind: `kubectl apply` refuses the "
        "object, other clients lose the field.",
    ),
    Reason.POD_LEVEL_RESOURCES: About(
        "muster counts pod-level requests; Volcano before 1.15 does not, and may overcommit a node. The chart cannot "
        "know its version.",
        "With Volcano 1.15 or later set the chart value `validationReasons: {PodLevelResources: off}`.",
    ),
    Reason.RESOURCE_CLAIMS: About(
        "Neither muster nor Volcano counts devices of dynamic resource allocation in a queue. With the chart value "
        "`dra: deny` such workloads and pods are refused.",
        "Request an extended resource (`nvidia.com/gpu`), which a DeviceClass can offer as well.",
    ),
    Reason.REQUESTS_MISSING: About(
        "Such pods use no quota, however many there are. Likewise for cpu or memory alone, if the queue limits it.",
        "Set requests, or add a LimitRange to the namespace.",
    ),
    Reason.CAPABILITY_OF_ZERO: About(
        "Only for cpu and memory; 0 of any other resource means none.",
        "Leave it out, or close the queue.",
    ),
    Reason.LIMITS_NOTHING: About("A capability, guarantee or deserved share names a resource that no pod can request."),
    Reason.GROWS_BEYOND_CAPABILITY: About(
        "An autoscaler may create more pods than the queue can ever hold; or a later job of a JobSet or TrainJob does "
        "not fit together with those that run then.",
        "Lower `maxReplicas` or the replicas, or raise the capability.",
    ),
    Reason.ELASTIC_WAITS_FOR_ALL: About("The job could run with fewer workers."),
    Reason.FOLLOWERS_COME_LATER: About(
        "JobSet creates only the first pod of each Job until that one has a node. The first pods start together, when "
        "the queue has room for all.",
        "Nothing, if domains are as large as a Job. Else label the nodes and set "
        "`alpha.jobset.sigs.k8s.io/node-selector`.",
    ),
    Reason.NO_PODS: About(
        "All replicas are 0; or a RayJob selects an existing RayCluster (`clusterSelector`), which takes the label.",
    ),
    Reason.POD_LEFT_ALONE: About("The template, or another webhook, names another scheduler than the gang's."),
}
