"""What is kept from one run to the next is asked for again by what it was made from alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.chart.kept import kept

if TYPE_CHECKING:
    from pathlib import Path


def test_the_same_is_found_again(tmp_path: Path) -> None:
    (kept("what", b"a", b"b", cache=tmp_path) / "result").touch()
    assert (kept("what", b"a", b"b", cache=tmp_path) / "result").exists()


def test_whatever_changes_nothing_of_before_is_found(tmp_path: Path) -> None:
    """Neither for other bytes, nor for the same in another place; and it does not stay for ever."""
    before = kept("what", b"a", b"b", cache=tmp_path)
    (before / "result").touch()
    for other in ([b"a", b"c"], [b"ab"], [b"ab", b""], [b"b", b"a"]):
        assert list(kept("what", *other, cache=tmp_path).iterdir()) == []
    assert not before.exists()


def test_other_results_stay(tmp_path: Path) -> None:
    (kept("one", b"a", cache=tmp_path) / "result").touch()
    kept("other", b"b", cache=tmp_path)
    assert (kept("one", b"a", cache=tmp_path) / "result").exists()
