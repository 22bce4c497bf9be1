"""The queue tree as `muster queues` and `muster watch` draw it."""

import io
from typing import Any

import pytest

from muster.cli.queues.entries import tree_lines
from muster.cli.queues.table import ASCII, BLOCKS, queue_lines
from tests.support.cases import cases

RED, GREEN, YELLOW, PLAIN = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[0m"


def entry(name: str, depth: int = 0, *, used: dict[str, str] | None = None, **limit: str) -> dict[str, Any]:
    return {
        "name": name,
        "depth": depth,
        "state": "Open",
        "limit": limit,
        "used": used,
        "gangs": 1,
        "waiting": 12,
    }


def test_queues_that_share_say_how_much_of_it_they_have() -> None:
    tree = [
        entry("org", used={"cpu": "3"}, cpu="4"),
        {**entry("org-a", 1, used={"cpu": "3"}), "share": "150%"},
        {**entry("org-b", 1, used={}), "share": "0%"},
    ]
    assert queue_lines(tree, ASCII, 80) == [
        "QUEUE     STATE  SHARE  GANGS  WAITING  RESOURCE  USED / LIMIT",
        "org       Open       -      1       12  cpu       3 / 4  ############.....   75%",
        "|- org-a  Open    150%      1       12  cpu       3 / -",
        "`- org-b  Open      0%      1       12  -         -",
    ]


def test_a_queue_on_hold_says_so_in_place_of_its_state() -> None:
    held = {**entry("org", used={}), "onHoldBy": "org"}
    (_, line) = queue_lines([held], ASCII, 80)
    assert line.split()[:2] == ["org", "OnHold"]


def numbers(used: str, limit: str) -> str:
    """What stands behind the resource, of a queue with that limit."""
    (_, line) = queue_lines([entry("q", used={"cpu": used}, cpu=limit)], ASCII, 80)
    return line.partition("cpu       ")[2]


def test_each_resource_of_a_queue_has_a_line_below_its_parents() -> None:
    tree = [
        entry("root", used={"cpu": "3", "memory": "3Gi"}),
        entry("idle", 1, used={}),
        entry("org", 1, used={"cpu": "3", "memory": "3Gi"}, cpu="8", memory="4Gi"),
        entry("org-a", 2, used={"cpu": "3"}, cpu="4"),
        entry("org-b", 2, used={}, cpu="4"),
        entry("zoo", 1, used={}),
        entry("cat", 2, used={}),
    ]
    assert queue_lines(tree, ASCII, 80) == [
        "QUEUE        STATE  GANGS  WAITING  RESOURCE  USED / LIMIT",
        "root         Open       1       12  cpu       3 / -",
        "|                                   memory    3Gi / -",
        "|- idle      Open       1       12  -         -",
        "|- org       Open       1       12  cpu       3 / 8      ######...........   37%",
        "|  |                                memory    3Gi / 4Gi  ############.....   75%",
        "|  |- org-a  Open       1       12  cpu       3 / 4      ############.....   75%",
        "|  `- org-b  Open       1       12  cpu       0 / 4      .................    0%",
        "`- zoo       Open       1       12  -         -",
        "   `- cat    Open       1       12  -         -",
    ]


@cases(
    "used, limit, shown",
    ("nothing is used", "0", "4", "0 / 4  ....................    0%"),
    ("whatever is used shows", "1m", "4", "1m / 4  #...................    0%"),
    ("almost full is not full", "3999m", "4", "3999m / 4  ###################.   99%"),
    ("full", "4", "4", "4 / 4  ####################  100%"),
    ("above the limit", "6", "4", "6 / 4  ####################  150%"),
    ("bytes are rounded", "3536870912", "4Gi", "3.3Gi / 4Gi  ################....   82%"),
    ("nothing can be used", "0", "0", "0 / 0"),
)
def test_a_bar_shows_how_much_of_the_limit_is_used(used: str, limit: str, shown: str) -> None:
    assert numbers(used, limit) == shown


def test_unknown_usage_has_no_bar() -> None:
    assert queue_lines([entry("q", cpu="4")], ASCII, 80)[1].split() == ["q", "Open", "1", "12", "cpu", "?", "/", "4"]


@cases("columns, bar", ("shorter", 63, 10), ("shortest", 58, 5), ("too narrow", 57, 0), ("far too narrow", 40, 0))
def test_the_bar_takes_the_columns_that_are_left(columns: int, bar: int) -> None:
    (_, line) = queue_lines([entry("queue", used={"cpu": "4"}, cpu="4")], ASCII, columns)
    assert line.count("#") == bar
    assert line.endswith("  100%")
    assert len(line) == (columns if bar else 52)


@pytest.mark.parametrize(
    ("used", "bar"),
    [
        ("1", f"{GREEN}█████{PLAIN}░░░░░░░░░░░░░░░   25%"),
        ("4", f"{YELLOW}{'█' * 20}{PLAIN}  100%"),
        ("5", f"{RED}{'█' * 20}{PLAIN}  125%"),
        ("0", f"{'░' * 20}    0%"),
    ],
)
def test_on_a_terminal_the_colour_of_a_bar_says_full_and_above_its_limit(used: str, bar: str) -> None:
    lines = queue_lines([entry("root"), entry("q", 1, used={"cpu": used}, cpu="4")], BLOCKS, 100)
    assert lines[2].startswith("└─ q")
    assert lines[2].endswith(bar)


def test_no_name_draws_on_the_terminal() -> None:
    (_, line) = queue_lines([entry("q\x1b[2J", used={})], BLOCKS, 80)
    assert "\x1b" not in line


class Terminal(io.TextIOWrapper):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """Whether it is one."""
        return True


@cases(
    "encoding, environment, bar",
    ("UTF-8", "utf-8", {"TERM": "xterm"}, f"{YELLOW}████"),
    ("another encoding", "ascii", {"TERM": "xterm"}, "####"),
    ("a dumb terminal", "utf-8", {"TERM": "dumb"}, "####"),
    ("no colours", "utf-8", {"TERM": "xterm", "NO_COLOR": "1"}, "####"),
)
def test_a_terminal_without_colours_or_utf_8_gets_plain_text(
    monkeypatch: pytest.MonkeyPatch, encoding: str, environment: dict[str, str], bar: str
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (_, line) = tree_lines([entry("q", used={"cpu": "4"}, cpu="4")], Terminal(io.BytesIO(), encoding=encoding))
    assert bar in line
    assert line.isascii() == (bar == "####")
