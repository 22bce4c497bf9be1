"""What is refused at admission because it can never run, and what a user is warned about.

A refusal is one line: the field, what was found, the rule, what to do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from muster.gang import Gang, gang_of
from muster.intent import Defaults, Intent, Surroundings, find_intent, foreign_scheduler, speaks
from muster.names import MANAGED, PRIORITY_CLASS_LABEL, QUEUE_LABEL
from muster.objects import InvalidObjectError
from muster.queues import QueueView, exceeding
from muster.schedulers import SCHEDULERS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from muster.objects import LimitRange
    from muster.workloads import Decoded, Kind, Workload


__all__ = ["Context", "Reason", "Refusal", "Verdict", "judge"]

# Schedulers and queueing systems of the field that a Ray label may name on purpose; nobody needs a warning for them.
_WELL_KNOWN = frozenset({"yunikorn", "kai-scheduler", "scheduler-plugins-scheduler", "kubernetes-was"})
_BUILT_IN_PRIORITIES = frozenset({"", "system-cluster-critical", "system-node-critical"})


class Reason(StrEnum):
    """Why a workload is refused; stable, for machines."""

    INVALID = "Invalid"
    QUEUE_NOT_FOUND = "QueueNotFound"
    QUEUE_CLOSED = "QueueClosed"
    QUEUE_NOT_LEAF = "QueueNotLeaf"
    EXCEEDS_CAPABILITY = "ExceedsCapability"
    UNKNOWN_PRIORITY_CLASS = "UnknownPriorityClass"


@dataclass(frozen=True, slots=True)
class Refusal:
    """One reason why a workload is refused: machine-readable reason, the field at fault, and the line for people."""

    reason: Reason
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What admission says of a workload; `intent` and `gang` are None where it is not muster's or makes no gang."""

    workload: Workload | None = None
    intent: Intent | None = None
    gang: Gang | None = None
    refusals: tuple[Refusal, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the workload may be created."""
        return not self.refusals


@dataclass(frozen=True, slots=True)
class Context:
    """What the rules know of the cluster.

    `queue` finds a queue by name. It is None where no queues are known at all (a plan without any Queue in its input):
    then nothing is judged by queues. The same holds for `priorities`, which maps class names to values. `around` is
    what may speak for the one workload that is judged, `ranges` the LimitRanges of its namespace.
    """

    queue: Callable[[str], QueueView | None] | None = None
    priorities: Mapping[str, int] | None = None
    defaults: Defaults = field(default_factory=Defaults)
    around: Surroundings = field(default_factory=Surroundings)
    ranges: Sequence[LimitRange] = ()


def judge(kind: Kind, decoded: Decoded, context: Context) -> Verdict:
    """The verdict on a workload, as decoded; one that says nothing of gang scheduling is never looked into."""
    around = context.around
    if not speaks(decoded.metadata, kind.policy(decoded), around):
        return Verdict(warnings=_misspelt(decoded))
    try:
        workload = kind.read(decoded)
        intent = find_intent(workload, context.defaults, around)
        if intent is None or not workload.roles:
            return Verdict(workload, warnings=_left_alone(workload, context))
        gang = gang_of(workload, intent, context.priorities or {}, context.ranges)
    except InvalidObjectError as error:
        path, colon, _ = str(error).partition(": ")
        return Verdict(refusals=(Refusal(Reason.INVALID, path if colon else "", str(error)),))
    refusals = (*_queue_refusals(gang, intent, context), *_priority_refusals(intent, context))
    return Verdict(workload, intent, gang, refusals, tuple(_warnings(gang)))


def _queue_refusals(gang: Gang, intent: Intent, context: Context) -> tuple[Refusal, ...]:
    if context.queue is None or not SCHEDULERS[intent.scheduler].queues:
        return ()
    path = intent.said.get("queue", f"metadata.labels[{QUEUE_LABEL}]")
    queue = context.queue(intent.queue)
    if queue is None:
        message = f'{path}: queue "{intent.queue}" does not exist; name an existing queue or create it first'
        return (Refusal(Reason.QUEUE_NOT_FOUND, path, message),)
    if queue.closed:
        message = (
            f'{path}: queue "{queue.name}" is {queue.state} and takes no new work; '
            "use an open queue or have this one opened"
        )
        return (Refusal(Reason.QUEUE_CLOSED, path, message),)
    if not queue.leaf:
        # Under Volcano's hierarchical capacity one such gang stops the scheduling of the whole cluster.
        message = f'{path}: queue "{queue.name}" has queues below it and takes no gangs itself; name one of those'
        return (Refusal(Reason.QUEUE_NOT_LEAF, path, message),)
    over = exceeding(gang.min_resources, queue.limit)
    if over is None:
        return ()
    message = (
        f'{path}: gang "{gang.name}" needs {over[0]}, queue "{queue.name}" has capability {over[1]}; '
        "lower the replicas or use a larger queue"
    )
    return (Refusal(Reason.EXCEEDS_CAPABILITY, path, message),)


def _priority_refusals(intent: Intent, context: Context) -> tuple[Refusal, ...]:
    name = intent.priority_class
    if context.priorities is None or name in _BUILT_IN_PRIORITIES or name in context.priorities:
        return ()
    path = intent.said.get("priorityClassName", f"metadata.labels[{PRIORITY_CLASS_LABEL}]")
    message = f'{path}: PriorityClass "{name}" does not exist; name an existing class or create it first'
    return (Refusal(Reason.UNKNOWN_PRIORITY_CLASS, path, message),)


def _left_alone(workload: Workload, context: Context) -> tuple[str, ...]:
    foreign = foreign_scheduler(workload, context.defaults, context.around)
    if foreign is None or foreign[1] in _WELL_KNOWN or not foreign[0].startswith("metadata.labels"):
        return ()
    known = ", ".join(sorted(context.defaults.schedulers))
    return (f'{foreign[0]}: muster is not configured for scheduler "{foreign[1]}" ({known}); it leaves this alone',)


def _misspelt(decoded: Decoded) -> tuple[str, ...]:
    """A label that means to say something, and says nothing."""
    value = decoded.metadata.labels.get(MANAGED)
    if value in (None, "true", "false"):
        return ()
    return (f'metadata.labels[{MANAGED}]: "{value}" is neither "true" nor "false"; it is ignored',)


def _warnings(gang: Gang) -> list[str]:
    if any(role.minimum and not role.requests for role in gang.roles):
        names = ", ".join(role.name for role in gang.roles if role.minimum and not role.requests)
        return [f'gang "{gang.name}": pods of {names} request nothing, so no queue can keep room for them']
    return []
