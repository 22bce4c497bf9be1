"""The kinds of workload that muster knows, one file per family.

`KINDS` are all that are judged and planned; `GANG_KINDS` those whose pods the webhook and the controller handle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from muster.workloads.jobset import JOB_SET
from muster.workloads.kubeflow import JAX_JOB, MPI_JOB_V1, PADDLE_JOB, PYTORCH_JOB, TF_JOB, XGBOOST_JOB
from muster.workloads.model import Decoded, Kind, RoleSpec, SchedulingPolicy, Workload
from muster.workloads.mpi import MPI_JOB
from muster.workloads.plain import PLAIN_JOB, PLAIN_POD
from muster.workloads.ray import RAY_CLUSTER, RAY_CRON_JOB, RAY_JOB, RAY_SERVICE
from muster.workloads.volcano_job import VOLCANO_JOB

if TYPE_CHECKING:
    from muster.objects import OwnerReference

__all__ = [
    "GANG_KINDS",
    "KINDS",
    "Decoded",
    "Kind",
    "RoleSpec",
    "SchedulingPolicy",
    "Workload",
    "kind_of",
    "kind_of_owner",
]

KINDS: tuple[Kind, ...] = (
    RAY_CLUSTER,
    RAY_JOB,
    RAY_SERVICE,
    RAY_CRON_JOB,
    PYTORCH_JOB,
    TF_JOB,
    XGBOOST_JOB,
    PADDLE_JOB,
    JAX_JOB,
    MPI_JOB_V1,
    MPI_JOB,
    JOB_SET,
    VOLCANO_JOB,
    PLAIN_JOB,
    PLAIN_POD,
)
# Wider with "The controller" and "Admission"; the chart's rules and rights name the same kinds.
GANG_KINDS: tuple[Kind, ...] = (RAY_CLUSTER, PYTORCH_JOB)


def kind_of(api_version: str, kind: str) -> Kind | None:
    """The kind of a manifest by its apiVersion and kind, or None when muster does not know it."""
    group, _, version = api_version.rpartition("/")
    for known in KINDS:
        if known.kind == kind and known.group == group and version in known.versions:
            return known
    return None


def kind_of_owner(owner: OwnerReference | None) -> Kind | None:
    """The kind of the workload behind an owner reference, or None when muster does not handle its pods."""
    kind = kind_of(owner.api_version, owner.kind) if owner else None
    return kind if kind in GANG_KINDS else None
