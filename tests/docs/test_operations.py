"""docs/operations.md: its tables are what the tests run, and so is each block of commands."""

import os
import re

import pytest

from hack.versions import rows, trials, written
from muster.cli.doctor.schedulers import ADVISORIES
from muster.model import names
from tests.docs.test_documents import CHECKOUT
from tests.support.cluster.operations_guide import PAGE as NAME
from tests.support.cluster.operations_guide import STEPS
from tests.support.pages.blocks import blocks, inline
from tests.support.pages.versions import BEGIN, END, table

PAGE = CHECKOUT / NAME
_BROKEN = PAGE.read_text().partition("## When something breaks\n")[2].partition("\n## ")[0]
_DISASTERS = re.findall(r"^\| (.+) \| (.+) \| (.+) \| (.*) \|$", _BROKEN, re.MULTILINE)[1:]
_NAMED = sorted(set(re.findall(r"`([\w/]+\.py)::(\w+)`", _BROKEN)))
_STORED = PAGE.read_text().partition("## What is stored where\n")[2].partition("\n## ")[0]


def test_the_versions_are_those_that_the_tests_run() -> None:
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    expected = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if os.environ.get("MUSTER_REWRITE"):
        PAGE.write_text(expected)
    assert PAGE.read_text() == expected, (
        "docs/operations.md is out of date: see what changed with MUSTER_REWRITE=1 pytest tests/docs/test_operations.py"
    )


@pytest.mark.parametrize("page", ["README.md", "docs/platforms.md", NAME])
def test_each_page_names_the_releases_of_volcano_that_doctor_takes_for_sound(page: str) -> None:
    text = (CHECKOUT / page).read_text()
    newest = [".".join(map(str, one.fixed[-1])) for one in ADVISORIES]
    assert [release for release in newest if release not in text] == []


def test_every_other_version_has_its_row() -> None:
    """What came out of `make test-versions`, or that nobody has tried it yet."""
    text = PAGE.read_text()
    assert [*rows(text)] == [trial.title for trial in trials()]
    assert written(text, {}) == text


def test_every_block_is_run_on_a_real_node() -> None:
    """tests/node/test_operations_guide.py runs them as they stand here; each has one step there."""
    run = [step.text for step in STEPS if step.begins not in inline(NAME)]
    assert sorted(run) == sorted(set(blocks(NAME)))


@pytest.mark.parametrize(("path", "name"), _NAMED, ids=lambda word: word)
def test_what_is_said_of_a_disaster_is_shown_by_a_test(path: str, name: str) -> None:
    source = (CHECKOUT / "tests" / path).read_text()
    assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), f"{path} has no {name}"


def test_every_disaster_names_its_tests() -> None:
    assert len(_DISASTERS) > 20
    assert [what for what, *_, shown in _DISASTERS if "::test_" not in shown and what != "---"] == []


def test_every_mark_of_musters_is_said_to_be_stored() -> None:
    """What muster writes itself; what users write is in gangs.md and queues.md."""
    pages = "".join((CHECKOUT / "docs" / page).read_text() for page in ("gangs.md", "queues.md", "operations.md"))
    own = {value for value in vars(names).values() if isinstance(value, str) and value.startswith("muster.dev/")}
    assert own
    assert {mark for mark in own if mark not in pages} == set()
    written = {names.ADMITTED, names.ADMITTED_AT, names.STATE, names.MESSAGE, names.NUDGE, names.PASSED_SINCE}
    written |= {names.PASSED_IN, names.REQUEUED_AT, names.GANG, names.WORKLOAD}
    assert {mark for mark in written if f"`{mark}`" not in _STORED} == set()
