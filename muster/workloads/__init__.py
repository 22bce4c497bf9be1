"""The kinds of workload that muster knows, one file per family."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.workloads.kubeflow import PYTORCH_JOB
from muster.workloads.model import Decoded, Kind, RoleSpec, SchedulingPolicy, Workload
from muster.workloads.ray import RAY_CLUSTER

if TYPE_CHECKING:
    from muster.objects import OwnerReference

__all__ = ["KINDS", "Decoded", "Kind", "RoleSpec", "SchedulingPolicy", "Workload", "kind_of", "kind_of_owner"]

KINDS: tuple[Kind, ...] = (RAY_CLUSTER, PYTORCH_JOB)


def kind_of(api_version: str, kind: str) -> Kind | None:
    """The kind of a manifest by its apiVersion and kind, or None when muster does not know it."""
    group, _, version = api_version.rpartition("/")
    for known in KINDS:
        if known.kind == kind and known.group == group and version in known.versions:
            return known
    return None


def kind_of_owner(owner: OwnerReference | None) -> Kind | None:
    """The kind of the workload behind an owner reference, or None when it is none of ours."""
    return kind_of(owner.api_version, owner.kind) if owner else None
