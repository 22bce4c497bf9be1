"""Who is asked before a command changes a cluster, and where the question stands."""

import io
import sys

import pytest

from muster.cli.ui import asks, confirmed
from tests.support.cases import cases


class Stream(io.StringIO):
    """A standard stream."""

    def __init__(self, text: str = "", *, terminal: bool) -> None:
        super().__init__(text)
        self._terminal = terminal

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._terminal


@cases(
    "terminals, asked",
    ("a terminal", "in out err", True),
    ("errors go to a file", "in out", True),
    ("the output goes to a file", "in err", True),
    ("nobody would see the question", "in", False),
    ("nobody would answer", "out err", False),
)
def test_who_sits_at_a_terminal_is_asked_where_the_question_is_seen(
    monkeypatch: pytest.MonkeyPatch, terminals: str, *, asked: bool
) -> None:
    streams = {name: Stream("yes\n", terminal=name in terminals.split()) for name in ("in", "out", "err")}
    for name, stream in streams.items():
        monkeypatch.setattr(sys, f"std{name}", stream)
    assert asks(yes=False, dry_run=False) is asked
    assert not asks(yes=True, dry_run=False)
    assert not asks(yes=False, dry_run=True)
    if asked:
        streams["in"].seek(0)
        assert confirmed("release", "Open?")
        shown = [name for name in ("out", "err") if "Open? [y/N]" in streams[name].getvalue()]
        assert len(shown) == 1
        assert streams[shown[0]].isatty()
