"""What is kept from one run to the next is asked for again by what it was made from alone."""

from pathlib import Path

from tests.support.chart.kept import MOST, kept


def test_the_same_is_found_again(tmp_path: Path) -> None:
    (kept("what", b"a", b"b", cache=tmp_path) / "result").touch()
    assert (kept("what", b"a", b"b", cache=tmp_path) / "result").exists()


def test_whatever_changes_nothing_of_before_is_found(tmp_path: Path) -> None:
    """Neither for other bytes, nor for the same in another place."""
    (kept("what", b"a", b"b", cache=tmp_path) / "result").touch()
    for other in ([b"a", b"c"], [b"ab"], [b"ab", b""], [b"b", b"a"]):
        assert list(kept("what", *other, cache=tmp_path).iterdir()) == []


def test_what_nobody_uses_does_not_stay_for_ever(tmp_path: Path) -> None:
    """And what another checkout used not long ago does."""
    first, second = (kept("what", name, cache=tmp_path) for name in (b"first", b"second"))
    for number in range(MOST - 2):
        kept("what", bytes(number), cache=tmp_path)
    assert first == kept("what", b"first", cache=tmp_path)
    kept("what", b"one more", cache=tmp_path)
    assert first.exists()
    assert not second.exists()
    assert len(list(first.parent.iterdir())) == MOST


def test_other_results_stay(tmp_path: Path) -> None:
    (kept("one", b"a", cache=tmp_path) / "result").touch()
    kept("other", b"b", cache=tmp_path)
    assert (kept("one", b"a", cache=tmp_path) / "result").exists()
