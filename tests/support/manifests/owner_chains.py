"""Chains of owners, as operators make them: each object is controlled by the one before."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Manifest = dict[str, Any]


def owned(manifest: Manifest, owner: Manifest) -> Manifest:
    """The manifest, controlled by an object that exists."""
    meta = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [reference]}}


def chain(manifests: Iterable[Manifest], create: Callable[[Manifest], Manifest]) -> Manifest:
    """Create the manifests, the topmost first, each controlled by the one before; gives the last."""
    last: Manifest = {}
    for manifest in manifests:
        last = create(owned(manifest, last) if last else manifest)
    return last


def member(
    owner: Manifest | None,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    container: Mapping[str, object] | None = None,
    **spec: object,
) -> Manifest:
    """The pod that somebody makes for its owner, with a name that the apiserver completes."""
    pod: Manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "p-", "labels": dict(labels), "annotations": dict(annotations or {})},
        "spec": {"containers": [{"name": "main", "image": "none", **(container or {})}], **spec},
    }
    return pod if owner is None else owned(pod, owner)
