"""What was measured, and how it is summed up: medians with their ranges, and ratios within a round."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Figures", "Used", "ratios", "spread", "table"]


class Used(NamedTuple):
    """What one process used for so many pods: CPU seconds, and MB of memory, at the end and at the highest."""

    process: str
    pods: int
    cpu: float
    memory: float
    highest: float


@dataclass(frozen=True, slots=True)
class Figures:
    """All numbers of a run: by measure and contender, one for each round in which it was taken."""

    rounds: Mapping[tuple[str, str], dict[int, float]]
    used: list[tuple[str, Used]]

    @classmethod
    def empty(cls) -> Figures:
        """No numbers yet."""
        return cls(defaultdict(dict), [])

    def add(self, measure: str, contender: str, turn: int, number: float) -> None:
        """Keep a number of a round."""
        self.rounds[measure, contender][turn] = number

    def of(self, measure: str, contender: str) -> dict[int, float]:
        """The numbers of a contender by round, none where it was not measured."""
        return self.rounds.get((measure, contender), {})

    def summed(self, contender: str) -> list[Used]:
        """What each process of a contender used in all rounds: CPU summed, the last memory, the highest of all."""
        processes: dict[str, list[Used]] = defaultdict(list)
        for of, used in self.used:
            if of == contender:
                processes[used.process].append(used)
        return [
            Used(
                name,
                sum(one.pods for one in each),
                sum(one.cpu for one in each),
                each[-1].memory,
                max(one.highest for one in each),
            )
            for name, each in processes.items()
        ]


def ratios(ours: Mapping[int, float], others: Mapping[int, float]) -> list[float]:
    """Ours by the other's number of the same round, for the rounds that have both."""
    return [ours[turn] / others[turn] for turn in sorted(ours) if others.get(turn)]


def spread(numbers: Iterable[float], digits: int = 2) -> str:
    """The median, and the range where there is one: `1.20 (1.10-1.40)`; a dash for no numbers."""
    known = sorted(numbers)
    if not known:
        return "-"
    middle = f"{median(known):.{digits}f}"
    return middle if len(known) == 1 else f"{middle} ({known[0]:.{digits}f}-{known[-1]:.{digits}f})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of text: the first column to the left, the others to the right, blanks at no line's end."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    texts = (
        "  ".join(
            cell.rjust(width) if at else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
    return "\n".join(text.rstrip() for text in texts)
