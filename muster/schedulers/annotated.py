"""muster's annotation on a PodGroup, with the fields of a gang that the PodGroup of its scheduler lacks.

So the next leader finds queue, priority and the minimums of the roles there, with any scheduler.
"""

from typing import Any

import msgspec

from muster.model.names import GANG_SPEC, GROUP_NAME
from muster.model.objects import InvalidObjectError, LocalObject, PodGroup, PodGroupSpec, ResourceList, decode


class _Rest(LocalObject, frozen=True, omit_defaults=True):
    """The part of a specification that schedulers other than Volcano have no field for."""

    min_task_member: dict[str, int] = msgspec.field(default_factory=dict)
    min_resources: ResourceList = msgspec.field(default_factory=dict)
    queue: str = ""
    priority_class_name: str = ""


def annotated(metadata: dict[str, Any], spec: PodGroupSpec) -> dict[str, Any]:
    """Return the metadata of a PodGroup with the annotation, and with the gang's name, which its own may not be."""
    rest = _Rest(spec.min_task_member, spec.min_resources, spec.queue, spec.priority_class_name)
    own = {
        GANG_SPEC: msgspec.json.encode(rest, order="deterministic").decode(),
        GROUP_NAME: metadata["name"],
    }
    return {**metadata, "annotations": {**metadata.get("annotations", {}), **own}}


def completed(group: PodGroup) -> None:
    """Complete the specification of a PodGroup by its annotation, as it is decoded; without one it stays as it is."""
    text = group.metadata.annotations.get(GANG_SPEC, "")
    if not text:
        return
    try:
        rest = decode(text.encode(), _Rest)
    except InvalidObjectError:
        return
    set_fields = {name: value for name in _Rest.__struct_fields__ if (value := getattr(rest, name))}
    msgspec.structs.force_setattr(group, "spec", msgspec.structs.replace(group.spec, **set_fields))
