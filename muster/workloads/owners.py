"""The walk up the controllers of an object, with one rule for its end in all programs.

The webhook reads objects that its watches have not shown, the controller has its stores, and an audit the objects that
it listed: they have to find the same owners, or they would judge a workload differently.
"""

from __future__ import annotations

from collections.abc import Iterator

from muster.model.objects import OwnerReference

MOST_OWNERS = 4
"""Most owners that are looked up on one walk. A pod of a TrainJob has three: a Job, a JobSet, the TrainJob."""


class OwnerWalk:
    """The owners to look up, the nearest first; `step_to` continues.

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
