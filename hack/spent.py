"""The table at the end of `hack.check`: where the processor time of each part went, and how many starts it took."""

import os
from collections.abc import Iterable, Sequence

from hack.part import Part
from hack.testbed.costs import START
from hack.testbed.parts import PARTS

_HEAD = ("part", "wall s", "CPU s", "tests", "etcd", "apiserver", "kubernetes", "operators", "muster", "starts")


def table(parts: Sequence[Part], seconds: float, others: float) -> list[str]:
    """Return its lines; `tests` is pytest with the tools it runs, and what of a program nobody noted.

    The last line tells how much of all processors the run had, and how much others took: `others`, a share.
    """
    rows = [_row(part) for part in parts]
    total = [sum(column) for column in zip(*(numbers for _, numbers in rows), strict=True)]
    lines = [_line(_HEAD), *(_line((name, *(f"{one:.0f}" for one in numbers))) for name, numbers in rows)]
    cores = os.cpu_count() or 1
    cpu = sum(part.cpu for part in parts)
    share = cpu / (seconds * cores)
    lines.append(_line(("all", *(f"{one:.0f}" for one in [seconds, *total[1:]]))))
    lines.append(f"{cpu:.0f} CPU s in {seconds:.0f} s: {share:.0%} of {cores} processors; others took {others:.0%}")
    return lines


def _row(part: Part) -> tuple[str, list[float]]:
    programs = dict.fromkeys(_HEAD[4:-1], 0.0)
    for name, seconds in part.spent:
        if name != START:
            programs[_column(name)] += seconds
    starts = sum(name == START for name, _ in part.spent)
    return part.name, [part.seconds, part.cpu, part.cpu - sum(programs.values()), *programs.values(), starts]


def _column(name: str) -> str:
    if name in ("etcd", "kube-apiserver"):
        return name.removeprefix("kube-")
    if name not in PARTS:
        return "muster"
    return "operators" if PARTS[name].addon not in ("", "node") else "kubernetes"


def _line(cells: Iterable[str]) -> str:
    first, *others = cells
    return f"{first:<11}" + "".join(f"{one:>11}" for one in others)
