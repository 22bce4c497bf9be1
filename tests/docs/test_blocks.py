"""Every command that a document shows is run by a test, which takes it from the page, or has its reason not to be."""

import re

import pytest

from tests.docs.test_documents import CHECKOUT
from tests.support.cluster.operations_guide import STEPS
from tests.support.pages.blocks import asked, inline, pages, shell, unmarked
from tests.support.pages.not_run import BLOCKS, SENTENCES

_ASKED = asked()
# The form of a command: `muster explain KIND/NAME`, `make login REGISTRY=HOST`.
_FORM = re.compile(r"\b[A-Z]{2,}\b(?!=)")


def _whole(page: str) -> bool:
    """Whether a test follows all of the page."""
    return any(one.page == page and not one.begins for one in _ASKED)


def _wanted(page: str, text: str) -> list[str]:
    """How the block begins for the tests that run it, and for the list of reasons."""
    begins = {one.begins for one in _ASKED if one.page == page and one.begins} | set(BLOCKS.get(page, {}))
    return sorted(beginning for beginning in begins if text.startswith(beginning))


def _run() -> list[str]:
    """What tests run as it stands on a page: blocks, and commands of sentences."""
    return [
        *(one.begins for one in _ASKED if one.begins),
        *(text for page in pages() for text in shell(page) if _whole(page) or _taken(page, text)),
        *(step.begins for step in STEPS),
    ]


def _taken(page: str, text: str) -> bool:
    return any(one.page == page and one.begins and text.startswith(one.begins) for one in _ASKED)


def _is_typed(command: str) -> bool:
    """True if a reader types it as it stands: neither a name, as `muster plan --strict`, nor a form, nor a bench."""
    words = command.removeprefix("kubectl ").split(" ")
    named = all(word.startswith("--") for word in words[2:]) and not (words[0] == "make" and "=" in command)
    return not named and not _FORM.search(command) and not command.startswith("python -m hack.")


@pytest.mark.parametrize("page", pages())
def test_every_block_is_run_or_has_its_reason(page: str) -> None:
    """And one of the two alone, so that no reason outlives the test that makes it wrong."""
    listed = BLOCKS.get(page, {})
    unknown = [text for text in shell(page) if not _whole(page) and not _wanted(page, text)]
    assert unknown == [], "a test takes it by `block` of tests.support.pages.blocks, or not_run.py says why none does"
    run = {one.begins for one in _ASKED if one.page == page}
    assert sorted(run & listed.keys()) == []
    assert [begins for begins in listed if not any(text.startswith(begins) for text in shell(page))] == []


def test_what_a_test_takes_is_on_its_page() -> None:
    taken = [one for one in _ASKED if one.begins and not any(text.startswith(one.begins) for text in shell(one.page))]
    assert [one for one in taken if one.begins not in inline(one.page)] == []


def test_every_command_in_a_sentence_is_run_or_has_its_reason() -> None:
    """As it stands, or as a part of what a test runs."""
    run = _run()
    shown = {command for page in pages() for command in inline(page) if _is_typed(command)}
    assert {command for command in shown if not any(command in text for text in run)} == set(SENTENCES)


@pytest.mark.parametrize("page", pages())
def test_no_command_hides_in_a_block_of_another_kind(page: str) -> None:
    assert unmarked(page) == []


def test_who_asks_runs_it() -> None:
    """No test of the documents alone asks, but those that need no cluster for what they run."""
    asking = {one.test for one in _ASKED if one.test.startswith("tests/docs/")}
    assert asking == {f"tests/docs/test_{name}.py" for name in ("cli_page", "documents")}
    assert {one.page for one in _ASKED} <= set(pages())


def test_the_tests_that_a_reason_names_are_there() -> None:
    reasons = [reason for of in (*BLOCKS.values(), SENTENCES) for reason in of.values()]
    named = [name for reason in reasons for name in re.findall(r"(?:tests|hack)/[\w/]+(?:\.py)?", reason)]
    assert len(named) > 10
    assert [name for name in named if not (CHECKOUT / name).exists()] == []
