"""The walk up the controllers of an object: one rule of where it ends, for everybody who looks them up.

Admission reads what its watches have not shown, the controller knows its stores alone, and an audit what it listed:
they have to find the same owners, or they would judge a workload differently.
"""

from __future__ import annotations

from collections.abc import Iterator

from muster.model.objects import OwnerReference

MOST_OWNERS = 4
"""Owners that are looked up on one walk. A pod of a TrainJob has three above it: a Job, a JobSet, the TrainJob."""


class OwnerWalk:
    """The owners to look up, the nearest first; after each one that was found, `found` says which is next.

    It ends at an owner for which `found` was not called, at an object that nothing controls, and after MOST_OWNERS.
    """

    def __init__(self, first: OwnerReference | None) -> None:
        self._next = first

    def __iter__(self) -> Iterator[OwnerReference]:
        for _ in range(MOST_OWNERS):
            owner, self._next = self._next, None
            if owner is None:
                return
            yield owner

    def found(self, controller: OwnerReference | None) -> None:
        """The owner was found, and this one controls it."""
        self._next = controller
