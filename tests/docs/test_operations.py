"""The pages for operators: their tables are what the tests run, and so is each block of commands."""

import os
import re

import pytest

from hack.versions import rows, trials, written
from muster.cli.doctor.schedulers import ADVISORIES
from tests.docs.test_documents import CHECKOUT
from tests.support.cluster.operations_guide import PAGES, STEPS
from tests.support.pages.blocks import blocks, inline
from tests.support.pages.disasters import SHOWN
from tests.support.pages.versions import BEGIN, END, table

PAGE = CHECKOUT / "docs/operations.md"
_RUNBOOK = (CHECKOUT / "docs/runbook.md").read_text()
_DISASTERS = re.findall(r"^\| (?!what breaks)(.+) \| .+ \| .* \|$", _RUNBOOK, re.MULTILINE)
_NAMED = sorted({tuple(test.split("::")) for tests in SHOWN.values() for test in tests})


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


@pytest.mark.parametrize("page", ["README.md", "docs/install.md", "docs/platforms.md", "docs/operations.md"])
def test_each_page_names_the_releases_of_volcano_that_doctor_takes_for_sound(page: str) -> None:
    text = (CHECKOUT / page).read_text()
    newest = [".".join(map(str, one.fixed[-1])) for one in ADVISORIES]
    assert [release for release in newest if release not in text] == []


def test_the_readme_names_what_the_tests_run() -> None:
    """Without etcd, kwok and helm, which are no choice of the reader's."""
    tested = re.findall(r"^\| (?!etcd|kwok|helm)(.+) \| v(\S+) \|$", table(), re.MULTILINE)
    assert len(tested) > 8
    text = (CHECKOUT / "README.md").read_text()
    assert [(name, version) for name, version in tested if version not in text] == []


def test_every_other_version_has_its_row() -> None:
    """What came out of `make test-versions`, or that nobody has tried it yet."""
    text = PAGE.read_text()
    assert [*rows(text)] == [trial.title for trial in trials()]
    assert written(text, {}) == text


def test_every_block_is_run_on_a_real_node() -> None:
    """tests/node/test_operations_guide.py runs them as they stand here; each has one step there."""
    named = {command for page in PAGES for command in inline(page)}
    run = [step.text for step in STEPS if step.begins not in named]
    assert sorted(run) == sorted({text for page in PAGES for text in blocks(page)})


@pytest.mark.parametrize(("path", "name"), _NAMED, ids=lambda word: word)
def test_what_is_said_of_a_disaster_is_shown_by_a_test(path: str, name: str) -> None:
    source = (CHECKOUT / "tests" / path).read_text()
    assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), f"{path} has no {name}"


def test_every_disaster_has_its_tests() -> None:
    assert sorted(SHOWN) == sorted(_DISASTERS)
    assert [what for what, tests in SHOWN.items() if not tests] == []
