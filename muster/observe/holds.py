"""What keeps a gang from starting by the annotation `muster.dev/hold`: its workload, an owner of that, or its queue.

A gang on hold leaves its place in line: it takes no part in any decision, so that it holds up no other gang, whatever
is set for its queue. It comes back by its priority and its age. What runs stays, and what was admitted opens its
minimum.
"""

from __future__ import annotations

from collections.abc import Iterable

from muster.admitters import Admitter
from muster.model.gang_states import GangState
from muster.model.modes import GateMode
from muster.model.names import HOLD
from muster.model.objects import ObjectMeta
from muster.observe.cluster import Cluster
from muster.observe.view import OnHold, View
from muster.queueing.queue_tree import QueueTree
from muster.queueing.verdicts import Decision, queue_on_hold
from muster.workloads import PLAIN_POD, Decoded, Kind


def asks_to_wait(metadata: ObjectMeta) -> bool:
    """True if the object has the annotation; any other value than "true" holds nothing."""
    return metadata.annotations.get(HOLD) == "true"


def on_hold_by(cluster: Cluster, kind: Kind, decoded: Decoded, members: Iterable[ObjectMeta]) -> OnHold | None:
    """What puts the workload on hold, whose pods have the metadata `members`; None where nothing does.

    The topmost owner first, which its user wrote: operators copy annotations to what they make.
    """
    if kind is PLAIN_POD:
        found = [(kind, one) for one in members]
    else:
        found = [(kind, decoded.metadata), *((of, owner.metadata) for of, owner in cluster.owners(decoded.metadata))]
    named = (OnHold(of.kind, one.namespace, one.name) for of, one in reversed(found) if asks_to_wait(one))
    return next(named, None)


def held_back(view: View, tree: QueueTree, queue: str, gate: GateMode, *, lost: bool) -> Decision | None:
    """Why nothing more of the gang may start: it, or its queue, is on hold; None where neither is.

    Where another one than the ledger admits, that one is to be told; where no gate is, nothing can be held. Of a queue
    that is `lost`, not there for the gang's namespace, no user there is told anything.
    """
    if view.admitter is not Admitter.LEDGER or gate is GateMode.OFF:
        return None
    if view.on_hold_by is not None:
        return Decision(fits=False, state=GangState.ON_HOLD, message=view.on_hold_by.sentence)
    by = "" if lost else tree.on_hold_by(queue)
    return queue_on_hold(queue, by) if by else None


def on_hold_itself(view: View, hold: Decision | None) -> bool:
    """True if `hold`, as `held_back` gives it, is the workload's own: it stands in no line then, nor does its wave."""
    return hold is not None and view.on_hold_by is not None
