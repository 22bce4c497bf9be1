"""The recording of `make demo` that README.md shows: `python -m hack.tour` runs the demo, and draws what it printed.

The drawing is an SVG that plays by itself, without scripts and fonts of other hosts: each line appears when it was
printed. Waits are shortened to at most `LONGEST` seconds, for people; who prefers no motion sees the end.
"""

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

DRAWING = Path("docs/images/tour.svg")
LONGEST = 2.0  # seconds between two lines
_COMMAND = 1.2  # seconds for which a command stands alone, to be read
_END = 6.0  # seconds for which the last lines stay before it begins again
_ROWS, _COLUMNS = 24, 100
_ROW, _COLUMN, _EDGE = 18, 8.4, 16  # pixels
_FROM = "=== KubeRay's own sample"

_STYLE = """
text { font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: #d6deeb; white-space: pre; }
.command { fill: #ffd580; font-weight: bold; }
.story { fill: #82d1ff; }
"""


@dataclass(frozen=True)
class Line:
    """A line that the demo printed, and so many seconds after its start."""

    after: float
    text: str


def recorded(argv: Sequence[str]) -> list[Line]:
    """Run a program and note its lines as they come. Raises CalledProcessError when it does not end well."""
    started, lines = time.monotonic(), list[Line]()
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None  # noqa: S101 - asked for
        lines.extend(Line(time.monotonic() - started, line.rstrip("\n")) for line in program.stdout)
    if program.returncode:
        raise subprocess.CalledProcessError(program.returncode, list(argv), "\n".join(line.text for line in lines))
    return lines


def begun(lines: Iterable[Line]) -> list[Line]:
    """The lines from KubeRay's sample on, without the summary: what starts and ends a testbed is left out."""
    found: list[Line] = []
    for line in lines:
        if found and line.text.startswith(("=== Clean up", "Summary, ")):
            break
        if found or line.text.startswith(_FROM):
            found.append(line)
    return found


def drawn(lines: Sequence[Line]) -> str:
    """The recording as SVG. Long lines are wrapped; every line of the terminal is a text element of its own."""
    rows, at, before = [], 0.0, lines[0].after if lines else 0.0
    for line in lines:
        at += min(max(line.after - before, 0.05), LONGEST)
        before = line.after
        rows += [(at, part, _class(line.text), bool(place)) for place, part in enumerate(_wrapped(line.text))]
        if line.text.startswith("$ "):
            at += _COMMAND
    whole = at + _END
    height, width = _ROWS * _ROW + 2 * _EDGE, round(_COLUMNS * _COLUMN) + 2 * _EDGE
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"',
            ' aria-labelledby="title">',
            '<title id="title">What make demo prints</title>',
            f"<style>{_STYLE}{''.join(_moves(rows, whole))}</style>",
            f'<rect width="{width}" height="{height}" rx="8" fill="#1b2330"/>',
            f'<svg x="{_EDGE}" y="{_EDGE}" width="{width - 2 * _EDGE}" height="{_ROWS * _ROW}"><g class="all">',
            *(
                f'<text y="{_ROW * number + 13}" class="{name} r{number}" data-goes-on="{str(goes_on).lower()}">'
                f"{escape(part)}</text>"
                for number, (_, part, name, goes_on) in enumerate(rows)
            ),
            "</g></svg></svg>",
            "",
        ]
    )


def said(drawing: str) -> str:
    """What a drawing shows, as the demo printed it: the lines that were wrapped are whole again."""
    found: list[str] = []
    for goes_on, text in re.findall(r'<text [^>]*data-goes-on="(\w+)">([^<]*)</text>', drawing):
        plain = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        if goes_on == "true":
            found[-1] += plain
        else:
            found.append(plain)
    return "\n".join(found)


def _class(text: str) -> str:
    return "command" if text.startswith("$ ") else "story" if text.startswith(("=== ", "(")) else "output"


def _wrapped(text: str) -> list[str]:
    return [text[begin : begin + _COLUMNS] for begin in range(0, len(text), _COLUMNS)] or [""]


def _moves(rows: Sequence[tuple[float, str, str, bool]], whole: float) -> Iterable[str]:
    """The animation: each line appears in its time, and the terminal scrolls when it is full."""
    # Without motion: all lines are there, and the last ones are seen.
    last = -max(len(rows) - _ROWS, 0) * _ROW
    yield f".all {{ transform: translateY({last}px); }}\n@media (prefers-reduced-motion: no-preference) {{\n"
    scrolls = ["0% { transform: translateY(0); }"]
    for number, (at, *_) in enumerate(rows):
        share = f"{100 * at / whole:.3f}%"
        yield f".r{number} {{ animation: l{number} {whole:.2f}s step-end infinite; }}\n"
        yield f"@keyframes l{number} {{ 0% {{ opacity: 0; }} {share} {{ opacity: 1; }} }}\n"
        if number >= _ROWS:
            scrolls.append(f"{share} {{ transform: translateY({-(number - _ROWS + 1) * _ROW}px); }}")
    yield f".all {{ animation: all {whole:.2f}s step-end infinite; }}\n@keyframes all {{ {' '.join(scrolls)} }}\n}}\n"


def main() -> None:
    """Run the demo and write the drawing; exits 1 when the demo does not end well."""
    argparse.ArgumentParser(prog="hack.tour", description=__doc__).parse_args()
    try:
        lines = recorded([sys.executable, "-u", "-m", "hack.demo"])
    except subprocess.CalledProcessError as error:
        sys.exit(f"the demo failed: {error.output}")
    DRAWING.write_text(drawn(begun(lines)))
    print(f"{DRAWING}: {len(begun(lines))} lines")


if __name__ == "__main__":
    main()
