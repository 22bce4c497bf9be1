"""The bench beside peers: gangs by half in a watch that is made up, what is summed up, and how the page is written."""

import re
from pathlib import Path

import pytest

from hack.bench.peers.__main__ import asked, made_by
from hack.bench.peers.contenders import CONTENDERS
from hack.bench.peers.figures import Figures, Used, ratios, spread, table
from hack.bench.peers.goals import goals
from hack.bench.peers.halves import Placed, half_started, longest_half
from hack.bench.peers.measures import Halves
from hack.bench.peers.report import blocks, inserted

CHECKOUT = Path(__file__).parents[2]


def _seen(size: int, end: float, *changes: tuple[float, int]) -> Placed:
    gang = Placed(size)
    for at, placed in changes:
        gang.note(at, placed)
    gang.close(end)
    return gang


@pytest.mark.parametrize(
    ("gang", "seconds"),
    [
        pytest.param(_seen(3, 60.0), 0.0, id="never placed"),
        pytest.param(_seen(3, 60.0, (1.0, 3)), 0.0, id="placed at once"),
        pytest.param(_seen(3, 60.0, (1.0, 1), (1.5, 2), (3.0, 3)), 2.0, id="one after the other"),
        pytest.param(_seen(3, 60.0, (10.0, 2)), 50.0, id="by half until the end"),
        pytest.param(_seen(3, 60.0, (1.0, 1), (5.0, 0), (20.0, 2), (50.0, 3)), 30.0, id="the longer of two spans"),
        pytest.param(_seen(3, 60.0, (1.0, 3), (20.0, 2), (50.0, 3)), 30.0, id="one is taken away for a while"),
        pytest.param(_seen(2, 60.0, (1.0, 2), (70.0, 1)), 0.0, id="what comes after the end is its removal"),
        pytest.param(_seen(2, 60.0, (1.0, 3), (40.0, 2)), 0.0, id="more than it needs is whole"),
    ],
)
def test_how_long_a_gang_is_held_by_half(gang: Placed, seconds: float) -> None:
    assert longest_half(gang) == pytest.approx(seconds)


def test_a_watch_that_goes_on_says_nothing_yet() -> None:
    gang = Placed(3)
    gang.note(1.0, 1)
    with pytest.raises(ValueError, match="has not ended"):
        longest_half(gang)


def test_a_gang_is_half_started_beyond_the_limit_alone() -> None:
    burst, half = _seen(3, 60.0, (1.0, 1), (9.0, 3)), _seen(3, 60.0, (1.0, 1), (12.0, 3))
    assert half_started([burst, half, burst, half]) == 2
    assert half_started([burst, half], limit=5.0) == 2


def test_ratios_are_of_the_same_round() -> None:
    assert ratios({0: 2.0, 1: 3.0, 2: 9.0}, {0: 1.0, 1: 2.0, 3: 9.0}) == [2.0, 1.5]


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        pytest.param([], "-", id="none"),
        pytest.param([1.234], "1.23", id="one"),
        pytest.param([3.0, 1.0, 1.5], "1.50 (1.00-3.00)", id="the median and the range"),
        pytest.param([1.0, 2.0], "1.50 (1.00-2.00)", id="between the middle two"),
    ],
)
def test_a_spread_is_the_median_and_the_range(numbers: list[float], said: str) -> None:
    assert spread(numbers) == said


def test_a_process_is_summed_over_its_rounds() -> None:
    figures = Figures.empty()
    figures.used[:] = [
        ("kueue-tuned", Used("manager", 100, 1.0, 200.0, 300.0)),
        ("muster", Used("webhook", 100, 9.0, 9.0, 9.0)),
        ("kueue-tuned", Used("manager", 50, 0.5, 150.0, 160.0)),
    ]
    assert figures.summed("kueue-tuned") == [Used("manager", 150, 1.5, 150.0, 300.0)]


def test_a_table_ends_its_lines_where_they_end() -> None:
    assert table(["", "a"], [["x", "1"], ["long", ""]]) == "      a\nx     1\nlong"


def _figures() -> Figures:
    figures = Figures.empty()
    for turn, (ours, raw) in enumerate([(1.0, 2.0), (3.0, 2.0)]):
        figures.add("opened 50", "muster", turn, ours)
        figures.add("opened 50", "raw", turn, raw)
    figures.used[:] = [
        ("muster", Used("controller", 100, 1.0, 90.0, 95.0)),
        ("muster", Used("webhook", 100, 2.0, 70.0, 75.0)),
    ]
    return figures


def test_a_contender_stands_beside_raw_patches_and_what_was_not_measured_is_a_dash() -> None:
    said = blocks(_figures(), [50], [3], {"kueue-tuned": Halves(8, 4, 2, 3, 21.5)})
    rows = {line.split("  ")[0]: line.split() for line in said["opened"].splitlines()}
    assert rows["muster"][1:] == ["2.00", "(1.00-3.00)", "1.00", "(0.50-1.50)"]
    assert rows["Kueue, tuned"][2:] == ["-", "-"]
    assert "Volcano alone" not in rows
    used = {line.split("  ")[0]: line.split()[2:] for line in said["used"].splitlines()}
    assert used["muster: both"] == ["100", "30.00", "160", "170"]
    assert said["halves"].splitlines()[1].split() == ["Kueue,", "tuned", "8", "4", "2", "3", "21.5"]


_PAGE = "a\n<!-- peers: opened -->\n```text\nold\n```\nb\n<!-- peers: used -->\n```text\n```\n"


def test_each_block_goes_to_its_place() -> None:
    page = inserted(_PAGE, {"opened": r"\1 new", "used": "u"})
    assert page == _PAGE.replace("old", r"\1 new").replace("used -->\n```text\n", "used -->\n```text\nu\n")
    assert inserted(page, {"opened": "old", "used": "u"}) == _PAGE.replace(
        "used -->\n```text\n", "used -->\n```text\nu\n"
    )
    with pytest.raises(ValueError, match="0 places for 'halves'"):
        inserted(_PAGE, {"halves": ""})


def test_the_pods_of_all_contenders_ask_for_the_same() -> None:
    pods = [one.pod("g", 0, 2, "q", cpu="1") for one in CONTENDERS if one.plain]
    assert all(pod["spec"]["containers"] == pods[0]["spec"]["containers"] for pod in pods)
    assert {pod["metadata"]["labels"]["hack.muster.dev/gang"] for pod in pods} == {"g"}


def test_the_page_names_the_options_that_a_run_had() -> None:
    """Those that nobody gave as well: a default may change after the page was written."""
    said = made_by(asked(["--rounds", "1", "--sizes", "50,500", "--write"]))
    assert said.splitlines() == [
        "$ python -m hack.bench.peers --rounds 1 --sizes 50,500 --ray-sizes 3,50,500 --gangs 200 --write",
        "one round: no number has a spread",
    ]
    command, rounds = made_by(asked(["--only", "gates", "--no-read"])).splitlines()
    assert command.endswith("--rounds 3 --sizes 50,500,1000 --ray-sizes 3,50,500 --gangs 200 --only gates --no-read")
    assert rounds == "3 rounds: medians, with the least and the greatest"
    # What the page says is what would be asked for again.
    assert made_by(asked(said.splitlines()[0].split()[4:])) == said


@pytest.mark.parametrize("words", ["--only gates", "--contenders muster,raw", "--no-halves", "--no-read"])
def test_a_part_of_a_run_writes_no_page(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        asked(["--write", *words.split()])
    assert f"--write is for a whole run, without {words}" in capsys.readouterr().err


def test_the_page_says_by_which_command_its_tables_were_made() -> None:
    """The block is what the bench would write of the command in it."""
    page = (CHECKOUT / "docs/comparison.md").read_text()
    said = page.partition("<!-- peers: machine -->\n```console\n")[2].partition("```")[0].splitlines()
    given = asked(said[0].removeprefix("$ python -m hack.bench.peers ").split())
    assert made_by(given).splitlines() == said[:2]
    assert given.write


def _measured(**rates: tuple[float, float, float]) -> Figures:
    """Raw patches, muster and Kueue as shipped at 50 pods, in one round, and the processes of the last two."""
    figures = Figures.empty()
    for measure, numbers in rates.items():
        for contender, number in zip(("raw", "muster", "kueue-shipped"), numbers, strict=True):
            figures.add(measure.replace("_", " "), contender, 0, number)
    figures.used[:] = [
        ("muster", Used("controller", 1000, 3.0, 108.0, 108.0)),
        ("muster", Used("webhook", 1000, 0.5, 110.0, 110.0)),
        ("kueue-shipped", Used("manager", 1000, 8.0, 159.0, 186.0)),
    ]
    return figures


def test_each_goal_stands_with_what_was_measured_and_whether_it_is_met() -> None:
    figures = _measured(opened_50=(1.0, 1.104, 3.0), running_3=(0.1, 2.0, 1.0), drained=(80.0, 40.0, 13.0))
    halves = {"muster": Halves(8, 5, 0, 0, 0.1), "kueue-shipped": Halves(8, 5, 1, 1, 20.0)}
    rows = [re.split("  +", line) for line in goals(figures, [50], [3], halves).splitlines()]
    assert rows[1:] == [
        ["gates of 50 pods, of raw patches", "at most 1.1", "1.10", "3.00", "yes"],
        ["gates of 50 pods, seconds", "not behind Kueue", "1.10", "3.00", "yes"],
        ["RayCluster of 3 runs, seconds", "not behind Kueue", "2.00", "1.00", "no"],
        ["gangs a second, gates alone", "not behind Kueue", "40.0", "13.0", "yes"],
        ["gangs a second, with schedulers", "not behind Kueue", "-", "-", "-"],
        ["CPU s for 1,000 pods, controller alone", "less than Kueue", "3.00", "8.00", "yes"],
        ["CPU s for 1,000 pods, both processes", "less than Kueue", "3.50", "8.00", "yes"],
        ["MB at the end, controller alone", "less than Kueue", "108", "159", "yes"],
        ["MB at the end, both processes", "less than Kueue", "218", "159", "no"],
        ["half-started gangs", "none", "0", "1", "yes"],
    ]


def test_a_goal_is_measured_against_the_better_kueue() -> None:
    figures = _measured(drained=(80.0, 10.0, 9.0))
    figures.add("drained", "kueue-tuned", 0, 11.0)
    (row,) = (line for line in goals(figures, [], [], {}).splitlines() if line.startswith("gangs a second, gates"))
    assert row.split()[-3:] == ["10.0", "11.0", "no"]


@pytest.mark.parametrize("name", ["opened", "running", "drained", "used", "halves", "goals"])
def test_the_page_has_a_place_for_each_table(name: str) -> None:
    inserted((CHECKOUT / "docs/comparison.md").read_text(), {name: ""})
