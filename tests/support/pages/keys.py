"""docs/names.md: every label, annotation and gate, who writes it, on what, and what it means."""

from dataclasses import dataclass

from muster.model import names

_ADMINISTRATOR, _USER = "administrator", "user"
_WEBHOOK, _CONTROLLER = "webhook", "controller"
_QUEUES = "[queues.md](queues.md#annotations-of-a-queue)"
_STORED = "[operations.md](operations.md#what-is-stored-where)"


@dataclass(frozen=True)
class Key:
    """A name of `muster.model.names` in one of its meanings: label, annotation or gate, on what, by whom, for what."""

    name: str
    form: str
    on: str
    writer: str
    meaning: str

    def row(self) -> str:
        """Return its row of the table."""
        return f"| `{getattr(names, self.name)}` | {self.form} | {self.on} | {self.writer} | {self.meaning} |"


_ASKED = (
    Key("QUEUE_LABEL", "label", "workload", _USER, "The queue; it makes the workload a gang."),
    Key("SCHEDULER_LABEL", "label", "workload", _USER, "The gang scheduler, such as `volcano`; makes it a gang, too."),
    Key("PRIORITY_CLASS_LABEL", "label", "workload", _USER, "The PriorityClass of the gang and of its pods."),
    Key(
        "QUEUE_ANNOTATION",
        "annotation",
        "workload, Namespace, pod",
        f"{_USER}, {_ADMINISTRATOR}",
        "The queue, where no label names one; on a Namespace for workloads that name none.",
    ),
    Key(
        "MANAGED",
        "label",
        "workload",
        _USER,
        '`"true"` makes it a gang without naming a queue, `"false"` opts it out.',
    ),
    Key("GANG", "label", "plain pod, template of a Job or StatefulSet", _USER, "The gang to which the pod belongs."),
    Key("GANG_SIZE", "annotation", "the same pods", _USER, "How many pods the gang cannot start without."),
    Key("TOPOLOGY_MODE_LABEL", "label", "workload", _USER, "`hard` or `soft`: Volcano's network topology."),
    Key("TOPOLOGY_TIER_LABEL", "label", "workload", _USER, "The highest tier of that topology that is allowed."),
    Key(
        "REQUEUE_AFTER",
        "annotation",
        "workload",
        _USER,
        "After how long an admitted gang without a node releases its claim, such as `30m`, or `30m,not-ready` "
        "for one that is not ready, too: [reasons.md](reasons.md).",
    ),
    Key(
        "RUNS_AT_MOST",
        "annotation",
        "workload, or what made it",
        _USER,
        "How long the gang runs at most, such as `2h`: [gangs.md](gangs.md#run-times).",
    ),
    Key(
        "HOLD",
        "annotation",
        "workload, or what made it",
        _USER,
        '`"true"`: the gang does not start. `muster hold` writes it: [queues.md](queues.md#on-hold).',
    ),
    Key(
        "PREEMPTABLE",
        "annotation or label",
        "template of a pod",
        _USER,
        '`"false"`: Volcano does not evict the pod: [queues.md](queues.md#where-volcano-evicts-pods).',
    ),
    Key("KUEUE_QUEUE", "label", "workload", _USER, "The LocalQueue of Kueue: [kueue.md](kueue.md)."),
    Key("KUEUE_MOST_RUN", "label", "workload", _USER, "The same as `muster.dev/runs-at-most`, in seconds."),
    Key(
        "KUEUE_PARTIAL",
        "annotation",
        "Job",
        _USER,
        "With how many pods Kueue may admit it: muster then never says that its quota is too small.",
    ),
)
_CHOSEN = (
    Key(
        "MANAGED",
        "label",
        "Namespace",
        _ADMINISTRATOR,
        '`"true"`: all workloads of operators there are gangs, unless they opt out; `"false"`: none is, unless its own '
        'label says `"true"`; `required`: none may opt out.',
    ),
    Key(
        "GATE_MODE",
        "annotation",
        "Namespace, Queue",
        _ADMINISTRATOR,
        '`queue`, `assemble` or `"off"`: [operations.md](operations.md#what-holds-a-gang-back).',
    ),
    Key("ADMITTER", "annotation", "Namespace", _ADMINISTRATOR, "`ledger`, `kueue` or `none`: who admits its gangs."),
    Key("SCHEDULER", "annotation", "Namespace", _ADMINISTRATOR, "The gang scheduler of workloads that name none."),
    Key("HOLD", "annotation", "Queue", _ADMINISTRATOR, '`"true"`: no gang starts in it, nor in a queue below it.'),
    Key("NAMESPACE_SELECTOR", "annotation", "Queue", _ADMINISTRATOR, "The namespaces that may use it. Default: all."),
    Key(
        "PATIENCE",
        "annotation",
        "Queue",
        _ADMINISTRATOR,
        "How long a gang may be bypassed before it has a reservation, such as `30m`.",
    ),
    Key(
        "RESERVES",
        "annotation",
        "Queue",
        _ADMINISTRATOR,
        "`bounds`: reservations rest on run time limits alone, not on estimates.",
    ),
    Key(
        "DRAIN_AFTER",
        "annotation",
        "Queue",
        _ADMINISTRATOR,
        "How long after its first bypass the queue drains for a gang, such as `72h`.",
    ),
    Key("QUEUEING", "annotation", "Queue", _ADMINISTRATOR, "`strict`: no gang bypasses another one."),
    Key(
        "UNPLACED_AFTER",
        "annotation",
        "Queue",
        _ADMINISTRATOR,
        "After how long a gang without a node is `Unschedulable`; one of Volcano then lets others take its place.",
    ),
    Key("SIBLINGS", "annotation", "Queue", _ADMINISTRATOR, "`age`: the queues below it do not share, by age instead."),
    Key("PREEMPTION", "annotation", "Queue", _ADMINISTRATOR, "`lower-priority`: Volcano's `preempt` action is on."),
    Key("RECLAIM", "annotation", "Queue `root`", _ADMINISTRATOR, "`beyond-share`: Volcano's `reclaim` action is on."),
    Key("BOUND", "annotation", "Queue `root`", _ADMINISTRATOR, "`nodes`: admit no more than the nodes can hold."),
)
_OF_PODS = (
    Key("GATE", "scheduling gate", "pod", _WEBHOOK, "The pod is held. The controller removes it, and adds none."),
    Key("GANG", "label", "pod", _WEBHOOK, "The gang, cut where a label is too short for its name."),
    Key(
        "WORKLOAD", "annotation", "pod of a Job", _WEBHOOK, "The workload above the Job, as an OwnerReference in JSON."
    ),
    Key("GANG_TIME_LIMIT", "annotation", "plain pod of a Job", _WEBHOOK, "The seconds after which the Job is ended."),
    Key("GANG_COMPLETIONS", "annotation", "plain pod of a Job", _WEBHOOK, "How many pods of the Job are to succeed."),
    Key("QUEUE_LABEL", "label", "pod", _WEBHOOK, "The queue of the gang, cut where a label is too short for its name."),
    Key(
        "GROUP_NAME",
        "annotation",
        "pod",
        _WEBHOOK,
        "The gang. Volcano reads it: its PodGroup has the same name.",
    ),
    Key("TASK_SPEC", "annotation", "pod for Volcano", _WEBHOOK, "The role of the pod in its gang."),
    Key("PREEMPTABLE", "annotation", "pod for Volcano", _WEBHOOK, '`"false"` on pods of roles without spare pods.'),
    Key("POD_GROUP_LABEL", "label", "pod for coscheduling", _WEBHOOK, "The PodGroup of scheduler-plugins."),
)
_OF_GROUPS = (
    Key("STATE", "annotation", "PodGroup", _CONTROLLER, "The state of the gang: [reasons.md](reasons.md)."),
    Key("STATE", "label", "PodGroup", _CONTROLLER, "The same, to select by: [kubectl.md](kubectl.md)."),
    Key("MESSAGE", "annotation", "PodGroup", _CONTROLLER, "The state in a sentence, with numbers."),
    Key("ADMITTED", "annotation", "PodGroup", _CONTROLLER, "The gang is admitted: the UID of its workload."),
    Key("ADMITTED_AT", "annotation", "PodGroup", _CONTROLLER, "Since when (RFC 3339)."),
    Key(
        "ADMITTED_FOR",
        "annotation",
        "PodGroup",
        _CONTROLLER,
        "For which minimums, queue and priority, and which replicas of several hosts are being opened (JSON).",
    ),
    Key("ADMITTER", "annotation", "PodGroup", _CONTROLLER, "Who has admitted it, where that was not the ledger."),
    Key("PASSED_SINCE", "annotation", "PodGroup", _CONTROLLER, "Since when smaller gangs bypass it (RFC 3339)."),
    Key("PASSED_IN", "annotation", "PodGroup", _CONTROLLER, "In which queue they do."),
    Key("DRAIN_AFTER", "annotation", "PodGroup", _CONTROLLER, "When that drains for it, where the queue does not say."),
    Key("REQUEUED_AT", "annotation", "PodGroup", _CONTROLLER, "When it last released its claim (RFC 3339)."),
    Key("RUNS_ABOUT", "annotation", "PodGroup", _CONTROLLER, "How long former gangs like it ran, such as `2h10m 4h`."),
    Key("GANG_SPEC", "annotation", "PodGroup", _CONTROLLER, "What its kind has no field for, such as a queue (JSON)."),
    Key(
        "MANAGED_BY",
        "label",
        "PodGroup",
        _CONTROLLER,
        "`muster`: the PodGroup is muster's. Nobody else may write it, nor take it off.",
    ),
    Key("NUDGE", "annotation", "workload, PodGroup", _CONTROLLER, "When operator or scheduler was last asked to look."),
)
_READ = (Key("NAMESPACE_NAME", "label", "Namespace", "kube-apiserver", "Selects one namespace by its name."),)
KEYS = {
    "What users write": _ASKED,
    "What administrators write": _CHOSEN,
    "What muster writes on pods": _OF_PODS,
    "What muster writes on PodGroups and workloads": _OF_GROUPS,
    "What muster reads of others": _READ,
}
"""By the heading of their table."""

_HEAD = """\
<!-- Written by MUSTER_REWRITE=1 pytest tests/docs/test_reference.py from tests/support/pages/keys.py. -->

# Labels and annotations

Every label, annotation and scheduling gate that you write for muster, or that muster writes. A *workload* is an object
of a kind in [gangs.md](gangs.md), which says in which order several ways to name a queue count; with KubeRay a label on
a RayJob or RayService reaches the RayCluster. Names that begin with `muster.dev/` are muster's own; the others belong
to their projects, and mean here what they mean there.
"""
_COLUMNS = "| name | form | on | written by | meaning |"
_END = f"""\
Details: {_QUEUES} for queues, {_STORED} for what muster
keeps in annotations. A GangQueue has fields in place of the annotations of a Queue
([queues.md](queues.md#queues-without-volcano)).
"""


def page() -> str:
    """Return the page."""
    tables = [
        "\n".join([f"## {heading}", "", _COLUMNS, "|---|---|---|---|---|", *(key.row() for key in keys), ""])
        for heading, keys in KEYS.items()
    ]
    return "\n".join([_HEAD, *tables, _END])
