"""The results of a replay: a row of numbers for each policy, and a drawing of the waits."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import inf, log10
from typing import Any

from muster.cli.replay.engine import Replayed
from muster.cli.replay.load import Load
from muster.cli.ui import aligned

_HEAD = ("POLICY", "MEAN", "P95", "MAX", "SLOWDOWN", "LARGE MEAN", "P95", "MAX", "USED")
_EXPECTED = ("EXPECTED STARTS", "ASKED", "WITHIN X2", "ERROR", "BIAS", "LATER", "WAIT")
_TWICE = 2.0
# A shorter gang counts as one of this many seconds, so that short gangs do not dominate the slowdown.
_SHORTEST = 60.0
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 320, 48, 36, 12
_COLOURS = ("#888888", "#d62728", "#9467bd", "#1f77b4", "#2ca02c", "#ff7f0e", "#17becf")
_FONT = 'font-family="sans-serif" font-size="11"'
_FIRST = 60.0
_POINTS = 200
_TIMES = {60: "1 min", 600: "10 min", 3600: "1 h", 86400: "1 d", 604800: "7 d"}


def figures(load: Load, replayed: Replayed) -> dict[str, Any]:
    """The numbers of one policy: waits in seconds, the slowdown, and the part in use while any gang waited."""
    large = [one.waited for one in replayed.started if load.is_large(one.gang)]
    slowdowns = [(one.waited + one.gang.runs) / max(one.gang.runs, _SHORTEST) for one in replayed.started]
    return {
        "wait": waits([one.waited for one in replayed.started]),
        "slowdown": _mean([max(one, 1.0) for one in slowdowns]),
        "large": {"gangs": len(large), **waits(large)},
        "used": replayed.busy,
        "neverStarted": len(replayed.never),
    }


def waits(seconds: Sequence[float]) -> dict[str, float | None]:
    """The mean, the 95th percentile and the longest; None where no gang waited."""
    ordered = sorted(seconds)
    return {"mean": _mean(ordered), "p95": percentile(ordered, 95), "max": ordered[-1] if ordered else None}


def percentile(ordered: Sequence[float], percent: float) -> float | None:
    """The least value that so many per cent do not exceed; None where there is none."""
    return ordered[min(int(percent / 100 * len(ordered)), len(ordered) - 1)] if ordered else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def table_lines(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The table, with waits in minutes."""
    cells = [
        (
            policy,
            *(_minutes(row["wait"][one]) for one in ("mean", "p95", "max")),
            _rounded(row["slowdown"]),
            *(_minutes(row["large"][one]) for one in ("mean", "p95", "max")),
            f"{100 * row['used']:.1f} %",
        )
        for policy, row in rows.items()
    ]
    return aligned(_HEAD, cells, right=range(1, len(_HEAD)))


def expected_lines(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The errors of expected starts, with medians in minutes; a bias above 0 is a start later than expected."""
    cells = [
        (
            policy,
            str((one := row["expected"])["asked"]),
            _percent(one["withinTwice"]),
            *(_minutes(one[name]) for name in ("error", "bias")),
            _percent(one["later"]),
            _minutes(one["wait"]),
        )
        for policy, row in rows.items()
    ]
    return aligned(_EXPECTED, cells, right=range(1, len(_EXPECTED)))


def _percent(part: float | None) -> str:
    return "-" if part is None else f"{100 * part:.0f} %"


def _minutes(seconds: float | None) -> str:
    return _rounded(None if seconds is None else seconds / 60)


def _rounded(number: float | None) -> str:
    return "-" if number is None else f"{number:.0f}" if number >= 10 else f"{number:.1f}"  # noqa: PLR2004


def forecasts(replayed: Replayed) -> dict[str, Any]:
    """The errors of the forecasts at submission: `error` and `bias` (later is more than 0) in seconds."""
    asked = [(one.expected - one.gang.at, one.waited) for one in replayed.started if one.expected is not None]
    known = [(expected, waited) for expected, waited in asked if expected < inf]
    within = sum(waited / _TWICE <= expected <= waited * _TWICE for expected, waited in known)
    errors = sorted(waited - expected for expected, waited in known)
    return {
        "asked": len(asked),
        "unknown": len(asked) - len(known),
        "withinTwice": within / len(asked) if asked else None,
        "error": percentile(sorted(map(abs, errors)), 50),
        "bias": percentile(errors, 50),
        "later": sum(error > 0 for error in errors) / len(errors) if errors else None,
        "wait": percentile(sorted(waited for _, waited in asked), 50),
    }


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
