"""The message for a gang that wants to start: that it may, or why not, in a sentence with numbers."""

from dataclasses import dataclass
from math import inf

from muster.model.gang_states import GangState
from muster.model.names import HOLD, RUNS_AT_MOST
from muster.model.times import minute_of
from muster.queueing.admission_pass import AdmissionPass
from muster.queueing.entries import Candidate, EndKind, Order
from muster.queueing.queue_tree import Place, QueueLevel
from muster.queueing.reservations import Reservation
from muster.queueing.shares import percent
from muster.queueing.usage import Usage
from muster.resources.amounts import Resources, describe, minus
from muster.resources.elastic_quotas import Ceiling

# Why one whose patience is over holds up no gang all the same.
_IN_VAIN = "what does not end by itself leaves it no room"
_IN_VAIN_BEHIND = "it waits for the end of the cluster that it replaces"


@dataclass(frozen=True, slots=True)
class Decision:
    """The ledger's decision on a candidate: it may start now, or the reason why not, in a sentence."""

    fits: bool
    state: GangState
    message: str


def no_such_queue(name: str, namespace: str) -> str:
    """The words for a queue that does not exist, or may not be used there: which of both is not revealed."""
    return f'queue "{name}" does not exist, or is not open to namespace "{namespace}"'


def queue_not_found(name: str, namespace: str) -> Decision:
    """The message for a queue that does not exist, or that is not open to the gang's namespace."""
    return Decision(fits=False, state=GangState.QUEUE_NOT_FOUND, message=no_such_queue(name, namespace))


def queue_on_hold(name: str, by: str) -> Decision:
    """The message for a queue where `by`, the queue itself or one above it, is on hold."""
    which = f'queue "{by}"' if by == name else f'queue "{by}" above "{name}"'
    message = f"{which} is on hold (its annotation {HOLD}); to resume it: muster resume queue/{by}"
    return Decision(fits=False, state=GangState.ON_HOLD, message=message)


def refused(candidate: Candidate, place: Place | None, ceiling: Ceiling | None, now: float) -> Decision | None:
    """Why a gang cannot start however much is free, or None where it can; `ceiling` bounds it in its namespace."""
    name = candidate.queue
    if place is None:
        return queue_not_found(name, candidate.key.namespace)
    if not place.view.open:
        state = place.view.state or "not open yet"
        message = f'queue "{name}" is {state} and takes no new work'
        return Decision(fits=False, state=GangState.QUEUE_CLOSED, message=message)
    if not place.leaf:
        message = f'queue "{name}" has queues below it and takes no gangs itself'
        return Decision(fits=False, state=GangState.QUEUE_NOT_LEAF, message=message)
    for level in place.levels:
        over = level.exceeded(candidate.need)
        if over is not None:
            message = f"needs {over[0]}, {level.called(name)} has capability {over[1]}"
            return Decision(fits=False, state=GangState.EXCEEDS_CAPABILITY, message=message)
    never = ceiling.never(candidate.need) if ceiling is not None else None
    if never is not None:
        return Decision(fits=False, state=GangState.EXCEEDS_ELASTIC_QUOTA, message=never)
    if candidate.deadline is not None and candidate.deadline <= now:
        message = "the workload's own deadline has passed while it waited"
        return Decision(fits=False, state=GangState.DEADLINE_PASSED, message=message)
    if place.on_hold_by:
        return queue_on_hold(name, place.on_hold_by)
    return None


def why(candidate: Candidate, place: Place, outcome: AdmissionPass, position: tuple[int, int]) -> str:
    """Why a gang that could start some day does not start now, in words with numbers."""
    lacking = outcome.lacking(candidate, candidate.amounts)
    level = next((one for one in place.levels if one.queue in lacking), None)
    shortage = outcome.namespaces.shortage(candidate)
    if shortage is not None:
        usage = shortage
    elif level is not None:
        usage = f"{level.called(candidate.queue)} has {_free(level, candidate.need, outcome.usage)}"
        # The names of its siblings are none of a tenant's business.
        if (own := outcome.sibling_below_its_share(candidate.queue, level.queue)) is not None:
            queue, share, by_past = own
            past = f" ({percent(by_past)} by past use)" if by_past is not None else ""
            usage += f'; queue "{queue}" has {percent(share)} of its share{past}, and siblings that have less go first'
    elif (reserved := _reserved(candidate, place, outcome)) is not None:
        usage = f"there is room, but {reserved}"
    elif outcome.more:
        usage = f"there is room, and {outcome.at_once} gangs start before it"
    else:
        usage = "there is room behind gangs of higher priority only"
    if (words := planned(outcome.reservations.of(candidate.order))) is not None:
        usage += f"; {words}"
    if outcome.is_starved(candidate):
        usage += f"; smaller gangs may go first, for {_IN_VAIN_BEHIND if candidate.follows else _IN_VAIN}"
    return f"needs {describe(candidate.need)}; {usage}; position {position[0]} of {position[1]} waiting"


def planned(reservation: Reservation | None) -> str | None:
    """When the gang of a reservation starts, where that rests on time limits and not on estimates, which change."""
    if reservation is None or reservation.start == inf or reservation.kind is EndKind.ABOUT:
        return None
    minute = minute_of(reservation.start)
    if reservation.kind is EndKind.ENFORCED:
        return f"starts by {minute} unless a gang before it starts first"
    return f"planned for {minute}, if what runs ends as it says"


def _reserved(candidate: Candidate, place: Place, outcome: AdmissionPass) -> str | None:
    """For which gang the room is reserved that there is for this one, from when, and what would let it pass."""
    amounts = candidate.amounts
    if (first := outcome.strict_head_before(candidate.queue, candidate.order)) is not None:
        return f"{_named(first, candidate)} is before it in a strict queue"
    reservation = outcome.blocking(candidate, amounts)
    if reservation is None:
        return None
    kept, named = outcome.kept_by(reservation, candidate, amounts), _named(reservation.order, candidate)
    level = next((one for one in place.levels if one.queue in kept), None)
    if level is None:
        reserved = f"what the ElasticQuotas of its namespace leave is reserved for {named}"
    else:
        reserved = f"{level.called(candidate.queue)} reserves {' and '.join(kept[level.queue])} for {named}"
    if reservation.start == inf:
        return reserved
    if reservation.kind is EndKind.ABOUT:
        return f"{reserved}, which is expected to start before this gang ends"
    reserved += f" from {minute_of(reservation.start)}"
    if candidate.run is not None and candidate.run.kind <= reservation.kind:
        return f"{reserved}, and this gang ends later"
    if reservation.kind is EndKind.ENFORCED:
        return f"{reserved}; a gang that a limit such as activeDeadlineSeconds ends by then may start before"
    return f"{reserved}; a gang that says with {RUNS_AT_MOST} that it ends by then may start before"


def _named(order: Order, candidate: Candidate) -> str:
    # Names of other namespaces are none of a tenant's business.
    same = order.key.namespace == candidate.key.namespace
    return f'gang "{order.key.gang.name}"' if same else "a gang before it"


def _free(level: QueueLevel, need: Resources, usage: Usage) -> str:
    """The free amounts there of the resources that the gang needs, in words."""
    named = {resource: amount for resource, amount in level.limit.items() if need.get(resource)}
    return f"{describe(minus(named, usage.used(level.queue, named)))} free of {describe(named)}"
