"""The admission passes that hold now, one for each subtree: the queues that compete for the same room.

A pass holds until anything changes in its subtree (a gang comes, goes, or holds something else; a queue; what
namespaces have left), or until its own time `until`. `forget` reports a change. Two changes make no difference to the
others: a gang that the pass lets start holds what it waited for (`on_started`), until all of them do, for one decision
lets all of them start, in any order; and a waiting gang is passed for the first time (`on_passed`).
"""

from collections.abc import Collection, Iterable, Iterator
from math import inf

from muster.queueing.admission_pass import AdmissionPass
from muster.queueing.entries import Candidate, Claim
from muster.queueing.queue_tree import QueueTree
from muster.queueing.queue_view import ROOT
from muster.queueing.reservations import Reservation


class PassCache:
    """By subtree; a subtree has the name of its highest queue. With `together` all queues are one subtree."""

    def __init__(self, tree: QueueTree) -> None:
        self.together = False
        self._tree = tree
        self._subtrees: dict[str, str] = {}
        self._queues: dict[str, set[str]] = {}
        self._passes: dict[str, AdmissionPass] = {}

    # --- which queues compete -----------------------------------------------------------------------------------------

    def subtree(self, queue: str) -> str:
        """The subtree of a queue: the highest queue above it that limits anything. All below it compete."""
        if self.together:
            return ROOT
        known = self._subtrees.get(queue)
        if known is None:
            path = self._tree.path(queue)
            known = next((one for one in reversed(path) if self._tree.limit(one) or self._tree.strict(one)), path[0])
            self._subtrees[queue] = known
        return known

    def join(self, queue: str) -> None:
        """A gang holds or waits in this queue."""
        self._queues.setdefault(self.subtree(queue), set()).add(queue)

    def leave(self, queue: str) -> None:
        """None does any more."""
        subtree = self.subtree(queue)
        queues = self._queues[subtree]
        queues.discard(queue)
        if not queues:
            # Queues come and go.
            del self._queues[subtree]
            self._passes.pop(subtree, None)

    def competing(self, queue: str) -> set[str]:
        """The queues of the same subtree in which any gang holds or waits."""
        return set(self._queues.get(self.subtree(queue), ()))

    def regroup(self, queues: Iterable[str]) -> None:
        """All has changed about which queues compete; these are the queues in which any gang holds or waits."""
        self._subtrees, self._queues, self._passes = {}, {}, {}
        for queue in queues:
            self.join(queue)

    def detach(self, queues: Iterable[str], *, used: Collection[str]) -> None:
        """These queues are to move in the tree, or to have another limit; in those `used` any gang holds or waits."""
        for queue in used:
            self.forget(queue)
            self.leave(queue)
        for queue in queues:
            self._subtrees.pop(queue, None)
            self._passes.pop(queue, None)

    def attach(self, path: Iterable[str], *, used: Iterable[str]) -> None:
        """They stand at their places now, the highest of them below the others of this path."""
        for queue in used:
            self.join(queue)
            self.forget(queue)
        for queue in path:
            self._passes.pop(queue, None)

    # --- which pass holds ---------------------------------------------------------------------------------------------

    def of(self, queue: str, now: float) -> AdmissionPass | None:
        """The pass that holds now for the queue's subtree; None if the last one holds no more."""
        known = self._passes.get(self.subtree(queue))
        return known if known is not None and known.until > now else None

    def keep(self, queue: str, new: AdmissionPass) -> None:
        """This is the pass of the queue's subtree from now on."""
        self._passes[self.subtree(queue)] = new

    def forget(self, queue: str) -> None:
        """Something has changed in the queue's subtree."""
        self._passes.pop(self.subtree(queue), None)

    def forget_all(self) -> None:
        """Something has changed for all."""
        self._passes.clear()

    def on_started(self, candidate: Candidate, claim: Claim) -> bool:
        """True if a gang that waits holds this claim now as its pass let it: for the others that is no change."""
        known = self._passes.get(self.subtree(candidate.queue))
        if known is None or not _as_expected(known, candidate, claim):
            return False
        del known.fits[candidate.key]
        if (known.more and 2 * len(known.fits) <= known.at_once) or (not known.fits and known.depends_on_starts):
            self.forget(candidate.queue)
        return True

    def on_passed(self, queue: str, moment: float) -> None:
        """A gang of this queue was passed for the first time; that makes a difference to others at that moment."""
        known = self._passes.get(self.subtree(queue))
        if known is not None and moment > known.now:
            known.until = min(known.until, moment)
        else:
            self.forget(queue)

    def reservations(self) -> Iterator[Reservation]:
        """The reservations of the last passes; any thread may ask."""
        return (one for known in list(self._passes.values()) for one in list(known.reservations.made))

    def next_moment(self) -> float:
        """The first time at which a pass holds no more by itself; infinity for never."""
        return min((known.until for known in self._passes.values()), default=inf)

    def changed(self, now: float) -> Iterator[str]:
        """One queue of each subtree in which any gang holds or waits, whose current pass has not been read."""
        for subtree, queues in self._queues.items():
            known = self._passes.get(subtree)
            if queues and not (known is not None and known.consumed and known.until > now):
                yield next(iter(queues))


def _as_expected(known: AdmissionPass, candidate: Candidate, claim: Claim) -> bool:
    return (
        known.fits.get(candidate.key) == claim.amounts
        and not (candidate.begun or claim.soft_amounts)
        and not (claim.running_amounts and known.usage.holds_back(candidate.queue))
        and (candidate.order, candidate.lasts) == (claim.order, claim.lasts)
        and (candidate.run is None) is (claim.end is None)
        and (claim.end is None or claim.end[1:] == candidate.run)
    )
