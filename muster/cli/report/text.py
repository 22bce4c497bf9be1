"""A report as a table for people, and as CSV for spreadsheets."""

import csv
import io
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from muster.cli.report.figures import MEASURES, Report, Row, unit
from muster.cli.ui import age, aligned
from muster.gangs.accounts import OUTCOMES
from muster.model.texts import printable

# A spreadsheet takes a cell that begins so for a formula (https://owasp.org/www-community/attacks/CSV_Injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def name_of(row: Row) -> str:
    """The name of a row, for people."""
    return row.name or "(not recorded)"


def table_lines(report: Report) -> list[str]:
    """The table: a line for each resource, with the waits and ends of a row on its first one."""
    head = [report.by.partition("=")[2] or report.by, "hours of", *MEASURES, "wait p50", "p95", "gangs that ended"]
    rows = [line for row in (*report.rows, report.total) for line in _lines(report, row)]
    until = datetime.fromtimestamp(report.until, UTC)
    since = f"from {report.since.isoformat()} 00:00 UTC until {until:%Y-%m-%d %H:%M} UTC"
    note = "idle is the part of held in which no pod of the gang ran"
    return [f"{since}; {note}", "", *aligned([one.upper() for one in head], rows, right=range(2, 7))]


def _lines(report: Report, row: Row) -> Iterator[list[str]]:
    used = [name for name in report.resources if any(row.hours(measure, name) for measure in MEASURES)]
    waits = ["-" if one is None else age(one) for one in row.waits()]
    ends = row.ended() or "-"
    for number, name in enumerate(used or report.resources[:1]):
        hours = [_hours(row.hours(measure, name)) for measure in MEASURES]
        title = " ".join(filter(None, (name, unit(name))))
        yield [name_of(row), title, *hours, *waits, ends] if not number else ["", title, *hours, "", "", ""]


def _hours(hours: float) -> str:
    shown = f"{hours:,.1f}"
    return "<0.1" if hours and shown == "0.0" else shown


def csv_text(report: Report) -> str:
    """The rows as CSV, without their total: a spreadsheet adds them up."""
    units = {name: f"{name}_{unit(name).lower()}_hours".replace("__", "_") for name in report.resources}
    head = [
        report.by,
        *(f"{units[name]}_{measure}" for name in report.resources for measure in MEASURES),
        *("wait_p50_seconds", "wait_p95_seconds"),
        *(f"gangs_{name}" for name in OUTCOMES),
    ]
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_safe(head), *(_safe(_cells(report, row)) for row in report.rows)])
    return out.getvalue()


def _cells(report: Report, row: Row) -> list[str]:
    hours = [f"{row.hours(measure, name):.3f}" for name in report.resources for measure in MEASURES]
    waits = ["" if one is None else f"{one:.0f}" for one in row.waits()]
    return [row.name, *hours, *waits, *(str(row.sums.ends.get(name, 0)) for name in OUTCOMES)]


def _safe(cells: Sequence[str]) -> list[str]:
    """The cells, each as text where a spreadsheet would compute it, and without control characters."""
    return [f"'{printable(cell)}" if cell.startswith(_FORMULA) else printable(cell) for cell in cells]
