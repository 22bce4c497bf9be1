"""The results of a replay: a row of numbers for each policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from muster.cli.columns import aligned

if TYPE_CHECKING:
    from muster.cli.replay.engine import Replayed
    from muster.cli.replay.load import Load


_HEAD = ("POLICY", "MEAN", "P95", "MAX", "SLOWDOWN", "LARGE MEAN", "P95", "MAX", "USED")
_EXPECTED = ("EXPECTED STARTS", "ASKED", "WITHIN X2", "ERROR", "BIAS", "LATER", "WAIT")
_TWICE = 2.0
# A shorter gang counts as one of this many seconds, so that a slowdown says something of longer ones too.
_SHORTEST = 60.0


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
    """How right expected starts were, with medians in minutes; a bias above 0 is a start later than expected."""
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
    """How right the forecasts at submission were: `error` and `bias` (later is more than 0) in seconds."""
    asked = [(one.expected - one.gang.at, one.waited) for one in replayed.started if one.expected is not None]
    known = [(said, waited) for said, waited in asked if said < inf]
    within = sum(waited / _TWICE <= said <= waited * _TWICE for said, waited in known)
    errors = sorted(waited - said for said, waited in known)
    return {
        "asked": len(asked),
        "unknown": len(asked) - len(known),
        "withinTwice": within / len(asked) if asked else None,
        "error": percentile(sorted(map(abs, errors)), 50),
        "bias": percentile(errors, 50),
        "later": sum(error > 0 for error in errors) / len(errors) if errors else None,
        "wait": percentile(sorted(waited for _, waited in asked), 50),
    }
