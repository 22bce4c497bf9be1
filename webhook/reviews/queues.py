"""Reviews Queues, and what names a queue by itself: PodGroups that others make, and pods that belong to no gang."""

from __future__ import annotations

from muster.gangs.intent import Defaults
from muster.model.findings import Finding, Severity
from muster.model.names import QUEUE_ANNOTATION, QUEUE_LABEL
from muster.model.objects import LocalObject, TemplateMeta, decode
from muster.validation.queue import burdened, faults, kept_out, left_outside, new_faults, new_parent, tightened
from muster.validation.workload import no_way_in
from webhook.reviews.admission_review import AdmissionRequest, AdmissionResponse, allow, deny
from webhook.reviews.knowledge import Knowledge
from webhook.server.review_thread import in_review_thread


class _Named(LocalObject, frozen=True):
    queue: str = ""


class _OthersGroup(LocalObject, frozen=True):
    """Of a PodGroup nothing but what is asked about, so that a large one takes no longer than it must."""

    spec: _Named = _Named()


class _OthersPod(LocalObject, frozen=True):
    """The same of a pod."""

    metadata: TemplateMeta = TemplateMeta()


async def review_queue(request: AdmissionRequest, knowledge: Knowledge, defaults: Defaults) -> AdmissionResponse:
    """The answer for a new or changed queue; raises ApiError when its parent cannot be read."""
    validation = defaults.validation
    if validation.mode is Severity.OFF:
        return allow()
    new = await in_review_thread(decode, request.object, defaults.queue_source.decoded)
    old = (
        await in_review_thread(decode, request.old_object, defaults.queue_source.decoded)
        if request.operation == "UPDATE"
        else None
    )
    tree = await knowledge.queues.tree(new.spec.parent)
    found = faults(new, tree, defaults.admitters)
    parent = new_parent(new, tree)
    if parent and (old is None or old.spec.parent != new.spec.parent):
        found += burdened(parent, await knowledge.queues.pod_groups(parent))
    # What was wrong before must stay editable, or it could never be put right in steps.
    before = faults(old, tree, defaults.admitters) if old is not None else ()
    refusals = validation.refused(new_faults(found, before))
    if refusals:
        return deny(refusals)
    warnings = [*validation.refused(found), *validation.warned(found)]
    if old is not None and tightened(old, new):
        outside = tuple(left_outside(new, await knowledge.queues.pod_groups(*tree.with_below(new.metadata.name))))
        if refusals := validation.refused(outside):
            return deny(refusals)
        warnings += validation.warned(outside)
    return allow(warnings=warnings)


async def review_pod_group(request: AdmissionRequest, knowledge: Knowledge, defaults: Defaults) -> AdmissionResponse:
    """The answer for a PodGroup that is not muster's; raises ApiError when its queue cannot be read."""
    group = await in_review_thread(decode, request.object, _OthersGroup)
    return await _review({"spec.queue": group.spec.queue or "default"}, request, knowledge, defaults)


async def review_named_queue(request: AdmissionRequest, knowledge: Knowledge, defaults: Defaults) -> AdmissionResponse:
    """The answer for a pod that is no member of a gang and names a queue; raises ApiError as `review_pod_group`.

    Volcano makes a PodGroup for it later, on its own: that would be refused, and nobody would hear why.
    """
    meta = (await in_review_thread(decode, request.object, _OthersPod)).metadata
    named = {
        f"metadata.annotations[{QUEUE_ANNOTATION}]": meta.annotations.get(QUEUE_ANNOTATION, ""),
        f"metadata.labels[{QUEUE_LABEL}]": meta.labels.get(QUEUE_LABEL, ""),
    }
    return await _review(named, request, knowledge, defaults)


async def _review(
    named: dict[str, str], request: AdmissionRequest, knowledge: Knowledge, defaults: Defaults
) -> AdmissionResponse:
    """The answer for what names these queues, by field."""
    around = await knowledge.around(request.namespace)
    found: list[Finding] = []
    for path, name in named.items():
        if name and (way := no_way_in(path, name, await knowledge.queues.place(name, around.namespace))):
            found.append(way)
    refusals, warnings = kept_out(found, defaults.validation)
    return deny(refusals) if refusals else allow(warnings=warnings)
