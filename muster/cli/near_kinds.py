"""Documents whose kind is nearly one that muster supports: `kind: Raycluster`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.model.nearest import nearest
from muster.workloads import KINDS

if TYPE_CHECKING:
    from muster.cli.manifests import Document


def near_kind(document: Document) -> str:
    """The probable intention of the document, in a sentence; "" when no kind is near."""
    group, _, version = document.api_version.rpartition("/")
    same = [kind for kind in KINDS if kind.kind == document.kind]
    if versions := [one for kind in same if kind.group == group for one in kind.versions]:
        known = " and ".join(versions)
        return f'muster supports {document.kind} of {group or "the core group"} in {known}, not in "{version[:80]}"'
    groups = {kind.group for kind in KINDS if kind.group}
    near = group if group in groups else nearest(group, groups) if group else ""
    candidates = {kind.kind: kind for kind in KINDS if kind.group == near}
    found = candidates.get(nearest(document.kind, candidates))
    if found is None:
        return ""
    meant = f"{found.group}/{found.versions[0]} {found.kind}" if found.group else f"{found.versions[0]} {found.kind}"
    return f'unknown kind "{document.api_version[:80]} {document.kind[:80]}"; did you mean {meant}?'
