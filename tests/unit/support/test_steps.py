"""The judge of how much work a step took."""

from __future__ import annotations

import pytest

from tests.support.cluster.steps import Work, too_much


@pytest.mark.parametrize(
    ("work", "usual", "said"),
    [
        pytest.param(Work(20, 12), Work(20, 12), "", id="the usual"),
        pytest.param(Work(60, 40), Work(20, 12), "", id="three times as much, on a busy machine"),
        pytest.param(Work(200, 12), Work(20, 12), "200 calls where 20 are usual", id="ten times the calls"),
        pytest.param(Work(20, 120), Work(20, 12), "120 looks where 12 are usual", id="ten times the looks"),
        pytest.param(Work(11, 11), Work(0, 0), "11 calls where 0 are usual and 11 looks where 0 are usual", id="none"),
        pytest.param(Work(900, 900), None, "", id="nobody has recorded such a step"),
    ],
)
def test_ten_times_the_usual_work_is_too_much(work: Work, usual: Work | None, said: str) -> None:
    assert too_much(work, usual) == said


def test_a_count_that_starts_over_is_taken_as_it_is() -> None:
    """As that of an apiserver that was restarted."""
    assert Work(5, 30).since(Work(100, 20)) == Work(5, 10)
