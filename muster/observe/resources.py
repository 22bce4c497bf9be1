"""Where each kind of workload, and what they are made from, lives at the apiserver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.kube.resource import Resource

if TYPE_CHECKING:
    from muster.workloads import Kind, Source

__all__ = ["resource_of", "resource_of_source"]


def resource_of(kind: Kind) -> Resource:
    """The resource of a kind, in the version that muster reads."""
    return Resource(kind.group, kind.versions[0], kind.plural, kind.kind)


def resource_of_source(source: Source) -> Resource:
    """The resource of what workloads are made from."""
    return Resource(source.group, source.version, source.plural, source.kind, source.namespaced)
