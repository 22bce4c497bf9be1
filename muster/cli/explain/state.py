"""The state of a workload, for `muster explain`: the one that the controller has recorded, else why there is none.

What a user may not read is not taken for something that does not exist: the newest event of muster speaks then.
"""

from muster.cli.explain.subjects import HOW_TO_READ, Subject
from muster.cli.queues.gangs import unreported
from muster.cli.snapshot import ClusterSnapshot
from muster.cluster.owners import asks_to_wait
from muster.gangs.intent import Intent
from muster.model.gang_states import GangState
from muster.model.names import GANG, GATE, MESSAGE, STATE, UNNAMED_SCHEDULERS
from muster.model.objects import InvalidObjectError
from muster.model.resource import PODS
from muster.planning.messages import at_rest, in_the_way, left_alone
from muster.planning.phase import gate_in, held_back
from muster.planning.snapshot import GangSnapshot, OnHold
from muster.queueing.ledger import Decision
from muster.queueing.queue_tree import QueueTree
from muster.workloads import Workload
from muster.workloads.ray_parents import RayCronJob

_STATES = frozenset(map(str, GangState))


def recorded(view: GangSnapshot) -> tuple[str, str] | None:
    """State and message that the controller has written on the PodGroup."""
    if view.pod_group is None or not view.ours or not view.pod_group.metadata.annotations.get(STATE):
        return None
    annotations = view.pod_group.metadata.annotations
    return annotations[STATE], annotations.get(MESSAGE, "")


def unreadable_origin(subject: Subject, visible: ClusterSnapshot) -> tuple[str, str] | None:
    """State and message of a workload that is made from an object which this user may not read; None for others."""
    origin = subject.kind.origin
    reference = origin.of(subject.decoded) if origin else None
    if reference is None or reference.source.resource.full_name not in visible.unreadable:
        return None
    what = f'{reference.source.resource.kind} "{reference.name}"'
    return "", f"{what} cannot be read with your permissions, and the controller has not reported a state yet"


def state_of(
    subject: Subject, view: GangSnapshot, workload: Workload, why_not: str, *, lost: Decision | None, hidden: list[str]
) -> tuple[str, str]:
    """State and message: those that the controller has recorded, else the reason why there are none.

    `why_not` is the reason why muster does not manage the workload, "" when it does; `lost` is the decision for a gang
    whose queue does not exist or takes none, so that it gets no PodGroup; `hidden` what this user may not read of it.
    """
    group = view.pod_group
    if known := recorded(view):
        return known
    if group is not None and not view.ours and (view.members or view.unmanaged_pods):
        return in_the_way(view)
    if why_not:
        return GangState.NOT_MANAGED, why_not
    if view.left_alone:
        return left_alone(view)
    if not workload.active:
        return at_rest(workload, view.kueue)
    if hidden:
        return _by_events(subject, hidden)
    pods = any(pod.living for pod in subject.pods)
    if lost is not None and pods:
        return lost.state, lost.message
    if pods and group is None and (refusal := _refused(subject)):
        return GangState.INVALID, refusal
    return unreported(pods=pods)


def _by_events(subject: Subject, hidden: list[str]) -> tuple[str, str]:
    """State and message of a gang that the user can only read in part: its newest event of muster."""
    may_not = f"you may not read {' and '.join(hidden)}"
    for event in reversed(subject.events):
        if event.by_muster and event.reason in _STATES:
            return event.reason, f"{event.note} (its newest event; {may_not})"
    return "", f"{may_not}, and it has no event of muster; {HOW_TO_READ}"


def _refused(subject: Subject) -> str:
    """The newest event of muster, if it is that the apiserver refused the PodGroup; else ""."""
    newest = next((event for event in reversed(subject.events) if event.by_muster), None)
    return f"{newest.note} (its newest event)" if newest is not None and newest.reason == GangState.INVALID else ""


def hidden_parts(view: GangSnapshot, intent: Intent | None, visible: ClusterSnapshot) -> list[str]:
    """The parts of a gang that this user may not read, in words: its PodGroup, if it may have one, and its pods."""
    kind = intent.gang_scheduler.resource.full_name if intent is not None and view.pod_group is None else ""
    parts = {"PodGroups": kind, "pods": PODS.full_name}
    return [words for words, name in parts.items() if name in visible.unreadable]


def other_scheduler(subject: Subject, visible: ClusterSnapshot) -> str:
    """A sentence if its pods name a scheduler that is not among those of the settings; else "".

    Pods that name none, or Kubernetes' own, are for another one only where muster's gate holds them; those that muster
    left alone are in no gang, and have no PodGroup of its.
    """
    known = visible.defaults.schedulers
    for pod in subject.pods:
        named = pod.spec.scheduler_name
        if GANG in pod.metadata.labels and named not in known and (named not in UNNAMED_SCHEDULERS or pod.gated(GATE)):
            return (
                f'its pods name the scheduler "{named}", and the settings of muster have only {", ".join(known)} '
                "(chart value `schedulers`): its PodGroup is not found"
            )
    return ""


def of_maker(subject: Subject) -> tuple[str, str]:
    """State and message of a workload that makes other workloads, and has made none."""
    decoded = subject.decoded
    if isinstance(decoded, RayCronJob):
        workload, suspended = None, decoded.spec.suspend
    else:
        try:
            workload = subject.kind.read(decoded)
        except InvalidObjectError as error:
            return GangState.INVALID, str(error)
        suspended = not workload.active
    if workload is not None and suspended:
        return at_rest(workload)
    if suspended:
        return GangState.SUSPENDED, "the schedule is suspended"
    newest = next((event for event in reversed(subject.events) if not event.by_muster), None)
    if newest is None or newest.type != "Warning":
        return "", subject.makes_none
    return "", f"{subject.makes_none}; its newest event is {newest.reason}: {newest.note}"


def hold_of_maker(subject: Subject) -> str:
    """That a workload which makes other workloads is on hold; "" where it is not."""
    meta = subject.decoded.metadata
    return OnHold(subject.kind.kind, meta.namespace, meta.name).sentence if asks_to_wait(meta) else ""


def hold_on(view: GangSnapshot, tree: QueueTree, queue: str, *, lost: bool) -> str:
    """The hold that keeps more of the gang from starting, of itself or of its queue; "" for none.

    A queue that is `lost` is not there for its namespace.
    """
    hold = held_back(view, tree, queue, gate_in(view, tree, queue), lost=lost)
    return hold.message if hold is not None else ""
