"""`muster report`: what was used and by whom, in a table, for spreadsheets and programs, and drawn."""

import asyncio
import csv
import io
import json
import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.cli.page.charts import HEIGHT, stacked
from muster.cli.report.drawing import drawing
from muster.cli.report.figures import Report, first_day
from muster.cli.report.text import table_lines
from muster.gangs.accounts import Accounts, Scope
from tests.support.cases import cases
from tests.support.cli.command import Command, Said
from tests.support.cli.connections import kubeconfig
from tests.support.faults.apiserver import Answer, FaultyApiserver, failure, only, reply
from tests.support.pages.blocks import block

HOUR, DAY = 3600.0, 86400.0
_NOW = datetime(2026, 11, 29, 6, tzinfo=UTC).timestamp()
_GPU, _GIB = "nvidia.com/gpu", 2**30
_SETTINGS = "/api/v1/namespaces/kube-public/configmaps/muster"
_RECORDS = "/api/v1/namespaces/muster-system/configmaps/muster-history"
_FORBIDDEN = failure(403, "Forbidden", "configmaps is forbidden")


def accounts(now: float = _NOW) -> Accounts:
    """Two queues: `research` has one GPU for ten hours of each of three days; `=serving` more cpu, today."""
    found = Accounts(["team"])
    day = now // DAY * DAY
    research = Scope("", "research", "vision", "RayJob/train", ("blue",))
    for before in (0, 1, 2):
        start = day - before * DAY
        held = {"cpu": 4.0, "memory": 8.0 * _GIB, _GPU: 1.0}
        found.add(research, start, start + 9 * HOUR, held=held)
        found.add(research, start + 9 * HOUR, start + 10 * HOUR, held=held, idle=True)
        found.add(research, start, start + HOUR, waited={_GPU: 8.0})
        found.add_wait(research, 600.0, start)
        found.add_end(research, "succeeded", start)
    other = Scope("", "=serving", "web", "", ())
    found.add(other, day, day + 10 * HOUR, held={"cpu": 100.0})
    found.add_end(other, "evicted", day)
    found.until = now
    return found


def report(by: str = "queue", since: str = "7d", queue: str | None = None) -> Report:
    return Report.of(accounts(), by, first_day(since, _NOW), queue)


async def said(command: Command, *words: str, records: Answer, history: str = "muster-system/muster-history") -> Said:
    settings = reply({"data": {"values.yaml": "{}", **({"history": history} if history else {})}})
    async with FaultyApiserver.serving() as server:
        server.on("GET", only(_SETTINGS, settings, only(_RECORDS, records, failure(404, "NotFound"))))
        config = command.file(kubeconfig(0).replace("https://127.0.0.1:0", server.url), "config")
        return await asyncio.to_thread(command.run, "report", f"--kubeconfig={config}", *words)


def written() -> Answer:
    return reply({"data": {"use": accounts(time.time()).text()}})


async def test_the_table_has_hours_waits_and_ends(command: Command) -> None:
    done = await said(command, records=written())
    head, _, *lines = done.out.splitlines()
    assert (done.code, done.err) == (0, "")
    assert head.startswith(f"from {datetime.now(UTC).date() - timedelta(days=2)} 00:00 UTC until ")
    rows = [line.split() for line in lines[1:]]
    assert rows[0] == ["research", "cpu", "120.0", "12.0", "0.0", "10m", "10m", "succeeded", "3"]
    assert rows[1:3] == [["memory", "GiB", "240.0", "24.0", "0.0"], [_GPU, "30.0", "3.0", "24.0"]]
    assert rows[3] == ["=serving", "cpu", "1,000.0", "0.0", "0.0", "-", "-", "evicted", "1"]
    assert rows[4] == ["total", "cpu", "1,120.0", "12.0", "0.0", "10m", "10m", "succeeded", "3,", "evicted", "1"]


def test_docs_teams_shows_such_a_table() -> None:
    _, *shown = block("docs/teams.md", "$ muster report").splitlines()
    found = report("namespace", "2026-11-27")
    assert table_lines(found) == table_lines(replace(found, until=_NOW + 59.0)) == shown


def test_hours_that_would_be_rounded_to_nothing_are_not_shown_as_none() -> None:
    found = Accounts([])
    found.add(Scope("", "q", "team", "", ()), _NOW - 60, _NOW, held={"cpu": 1.0, _GPU: 3.0})
    found.until = _NOW
    _, _, _, cpu, gpu, *_ = table_lines(Report.of(found, "queue", first_day("7d", _NOW), None))
    assert (cpu.split()[:4], gpu.split()[1]) == (["q", "cpu", "<0.1", "0.0"], "0.1")


async def test_a_spreadsheet_gets_text_where_it_would_compute(command: Command) -> None:
    """And columns that do not depend on the records, but for the resources."""
    done = await said(command, "-o", "csv", records=written())
    head, *rows = csv.reader(io.StringIO(done.out))
    assert head[:4] == ["queue", "cpu_hours_held", "cpu_hours_idle", "cpu_hours_waited"]
    assert {"memory_gib_hours_held", f"{_GPU}_hours_waited", "wait_p95_seconds", "gangs_failed"} <= set(head)
    assert [row[0] for row in rows] == ["research", "'=serving"]
    assert dict(zip(head, rows[0], strict=True))["memory_gib_hours_held"] == "240.000"


async def test_a_program_gets_base_units_times_seconds(command: Command) -> None:
    done = await said(command, "-o", "json", "--by", "label=team", records=written())
    found = json.loads(done.out)
    assert list(found) == ["by", "since", "until", "rows", "total"]
    assert [row["name"] for row in found["rows"]] == ["blue", ""]
    assert found["rows"][0]["held"] == pytest.approx(
        {"cpu": 120 * HOUR, "memory": 240 * HOUR * _GIB, _GPU: 30 * HOUR}, rel=1e-6
    )
    assert found["total"]["ended"] == dict.fromkeys(("deleted", "failed", "requeued", "suspended"), 0) | {
        "succeeded": 3,
        "evicted": 1,
    }
    assert found["rows"][0]["wait"]["p95"] == pytest.approx(600.0, rel=0.1)


async def test_use_by_day_is_drawn_for_those_who_do_not_see_it_too(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "use.svg"
    done = await said(command, "--svg", str(path), records=written())
    assert (done.code, done.err) == (0, "")
    svg = ET.fromstring(path.read_text())  # noqa: S314 - our own
    texts = {one.tag.rpartition("}")[2]: one.text for one in svg if one.text}
    assert "Use by queue and day" in str(texts["title"])
    assert f"research: 120 cpu-hours, 240 memory GiB-hours, 30 {_GPU}-hours" in str(texts["desc"])
    panels = [one for one in svg if one.tag.endswith("}svg")]
    assert [len(panel) for panel in panels] == [2, 2, 2], "each resource has a layer of each queue"


def test_more_than_ten_are_drawn_as_ten_and_the_rest() -> None:
    found = accounts()
    for number in range(20):
        found.add(Scope("", f"team-{number:02}", "x"), _NOW - HOUR, _NOW, held={"cpu": 1.0})
    svg = ET.fromstring(drawing(Report.of(found, "queue", first_day("1d", _NOW))))  # noqa: S314 - our own
    names = [one.text for one in svg if one.get("x") == "34"]
    assert (names[:3], names[-1], len(names)) == (["research", "=serving", "team-00"], "all others", 11)
    panels = [one for one in svg if one.tag.endswith("}svg")]
    assert [len(panel) for panel in panels] == [11, 11, 11]


def test_a_long_name_has_the_width_of_the_drawing_and_a_single_day_one_date() -> None:
    found, name = Accounts(), "q" * 63
    found.add(Scope("", name, "x"), _NOW - HOUR, _NOW, held={"cpu": 0.1})
    found.until = _NOW
    svg = ET.fromstring(drawing(Report.of(found, "queue", first_day("0d", _NOW))))  # noqa: S314 - our own
    texts = [one for one in svg if one.tag.endswith("}text")]
    assert [one.text for one in texts[1:]] == ["cpu-hours a day, at most 0.1", "2026-11-29", name]
    heights = [int(one.get("y", "")) for one in texts]
    assert heights == sorted(heights), "names stand below the panels"


@given(st.lists(st.lists(st.floats(0, 1e18), min_size=3, max_size=3), max_size=5))
def test_layers_lie_above_each_other_inside_the_drawing(layers: list[list[float]]) -> None:
    """At each place the path of a layer is not below that of the layer before."""
    before = [HEIGHT - 1.0] * 3
    for path in stacked(layers):
        heights: list[float] = []
        for step, number in re.findall(r"([HV])([\d.]+)", path)[:-1]:
            heights += [float(number)] if step == "V" else [heights[-1]] * (int(number) - len(heights))
        assert all(1 <= height <= below for height, below in zip(heights, before, strict=True))
        before = heights


async def test_names_that_no_cluster_has_spoil_no_output(command: Command, tmp_path: Path) -> None:
    """Records that another hand wrote: markup, controls of terminals, and cells that a spreadsheet would compute."""
    names = ['</text><script>"&', "\x1b[31m\x07", "@SUM(A1),b", '"a"\n=1', "\t=1", "+1", "-1"]
    spoiled = Accounts()
    for name in names:
        spoiled.add(Scope("", name, name, name), time.time() - 60, time.time(), held={"cpu": 1e20, f"x/{name}": 1.0})
    spoiled.until = time.time()
    path = tmp_path / "use.svg"
    done = await said(command, "-o", "csv", "--svg", str(path), records=reply({"data": {"use": spoiled.text()}}))
    assert (done.code, done.err) == (0, "")
    head, *rows = csv.reader(io.StringIO(done.out))
    assert {len(row) for row in rows} == {len(head)}
    assert {row[0] for row in rows} == {
        *('</text><script>"&', "\\x1b[31m\\x07", "'@SUM(A1),b", '"a"\\n=1', "'\\t=1", "'+1", "'-1")
    }
    assert ET.fromstring(path.read_text()).findall(".//{*}script") == []  # noqa: S314 - our own
    table = await said(command, records=reply({"data": {"use": spoiled.text()}}))
    assert "\x1b" not in table.out


async def test_a_drawing_that_cannot_be_written_is_an_error(command: Command, tmp_path: Path) -> None:
    done = await said(command, "--svg", str(tmp_path), records=written())
    assert (done.code, done.err) == (2, f"muster report: {tmp_path}: Is a directory\n")


@cases(
    "by, since, queue, names",
    ("queues", "queue", "7d", None, ["research", "=serving"]),
    ("namespaces", "namespace", "7d", None, ["vision", "web"]),
    ("owners, some unknown", "owner", "7d", None, ["vision/RayJob/train", ""]),
    ("label values, some without", "label=team", "7d", None, ["blue", ""]),
    ("one queue", "namespace", "7d", "research", ["vision"]),
    ("a date", "queue", "2026-11-28", None, ["research", "=serving"]),
)
def test_rows_are_by(by: str, since: str, queue: str | None, names: list[str]) -> None:
    assert [row.name for row in report(by, since, queue).rows] == names


@cases(
    "since, gpu",
    ("today", "0s", 10.0),
    ("a duration, whole first day", "7h", 20.0),
    ("days", "1d", 20.0),
    ("a date", "2026-11-27", 30.0),
)
def test_whole_days_count(since: str, gpu: float) -> None:
    assert report(since=since).total.hours("held", _GPU) == pytest.approx(gpu)


def test_it_begins_with_the_records() -> None:
    """And says so; what is not after their end does not count, whatever is stored."""
    long = report(since="9999d")
    assert (long.since.isoformat(), len(long.days)) == ("2026-11-27", 3)
    spoiled = accounts()
    spoiled.add(Scope("", "q"), 0.0, HOUR, held={"cpu": 1.0})
    spoiled.add(Scope("", "q"), _NOW + 99 * DAY, _NOW + 99 * DAY + HOUR, held={"cpu": 1.0})
    assert len(Report.of(spoiled, "queue", first_day("9999d", _NOW)).days) <= 35


@cases(
    "since, words",
    ("a word", "yesterday", "neither a duration, such as 7d or 12h, nor a date"),
    ("no day", "2026-02-30", "neither a duration"),
    ("longer than time", "9999999999999999h", "neither a duration"),
    ("less than nothing", "-1d", "neither a duration"),
    ("a number", "0", "neither a duration"),
    ("tomorrow", "2026-11-30", "is in the future; in UTC it is 2026-11-29"),
)
def test_no_first_day(since: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        first_day(since, _NOW)


@cases(
    "records, words, options",
    ("no right", _FORBIDDEN, "need the right to get ConfigMap muster-history of namespace muster-system", ()),
    ("no ConfigMap", failure(404, "NotFound"), "does not exist; muster's chart creates it", ()),
    ("nothing yet", reply({"metadata": {}}), "nothing is recorded yet", ()),
    ("spoiled", reply({"data": {"use": "[]"}}), "holds no records as this version of muster reads them", ()),
    (
        "another label",
        written(),
        '"cost" is not recorded; the chart value history.labels names',
        ("--by", "label=cost"),
    ),
    (
        "another queue",
        written(),
        'nothing is recorded of a queue "reserch"; did you mean research?',
        ("-q", "reserch"),
    ),
)
async def test_why_there_is_no_report(command: Command, records: Answer, words: str, options: tuple[str, ...]) -> None:
    done = await said(command, *options, records=records)
    assert (done.code, done.out) == (2, "")
    assert words in done.err


async def test_an_installation_may_keep_no_records(command: Command) -> None:
    done = await said(command, records=written(), history="")
    assert (done.code, "history.enabled is false" in done.err) == (2, True)


async def test_a_row_is_by_something_that_there_is(command: Command) -> None:
    done = command.run("report", "--by", "colour")
    assert (done.code, '"colour" is not queue, namespace, owner or label=KEY' in done.err) == (2, True)
