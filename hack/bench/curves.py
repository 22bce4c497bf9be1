"""Draws curves of a bench as an SVG: panels with axes from zero, a line for each name, its name at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Panel", "curves", "panels"]

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 280, 56, 40, 150, 48
_STEPS = 4
_COLOURS = ("#1f5fa8", "#b5541c", "#2e7d32", "#6a3d9a")


class Panel(NamedTuple):
    """`title` says what is drawn upwards, `across` what to the right; each line has its points in order."""

    title: str
    across: str
    lines: Mapping[str, Sequence[tuple[float, float]]]


def curves(title: str, across: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """The SVG of one panel."""
    return panels([Panel(title, across, lines)])


def panels(drawn: Sequence[Panel]) -> str:
    """The SVG of panels, one below the other. Its ground is white, so that it is read on a dark page as well."""
    width, height = _LEFT + _WIDTH + _RIGHT, len(drawn) * (_TOP + _HEIGHT + _BOTTOM)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for number, panel in enumerate(drawn):
        lines += _panel(panel, number * (_TOP + _HEIGHT + _BOTTOM) + _TOP)
    return "\n".join([*lines, "</svg>", ""])


def _panel(panel: Panel, top: int) -> list[str]:
    most_x = max((x for points in panel.lines.values() for x, _ in points), default=0.0) or 1.0
    most_y = max((y for points in panel.lines.values() for _, y in points), default=0.0) or 1.0

    def place(x: float, y: float) -> tuple[int, int]:
        return _LEFT + round(_WIDTH * x / most_x), top + _HEIGHT - round(_HEIGHT * y / most_y)

    right, bottom = place(most_x, 0)
    drawn = [
        f'<text x="{_LEFT}" y="{top - 14}">{panel.title}</text>',
        f'<path d="M{_LEFT} {top}V{bottom}H{right}" fill="none" stroke="#333"/>',
        f'<text x="{(_LEFT + right) // 2}" y="{bottom + 40}" text-anchor="middle">{panel.across}</text>',
    ]
    for step in range(_STEPS + 1):
        part = step / _STEPS
        x, y = place(part * most_x, part * most_y)
        drawn.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{_number(part * most_y)}</text>')
        drawn.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{_number(part * most_x)}</text>')
    known = ((name, points) for name, points in panel.lines.items() if points)
    free = bottom
    for colour, (name, points) in sorted(zip(_COLOURS, known, strict=False), key=lambda one: one[1][1][-1][1]):
        placed = [place(x, y) for x, y in points]
        path = " ".join(f"{x},{y}" for x, y in placed)
        drawn.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>')
        if len(placed) == 1:
            drawn.append(f'<circle cx="{placed[0][0]}" cy="{placed[0][1]}" r="3" fill="{colour}"/>')
        # Names of lines that end together stand one above the other.
        free = min(free, placed[-1][1] + 4)
        drawn.append(f'<text x="{right + 8}" y="{free}" fill="{colour}">{name}</text>')
        free -= 18
    return drawn


def _number(value: float) -> str:
    """Three digits, without an exponent and no longer than there is place: 15000 gangs are no 1.5e+04."""
    if value >= 1000:  # noqa: PLR2004
        return f"{value:.0f}"
    return f"{value:.3g}" if value >= 0.1 else f"{value:.2g}"  # noqa: PLR2004
