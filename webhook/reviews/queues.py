"""Reviews of Queues, and of objects outside gangs that name a queue: PodGroups of other programs, and pods."""

from muster.model.findings import Finding, Severity
from muster.model.names import QUEUE_ANNOTATION, QUEUE_LABEL
from muster.model.objects import LocalObject, Object, decode
from muster.validation.queue import burdened, faults, kept_out, left_outside, new_faults, new_parent, tightened
from muster.validation.workload import no_way_in
from webhook.reviews.cluster_reader import ClusterReader
from webhook.reviews.codec import AdmissionRequest, AdmissionResponse, allow, deny


class _Named(LocalObject, frozen=True):
    queue: str = ""


class _OthersGroup(LocalObject, frozen=True):
    """The one field of a PodGroup that is needed, so that a large one takes no longer than it must."""

    spec: _Named = _Named()


async def review_queue(request: AdmissionRequest, cluster: ClusterReader) -> AdmissionResponse:
    """The answer for a new or changed queue; raises ApiError if its parent cannot be read."""
    defaults, run = cluster.defaults, cluster.review.run
    validation, type_ = defaults.validation, defaults.queue_source.decoded
    if validation.mode is Severity.OFF:
        return allow()
    new = await run(decode, request.object, type_)
    old = await run(decode, request.old_object, type_) if request.operation == "UPDATE" else None
    tree = await cluster.tree_with(new.spec.parent)
    found = faults(new, tree, defaults.admitters)
    parent = new_parent(new, tree)
    if parent and (old is None or old.spec.parent != new.spec.parent):
        found += burdened(parent, await cluster.pod_groups(parent))
    # Old faults must stay editable, or they could never be corrected in steps.
    before = faults(old, tree, defaults.admitters) if old is not None else ()
    refusals = validation.refused(new_faults(found, before))
    if refusals:
        return deny(refusals)
    warnings = [*validation.refused(found), *validation.warned(found)]
    if old is not None and tightened(old, new):
        outside = tuple(left_outside(new, await cluster.pod_groups(*tree.with_below(new.metadata.name))))
        if refusals := validation.refused(outside):
            return deny(refusals)
        warnings += validation.warned(outside)
    return allow(warnings=warnings)


async def review_pod_group(request: AdmissionRequest, cluster: ClusterReader) -> AdmissionResponse:
    """The answer for a PodGroup that is not muster's; raises ApiError if its queue cannot be read."""
    group = await cluster.review.run(decode, request.object, _OthersGroup)
    return await _review({"spec.queue": group.spec.queue or "default"}, request, cluster)


async def review_named_queue(request: AdmissionRequest, cluster: ClusterReader) -> AdmissionResponse:
    """The answer for a pod outside gangs that names a queue; raises ApiError as `review_pod_group`.

    Volcano makes a PodGroup for it later, on its own: that would be refused, and the pod's user would not see it.
    """
    meta = (await cluster.review.run(decode, request.object, Object)).metadata
    named = {
        f"metadata.annotations[{QUEUE_ANNOTATION}]": meta.annotations.get(QUEUE_ANNOTATION, ""),
        f"metadata.labels[{QUEUE_LABEL}]": meta.labels.get(QUEUE_LABEL, ""),
    }
    return await _review(named, request, cluster)


async def _review(named: dict[str, str], request: AdmissionRequest, cluster: ClusterReader) -> AdmissionResponse:
    """The answer for an object that names these queues, by field."""
    namespace = (await cluster.scope_of(request.namespace)).namespace
    found: list[Finding] = []
    for path, name in named.items():
        if name and (way := no_way_in(path, name, namespace.name, await cluster.queue_place(name, namespace))):
            found.append(way)
    refusals, warnings = kept_out(found, cluster.defaults.validation)
    return deny(refusals) if refusals else allow(warnings=warnings)
