"""Findings in objects that users apply: a message for people, a stable reason for machines, and their effect.

A message names the field, the fault, the rule, and the cure. `Reason` lists every finding, the most serious
first; `ABOUT` has the default severity, the cause and the cure of each. `Validation` has the effects by the chart's
`validation` and `validationReasons`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar


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
    """A reason in docs/denials.md.

    :ivar severity: its effect, if the chart values set no other.
    :ivar cause: what the message does not explain, in sentences.
    :ivar cure: what to do, if the message does not tell it all; "" otherwise.
    """

    severity: Severity
    cause: str
    cure: str = ""


_OTHER_WEBHOOKS = "If another webhook adds the amounts, set this reason to `warn`."

ABOUT: Mapping[Reason, About] = {
    Reason.INVALID: About(
        Severity.DENY,
        "A number, a name or an amount makes no gang. Its pods are refused as well, whatever the mode. `muster plan` "
        "also names values that the apiserver refuses.",
    ),
    Reason.QUEUE_NOT_FOUND: About(
        Severity.DENY,
        "PodGroups, and pods that name such a queue themselves, are refused whatever the mode.",
        "If GitOps applies Queues after their users, set this reason to `warn`: the gang waits for its queue.",
    ),
    Reason.QUEUE_CLOSED: About(
        Severity.DENY, "The queue was closed (`vcctl queue operate --action close`), or is closing."
    ),
    Reason.QUEUE_NOT_LEAF: About(
        Severity.DENY, "With Volcano's capacity plugin, a gang in such a queue stops all scheduling of the cluster."
    ),
    Reason.EXCEEDS_CAPABILITY: About(
        Severity.DENY, "The minimum of the gang, or a later wave, is more than its queue or a parent can ever hold."
    ),
    Reason.EXCEEDS_RESOURCE_QUOTA: About(
        Severity.DENY,
        "A ResourceQuota is too small for the gang, a later wave, or one pod. Waiting pods count against it, "
        "and so does the submitter of a RayJob. For a quota with scopes, only pods certainly in them count.",
    ),
    Reason.EXCEEDS_ELASTIC_QUOTA: About(
        Severity.DENY,
        "The gang needs more than the `max` of its namespace's ElasticQuota, or than the `min` of all namespaces "
        "together. Only for gangs of coscheduling, with the chart value `elasticQuotas`.",
        "If GitOps applies ElasticQuotas after their users, set this reason to `warn`.",
    ),
    Reason.REQUIRED_BY_RESOURCE_QUOTA: About(
        Severity.DENY,
        "The apiserver refuses every pod that does not set what a ResourceQuota limits (`must specify limits.cpu for: "
        "…`).",
        _OTHER_WEBHOOKS,
    ),
    Reason.OUTSIDE_LIMIT_RANGE: About(
        Severity.DENY,
        "A pod is outside `min`, `max` or `maxLimitRequestRatio` of a LimitRange, or gets a limit below its request.",
        _OTHER_WEBHOOKS,
    ),
    Reason.SCHEDULER_CANNOT: About(
        Severity.DENY, "kube-scheduler places all pods of a PodGroup or none, with one priority for all of them."
    ),
    Reason.POD_GROUP_TAKEN: About(Severity.DENY, "The other one is a workload, or a gang of plain pods."),
    Reason.UNKNOWN_PRIORITY_CLASS: About(Severity.DENY, "The apiserver would refuse every pod."),
    Reason.TRAINING_RUNTIME_NOT_FOUND: About(
        Severity.DENY, "For a TrainJob that does not itself ask for gang scheduling, always a warning."
    ),
    Reason.QUEUE_HIERARCHY: About(
        Severity.DENY,
        "The parent of a Queue is missing, is one of its children, or holds PodGroups; or guarantee and capability "
        "contradict those of parents or children. With some of these faults Volcano's capacity plugin stops all "
        "scheduling.",
    ),
    Reason.CAPABILITY_LOWERED: About(
        Severity.WARN,
        "The new capability is below the usage of the queue (`status.allocated`, unknown for GangQueues), or below the "
        "needs of a waiting gang, which waits until it is raised.",
    ),
    Reason.UNKNOWN_RUNTIME_CLASS: About(
        Severity.WARN, "The workload is accepted, because the class may be created later."
    ),
    Reason.OVERHEAD_MISMATCH: About(Severity.WARN, "The RuntimeClass sets the overhead of its pods."),
    Reason.IN_NO_KUEUE_QUEUE: About(
        Severity.WARN,
        "Kueue admits the gangs of the namespace (annotation `muster.dev/admitter`, or chart value `admitters`), and "
        "ignores workloads without its label.",
    ),
    Reason.EXCEEDS_KUEUE_QUOTA: About(
        Severity.WARN,
        "No flavors of the ClusterQueue can hold the workload, with a RayJob's submitter and an autoscaler's sidecar. "
        "Not checked for a ClusterQueue in a cohort, which can borrow.",
    ),
    Reason.TIME_LIMIT_WHILE_WAITING: About(
        Severity.WARN, "The operator counts from the creation of the workload.", "Add the wait to the number."
    ),
    Reason.BOUND_NOT_ENFORCED: About(
        Severity.WARN,
        "muster plans by `muster.dev/runs-at-most`, and deletes nothing when the workload runs longer.",
        "Set the time limit of its kind as well ([gangs.md](gangs.md#run-times)).",
    ),
    Reason.QUEUE_ON_HOLD: About(
        Severity.WARN, "Nothing starts in the queue, even with room (`muster hold`). Only for new workloads."
    ),
    Reason.QUEUE_NEARLY_FULL: About(
        Severity.WARN,
        "Usage is `status.allocated`, which lags by moments and is unknown for GangQueues. Only for new workloads, and "
        "only if the queue and all queues above and below it are open to all namespaces, so that it reveals no usage.",
    ),
    Reason.NO_ROOM_TO_UPGRADE: About(
        Severity.WARN,
        "The old cluster of the RayService keeps serving while the new one waits.",
        "Raise the capability, or set `spec.upgradeStrategy.type: None` and recreate the service.",
    ),
    Reason.MIN_AVAILABLE_TOO_LOW: About(
        Severity.WARN,
        "Without an `elasticPolicy` the Training operator makes each pod expect all replicas; with "
        "`WaitForWorkersReady` the MPI operator creates no launcher before all workers are ready.",
        "Leave `minAvailable` out, or set `elasticPolicy.minReplicas`. In Volcano's Job, raise it to the sum of the "
        "tasks' minimums.",
    ),
    Reason.UNKNOWN_SCHEDULER: About(
        Severity.WARN,
        "muster leaves the workload alone.",
        "Write `volcano`, or nothing, unless you mean the other one.",
    ),
    Reason.MISSPELLED: About(
        Severity.WARN,
        "A label, annotation or replica type resembles one that muster or the operator reads, or is in a wrong place. "
        "If nothing else makes the workload a gang, only `muster plan`, `explain` and `audit` report it.",
    ),
    Reason.VALUE_IGNORED: About(
        Severity.WARN,
        "A label or annotation of muster has no effect. For `muster plan` also: a key is written twice, and the last "
        "value counts.",
    ),
    Reason.SCHEDULE_TIMEOUT_IGNORED: About(
        Severity.WARN,
        "The scheduler has no such timeout.",
        "Use `muster.dev/requeue-after`, which requeues an admitted gang that cannot start.",
    ),
    Reason.BOUND_TO_POD_GROUP: About(
        Severity.WARN,
        "muster creates no PodGroup. If only some roles are bound, the other pods are held for a gang that is never "
        "complete.",
        "To let muster manage the gang, remove the binding.",
    ),
    Reason.FIELD_DROPPED: About(
        Severity.WARN,
        "The field does not exist at that place, or the cluster does not serve the kind: `kubectl apply` refuses the "
        "object, other clients lose the field.",
    ),
    Reason.POD_LEVEL_RESOURCES: About(
        Severity.WARN,
        "muster counts pod-level requests; Volcano before 1.15 does not, and may overcommit a node. The chart cannot "
        "know its version.",
        "With Volcano 1.15 or later set the chart value `validationReasons: {PodLevelResources: off}`.",
    ),
    Reason.RESOURCE_CLAIMS: About(
        Severity.WARN,
        "Neither muster nor Volcano counts devices of dynamic resource allocation in a queue. With the chart value "
        "`dra: deny` such workloads and pods are refused.",
        "Request an extended resource (`nvidia.com/gpu`), which a DeviceClass can offer as well.",
    ),
    Reason.REQUESTS_MISSING: About(
        Severity.WARN,
        "Such pods use no quota, however many there are. Likewise for cpu or memory alone, if the queue limits it.",
        "Set requests, or add a LimitRange to the namespace.",
    ),
    Reason.CAPABILITY_OF_ZERO: About(
        Severity.WARN,
        "Only for cpu and memory; 0 of any other resource means none.",
        "Leave it out, or close the queue.",
    ),
    Reason.LIMITS_NOTHING: About(
        Severity.WARN, "A capability, guarantee or deserved share names a resource that no pod can request."
    ),
    Reason.GROWS_BEYOND_CAPABILITY: About(
        Severity.WARN,
        "An autoscaler may create more pods than the queue can ever hold; or a later job of a JobSet or TrainJob does "
        "not fit together with those that run then.",
        "Lower `maxReplicas` or the replicas, or raise the capability.",
    ),
    Reason.ELASTIC_WAITS_FOR_ALL: About(Severity.WARN, "The job could run with fewer workers."),
    Reason.FOLLOWERS_COME_LATER: About(
        Severity.WARN,
        "JobSet creates only the first pod of each Job until that one has a node. The first pods start together, when "
        "the queue has room for all.",
        "Nothing, if domains are as large as a Job. Else label the nodes and set "
        "`alpha.jobset.sigs.k8s.io/node-selector`.",
    ),
    Reason.NO_PODS: About(
        Severity.WARN,
        "All replicas are 0; or a RayJob selects an existing RayCluster (`clusterSelector`), which takes the label.",
    ),
    Reason.POD_LEFT_ALONE: About(
        Severity.WARN, "The template, or another webhook, names another scheduler than the gang's."
    ),
}


_Word = TypeVar("_Word", Reason, Severity)

_ORDER = {reason: place for place, reason in enumerate(Reason)}


@dataclass(frozen=True, slots=True)
class Validation:
    """The effect of findings.

    With `mode` deny each has the severity that `reasons` gives to its reason, else that of `ABOUT`. With warn nothing
    is refused: refusals become warnings. With off there are no messages.
    """

    mode: Severity = Severity.DENY
    reasons: Mapping[Reason, Severity] = field(default_factory=dict)

    def severity(self, reason: Reason) -> Severity:
        """Return the severity of a finding of that reason."""
        own = self.reasons.get(reason, ABOUT[reason].severity)
        if self.mode is Severity.OFF or (self.mode is Severity.WARN and own is Severity.DENY):
            return self.mode
        return own

    def refused(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the findings for which the object is refused."""
        return tuple(one for one in findings if self.severity(one.reason) is Severity.DENY)

    def warned(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return the warnings that come with an acceptance, the most serious first."""
        warnings = (one for one in findings if self.severity(one.reason) is Severity.WARN)
        return tuple(sorted(warnings, key=lambda one: _ORDER[one.reason]))


def read_validation(mode: str = Severity.DENY, reasons: Iterable[str] = ()) -> Validation:
    """Return the validation of a `mode` and of `Reason=severity` pairs; raises ValueError with the valid values."""
    return Validation(
        _one_of(Severity, mode, "validation"),
        dict(_pair(text) for text in reasons),
    )


def _pair(text: str) -> tuple[Reason, Severity]:
    reason, _, severity = text.partition("=")
    return _one_of(Reason, reason, "a reason"), _one_of(Severity, severity, f"validation of {reason}")


def _one_of(kind: type[_Word], text: str, what: str) -> _Word:
    try:
        return kind(text)
    except ValueError:
        known = ", ".join(kind)
        raise ValueError(f'{what}: "{text[:80]}" is not known; use one of {known}') from None
