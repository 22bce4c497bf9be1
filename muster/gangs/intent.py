"""The intent of a user: scheduler, queue and priority of a workload, and the fields that set them.

Per field the first that is set wins: labels, then `spec.runPolicy.schedulingPolicy`, then the annotation that Volcano's
users know, looked for at the workload nearest to the pod and then up its owners; then the namespace (the queue), then
the templates, then the namespace (the scheduler), then the defaults of the installation. A workload with none of the
first three is not muster's unless it is opted in, and neither is one that names a scheduler muster is not configured
for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from muster.admitters import Admitter, chosen_admitter, gate_by
from muster.admitters.kueue import KueueTimeouts
from muster.model import names
from muster.model.findings import Validation
from muster.model.modes import GateMode, gate_mode
from muster.model.objects import InvalidObjectError, ObjectMeta, WrittenMeta
from muster.model.selectors import Selector
from muster.model.times import duration_of
from muster.model.topology import Topology, read_topology
from muster.queueing.sources import QUEUE_SOURCES, QueueSource
from muster.schedulers import SCHEDULERS, GangScheduler
from muster.workloads import IntentSource, SchedulingPolicy, Workload

_SHORTEST_RUN, LONGEST_RUN = 60.0, 60 * 24 * 3600.0
_MOST_DIGITS = 9

LEAST_REQUEUE = 5.0
"""The least seconds after which a gang is requeued, whatever its workload asks for."""
NOT_READY = "not-ready"
"""The word, after the duration and a comma, with which pods count, too, that have nodes and are not ready."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Installation settings: defaults, gang schedulers, admitters, and the validation mode."""

    queue: str = "default"
    schedulers: Mapping[str, GangScheduler] = field(default_factory=lambda: {"volcano": SCHEDULERS["volcano"]})
    """The gang schedulers by the schedulerName of their pods; workloads that name none get the first."""
    gate: GateMode = GateMode.QUEUE
    admitters: tuple[Admitter, ...] = (Admitter.LEDGER,)
    """The admitters; the first is that of namespaces that name none."""
    kueue: KueueTimeouts = field(default_factory=KueueTimeouts)
    """How long Kueue awaits the pods of a gang that it has admitted."""
    queue_source: QueueSource = QUEUE_SOURCES["volcano"]
    elastic_quotas: bool = False
    """True if ElasticQuotas of scheduler-plugins bound the gangs whose scheduler enforces them."""
    validation: Validation = field(default_factory=Validation)
    namespaces: Selector = field(default_factory=Selector)
    """The namespaces for which muster is installed; the controller has them from its stores (`Cluster`)."""

    @property
    def scheduler(self) -> str:
        """The name of the scheduler of workloads that name none."""
        return next(iter(self.schedulers))

    def gate_in(self, namespace: Mapping[str, str], of_queue: GateMode | None) -> GateMode:
        """Return the gate mode of gangs in a namespace with these annotations; `of_queue` is their queue's or None."""
        return gate_by(chosen_admitter(namespace, self.admitters), of_queue, gate_mode(namespace, self.gate))


@dataclass(frozen=True, slots=True)
class IntentScope:
    """The objects that may set the intent of a workload in addition to its metadata.

    First `nearer`, other places or objects by its kind (`Kind.intent_sources`); then its owners, nearest first; then
    its namespace. An `unselected` namespace is not among those for which muster is installed.
    """

    nearer: tuple[IntentSource, ...] = ()
    owners: tuple[ObjectMeta, ...] = ()
    namespace: ObjectMeta = field(default_factory=ObjectMeta)
    unselected: bool = False

    @property
    def intent_sources(self) -> tuple[IntentSource, ...]:
        """All sources but the namespace, the nearest first."""
        return (*self.nearer, *(_source(f"owner {owner.name}", owner) for owner in self.owners))


_ALONE = IntentScope()


class RunLimit(NamedTuple):
    """The run time limit of a gang: seconds, and the path of the field that sets it."""

    seconds: float
    path: str
    text: str


class RequeueAfter(NamedTuple):
    """The time after which a gang gives back a place that it cannot use (`muster.dev/requeue-after`).

    :ivar seconds: the time
    :ivar not_ready: True if pods that have nodes and are not ready count, too
    """

    seconds: float
    not_ready: bool


@dataclass(frozen=True, slots=True)
class Intent:
    """The user's intent for gang scheduling.

    `priority_class` is "" if none is named. `paths` has for each of `scheduler`, `queue` and `priorityClassName` the
    path of the field that decided it; one that is missing there has its default. `prioritise_pods` is True if the
    priority is set for the workload as a whole, so that pods whose template names none get it.
    """

    scheduler: str
    queue: str
    priority_class: str
    paths: Mapping[str, str]
    prioritise_pods: bool
    topology: Topology | None = field(default=None)
    gang_scheduler: GangScheduler = field(default_factory=lambda: SCHEDULERS["volcano"])
    """The gang scheduler with the name `scheduler`."""
    requeue_after: str = ""
    """`muster.dev/requeue-after`, if by it pods count that have nodes and are not ready; else ""."""
    run_limit: RunLimit | None = None
    """Its run time limit; None if none is set, or it cannot be read."""


def is_managed(metadata: ObjectMeta, policy: SchedulingPolicy, scope: IntentScope = _ALONE) -> bool:
    """True if a label, policy or annotation makes the workload muster's; else nothing else of it is read."""
    nearest_first: tuple[ObjectMeta | IntentSource, ...] = (metadata, *scope.intent_sources)
    if scope.unselected:
        return False
    if required(scope.namespace):
        return True
    for one in (*nearest_first, scope.namespace):
        managed = one.labels.get(names.MANAGED)
        if managed in ("true", "false"):
            return managed == "true"
    return policy != SchedulingPolicy() or any(_asks(one) for one in nearest_first)


def required(namespace: ObjectMeta) -> bool:
    """True if all workloads of the namespace are muster's, and nothing below it opts out."""
    return namespace.labels.get(names.MANAGED) == names.REQUIRED


def may_have_unmanaged_pods(workload: ObjectMeta, namespace: ObjectMeta) -> bool:
    """True if pods of the workload may have come without muster, so that it is left alone until they are gone.

    Where muster is required, a workload may that is older than the label: its creation time cannot be changed, while
    users may change labels and owners of a pod. If the age of the label is not known, any workload may.
    """
    since = required_since(namespace) if required(namespace) else ""
    return not since or workload.creation_timestamp <= since


def required_since(namespace: ObjectMeta) -> str:
    """Return the time of the last write by the label's field manager (RFC 3339); "" if it is not known."""
    if not isinstance(namespace, WrittenMeta):
        return ""
    label = f"f:{names.MANAGED}"
    times = (one.time for one in namespace.managed_fields if label in one.fields.metadata.get("f:labels", {}))
    return max(times, default="")


def _asks(one: ObjectMeta | IntentSource) -> bool:
    named = any(one.labels.get(key) for key in (names.SCHEDULER_LABEL, names.QUEUE_LABEL, names.PRIORITY_CLASS_LABEL))
    # For KubeRay the label counts whatever its value is.
    enabled = one.labels.get(names.GANG_ENABLED, "false") != "false"
    return named or enabled or bool(one.annotations.get(names.QUEUE_ANNOTATION))


def find_intent(workload: Workload, defaults: Defaults, scope: IntentScope = _ALONE) -> Intent | None:
    """Return the intent of a workload, or None when muster leaves it alone.

    Raises InvalidObjectError for malformed labels, and for a scheduler that is none of muster's if the namespace
    requires one of these.
    """
    policy = workload.policy
    if not is_managed(workload.metadata, policy, scope):
        return None
    if foreign := foreign_scheduler(workload, defaults, scope):
        if not required(scope.namespace):
            return None
        known = ", ".join(sorted(defaults.schedulers))
        raise InvalidObjectError(
            foreign[0], f'"{foreign[1]}" is none of muster\'s schedulers, which this namespace requires; name {known}'
        )
    paths: dict[str, str] = {}

    def first(field: str, *candidates: tuple[str, str]) -> str:
        for path, value in candidates:
            if value:
                paths[field] = path
                return value
        return ""

    scheduler = first("scheduler", *_labels(names.SCHEDULER_LABEL, workload, scope))
    queue = first("queue", *_queues(workload, scope), _of_namespace(names.QUEUE_ANNOTATION, scope))
    of_workload, *of_others = _labels(names.PRIORITY_CLASS_LABEL, workload, scope)
    priority = first(
        "priorityClassName",
        of_workload,
        (f"{workload.policy_path}.{workload.priority_field}", policy.priority_class),
        *of_others,
    )
    prioritise_pods = bool(priority)
    scheduler = scheduler or first("scheduler", *_of_pods(workload), _of_namespace(names.SCHEDULER, scope))
    if not priority and workload.priority_of_pods:
        # From pods that the gang needs to start: for others the apiserver may never check access to the class.
        needed = (role for role in workload.roles if role.minimum)
        priority = first(
            "priorityClassName",
            *((f"{role.path}.priorityClassName", role.template.spec.priority_class_name) for role in needed),
        )
    name = scheduler or defaults.scheduler
    return Intent(
        scheduler=name,
        gang_scheduler=defaults.schedulers[name],
        queue=queue or defaults.queue,
        priority_class=priority,
        paths=paths,
        prioritise_pods=prioritise_pods,
        topology=_topology(workload, scope),
        requeue_after=_requeue_after(workload),
        run_limit=run_limit_of(workload, scope.intent_sources),
    )


def _requeue_after(workload: Workload) -> str:
    text = workload.metadata.annotations.get(names.REQUEUE_AFTER, "")
    asked = requeue_after(text) if not workload.kind.pods_of_jobs else None
    return text if asked is not None and asked.not_ready else ""


def named_queue(workload: Workload, scope: IntentScope = _ALONE) -> tuple[str, str] | None:
    """Return the path and name of the workload's queue; None if the namespace decides."""
    return next((named for named in _queues(workload, scope) if named[1]), None)


def _queues(workload: Workload, scope: IntentScope) -> list[tuple[str, str]]:
    """Return the paths that may name the queue, without the namespace, in order of precedence, each with its value."""
    label, annotation = _queue_at(workload)
    of_others = (found for source in scope.intent_sources for found in _queue_at(source))
    return [label, (f"{workload.policy_path}.queue", workload.policy.queue), annotation, *of_others]


def _each(workload: Workload, sources: Sequence[IntentSource]) -> tuple[Workload | IntentSource, ...]:
    return workload, *sources


def _queue_at(source: Workload | IntentSource) -> tuple[tuple[str, str], tuple[str, str]]:
    queue = names.queue_named(source.labels, source.annotations)
    return (source.label_path(names.QUEUE_LABEL), queue), _annotation(names.QUEUE_ANNOTATION, source)


def foreign_scheduler(
    workload: Workload,
    defaults: Defaults,
    scope: IntentScope = _ALONE,
) -> tuple[str, str] | None:
    """Return the path and name of a scheduler that muster is not configured for; None if there is none."""
    for path, label in _labels(names.SCHEDULER_LABEL, workload, scope):
        if label:
            if label not in defaults.schedulers:
                return path, label
            break
    candidates = _of_pods(workload)
    if not any(name for _, name in candidates):
        candidates = [_of_namespace(names.SCHEDULER, scope)]
    return next((named for named in candidates if named[1] and named[1] not in defaults.schedulers), None)


def _topology(workload: Workload, scope: IntentScope) -> Topology | None:
    found = (read_topology(one.labels, one.label_path) for one in _each(workload, scope.intent_sources))
    return next(filter(None, found), workload.topology)


def _source(called: str, metadata: ObjectMeta) -> IntentSource:
    return IntentSource(f"{called}: metadata", metadata.labels, metadata.annotations)


def _of_namespace(key: str, scope: IntentScope) -> tuple[str, str]:
    return _annotation(key, _source(f"namespace {scope.namespace.name}", scope.namespace))


def _annotation(key: str, source: Workload | IntentSource) -> tuple[str, str]:
    return source.annotation_path(key), source.annotations.get(key, "")


def _labels(key: str, workload: Workload, scope: IntentScope) -> list[tuple[str, str]]:
    """Return the paths that may have a label, the nearest to the pod first, each with its value."""
    return [(one.label_path(key), one.labels.get(key, "")) for one in _each(workload, scope.intent_sources)]


def _of_pods(workload: Workload) -> list[tuple[str, str]]:
    """Return the paths that may name the pods' scheduler, each with its value; templates before the policy for all."""
    candidates = [(f"{role.path}.schedulerName", role.template.spec.scheduler_name) for role in workload.roles]
    named = [(path, "" if name in names.UNNAMED_SCHEDULERS else name) for path, name in candidates]
    return [*named, (f"{workload.policy_path}.schedulerName", workload.scheduler)]


def requeue_after(text: str) -> RequeueAfter | None:
    """Return the value of the annotation, such as `30m` or `30m,not-ready`; None if it cannot be read."""
    duration, comma, word = (part.strip() for part in text.partition(","))
    seconds = duration_of(duration)
    if not seconds or word != (NOT_READY if comma else ""):
        return None
    return RequeueAfter(max(seconds, LEAST_REQUEUE), bool(comma))


def run_limit_of(workload: Workload, sources: Sequence[IntentSource]) -> RunLimit | None:
    """Return the limit of a workload, set by itself or by the `sources` that speak for it; None for none.

    That is `muster.dev/runs-at-most` or Kueue's `max-exec-time-seconds`, each of the object nearest to the pods; the
    shorter one of both counts. One that cannot be read sets no limit, and never stops the gang.
    """
    annotated = next(_annotated(workload, sources), None)
    label = next(_labelled(workload, sources), None)
    seconds = _whole(label[1]) if label is not None else None
    found = [RunLimit(float(seconds), label[0], f"{seconds}s")] if label is not None and seconds else []
    if annotated is not None and (most := _run(annotated[1])) is not None:
        found.append(RunLimit(most, *annotated))
    return min(found, default=None)


def unreadable_limits(workload: Workload, sources: Sequence[IntentSource]) -> Iterator[tuple[str, str]]:
    """Yield the paths at which the annotation is no valid duration, each with its value."""
    return ((path, text) for path, text in _annotated(workload, sources) if _run(text) is None)


def _run(text: str) -> float | None:
    seconds = duration_of(text)
    return seconds if seconds is not None and _SHORTEST_RUN <= seconds <= LONGEST_RUN else None


def _whole(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None


def _annotated(workload: Workload, sources: Sequence[IntentSource]) -> Iterator[tuple[str, str]]:
    for one in _each(workload, sources):
        if text := one.annotations.get(names.RUNS_AT_MOST):
            yield one.annotation_path(names.RUNS_AT_MOST), text


def _labelled(workload: Workload, sources: Sequence[IntentSource]) -> Iterator[tuple[str, str]]:
    for one in _each(workload, sources):
        if text := one.labels.get(names.KUEUE_MOST_RUN):
            yield one.label_path(names.KUEUE_MOST_RUN), text
