"""Shared code of the benchmarks: their options, the CPU time of something, and one way to print."""

import argparse
import time
from collections.abc import Callable, Sequence

_TITLE, _COLUMN = 50, 10


def options(argv: Sequence[str], description: str | None, **defaults: Sequence[int] | float) -> argparse.Namespace:
    """Parse an option for each default; a list of numbers is given with commas."""
    parser = argparse.ArgumentParser(
        prog="python -m hack.bench", description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in defaults.items():
        kind: Callable[[str], object] = type(default) if isinstance(default, (int, float)) else _numbers
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"by default {default}")
    return parser.parse_args(argv)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def milliseconds(work: Callable[[], object]) -> float:
    """CPU time of this process for the work."""
    began = time.process_time()
    work()
    return 1000 * (time.process_time() - began)


class Table:
    """Prints each row when it is known."""

    def __init__(self, title: str, *columns: str) -> None:
        """Print the head."""
        self._widths = [max(len(column), _COLUMN) for column in columns]
        self.row(title, *columns)

    def row(self, title: str, *figures: float | str) -> None:
        """Print a title and a figure for each column."""
        cells = [f"{_text(figure):>{width}}" for figure, width in zip(figures, self._widths, strict=True)]
        print(f"{title:<{_TITLE}}" + "  ".join(cells), flush=True)


def _text(figure: float | str) -> str:
    if isinstance(figure, str):
        return figure
    if isinstance(figure, int):
        return f"{figure:,}"
    return f"{figure:.3f}" if figure < 1 else f"{figure:.2f}" if figure < 100 else f"{figure:,.0f}"  # noqa: PLR2004
