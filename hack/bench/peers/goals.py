"""The goals of muster beside its peers, each with what was measured, Kueue's figure beside it, and whether it is met.

Kueue's figure is the better one of its two configurations. What is compared is the median, as it is printed.
"""

from __future__ import annotations

import operator
from statistics import median
from typing import TYPE_CHECKING

from hack.bench.peers.contenders import CONTENDERS, RAW
from hack.bench.peers.figures import ratios, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from hack.bench.peers.figures import Figures, Used
    from hack.bench.peers.measures import Halves

__all__ = ["OF_RAW", "goals"]

OF_RAW = 1.1
"""How much longer than raw patches it may take until the gates of a gang are open."""
_MUSTER = "muster"
_KUEUES = tuple(one.name for one in CONTENDERS if one.kueue)


def goals(figures: Figures, sizes: Sequence[int], ray_sizes: Sequence[int], halves: Mapping[str, Halves]) -> str:
    """A row for each goal; a dash where something was not measured."""
    rows = [
        *(_of_raw(figures, size) for size in sizes),
        *(_not_behind(figures, f"gates of {size} pods, seconds", f"opened {size}") for size in sizes),
        *(_not_behind(figures, f"RayCluster of {size} runs, seconds", f"running {size}") for size in ray_sizes),
        _not_behind(figures, "gangs a second, gates alone", "drained", least=False),
        _not_behind(figures, "gangs a second, with schedulers", "drained running", least=False),
        *_less(figures, "CPU s for 1,000 pods", 2, lambda used: 1000 * used.cpu / used.pods),
        *_less(figures, "MB at the end", 0, lambda used: used.memory),
        _none_by_half(halves),
    ]
    return table(["", "goal", "muster", "Kueue", "met"], rows)


def _of_raw(figures: Figures, size: int) -> list[str]:
    def of(contender: str) -> float | None:
        name = f"opened {size}"
        return _middle(ratios(figures.of(name, contender), figures.of(name, RAW.name)))

    return _row(f"gates of {size} pods, of raw patches", f"at most {OF_RAW}", of(_MUSTER), _best(of, min), limit=OF_RAW)


def _not_behind(figures: Figures, title: str, measure: str, *, least: bool = True) -> list[str]:
    def of(contender: str) -> float | None:
        return _middle(figures.of(measure, contender).values())

    better, digits, best = (operator.le, 2, min) if least else (operator.ge, 1, max)
    return _row(title, "not behind Kueue", of(_MUSTER), _best(of, best), better=better, digits=digits)


def _less(figures: Figures, title: str, digits: int, amount: Callable[[Used], float]) -> list[list[str]]:
    def of(contender: str) -> float | None:
        each = [amount(used) for used in figures.summed(contender)]
        return sum(each) if each else None

    ours = {used.process: amount(used) for used in figures.summed(_MUSTER)}
    alone, kueue = ours.get("controller"), _best(of, min)
    return [
        _row(f"{title}, {which}", "less than Kueue", number, kueue, better=operator.lt, digits=digits)
        for which, number in (("controller alone", alone), ("both processes", of(_MUSTER)))
    ]


def _none_by_half(halves: Mapping[str, Halves]) -> list[str]:
    def of(contender: str) -> float | None:
        return halves[contender].half if contender in halves else None

    return _row("half-started gangs", "none", of(_MUSTER), _best(of, min), limit=0, digits=0)


def _middle(numbers: Iterable[float]) -> float | None:
    known = [*numbers]
    return median(known) if known else None


def _best(of: Callable[[str], float | None], best: Callable[[list[float]], float]) -> float | None:
    known = [number for one in _KUEUES if (number := of(one)) is not None]
    return best(known) if known else None


def _row(
    title: str,
    goal: str,
    ours: float | None,
    kueue: float | None,
    *,
    limit: float | None = None,
    better: Callable[[float, float], bool] = operator.le,
    digits: int = 2,
) -> list[str]:
    """Without a limit Kueue's figure is one."""
    bound = kueue if limit is None else limit
    met = "-"
    if ours is not None and bound is not None:
        met = "yes" if better(round(ours, digits), round(bound, digits)) else "no"
    said = ("-" if number is None else f"{number:.{digits}f}" for number in (ours, kueue))
    return [title, goal, *said, met]
