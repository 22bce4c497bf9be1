"""The waits of each policy as a drawing: which part of the gangs had started after how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import log10

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 320, 48, 36, 12
_COLOURS = ("#888888", "#d62728", "#9467bd", "#1f77b4", "#2ca02c", "#ff7f0e", "#17becf")
_FONT = 'font-family="sans-serif" font-size="11"'
_FIRST = 60.0
_POINTS = 200
_TIMES = {60: "1 min", 600: "10 min", 3600: "1 h", 86400: "1 d", 604800: "7 d"}


def drawing(waits: Mapping[str, Sequence[float]]) -> str:
    """An SVG of the seconds that gangs waited, by policy."""
    longest = max(10 * _FIRST, *(one for each in waits.values() for one in each))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" {_FONT}>',
        "<title>Part of the gangs that had started, by the time that they waited</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#ffffff"/>',
    ]
    for seconds, text in _TIMES.items():
        if seconds <= longest:
            x = _x(seconds, longest)
            lines.append(f'<path d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}" stroke="#dddddd"/>')
            lines.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{text}</text>')
    lines += [
        f'<text x="{_LEFT - 6}" y="{_y(percent / 100) + 4:.1f}" text-anchor="end">{percent} %</text>'
        for percent in (0, 50, 100)
    ]
    for number, (name, each) in enumerate(waits.items()):
        colour, y = _COLOURS[number % len(_COLOURS)], _HEIGHT - _BOTTOM - 14 * (len(waits) - number)
        path = "L".join(_points(sorted(each), longest))
        lines.append(f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        lines.append(f'<text x="{_WIDTH - 12}" y="{y}" text-anchor="end" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _points(ordered: Sequence[float], longest: float) -> Iterator[str]:
    step = max(len(ordered) // _POINTS, 1)
    for number in (*range(0, len(ordered), step), len(ordered) - 1):
        if number >= 0:
            yield f"{_x(ordered[number], longest):.1f} {_y((number + 1) / len(ordered)):.1f}"


def _x(seconds: float, longest: float) -> float:
    return _LEFT + (_WIDTH - _LEFT - 12) * log10(max(seconds, _FIRST) / _FIRST) / log10(longest / _FIRST)


def _y(part: float) -> float:
    return _HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * part
