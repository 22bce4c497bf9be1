"""Results are good for as long as what they came from is the same version, or the very same."""

import itertools
from collections.abc import Hashable, Sequence

from muster.model.objects import ObjectMeta
from muster.model.pods import Pod
from tests.support.cases import cases
from webhook.reviews.cluster_cache import Memo, version


def _made(*sources: Sequence[object]) -> list[int]:
    """Which result each of these has, one after the other."""
    memo: Memo[int] = Memo()
    numbers = itertools.count()
    versions: list[tuple[Hashable, ...]] = [tuple(map(version, some)) for some in sources]
    return [memo.of("k", some, lambda: next(numbers)) for some in versions]


def test_made_once_for_the_very_same_objects_and_again_for_equal_ones() -> None:
    one, other = [1], [1]
    assert _made([one], [one], [other], [one]) == [0, 0, 1, 2]


def _pod(uid: str = "u", resource_version: str = "1") -> Pod:
    return Pod(metadata=ObjectMeta(uid=uid, resource_version=resource_version))


@cases(
    "first, second, same",
    ("one version, read twice", _pod(), _pod(), True),
    ("its metadata", _pod(), _pod().metadata, True),
    ("another version", _pod(), _pod(resource_version="2"), False),
    ("another object", _pod(), _pod(uid="v"), False),
    ("no version", _pod(resource_version=""), _pod(resource_version=""), False),
)
def test_made_once_for_one_version_of_an_object(first: object, second: object, *, same: bool) -> None:
    assert (_made([first], [second]) == [0, 0]) is same


def test_more_or_fewer_sources_are_others() -> None:
    one = object()
    assert _made([one], [one, one], []) == [0, 1, 2]


def test_nothing_is_a_result_as_well() -> None:
    memo: Memo[int | None] = Memo()
    assert memo.of("k", (), lambda: None) is None
    assert memo.of("k", (), lambda: 1) is None


def test_what_was_not_used_for_longest_is_forgotten() -> None:
    memo: Memo[str] = Memo(most=2)
    for key in ("a", "b", "a", "c"):
        memo.of(key, (), lambda: "first")
    assert [memo.of(key, (), lambda: "again") for key in ("a", "c", "b")] == ["first", "first", "again"]
