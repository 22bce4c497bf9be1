"""Aligned columns for people."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from muster.model.texts import printable


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Collection[int] = ()) -> list[str]:
    """The rows below their header, each column as wide as its longest cell; columns in `right` are right-aligned."""
    table = [list(head), *([printable(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
