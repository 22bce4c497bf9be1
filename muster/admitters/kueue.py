"""The answer of Kueue for a workload, by the Workloads that it makes (kueue.x-k8s.io/v1beta2, seen with Kueue 0.19.2).

A Workload belongs to the topmost object that Kueue manages: the RayJob of a RayJob's cluster. It is found by that
object's UID, never by its name, which Kueue uses again, nor by an annotation of the pods, which always names the first
Workload of an elastic workload.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from muster.model.names import read_key
from muster.model.objects import LocalObject, Object, ResourceList, TimedCondition, is_true
from muster.model.pods import PodTemplate
from muster.model.times import seconds_of

JOB_UID = read_key("kueue.x-k8s.io/job-uid")  # label on Workloads: the UID of what they are made of
# How Kueue names the workload for which it has preempted another one, in its condition: by the label above.
_PREEMPTOR = re.compile(r"JobUID: ([\w-]+)\)")
# Annotation on the next Workload of an elastic workload: the one that it replaces, `namespace/name`.
_REPLACES = read_key("kueue.x-k8s.io/workload-slice-replacement-for")


class PodSet(LocalObject, frozen=True):
    """Equal pods, as Kueue counts them."""

    name: str = ""
    count: int = 0
    min_count: int | None = None
    """The fewest of them with which Kueue admits it if there is no room for all: partial admission."""
    template: PodTemplate = PodTemplate()


class _Spec(LocalObject, frozen=True):
    queue_name: str = ""
    active: bool = True
    pod_sets: tuple[PodSet, ...] = ()


class _Requeue(LocalObject, frozen=True):
    count: int = 0
    requeue_at: str = ""


class _Request(LocalObject, frozen=True):
    name: str = ""
    resources: ResourceList = msgspec.field(default_factory=dict)


class _Status(LocalObject, frozen=True):
    conditions: tuple[TimedCondition, ...] = ()
    requeue_state: _Requeue | None = None
    # The needs of each pod set when Kueue last looked at a waiting one.
    resource_requests: tuple[_Request, ...] = ()


class KueueWorkload(Object, frozen=True):
    """A Workload of Kueue's."""

    spec: _Spec = msgspec.field(default=_Spec())
    status: _Status = _Status()

    @property
    def owners(self) -> tuple[str, ...]:
        """The UIDs of the objects that it is made of."""
        controller = self.metadata.controller
        # A Workload that Kueue makes of another one (concurrent admission) has that one's labels.
        uid = controller.uid if controller else self.metadata.labels.get(JOB_UID, "")
        return (uid,) if uid else ()

    def condition(self, type_: str) -> TimedCondition | None:
        """Return the condition of that type, or None."""
        return next((one for one in self.status.conditions if one.type == type_), None)

    def holds(self, type_: str) -> bool:
        """True if the condition of that type is True."""
        return is_true(self.status.conditions, type_)

    @property
    def preemptor(self) -> str:
        """The UID of the object for which Kueue has preempted it, as far as Kueue says; "" where it has not."""
        evicted = self.condition("Evicted")
        found = _PREEMPTOR.search(evicted.message) if evicted is not None and evicted.status == "True" else None
        return found[1] if found is not None else ""

    @property
    def admitted(self) -> bool:
        """True if it has its quota now: in the moment of an eviction Admitted is still True."""
        return self.holds("Admitted") and not self.holds("Evicted") and not self.metadata.deletion_timestamp


@dataclass(frozen=True, slots=True)
class KueueTimeouts:
    """How long Kueue awaits the pods of a workload that it has admitted (its waitForPodsReady); 0 for no such limit."""

    ready: float = 1800.0
    """Seconds until all of them are ready: `timeout`."""
    scheduled: float = 0.0
    """Seconds until all of them have nodes: `unscheduledTimeout` (Kueue 0.20). A gated pod has none."""


_NO_TIMEOUTS = KueueTimeouts(ready=0.0)


class Awaited(NamedTuple):
    """The limit after which Kueue takes its quota back from a workload."""

    until: float
    """The time at which it ends (seconds of the wall clock)."""
    seconds: float
    """Its length."""
    nodes: bool = False
    """True if pods are to have nodes by then; otherwise they are to be ready."""


@dataclass(frozen=True, slots=True)
class KueueAnswer:
    """Kueue's answer: `admitted`, or the reason why not in a sentence.

    `workload` is the Workload with this answer, None if there is none; `others` are those for other pods of the same
    gang. While pods are `awaited`, Kueue takes its quota back at a time that runs from its admission on, gates open or
    not, or from the loss of pods. It is `settled` when Kueue has looked at the workload, and `never` is True if no
    quota can ever hold it.
    """

    admitted: bool
    message: str = ""
    workload: KueueWorkload | None = None
    awaited: Awaited | None = None
    settled: bool = True
    never: bool = False
    others: tuple[KueueWorkload, ...] = ()

    @property
    def workloads(self) -> tuple[KueueWorkload, ...]:
        """All Workloads for pods of the gang: it starts when all of them are admitted."""
        return self.others if self.workload is None else (self.workload, *self.others)

    @property
    def evicted(self) -> frozenset[str]:
        """The UIDs of the objects whose Workloads Kueue has evicted, and not admitted again."""
        return frozenset(uid for one in self.workloads if one.holds("Evicted") for uid in one.owners)

    def evicted_in(self, message: str) -> frozenset[str]:
        """The part of `evicted` for which a gang's message has Kueue's reason."""
        found = ((one, one.condition("Evicted")) for one in self.workloads if one.holds("Evicted"))
        return frozenset(uid for one, why in found if why and why.message in message for uid in one.owners)


def newest(found: Iterable[KueueWorkload]) -> KueueWorkload | None:
    """Return the Workload that counts among those of one object: the newest one that has not finished.

    While the next Workload of an elastic workload waits, the one before it counts: its running pods may be replaced,
    and Kueue holds additional pods by a gate of its own.
    """
    unfinished = sorted(
        (one for one in found if not one.holds("Finished")),
        key=lambda one: (one.metadata.creation_timestamp, one.metadata.name),
        reverse=True,
    )
    for one in unfinished:
        if one.admitted or not one.metadata.annotations.get(_REPLACES):
            return one
    return unfinished[0] if unfinished else None


def answer_of(workload: KueueWorkload | None, *, labelled: bool, timeouts: KueueTimeouts = _NO_TIMEOUTS) -> KueueAnswer:
    """Return Kueue's answer by the newest Workload; `labelled` is True if the user's object names a LocalQueue."""
    if workload is None:
        if not labelled:
            return KueueAnswer(admitted=False, message=_IN_NO_QUEUE)
        return KueueAnswer(admitted=False, message=_NO_WORKLOAD, settled=False)
    if workload.admitted:
        return KueueAnswer(admitted=True, workload=workload, awaited=_awaited(workload, timeouts))
    looked_at = any(one.message for one in workload.status.conditions)
    return KueueAnswer(admitted=False, message=_why_not(workload), workload=workload, settled=looked_at)


def _awaited(workload: KueueWorkload, timeouts: KueueTimeouts) -> Awaited | None:
    """Return the limit that ends first; None where Kueue awaits no pods of an admitted workload."""
    ready = workload.condition("PodsReady")
    lost = ready is not None and ready.reason == "WaitForRecovery"
    # For pods that were ready, the time runs from the moment when they are not any more. It is as long by default.
    begun = ready if lost else workload.condition("Admitted")
    since = seconds_of(begun.last_transition_time) if begun else None
    if since is None or workload.holds("PodsReady"):
        return None
    limits = []
    # Without the condition Kueue is configured to await no ready pods.
    if timeouts.ready and ready is not None:
        limits.append(Awaited(since + timeouts.ready, timeouts.ready))
    if timeouts.scheduled and not lost and not workload.holds("PodsScheduled"):
        limits.append(Awaited(since + timeouts.scheduled, timeouts.scheduled, nodes=True))
    return min(limits, default=None)


def reverted(workload: str) -> str:
    """Return a sentence: Kueue starts a suspended workload again, and what to do instead."""
    return f'Kueue has admitted it and resumes it: to stop it set spec.active: false in Kueue\'s Workload "{workload}"'


_IN_NO_QUEUE = (
    "Kueue admits the gangs of this namespace, and the workload is in none of its queues: "
    "label it kueue.x-k8s.io/queue-name"
)
_NO_WORKLOAD = "Kueue has made no Workload of it yet; if this lasts, check that Kueue runs and manages its kind"


def _why_not(workload: KueueWorkload) -> str:
    name = workload.metadata.name
    if workload.metadata.deletion_timestamp:
        return f'Kueue\'s Workload "{name}" is being deleted'
    evicted = workload.condition("Evicted") if workload.holds("Evicted") else None
    reserved, admitted = workload.condition("QuotaReserved"), workload.condition("Admitted")
    if not workload.spec.active:
        # Kueue gives a workload up by itself, too; before that it may have been evicted for another reason.
        why = f": {evicted.message}" if evicted is not None and evicted.reason.startswith("Deactivated") else ""
        return f'Kueue keeps it from starting, for spec.active of its Workload "{name}" is false{why}'
    if evicted is not None:
        what = _EVICTIONS.get(evicted.reason, f"Kueue has evicted it ({evicted.reason})")
        waits = reserved.message if reserved is not None and reserved.status == "False" else ""
        since = f"; since then: {waits}" if waits not in {"", evicted.message} else ""
        return f"{what}: {evicted.message}{since}{_again(workload)}"
    if reserved is not None and reserved.status == "True":
        reason = f": {admitted.message}" if admitted and admitted.message else ""
        return f"Kueue has reserved quota for it, and its admission checks are not done{reason}"
    reason = next((one.message for one in (reserved, admitted) if one is not None and one.message), "")
    if reason:
        return f"Kueue has not admitted it: {reason}{_again(workload)}"
    return (
        f'Kueue has not said yet why Workload "{name}" waits: it looks at one of several equal ones, and at none while '
        "its LocalQueue leads nowhere"
    )


_EVICTIONS = {
    "PodsReadyTimeout": "Kueue has taken its quota back, for its pods were not ready in time",
    "Preempted": "Kueue has preempted it",
    "ClusterQueueStopped": "Kueue has stopped its ClusterQueue",
    "LocalQueueStopped": "Kueue has stopped its LocalQueue",
    "Deactivated": "Kueue's Workload was deactivated",
    "AdmissionCheck": "an admission check of Kueue's has failed",
}


def _again(workload: KueueWorkload) -> str:
    requeue = workload.status.requeue_state
    if requeue is None or not requeue.requeue_at:
        return ""
    times = f", for the {requeue.count}. time" if requeue.count > 1 else ""
    return f"; it queues again at {requeue.requeue_at}{times}"
