"""Log lines: whom they are about, and that nobody else writes them."""

import json
import logging
import re
from collections.abc import Iterator
from textwrap import indent

import pytest

from muster.process.logs import FORMATS, LEVELS, configure_logging, review_uid, set_level

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


@pytest.fixture
def about() -> Iterator[None]:
    token = review_uid.set("u-1")
    yield
    review_uid.reset(token)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def line(form: str, message: str, *words: object, error: BaseException | None = None) -> str:
    found = (type(error), error, error.__traceback__) if error else None
    record = logging.LogRecord("webhook", logging.WARNING, __file__, 1, message, words, found)
    return FORMATS[form]().format(record)


def test_a_line_for_people() -> None:
    assert re.fullmatch(rf"{TIME} WARNING webhook: 3 pods", line("console", "%d pods", 3))


def test_a_line_for_machines() -> None:
    found = json.loads(line("json", "%d pods", 3))
    assert re.fullmatch(TIME, found.pop("time"))
    assert found == {"level": "warning", "logger": "webhook", "message": "3 pods"}


@pytest.mark.usefixtures("about")
def test_what_is_about_a_review_says_which() -> None:
    assert " WARNING webhook [u-1]: denied" in line("console", "denied")
    assert json.loads(line("json", "denied"))["uid"] == "u-1"


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("sign", ["\n", "\r", "\x1b[2J", "\x85", "\u2028", "\x7f", "\0"])
def test_a_name_writes_no_line_of_its_own(form: str, sign: str) -> None:
    token = review_uid.set(f"u{sign}1")
    try:
        text = line(form, "pod %s", f"a{sign}INFO webhook: all is well")
    finally:
        review_uid.reset(token)
    assert len(text.splitlines()) == 1
    assert text.isprintable()


@pytest.mark.parametrize("form", FORMATS)
def test_an_error_writes_no_line_of_its_own(form: str) -> None:
    """Its words may be those of an object, which its traceback repeats."""
    forged = "2026-11-27T00:00:00.000Z INFO webhook: all is well"
    with pytest.raises(ValueError, match="bad") as raised:
        raise ValueError(f"bad: a\n{forged}\r{forged}\x1b[2J")
    first, *trace = line(form, "%s", raised.value, error=raised.value).splitlines()
    assert first.isprintable()
    assert all(one.startswith("  ") and one.isprintable() for one in trace)


def test_a_long_uid_fills_no_logs() -> None:
    token = review_uid.set("u" * 10_000)
    try:
        assert all(len(line(form, "denied")) < 250 for form in FORMATS)
    finally:
        review_uid.reset(token)


def test_an_error_brings_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        str(1 // 0)
    text = line("console", "failed", error=raised.value)
    found = json.loads(line("json", "failed", error=raised.value))["trace"]
    assert text.endswith(indent(found, "  "))
    assert found.splitlines()[-1].startswith("ZeroDivisionError: ")


def test_one_line_on_standard_error_from_the_level_on(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("warning", "json")
    logging.getLogger("x").info("unheard")
    logging.getLogger("x").warning("heard")
    assert [json.loads(one)["message"] for one in capsys.readouterr().err.splitlines()] == ["heard"]


@pytest.mark.parametrize("level", LEVELS)
def test_the_level_can_be_any_of_four(level: str) -> None:
    set_level(level)
    assert logging.getLogger().level == getattr(logging, level.upper())


@pytest.mark.parametrize("level", ["", "loud", "INFO", "10"])
def test_any_other_level_is_refused_and_changes_nothing(level: str) -> None:
    before = logging.getLogger().level
    with pytest.raises(ValueError, match=r"is not known; use debug, info, warning or error$"):
        set_level(level)
    assert logging.getLogger().level == before
