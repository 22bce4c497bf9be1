"""Numbers of docs/page.md."""

from __future__ import annotations

from tests.support.pages.numbers import Elsewhere, Row

__all__ = ["ELSEWHERE", "ROWS"]

_PAGE = "docs/page.md"

ROWS = (
    Row(_PAGE, "A table has «100» rows on a page", ("muster.cli.page.board:ROWS",)),
    Row(_PAGE, "The last «200» moments are shown", ("muster.cli.page.gang:MOMENTS",)),
    Row(_PAGE, "values of each «half minute» for as long", ("muster.cli.page.samples:SLOT",)),
    Row(_PAGE, "every «30 seconds» at most and", ("muster.cli.page.state:_FORECASTS",)),
    Row(_PAGE, "and for «5 seconds» of CPU at most", ("muster.cli.page.state:_LONGEST_FORECAST",)),
    Row(_PAGE, "no more than «a tenth» of its time", ("muster.cli.page.state:_PART",), lambda part: 1 / part),
    Row(_PAGE, "by itself, every «two seconds» at most", ("muster.cli.page.state:_PAUSE",)),
    Row(
        _PAGE,
        "tries again, after «half a minute» at the latest",
        (r"text:muster/cli/page/static/page.js /LONGEST_RETRY = (\d+)/",),
        lambda milliseconds: milliseconds / 1000,
    ),
    Row(_PAGE, "Up to «32» pages may be open", ("muster.cli.page.live:MOST",)),
)
ELSEWHERE = (
    Elsewhere(_PAGE, "keeps events for «an hour» unless", "kube-apiserver: --event-ttl"),
    Elsewhere(_PAGE, "takes «two seconds» of a core", "measured: `ledger_snapshot` of 5,000 gangs of three pods"),
    Elsewhere(_PAGE, "up to «twenty seconds» behind", "ten times the two seconds that one board takes"),
)
