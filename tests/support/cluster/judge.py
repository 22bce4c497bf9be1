"""Who asks the judge of `open_claims`: every scene at the end of its test, whether the test does or not.

It is that test which fails, in its own body: at the end of the `with` block in which it has opened the scene, or, where
a fixture has, when its function returns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tests.support.cluster.open_claims import opened_above
from tests.support.cluster.recorder import State

_ON_DUTY: list[Judge] = []


class Judge:
    """Judges one record as it is whenever asked, and for as long as it is on duty at the end of a test."""

    def __init__(self, record: Callable[[], list[State]]) -> None:
        self._record = record
        self._excuses: dict[str, str] = {}
        self._told: set[str] = set()
        self._of_a_fixture = False
        self._dismissed = False

    def excuse(self, gang: str, why: str) -> None:
        """Let a gang be opened beyond the room of its queue: it is what the test has somebody do.

        An excuse that the gang has not needed by the end is a failure.
        """
        assert why, gang
        self._excuses[gang] = why

    def judge(self) -> int:
        """Fail where muster opened more than there was room for, and return how many acts there were.

        Each finding fails once: the tests that share a scene do not answer for each other.
        """
        above, acts = opened_above(self._record(), self._excuses)
        new = [words for words in above if words not in self._told]
        self._told.update(new)
        assert not new, "; ".join(new)
        return acts

    def end(self) -> None:
        """Judge the record, and its excuses."""
        if self._dismissed:
            return
        self.judge()
        for gang, why in self._excuses.items():
            above, _ = opened_above(self._record(), self._excuses.keys() - {gang})
            assert above, f"{gang} was never open beyond its room, and needs no excuse: {why}"

    def dismiss(self) -> None:
        """Have nobody judged at the end: a test has failed, and has said enough."""
        self._dismissed = True

    def wait_for_the_test(self) -> None:
        """End with each test that has the scene, not with the scene."""
        self._of_a_fixture = True

    @contextmanager
    def on_duty(self) -> Iterator[None]:
        """End with the block, unless with a test."""
        _ON_DUTY.append(self)
        try:
            yield
            if not self._of_a_fixture:
                self.end()
        finally:
            _ON_DUTY.remove(self)


@contextmanager
def judged_with_the_test() -> Iterator[None]:
    """The body of a test: what fixtures have opened is judged when it returns."""
    for judge in _ON_DUTY:
        judge.wait_for_the_test()
    try:
        yield
    except BaseException:
        for judge in _ON_DUTY:
            judge.dismiss()
        raise
    for judge in _ON_DUTY:
        judge.end()
