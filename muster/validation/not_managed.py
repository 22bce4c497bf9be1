"""The reason why muster does not manage a workload, in a sentence for its user."""

from collections.abc import Iterable, Iterator, Mapping

from muster.gangs.intent import Defaults, IntentScope, foreign_scheduler
from muster.model import names
from muster.model.objects import ObjectMeta
from muster.model.pods import Pod
from muster.validation.ignored import QUEUES_OF_OTHERS, misspelled
from muster.workloads import Decoded, Kind, Workload
from muster.workloads.plain import PlainJob, PlainStatefulSet

OPT_IN = f"the label {names.GANG} and the annotation {names.GANG_SIZE}"
"""What makes pods of any kind a gang."""
KEYS_OF_GANGS = (
    names.QUEUE_LABEL,
    names.SCHEDULER_LABEL,
    names.PRIORITY_CLASS_LABEL,
    names.MANAGED,
    names.GANG_ENABLED,
    names.QUEUE_ANNOTATION,
)
"""The labels and annotations that set something of a gang, and make none of plain pods."""
_QUEUE = f"label {names.QUEUE_LABEL}"
_OF_KUEUE = "it asks Kueue to admit the workload, and its pods are placed one by one"
_CHOOSES = "it chooses a scheduler, and asks for no gang"
_TOPOLOGY = "it places pods near each other, and asks for no gang"
_YUNIKORN = "muster reads no key of YuniKorn"
_BOUND = "its pods are bound to a PodGroup of another program, and muster leaves them to it"
_OTHERS: dict[str, str] = {
    names.KUEUE_QUEUE: _OF_KUEUE,
    **QUEUES_OF_OTHERS,
    "yunikorn.apache.org/app-id": _YUNIKORN,
    "yunikorn.apache.org/task-groups": _YUNIKORN,
    names.GROUP_NAME: _BOUND,
    names.POD_GROUP_LABEL: _BOUND,
    "alpha.jobset.sigs.k8s.io/exclusive-topology": _TOPOLOGY,
    "leaderworkerset.sigs.k8s.io/exclusive-topology": _TOPOLOGY,
    "kueue.x-k8s.io/podset-required-topology": _TOPOLOGY,
    "kueue.x-k8s.io/podset-preferred-topology": _TOPOLOGY,
}
"""Labels and annotations that ask another system for a queue, a gang or a topology, each with what that means here."""


def why_not_managed(
    kind: Kind,
    decoded: Decoded,
    workload: Workload | None,
    defaults: Defaults,
    scope: IntentScope,
    *,
    outer: Iterable[tuple[str, str]] = (),
) -> str:
    """Return why muster does not manage a workload; `workload` is the decoded one, None if it was not read.

    `outer` are the labels and annotations of an object whose template it is, each a path and a key.
    """
    namespace = scope.namespace
    if scope.unselected:
        return f'namespace "{namespace.name}" is not selected by the chart value namespaceSelector'
    labels = workload.metadata.labels if workload else decoded.metadata.labels
    for where, marks in (("", labels), (f"namespace {namespace.name}: ", namespace.labels)):
        if marks.get(names.MANAGED) == "false":
            return f'{where}metadata.labels[{names.MANAGED}] is "false": muster does not manage it'
    foreign = foreign_scheduler(workload, defaults, scope) if workload else None
    if foreign is not None:
        cure = f"to run it as a gang here, name {' or '.join(defaults.schedulers)} there, and a queue ({_QUEUE})"
        return f'{foreign[0]} names the scheduler "{foreign[1]}", for which muster is not configured; {cure}'
    if slip := next(misspelled(kind, decoded), None):
        return slip.message
    if workload and not workload.roles and workload.findings:
        return workload.findings[0].message
    elsewhere = [*outer, *_keys_of_templates(decoded, workload)]
    own = keys("metadata", decoded.metadata.labels, decoded.metadata.annotations)
    named = _schedulers(decoded, workload)
    if not kind.owns_pod_group:
        return _no_plain_gang(kind, [*own, *elsewhere], named, defaults)
    return _no_gang(kind, own, elsewhere, named, defaults) or _asks_for_none(decoded, namespace)


def _asks_for_none(decoded: Decoded, namespace: ObjectMeta) -> str:
    """Return that a workload does not ask for a gang, and how it does."""
    named = namespace.annotations.get(names.QUEUE_ANNOTATION, "")
    only = f'; namespace "{namespace.name}" names queue "{named}", which counts only for gangs' if named else ""
    declines = decoded.metadata.labels.get(names.GANG_ENABLED) == "false"
    no = f'metadata.labels[{names.GANG_ENABLED}] is "false", and ' if declines else ""
    return (
        f"{no}it does not ask for gang scheduling{' in another way' * declines}: name a queue ({_QUEUE}, or "
        f'runPolicy.schedulingPolicy where the kind has it), or add the label {names.MANAGED}: "true"{only}'
    )


def _no_gang(
    kind: Kind,
    own: Iterable[tuple[str, str]],
    elsewhere: list[tuple[str, str]],
    named: Iterable[tuple[str, str]],
    defaults: Defaults,
) -> str:
    """Return what a workload asks muster for in the wrong place, or another system, with what to do; "" for nothing."""
    for path, key in elsewhere:
        if key in (names.QUEUE_LABEL, names.MANAGED):
            return f"{path}: it is not read there; move it to metadata.labels of the {kind.kind}"
    path, meaning, admits = of_others([*own, *elsewhere], named, defaults.schedulers)
    if admits:
        return f"{path}: {meaning}; to start them together, add the label {names.SCHEDULER_LABEL}{admits}"
    if path:
        more = " as well" if meaning == _CHOOSES else ""
        return f"{path}: {meaning}; to run it as a gang here, name a queue of muster{more} ({_QUEUE})"
    return ""


def _no_plain_gang(
    kind: Kind, found: list[tuple[str, str]], named: Iterable[tuple[str, str]], defaults: Defaults
) -> str:
    """Return why a pod, or the pods of a Job or a StatefulSet, are no gang."""
    is_pod = kind.plural == "pods"
    cure = f"give {'it' if is_pod else 'its pod template'} {OPT_IN}"
    together = f"to start {'it with other pods' if is_pod else 'its pods together'}, {cure}"
    path, meaning, admits = of_others(found, named, defaults.schedulers)
    if path:
        return f"{path}: {meaning}; {together}{admits}"
    for path, key in found:
        if key in KEYS_OF_GANGS:
            return f"{path}: it makes no gang of a {kind.kind}; {together}"
    return f"{'it joins' if is_pod else 'its pods join'} no gang: {cure}"


def keys(
    place: str, labels: Mapping[str, object], annotations: Mapping[str, object], within: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield the path and the key of each label and annotation of metadata; `within` names an object around it."""
    for field, found in (("labels", labels), ("annotations", annotations)):
        for key in found:
            yield f"{place}.{field}[{key}]{within}", key


def of_others(
    found: Iterable[tuple[str, str]], named: Iterable[tuple[str, str]], schedulers: Iterable[str]
) -> tuple[str, str, str]:
    """Return the path at which an object asks another system for something, what that means, and a condition.

    :param found: paths and keys of its labels and annotations.
    :param named: paths and schedulers that its pods name.
    :param schedulers: those that muster is configured for.
    :returns: three empty texts if it asks for nothing; the condition is that of a gang which Kueue admits, or "".
    """
    for path, key in found:
        if key in _OTHERS:
            admits = f", in a namespace with the annotation {names.ADMITTER}: kueue (docs/kueue.md)"
            return path, _OTHERS[key], admits if key == names.KUEUE_QUEUE else ""
    return next(((path, _CHOOSES, "") for path, scheduler in named if scheduler in schedulers), ("", "", ""))


def _keys_of_templates(decoded: Decoded, workload: Workload | None) -> Iterator[tuple[str, str]]:
    """Yield the labels and annotations of the pod templates, with paths."""
    for role in workload.roles if workload else ():
        meta = role.template.metadata
        yield from keys(f"{role.path.removesuffix('spec')}metadata", meta.labels, meta.annotations)
    # Without a gang these have no role.
    if isinstance(decoded, PlainJob | PlainStatefulSet):
        meta = decoded.spec.template.metadata
        yield from keys("spec.template.metadata", meta.labels, meta.annotations)


def _schedulers(decoded: Decoded, workload: Workload | None) -> Iterator[tuple[str, str]]:
    for role in workload.roles if workload else ():
        yield f"{role.path}.schedulerName", role.template.spec.scheduler_name
    if isinstance(decoded, PlainJob | PlainStatefulSet):
        yield "spec.template.spec.schedulerName", decoded.spec.template.spec.scheduler_name
    elif isinstance(decoded, Pod):
        yield "spec.schedulerName", decoded.spec.scheduler_name
