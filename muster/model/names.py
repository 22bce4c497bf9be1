"""The labels and annotations that muster writes on objects of users, and those that it reads there."""

import hashlib
import re
from collections.abc import Mapping

# muster's own
GATE = "muster.dev/gang"  # scheduling gate on pods
GATE_MODE = "muster.dev/gate"  # annotation on Queues and Namespaces: one of muster.model.modes.GateMode
GANG = "muster.dev/gang"  # label on pods: the gang's PodGroup
GANG_SIZE = "muster.dev/gang-size"  # annotation on plain pods: the number of pods that their gang needs to start
GANG_COMPLETIONS = "muster.dev/gang-completions"  # annotation on plain pods: the completions of their Job
GANG_TIME_LIMIT = "muster.dev/gang-time-limit"  # annotation on plain pods: the seconds after which their Job is ended
WORKLOAD = "muster.dev/workload"  # annotation on pods whose Job is a workload's: an OwnerReference to that, as JSON
MANAGED = "muster.dev/managed"  # label on workloads and Namespaces: "true" opts in, "false" opts out
REQUIRED = "required"  # its value on Namespaces where no workload opts out
ADMITTED = "muster.dev/admitted"  # annotation on PodGroups: the UID of the workload whose gang is admitted
ADMITTED_AT = "muster.dev/admitted-at"  # annotation on PodGroups: when it was admitted (RFC 3339)
ADMITTED_FOR = "muster.dev/admitted-for"  # annotation on PodGroups: the minimums and the queue of its admission (JSON)
ADMITTER = "muster.dev/admitter"  # annotation on Namespaces and PodGroups: the admitter of the gangs
SCHEDULER = "muster.dev/scheduler"  # annotation on Namespaces: the gang scheduler of workloads that name none
GANG_SPEC = "muster.dev/gang-spec"  # annotation on PodGroups: fields that their kind lacks, such as a queue (JSON)
STATE = "muster.dev/state"  # annotation and label of PodGroups: one of the states of docs/reasons.md
MESSAGE = "muster.dev/message"  # annotation on PodGroups: the same in a sentence, with numbers
NUDGE = "muster.dev/nudge"  # annotation on workloads, PodGroups: when operator or scheduler was last asked to look
PASSED_SINCE = "muster.dev/passed-since"  # annotation on PodGroups: since when smaller gangs pass this one (RFC 3339)
PASSED_IN = "muster.dev/passed-in"  # annotation on PodGroups: the queue in which that is so
REQUEUED_AT = "muster.dev/requeued-at"  # annotation on PodGroups: when the gang last gave its place back (RFC 3339)
HOLD = "muster.dev/hold"  # annotation on queues, workloads and their makers: "true" where no gang is to start
RUNS_AT_MOST = "muster.dev/runs-at-most"  # annotation on workloads and their makers: its run time, such as 2h
RUNS_ABOUT = "muster.dev/runs-about"  # annotation on PodGroups: run times of former gangs, such as "2h10m 4h 9h"
REQUEUE_AFTER = "muster.dev/requeue-after"  # annotation on workloads: when to give an unused place back, such as 30m
QUEUEING = "muster.dev/queueing"  # annotation on Queues: "strict" where no gang overtakes
PATIENCE = "muster.dev/patience"  # annotation on Queues: how long a gang may be passed, such as 10m
RESERVES = "muster.dev/reserves"  # annotation on Queues: "bounds" where reservations rest on no estimates
DRAIN_AFTER = "muster.dev/drain-after"  # annotation on Queues, PodGroups: when a queue drains for a gang, such as 72h
UNPLACED_AFTER = "muster.dev/unplaced-after"  # annotation on Queues: when an unplaced gang lets others past it
PREEMPTION = "muster.dev/preemption"  # annotation on Queues: "lower-priority" where Volcano makes room by preempting
MIN_RUNTIME = "muster.dev/min-runtime"  # annotation on Queues: how long Volcano lets new pods run, such as 30m
HALF_LIFE = "muster.dev/half-life"  # annotation on Queues: how fast past use fades in shares below, such as 24h
SIBLINGS = "muster.dev/siblings"  # annotation on Queues: "age" where the queues below start by age, not by share
RECLAIM = "muster.dev/reclaim"  # annotation on the root Queue: "beyond-share" where Volcano takes back by reclaim
BOUND = "muster.dev/bound"  # annotation on the root Queue: "nodes" where no more may start than the nodes can hold
NAMESPACE_SELECTOR = "muster.dev/namespace-selector"  # annotation on Queues: the namespaces that may use it
NAMESPACE_NAME = "kubernetes.io/metadata.name"  # label that the apiserver puts on every Namespace
MANAGED_BY = "app.kubernetes.io/managed-by"
MUSTER = "muster"
# annotations on PodGroups that only muster may write, those of the decisions on a gang first
RECORD = (
    *(ADMITTED, ADMITTED_AT, PASSED_SINCE, PASSED_IN, REQUEUED_AT),
    *(ADMITTED_FOR, ADMITTER, DRAIN_AFTER, RUNS_ABOUT),
)
MARKS = (*RECORD, GANG_SPEC, STATE, MESSAGE)

# annotations and labels of users
SCHEDULER_LABEL = "ray.io/scheduler-name"
GANG_ENABLED = "ray.io/gang-scheduling-enabled"  # label by which KubeRay's users ask for a gang
KUEUE_PARTIAL = "kueue.x-k8s.io/job-min-parallelism"  # annotation on Jobs: the fewest pods with which Kueue admits
KUEUE_MOST_RUN = "kueue.x-k8s.io/max-exec-time-seconds"  # label on workloads: the same as RUNS_AT_MOST, in seconds
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"  # label that gives a workload to Kueue
QUEUE_LABEL = "volcano.sh/queue-name"
PRIORITY_CLASS_LABEL = "ray.io/priority-class-name"
TOPOLOGY_MODE_LABEL = "volcano.sh/network-topology-mode"
TOPOLOGY_TIER_LABEL = "volcano.sh/network-topology-highest-tier-allowed"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"

# the schedulerName of a pod that names no scheduler: none yet, or the apiserver's default
UNNAMED_SCHEDULERS = ("", "default-scheduler")

# keys that Volcano reads on pods
GROUP_NAME = "scheduling.k8s.io/group-name"
TASK_SPEC = "volcano.sh/task-spec"
PREEMPTABLE = "volcano.sh/preemptable"
COOLDOWN = "volcano.sh/cooldown-time"

# keys that coscheduling reads on pods
POD_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"

READ_KEYS = {
    text for text in tuple(globals().values()) if isinstance(text, str) and re.fullmatch(r"[a-z0-9.-]+/\S+", text)
}
"""The keys of labels and annotations that muster reads, those above and what `read_key` adds: stores keep no others."""

_LONGEST_LABEL = 63
LONGEST_NAME = 253  # of an object
_HASH_LENGTH = 10
# The form that `label_value` gives to longer names.
_SHORT = re.compile(rf"(?=.{{{_LONGEST_LABEL}}}$).+-[0-9a-f]{{{_HASH_LENGTH}}}")
_LABEL_NAME = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_OBJECT_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def read_key(key: str) -> str:
    """Note a key of labels or annotations that muster reads, and return it: each is named once, where it is read."""
    READ_KEYS.add(key)
    return key


def is_object_name(name: str) -> bool:
    """True if an object can have that name: a DNS subdomain, of lower case letters, digits, "-" and "."."""
    return len(name) <= LONGEST_NAME and bool(_OBJECT_NAME.fullmatch(name))


def is_label_name(name: str) -> bool:
    """True if a Service can have that name: a DNS label that begins with a letter (RFC 1035)."""
    return len(name) <= _LONGEST_LABEL and bool(_LABEL_NAME.fullmatch(name))


def label_value(name: str) -> str:
    """Return the name as a label value: itself, or its head and a hash if it is longer than 63 characters."""
    if len(name) <= _LONGEST_LABEL:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: _LONGEST_LABEL - _HASH_LENGTH - 1].rstrip('-._')}-{digest}"


def queue_named(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """Return the queue that an object's label names, "" for none; if the label has a short form, from the annotation.

    The short form is no name: the queue of a gang's pod without that annotation is unknown.
    """
    label, whole = labels.get(QUEUE_LABEL, ""), annotations.get(QUEUE_ANNOTATION, "")
    if whole and label == label_value(whole):
        return whole
    return "" if GANG in labels and _SHORT.fullmatch(label) else label


def label_of_queue(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the label that names the queue of a gang's pods, and an annotation with the whole name if it is longer."""
    label = label_value(name)
    return {QUEUE_LABEL: label}, {} if label == name else {QUEUE_ANNOTATION: name}
