"""One reconcile of a gang, as its steps share it: how the gang stands, what is planned, and when to look again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from muster.planning.expectations import Expectations
from muster.planning.phase import Phase
from muster.planning.plan import GangPlan
from muster.planning.snapshot import GangSnapshot
from muster.queueing.ledger import GangKey


@dataclass(slots=True)
class Work:
    """One reconcile of a gang."""

    snapshot: GangSnapshot
    """The gang as the cluster shows it, with the writes of this reconcile."""
    plan: GangPlan
    """The plan for it."""
    expects: Expectations
    """The writes of its leader that the watches may not show yet."""
    now: Callable[[], float]
    """Gives the time in seconds; it never goes back."""
    due: float = inf
    """The time at which the gang is to be reconciled again, whatever happens; infinity for none."""

    @property
    def requeue_after(self) -> float:
        """The seconds until then."""
        return max(self.due - self.now(), 0.0)

    @property
    def key(self) -> GangKey:
        """The gang."""
        return self.snapshot.key

    @property
    def admitted(self) -> bool:
        """True if the gang is admitted."""
        return self.plan.phase is Phase.ADMITTED

    def again(self, seconds: float | None) -> None:
        """Request another reconcile after so many seconds at the latest; None changes nothing."""
        if seconds is not None:
            self.due = min(self.due, self.now() + max(seconds, 0.0))

    def has_written(self) -> None:
        """The PodGroup is as the last write left it."""
        self.snapshot = replace(self.snapshot, pod_group=self.expects.written)
