"""The picture of `make demo` that README.md shows: `python -m hack.tour` runs the demo, and draws what it printed."""

import html
import io
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Sequence
from itertools import dropwhile, takewhile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

DRAWING = Path("docs/images/tour.svg")
_COLUMNS, _INDENT = 100, " " * 4
# rich's own format loads a font from another host.
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
_STYLES = {"$ ": "bold yellow", "=== ": "cyan", "(": "cyan"}


def recorded(argv: Sequence[str]) -> list[str]:
    """Run a program and return its lines. Raises CalledProcessError when it does not end well."""
    return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()


def story(lines: Iterable[str]) -> list[str]:
    """The lines from KubeRay's sample on: what starts and ends a testbed is left out, and the summary."""
    shown = dropwhile(lambda line: not line.startswith("=== KubeRay's own sample"), lines)
    return list(takewhile(lambda line: not line.startswith(("=== Clean up", "Summary, ")), shown))


def drawn(lines: Iterable[str]) -> str:
    """The lines as SVG; the rest of a long one is indented."""
    console = Console(record=True, width=_COLUMNS, file=io.StringIO())
    for line in lines:
        style = next((style for beginning, style in _STYLES.items() if line.startswith(beginning)), "")
        rows = textwrap.wrap(line, _COLUMNS, subsequent_indent=_INDENT, break_on_hyphens=False)
        console.print(Text("\n".join(rows), style))
    return console.export_svg(title="make demo", code_format=_FORMAT)


def read(drawing: str) -> str:
    """The lines of a drawing that are not empty, as the demo printed them."""
    rows: dict[str, str] = {}
    for y, text in re.findall(r'<text class="[^"]*-r\d+" [^>]*y="([\d.]+)"[^>]*>([^<]*)</text>', drawing):
        rows[y] = rows.get(y, "") + html.unescape(text).replace("\xa0", " ")
    lines = "\n".join(row.rstrip() for row in rows.values() if row.strip())
    return lines.replace(f"\n{_INDENT}", " ")


def main() -> None:
    """Run the demo and write the drawing; exit with 1 when the demo does not end well."""
    try:
        lines = recorded([sys.executable, "-u", "-m", "hack.demo"])
    except subprocess.CalledProcessError as error:
        sys.exit(f"the demo failed: {error.output}")
    DRAWING.write_text(drawn(story(lines)))
    print(f"{DRAWING}: {len(story(lines))} lines")


if __name__ == "__main__":
    main()
