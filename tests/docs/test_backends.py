"""docs/backends.md shows which story runs on which scheduler, and names no test that is not there."""

import re
from pathlib import Path

import pytest

_CHECKOUT = Path(__file__).parents[2]
_SHOWN = re.findall(r"`([\w/]+\.py)::(\w+)(?:\[\w+\])?`", (_CHECKOUT / "docs/backends.md").read_text())


@pytest.mark.parametrize(("file", "test"), sorted(set(_SHOWN)))
def test_a_story_is_shown_by_a_test_that_there_is(file: str, test: str) -> None:
    source = (_CHECKOUT / "tests" / file).read_text()
    assert re.search(rf"^(async )?def {test}\(", source, re.MULTILINE)


def test_every_scheduler_shows_its_stories() -> None:
    assert {"e2e/test_demo.py", "pairs/test_coscheduling.py", "pairs/test_kubernetes.py"} < {file for file, _ in _SHOWN}
