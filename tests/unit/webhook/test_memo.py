"""Results are good for as long as what they came from is the very same."""

from __future__ import annotations

import itertools

from webhook.memo import Memo


def test_made_once_for_the_very_same_objects_and_again_for_equal_ones() -> None:
    memo: Memo[int] = Memo()
    numbers = itertools.count()
    one, other = [1], [1]
    assert [memo.of("k", sources, lambda: next(numbers)) for sources in [(one,), (one,), (other,), (one,)]] == [
        0,
        0,
        1,
        2,
    ]


def test_more_or_fewer_sources_are_others() -> None:
    memo: Memo[int] = Memo()
    numbers = itertools.count()
    one = object()
    assert [memo.of("k", sources, lambda: next(numbers)) for sources in [(one,), (one, one), ()]] == [0, 1, 2]


def test_nothing_is_a_result_as_well() -> None:
    memo: Memo[int | None] = Memo()
    assert memo.of("k", (), lambda: None) is None
    assert memo.of("k", (), lambda: 1) is None


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    memo: Memo[str] = Memo(most=2)
    for key in ("a", "b", "a", "c"):
        memo.of(key, (), lambda: "first")
    assert [memo.of(key, (), lambda: "again") for key in ("a", "c", "b")] == ["first", "first", "again"]
