"""Labels and annotations for muster that have no effect: misspelled, in the wrong place, or with an unusable value.

The apiserver takes any label. A workload whose only label for muster is misspelled is no gang, and starts one pod after
another without a message.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from muster.admitters import Admitter
from muster.gangs.intent import may_have_unmanaged_pods, required
from muster.model import names
from muster.model.findings import Finding, Reason, finding
from muster.model.modes import GateMode
from muster.model.objects import ObjectMeta
from muster.model.texts import nearest_key
from muster.queueing.queue_view import QueueView
from muster.validation.context import Context
from muster.workloads import PLAIN_POD, WATCHED_KINDS, Decoded, Kind
from muster.workloads.model import SchedulingPolicy

_LABELS = (
    names.QUEUE_LABEL,
    names.SCHEDULER_LABEL,
    names.PRIORITY_CLASS_LABEL,
    names.MANAGED,
    names.GANG_ENABLED,
    names.TOPOLOGY_MODE_LABEL,
    names.TOPOLOGY_TIER_LABEL,
)
_HEARD = (names.QUEUE_ANNOTATION, names.REQUEUE_AFTER, names.RUNS_AT_MOST)
_ANNOTATIONS = (*_HEARD, names.HOLD)
_LONGEST = 2 * max(map(len, (*_LABELS, *_ANNOTATIONS)))
# Muster's own, and those of other objects: these are not misspelled.
_OTHERS = frozenset(
    {names.ADMITTED, names.ADMITTED_AT, names.ADMITTED_FOR, names.GANG, names.GANG_SIZE, names.GATE_MODE, names.NUDGE}
)
_OWN = "muster.dev/"
_HOLD_PATH = f"metadata.annotations[{names.HOLD}]"
# Keys that name a queue for another scheduler.
QUEUES_OF_OTHERS = {
    "kai.scheduler/queue": "muster reads no queue of KAI",
    "runai/queue": "muster reads no queue of KAI",
    "yunikorn.apache.org/queue": "muster reads no queue of YuniKorn",
}
# Keys of one object; a gang's maker writes a dozen, and to compare one takes as long as to read a pod.
_MOST_KEYS = 64


def misspelled(kind: Kind, decoded: Decoded) -> Iterator[Finding]:
    """Yield the findings in a workload's metadata; next to the right key a wrong one is taken for another tool's."""
    meta, passed_on = decoded.metadata, kind.intent_metadata(decoded)
    yield from misspelled_keys(meta)
    makes_members = not kind.owns_pod_group and kind.plural != "pods"
    if makes_members and names.GANG in meta.labels and kind.policy(decoded) == SchedulingPolicy():
        rest = "it is read on the pods; write it, and the gang's size, into spec.template.metadata"
        yield finding(Reason.MISSPELLED, f"metadata.labels[{names.GANG}]", rest)
    elif makes_members:
        yield from _not_passed_on(meta, passed_on)
    if passed_on is not meta:
        yield from misspelled_keys(passed_on, "spec.template.metadata")


def misspelled_keys(meta: ObjectMeta, where: str = "metadata") -> Iterator[Finding]:
    """Yield the findings in the labels and annotations at one place of a workload."""
    present = {*meta.labels, *meta.annotations}
    yield from _keys(f"{where}.labels", meta.labels, _LABELS, _ANNOTATIONS, present)
    yield from _keys(f"{where}.annotations", meta.annotations, _ANNOTATIONS, _LABELS, present)


def _not_passed_on(meta: ObjectMeta, passed_on: ObjectMeta) -> Iterator[Finding]:
    """Yield the findings for keys of a maker of plain pods that its pods do not get."""
    rest = "it is read on the pods, which do not get it from there; write it into spec.template.metadata"
    for field, own, of_pods, keys in (
        ("labels", meta.labels, passed_on.labels, _LABELS),
        ("annotations", meta.annotations, passed_on.annotations, _HEARD),
    ):
        for key in keys:
            if key in own and own[key] != of_pods.get(key):
                yield finding(Reason.MISSPELLED, f"metadata.{field}[{key}]", rest)


def _keys(
    field: str, found: Mapping[str, str], here: Iterable[str], there: Iterable[str], present: set[str]
) -> Iterator[Finding]:
    """Yield findings for keys of labels, or of annotations, that are not read; `there` are read in the other map."""
    where, _, own = field.rpartition(".")
    other = f"{where}.{'annotations' if own == 'labels' else 'labels'}"
    for key in islice(found, _MOST_KEYS):
        if key in here or key in _OTHERS or len(key) > _LONGEST:
            continue
        path = f"{field}[{key}]"
        if key in there:
            yield finding(Reason.MISSPELLED, path, f"it is read in {other}; move it there")
        elif (meant := nearest_key(key, [*here, *there])) and meant not in present:
            place = f", in {other}" if meant in there else ""
            yield finding(Reason.MISSPELLED, path, f"unknown {own[:-1]}; did you mean {meant}{place}?")
        elif key.startswith(_OWN) and not meant:
            yield finding(Reason.MISSPELLED, path, f"unknown {own[:-1]} of a workload; remove it")


def queues_of_others(metadata: ObjectMeta) -> Iterator[Finding]:
    """Yield the findings for labels and annotations of a gang that name a queue of a scheduler that muster replaces."""
    for field, keys in (("labels", metadata.labels), ("annotations", metadata.annotations)):
        for key in sorted(QUEUES_OF_OTHERS.keys() & keys.keys()):
            rest = f"{QUEUES_OF_OTHERS[key]}; the label {names.QUEUE_LABEL} names the queue"
            yield finding(Reason.VALUE_IGNORED, f"metadata.{field}[{key}]", rest)


def idle_hold(kind: Kind, metadata: ObjectMeta, admitter: Admitter, gate: GateMode) -> Iterator[Finding]:
    """Yield the finding for a workload that is on hold to no effect."""
    text = metadata.annotations.get(names.HOLD, "false")
    if text == "false":
        return
    if text != "true":
        yield _hold(f'"{text[:80]}" is neither "true" nor "false"; it is ignored')
    elif not kind.owns_pod_group and kind is not PLAIN_POD:
        yield _hold(f"it is ignored on a {kind.kind}; write it on one of its pods, which holds their whole gang")
    elif kind is not PLAIN_POD and kind not in WATCHED_KINDS:
        yield _hold(f"it is ignored on a {kind.kind} of {kind.group}, whose pods muster does not hold")
    elif admitter is Admitter.KUEUE:
        yield _hold(
            "it is ignored, for Kueue admits the gangs of this namespace; set spec.active: false in its Workload"
        )
    elif admitter is Admitter.NONE:
        yield _hold("it is ignored, for the gangs of this namespace have no admitter: they start when they are whole")
    elif gate is GateMode.OFF:
        yield _hold(f"it is ignored, for the gate is off here ({names.GATE_MODE}): no pod is held")


def idle_hold_of_queue(view: QueueView, admitters: Collection[Admitter]) -> Iterator[Finding]:
    """Yield the finding for a queue that is on hold to no effect, where these may admit."""
    if view.on_hold and Admitter.LEDGER not in admitters:
        yield _hold(f"it is ignored, for no gang waits for a queue here: the admitter is {' or '.join(admitters)}")
    elif view.on_hold and view.gate is GateMode.OFF:
        yield _hold(f"it is ignored, for the gate of the queue is off ({names.GATE_MODE}): no pod is held")


def unsure_min_runtime(view: QueueView, *, leaf: bool) -> Iterator[Finding]:
    """Yield the finding for a queue whose gangs are to run for so long: muster does not see who keeps to that."""
    if view.min_runtime:
        rest = (
            "Volcano alone keeps to it, with its plugin cdp in the tier of gang, and only for pods that are new; with "
            "other schedulers it is ignored"
        )
        if not leaf:
            rest = "it is ignored, for gangs are in the queues below this one, which do not inherit it: set it on them"
        yield finding(Reason.VALUE_IGNORED, f"metadata.annotations[{names.MIN_RUNTIME}]", rest)


def _hold(rest: str) -> Finding:
    return finding(Reason.VALUE_IGNORED, _HOLD_PATH, rest)


def unknown_admitter(context: Context) -> Iterator[Finding]:
    """Yield the finding for an admitter of the namespace that muster is not configured for."""
    named = context.scope.namespace.annotations.get(names.ADMITTER, "")
    if named and named not in context.defaults.admitters:
        known = ", ".join(context.defaults.admitters)
        rest = f'"{named[:80]}" is none of the admitters ({known}); it is ignored, and {context.admitter} admits'
        yield finding(Reason.VALUE_IGNORED, f"namespace: metadata.annotations[{names.ADMITTER}]", rest)


def ignored_managed(kind: Kind, decoded: Decoded, namespace: ObjectMeta) -> tuple[Finding, ...]:
    """Return the findings for values of the label `muster.dev/managed` that have no effect."""
    intent_metadata = kind.intent_metadata(decoded)
    value = intent_metadata.labels.get(names.MANAGED)
    path = f"{'metadata' if intent_metadata is decoded.metadata else 'spec.template.metadata'}.labels[{names.MANAGED}]"
    if value == "false" and required(namespace) and not may_have_unmanaged_pods(decoded.metadata, namespace):
        message = f'"{value}" is ignored, for this namespace requires muster; remove the label'
        return (finding(Reason.VALUE_IGNORED, path, message),)
    if value in (None, "true", "false"):
        return ()
    return (finding(Reason.VALUE_IGNORED, path, f'"{value}" is neither "true" nor "false"; it is ignored'),)
