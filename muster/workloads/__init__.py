"""The kinds of workload that muster supports, one file per family.

`KINDS` are all that are judged and planned; `WATCHED_KINDS` those that the webhook and the controller watch: the owners
of gangs, and the kinds above them that may set their intent.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache

from muster.model.names import WORKLOAD
from muster.model.objects import InvalidObjectError, OwnerReference, decode
from muster.model.pods import Pod
from muster.workloads.jobset import JOB_SET
from muster.workloads.kubeflow import JAX_JOB, MPI_JOB_V1, PADDLE_JOB, PYTORCH_JOB, TF_JOB, XGBOOST_JOB
from muster.workloads.model import (
    Decoded,
    IntentSource,
    Kind,
    Reference,
    RoleSpec,
    SchedulingPolicy,
    Source,
    Workload,
)
from muster.workloads.mpi import MPI_JOB
from muster.workloads.plain import PLAIN_JOB, PLAIN_POD, PLAIN_STATEFUL_SET
from muster.workloads.ray import RAY_CLUSTER
from muster.workloads.ray_parents import RAY_CRON_JOB, RAY_JOB, RAY_SERVICE
from muster.workloads.trainer import TRAIN_JOB
from muster.workloads.volcano_job import VOLCANO_JOB

__all__ = [
    "GANG_KINDS",
    "KINDS",
    "MAKERS",
    "MOST_OWNERS",
    "PLAIN_POD",
    "SOURCES",
    "WATCHED_KINDS",
    "Decoded",
    "IntentSource",
    "Kind",
    "OwnerWalk",
    "Reference",
    "RoleSpec",
    "SchedulingPolicy",
    "Source",
    "Workload",
    "kind_of",
    "kind_of_owner",
    "owner_of",
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
    TRAIN_JOB,
    VOLCANO_JOB,
    PLAIN_JOB,
    PLAIN_STATEFUL_SET,
    PLAIN_POD,
)
# The chart's rights name the same kinds. Volcano runs its own Jobs, and plain gangs are known by their pods.
_UNWATCHED = (VOLCANO_JOB, PLAIN_JOB, PLAIN_STATEFUL_SET, PLAIN_POD)
WATCHED_KINDS: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind not in _UNWATCHED)
# The watched kinds whose pods are gangs.
GANG_KINDS: tuple[Kind, ...] = tuple(kind for kind in WATCHED_KINDS if kind.owns_gang)
# The makers of the pods of gangs, by the label of these pods.
MAKERS: Mapping[str, str] = {kind.pod_label: kind.maker for kind in GANG_KINDS}
# The objects that workloads are made from in addition to their own manifests.
SOURCES: tuple[Source, ...] = tuple(source for kind in KINDS if kind.origin for source in kind.origin.sources)


def kind_of(api_version: str, kind: str) -> Kind | None:
    """Return the kind of a manifest by its apiVersion and kind; None if muster does not know it."""
    group, _, version = api_version.rpartition("/")
    for known in KINDS:
        if known.kind == kind and known.group == group and version in known.versions:
            return known
    return None


def kind_of_owner(owner: OwnerReference | None) -> Kind | None:
    """Return the kind of the workload of an owner reference; None if muster does not watch it."""
    kind = kind_of(owner.api_version, owner.kind) if owner else None
    return kind if kind in WATCHED_KINDS else None


def owner_of(pod: Pod) -> OwnerReference | None:
    """Return the workload that a pod is a member of, or its other controller.

    The pods of some workloads are controlled by Jobs; the webhook looks up and writes down their workload.
    """
    text = pod.metadata.annotations.get(WORKLOAD)
    if text:
        with suppress(InvalidObjectError):
            return _read_reference(text)
    return pod.metadata.controller


@lru_cache(maxsize=1024)
def _read_reference(text: str) -> OwnerReference:
    """Return a reference that the webhook wrote; all pods of a workload have the same."""
    return decode(text, OwnerReference)


MOST_OWNERS = 4
"""Most owners that are looked up on one walk. A pod of a TrainJob has three: a Job, a JobSet, the TrainJob."""


class OwnerWalk:
    """The owners of an object to look up, the nearest first; `step_to` continues.

    One rule for the webhook, which reads objects that its watches have not shown, for the controller, which has its
    stores, and for an audit of listed objects: they have to find the same owners.

    It ends at an owner without a call of `step_to`, at an object that nothing controls, and after MOST_OWNERS.
    """

    def __init__(self, first: OwnerReference | None) -> None:
        self._next = first

    def __iter__(self) -> Iterator[OwnerReference]:
        for _ in range(MOST_OWNERS):
            owner, self._next = self._next, None
            if owner is None:
                return
            yield owner

    def step_to(self, controller: OwnerReference | None) -> None:
        """Continue at the controller of the owner that was found."""
        self._next = controller
