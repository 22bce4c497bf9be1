"""The reason why muster does not manage a workload, in a sentence for its user."""

from __future__ import annotations

from muster.gangs.intent import Defaults, IntentScope, foreign_scheduler
from muster.model.names import GANG, GANG_SIZE, MANAGED, QUEUE_ANNOTATION, QUEUE_LABEL
from muster.validation.ignored import misspelled
from muster.workloads import Decoded, Kind, Workload


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
        return f'{foreign[0]} names the scheduler "{foreign[1]}", for which muster is not configured'
    if slip := next(misspelled(kind, decoded), None):
        return slip.message
    if workload and not workload.roles and workload.findings:
        return workload.findings[0].message
    if not kind.owns_pod_group:
        return (
            f"its pods join no gang: give them the label {GANG} and the annotation {GANG_SIZE}, a Job or a "
            "StatefulSet in its pod template"
        )
    if found := _in_a_template(kind, workload):
        return found
    named = namespace.annotations.get(QUEUE_ANNOTATION, "")
    only = f'; namespace "{namespace.name}" names queue "{named}", which counts only for gangs' if named else ""
    return (
        f"it does not ask for gang scheduling: name a queue (label {QUEUE_LABEL}, or "
        f'runPolicy.schedulingPolicy where the kind has it), or add the label {MANAGED}: "true"{only}'
    )


def _in_a_template(kind: Kind, workload: Workload | None) -> str:
    """Return the label for muster that is on a pod template alone, where it has no effect; "" without one."""
    for role in workload.roles if workload else ():
        for label in (QUEUE_LABEL, MANAGED):
            if label in role.template.metadata.labels:
                path = f"{role.path.removesuffix('spec')}metadata.labels[{label}]"
                return f"{path}: it is not read there; move it to metadata.labels of the {kind.kind}"
    return ""
