"""What a gang was admitted for, as an annotation of its PodGroup that policies keep: the next leader reads it there.

The PodGroup's spec says the same, but is written by whoever may write PodGroups.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from muster.objects import InvalidObjectError, LocalObject, PodGroupSpec, ResourceList, convert, decode

if TYPE_CHECKING:
    from controller.view import View

__all__ = ["admitted_for", "terms_of"]

# All annotations of an object may have 256 KiB together; a workload of thousands of roles is believed in its spec.
_LONGEST = 16_384


class _Terms(LocalObject, frozen=True, omit_defaults=True):
    """The part of a PodGroup's spec that stays while its gang is admitted; names are the spec's own."""

    min_member: int = 0
    min_task_member: dict[str, int] = msgspec.field(default_factory=dict)
    min_resources: ResourceList = msgspec.field(default_factory=dict)
    queue: str = ""
    priority_class_name: str = ""


def admitted_for(spec: PodGroupSpec | None) -> str:
    """The annotation's text: JSON, the same for the same terms; "" where there are none, or too many to write."""
    if spec is None:
        return ""
    text = msgspec.json.encode(convert(msgspec.to_builtins(spec), _Terms), order="deterministic").decode()
    return text if len(text) <= _LONGEST else ""


def terms_of(view: View) -> PodGroupSpec | None:
    """What muster said in the gang's PodGroup: as this leader remembers it, else as the annotation has it.

    None where nobody tells: the gang is not admitted, or it was by a muster that wrote no annotation.
    """
    if view.terms is not None or not view.mark.admitted_for or not view.uid or view.marked_for != view.uid:
        return view.terms
    try:
        return decode(view.mark.admitted_for, PodGroupSpec)
    except InvalidObjectError:
        return None
