"""A drawing of a report: what each row held of each resource by day, above each other, as SVG."""

from collections.abc import Iterator
from html import escape

from muster.cli.page.charts import HEIGHT, stacked
from muster.cli.report.figures import Report, hours_of, in_hours
from muster.cli.report.text import name_of
from muster.model.texts import printable

_MOST = 10
_REST = "all others"
# Colours that differ for colour-blind readers, too, in the order of the rows; the last is that of all others.
_COLOURS = (
    *("#cc6677", "#332288", "#ddcc77", "#117733", "#88ccee"),
    *("#882255", "#44aa99", "#999933", "#aa4499", "#555555", "#bbbbbb"),
)
_WIDTH, _EDGE, _HEAD, _PANEL, _HIGH, _LINE = 760, 16, 32, 170, 110, 18
_DRAWN = _WIDTH - 2 * _EDGE


def drawing(report: Report) -> str:
    """The SVG: a panel for each resource that was held, and the names below."""
    names = [name_of(row) for row in report.rows[:_MOST]] + [_REST] * (len(report.rows) > _MOST)
    used = [name for name in report.resources if report.total.sums.held.get(name)]
    legend = _HEAD + _EDGE + _PANEL * len(used)
    height = legend + _LINE * len(names)
    title = f"Use by {report.by} and day, {report.days[0]} to {report.days[-1]} (UTC)"
    shares = "; ".join(
        f"{name_of(row)}: " + ", ".join(f"{row.hours('held', one):,.0f} {hours_of(one)}" for one in used)
        for row in report.rows[:_MOST]
    )
    about = 'role="img" aria-labelledby="title desc" font-family="sans-serif" font-size="12"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {about}>',
        f'<title id="title">{escape(title)}</title>',
        f'<desc id="desc">{escape(printable(shares))}</desc>',
        f'<rect width="{_WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{_EDGE}" y="{_EDGE + 8}" font-size="15">{escape(title)}</text>',
    ]
    for number, resource in enumerate(used):
        lines += _panel(report, resource, _HEAD + _EDGE + number * _PANEL)
    for number, name in enumerate(names):
        y = legend + number * _LINE
        lines.append(f'<rect x="{_EDGE}" y="{y - 10}" width="12" height="12" fill="{_COLOURS[number]}"/>')
        lines.append(f'<text x="{_EDGE + 18}" y="{y}">{escape(printable(name))}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _panel(report: Report, resource: str, y: int) -> Iterator[str]:
    days = report.days
    rows = [[row.by_day.get(day, {}).get(resource, 0.0) for day in days] for row in report.rows]
    drawn = rows[:_MOST] + ([[sum(of_day) for of_day in zip(*rows[_MOST:], strict=True)]] if rows[_MOST:] else [])
    most = in_hours(max(sum(of_day) for of_day in zip(*rows, strict=True)), resource)
    yield f'<text x="{_EDGE}" y="{y}">{escape(printable(hours_of(resource)))} a day, at most {most:,.1f}</text>'
    yield (
        f'<svg x="{_EDGE}" y="{y + 8}" width="{_DRAWN}" height="{_HIGH}" viewBox="0 1 {len(days)} {HEIGHT - 2}"'
        ' preserveAspectRatio="none">'
    )
    for number, path in reversed(list(enumerate(stacked(drawn)))):
        yield f'<path d="{path}" fill="{_COLOURS[number]}"/>'
    yield "</svg>"
    low = y + 8 + _HIGH + 14
    yield f'<text x="{_EDGE}" y="{low}">{days[0]}</text>'
    if len(days) > 1:
        yield f'<text x="{_EDGE + _DRAWN}" y="{low}" text-anchor="end">{days[-1]}</text>'
