"""The reason why muster does not manage a workload, in a sentence for its user."""

from __future__ import annotations

from muster.gangs.intent import Defaults, IntentScope, foreign_scheduler
from muster.model.names import (
    ADMITTER,
    GANG,
    GANG_SIZE,
    GROUP_NAME,
    KUEUE_QUEUE,
    MANAGED,
    POD_GROUP_LABEL,
    QUEUE_ANNOTATION,
    QUEUE_LABEL,
    SCHEDULER_LABEL,
)
from muster.model.objects import ObjectMeta
from muster.model.pods import TemplateMeta
from muster.validation.ignored import QUEUES_OF_OTHERS, misspelled
from muster.workloads import Decoded, Kind, Workload

_QUEUE = f"label {QUEUE_LABEL}"
_JOIN = f"give them the label {GANG} and the annotation {GANG_SIZE}, a Job or a StatefulSet in its pod template"
_OF_KUEUE = "Kueue admits the workload, and its pods are placed one by one"
_TOPOLOGY = "it places pods near each other, and asks for no gang"
_YUNIKORN = "muster reads no key of YuniKorn"
_BOUND = "its pods are bound to a PodGroup of another program, and muster leaves them to it"
_OTHERS: dict[str, str] = {
    KUEUE_QUEUE: _OF_KUEUE,
    **QUEUES_OF_OTHERS,
    "yunikorn.apache.org/app-id": _YUNIKORN,
    "yunikorn.apache.org/task-groups": _YUNIKORN,
    GROUP_NAME: _BOUND,
    POD_GROUP_LABEL: _BOUND,
    "alpha.jobset.sigs.k8s.io/exclusive-topology": _TOPOLOGY,
    "leaderworkerset.sigs.k8s.io/exclusive-topology": _TOPOLOGY,
    "kueue.x-k8s.io/podset-required-topology": _TOPOLOGY,
    "kueue.x-k8s.io/podset-preferred-topology": _TOPOLOGY,
}
"""Labels and annotations that ask another system for a queue, a gang or a topology, each with what that means here."""


def why_not_managed(
    kind: Kind, decoded: Decoded, workload: Workload | None, defaults: Defaults, scope: IntentScope
) -> str:
    """Return why muster does not manage a workload; `workload` is the decoded one, None if it was not read."""
    namespace = scope.namespace
    if scope.unselected:
        return f'namespace "{namespace.name}" is not selected by the chart value namespaceSelector'
    labels = workload.metadata.labels if workload else decoded.metadata.labels
    for where, marks in (("", labels), (f"namespace {namespace.name}: ", namespace.labels)):
        if marks.get(MANAGED) == "false":
            return f'{where}metadata.labels[{MANAGED}] is "false": muster does not manage it'
    foreign = foreign_scheduler(workload, defaults, scope) if workload else None
    if foreign is not None:
        cure = f"to run it as a gang here, name {' or '.join(defaults.schedulers)} there, and a queue ({_QUEUE})"
        return f'{foreign[0]} names the scheduler "{foreign[1]}", for which muster is not configured; {cure}'
    if slip := next(misspelled(kind, decoded), None):
        return slip.message
    if workload and not workload.roles and workload.findings:
        return workload.findings[0].message
    if found := _in_a_template(kind, workload) or _for_others(kind, decoded, workload, defaults):
        return found
    if not kind.owns_pod_group:
        return f"its pods join no gang: {_JOIN}"
    named = namespace.annotations.get(QUEUE_ANNOTATION, "")
    only = f'; namespace "{namespace.name}" names queue "{named}", which counts only for gangs' if named else ""
    return (
        f"it does not ask for gang scheduling: name a queue ({_QUEUE}, or "
        f'runPolicy.schedulingPolicy where the kind has it), or add the label {MANAGED}: "true"{only}'
    )


def _for_others(kind: Kind, decoded: Decoded, workload: Workload | None, defaults: Defaults) -> str:
    """Return what the workload asks of another system, with what to do here; "" for nothing."""
    templates = workload.roles if workload else ()
    places: list[tuple[str, ObjectMeta | TemplateMeta]] = [("metadata", decoded.metadata)]
    places += [(f"{role.path.removesuffix('spec')}metadata", role.template.metadata) for role in templates]
    for place, meta in places:
        for field, keys in (("labels", meta.labels), ("annotations", meta.annotations)):
            for key in keys:
                if key in _OTHERS:
                    return f"{place}.{field}[{key}]: {_OTHERS[key]}; {_cure(kind, key)}"
    for role in templates:
        if role.template.spec.scheduler_name in defaults.schedulers:
            path = f"{role.path}.schedulerName"
            return (
                f"{path} chooses a scheduler, and asks for no gang: name a queue as well ({_QUEUE} of the {kind.kind})"
            )
    return ""


def _cure(kind: Kind, key: str) -> str:
    """Return what makes a gang here of a workload that has this key of another system."""
    admits = f", in a namespace with the annotation {ADMITTER}: kueue (docs/kueue.md)" if key == KUEUE_QUEUE else ""
    if not kind.owns_pod_group:
        return f"to start its pods together, {_JOIN}{admits}"
    if admits:
        return f"to start them together, add the label {SCHEDULER_LABEL}{admits}"
    return f"to run it as a gang here, name a queue of muster ({_QUEUE})"


def _in_a_template(kind: Kind, workload: Workload | None) -> str:
    """Return the label for muster that is on a pod template alone, where it has no effect; "" without one."""
    # Plain pods, whose template has their labels, name a queue there.
    for role in workload.roles if workload and kind.owns_pod_group else ():
        for label in (QUEUE_LABEL, MANAGED):
            if label in role.template.metadata.labels:
                path = f"{role.path.removesuffix('spec')}metadata.labels[{label}]"
                return f"{path}: it is not read there; move it to metadata.labels of the {kind.kind}"
    return ""
