"""Counts work by calls of functions written in Python: the same on a busy machine as on a quiet one."""

import gc
import sys
from collections.abc import Iterable
from types import FrameType
from typing import Self


class Calls:
    """Counts calls while it is entered; none by the garbage collector, which hypothesis has call it back.

    With `builtin` it counts calls of functions that are written in C, too.
    """

    def __init__(self, *, builtin: bool = False) -> None:
        self.count = 0
        self._counted = ("call", "c_call") if builtin else ("call",)
        self._collects = gc.isenabled()

    def __enter__(self) -> Self:
        gc.disable()
        self._before = sys.getprofile()
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(self._before)
        if self._collects:
            gc.enable()

    def _note(self, _frame: FrameType, event: str, _arg: object) -> None:
        self.count += event in self._counted


def most_calls(steps: Iterable[object]) -> int:
    """The calls of the longest of these steps; all of them are taken."""
    taken, most = iter(steps), 0
    while True:
        with Calls() as calls:
            try:
                next(taken)
            except StopIteration:
                return most
        most = max(most, calls.count)
