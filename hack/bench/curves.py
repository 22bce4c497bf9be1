"""Draws curves of a bench as an SVG: a panel with axes from zero, a line for each name, its name at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["curves"]

_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 640, 280, 56, 40, 150, 48
_STEPS = 4
_COLOURS = ("#1f5fa8", "#b5541c", "#2e7d32", "#6a3d9a")


def curves(title: str, across: str, lines: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """The SVG; `title` says what is drawn upwards, `across` what to the right; each line has its points in order."""
    most_x = max(x for points in lines.values() for x, _ in points) or 1.0
    most_y = max(y for points in lines.values() for _, y in points) or 1.0

    def place(x: float, y: float) -> tuple[int, int]:
        return _LEFT + round(_WIDTH * x / most_x), _TOP + _HEIGHT - round(_HEIGHT * y / most_y)

    width, height = _LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BOTTOM
    right, bottom = place(most_x, 0)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="{_TOP - 14}">{title}</text>',
        f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#333"/>',
        f'<text x="{(_LEFT + right) // 2}" y="{bottom + 40}" text-anchor="middle">{across}</text>',
    ]
    for step in range(_STEPS + 1):
        part = step / _STEPS
        x, y = place(part * most_x, part * most_y)
        drawn.append(f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{part * most_y:.3g}</text>')
        drawn.append(f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{part * most_x:.3g}</text>')
    free = bottom
    for colour, (name, points) in sorted(zip(_COLOURS, lines.items(), strict=False), key=lambda one: one[1][1][-1][1]):
        placed = [place(x, y) for x, y in points]
        path = " ".join(f"{x},{y}" for x, y in placed)
        drawn.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="{path}"/>')
        # Names of lines that end together stand one above the other.
        free = min(free, placed[-1][1] + 4)
        drawn.append(f'<text x="{right + 8}" y="{free}" fill="{colour}">{name}</text>')
        free -= 18
    return "\n".join([*drawn, "</svg>", ""])
