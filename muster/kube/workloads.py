"""Where each kind of workload lives at the apiserver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.kube.resource import Resource

if TYPE_CHECKING:
    from muster.workloads import Kind

__all__ = ["resource_of"]


def resource_of(kind: Kind) -> Resource:
    """The resource of a kind, in the version that muster reads."""
    return Resource(kind.group, kind.versions[0], kind.plural, kind.kind)
