"""The report of a run: tables of text, and how they get into `docs/comparison.md`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hack.bench.peers.contenders import CONTENDERS, RAW
from hack.bench.peers.figures import Figures, ratios, spread, table
from hack.bench.peers.goals import goals

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hack.bench.peers.contenders import Contender
    from hack.bench.peers.measures import Halves

__all__ = ["blocks", "inserted"]


def blocks(
    figures: Figures, sizes: Sequence[int], ray_sizes: Sequence[int], halves: Mapping[str, Halves]
) -> dict[str, str]:
    """The tables by name; each number is the median of all rounds, with the least and the greatest."""
    return {
        "opened": _by_size(figures, "opened", [one for one in CONTENDERS if one.gate and one.plain], sizes, raw=True),
        "created": _by_size(figures, "created", [one for one in CONTENDERS if one.gate and one.plain], sizes),
        "running": _by_size(figures, "running", [one for one in CONTENDERS if one.rays], ray_sizes),
        "by half": _by_size(figures, "by half", [one for one in CONTENDERS if one.rays], ray_sizes),
        "drained": _drained(figures),
        "used": _used(figures),
        "halves": _halves(halves),
        "goals": goals(figures, sizes, ray_sizes, halves),
    }


def inserted(page: str, said: Mapping[str, str]) -> str:
    """The page with each block between its marks, `<!-- peers: NAME -->` and the end of the code that follows.

    Raises ValueError when the page has no place for a block.
    """
    for name, text in said.items():
        place = re.compile(
            rf"(<!-- peers: {re.escape(name)} -->\n```(?:text|console)\n).*?(^```$)", re.DOTALL | re.MULTILINE
        )
        page, found = place.subn(lambda match, text=text: f"{match[1]}{text}\n{match[2]}", page)  # type: ignore[misc]
        if found != 1:
            raise ValueError(f"the page has {found} places for {name!r}")
    return page


def _by_size(
    figures: Figures, measure: str, contenders: Sequence[Contender], sizes: Sequence[int], *, raw: bool = False
) -> str:
    """Seconds by number of pods, and the ratio to raw patches of the same rounds."""
    head = ["seconds"]
    for size in sizes:
        head += [f"{size} pods", "of raw"] if raw else [f"{size} pods"]
    rows = []
    for one in contenders:
        row = [one.title]
        for size in sizes:
            name = f"{measure} {size}"
            ours = figures.of(name, one.name)
            row.append(spread(ours.values()))
            if raw:
                row.append(spread(ratios(ours, figures.of(name, RAW.name))))
        rows.append(row)
    return table(head, rows)


def _drained(figures: Figures) -> str:
    rows = [
        [
            one.title,
            spread(figures.of("drained", one.name).values(), 1),
            spread(ratios(figures.of("drained", one.name), figures.of("drained", RAW.name))),
            spread(figures.of("drained running", one.name).values(), 1),
        ]
        for one in CONTENDERS
        if one.plain
    ]
    return table(["gangs a second", "gates alone", "of raw", "with schedulers"], rows)


def _used(figures: Figures) -> str:
    rows = []
    for one in CONTENDERS:
        each = figures.summed(one.name)
        rows += [
            [f"{one.title}: {used.process}", *_amounts(used.cpu, used.pods, used.memory, used.highest)] for used in each
        ]
        if len(each) > 1:
            sums = (sum(used.memory for used in each), sum(used.highest for used in each))
            rows.append([f"{one.title}: both", *_amounts(sum(used.cpu for used in each), each[0].pods, *sums)])
    return table(["", "pods", "CPU s for 1,000", "MB at the end", "MB at the highest"], rows)


def _amounts(cpu: float, pods: int, memory: float, highest: float) -> list[str]:
    return [f"{pods:,}", f"{1000 * cpu / pods:.2f}", f"{memory:.0f}", f"{highest:.0f}"]


def _halves(halves: Mapping[str, Halves]) -> str:
    rows = [
        [
            one.title,
            str(found.asked),
            str(found.whole),
            str(found.half),
            str(found.held),
            f"{found.longest:.1f}",
        ]
        for one in CONTENDERS
        if (found := halves.get(one.name))
    ]
    return table(["", "gangs", "run whole", "half-started", "nodes held by half", "longest, seconds"], rows)
