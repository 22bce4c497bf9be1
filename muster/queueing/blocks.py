"""Sorted entries in blocks, each with a summary: where that answers a question the block is passed over as one."""

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

_Key = TypeVar("_Key", bound=tuple[Any, ...])
_Value = TypeVar("_Value")
_Summary = TypeVar("_Summary")

# Entries of a block at most: with 16,000 entries, to look at these one by one costs as much as to look at all blocks.
_MOST = 128


class Block(Generic[_Key, _Value, _Summary]):
    """Entries that follow each other, at least one."""

    __slots__ = ("keys", "summary", "values")

    def __init__(self, keys: list[_Key], values: list[_Value]) -> None:
        self.keys = keys
        self.values = values
        self.summary: _Summary | None = None


class Blocks(ABC, Generic[_Key, _Value, _Summary]):
    """Entries by their keys, in order."""

    def __init__(self, entries: Iterable[tuple[_Key, _Value]] = ()) -> None:
        """With all of these in it, whatever their order."""
        there, half = sorted(entries), _MOST // 2
        self.blocks: list[Block[_Key, _Value, _Summary]] = []
        for part in (there[at : at + half] for at in range(0, len(there), half)):
            self.blocks.append(Block([key for key, _ in part], [value for _, value in part]))

    @abstractmethod
    def summarize(self, values: Sequence[_Value]) -> _Summary:
        """The summary of the values of a block."""

    def changed(self, where: int) -> None:
        """A block has changed: forget what followed from it."""
        self.blocks[where].summary = None

    def __bool__(self) -> bool:
        return bool(self.blocks)

    def __iter__(self) -> Iterator[_Key]:
        for block in self.blocks:
            yield from block.keys

    def entries(self) -> Iterator[tuple[_Key, _Value]]:
        """All keys in order, each with its value."""
        for block in self.blocks:
            yield from zip(block.keys, block.values, strict=True)

    def summary(self, block: Block[_Key, _Value, _Summary]) -> _Summary:
        """The summary of one of the blocks."""
        if block.summary is None:
            block.summary = self.summarize(block.values)
        return block.summary

    def add(self, key: _Key, value: _Value) -> None:
        """Put an entry at its place."""
        where = min(self.find(key), len(self.blocks) - 1)
        if where < 0:
            self.blocks.append(Block([], []))
            where = 0
        block = self.blocks[where]
        at = bisect_left(block.keys, key)
        block.keys.insert(at, key)
        block.values.insert(at, value)
        if len(block.keys) > _MOST:
            half = _MOST // 2
            self.blocks.insert(where + 1, Block(block.keys[half:], block.values[half:]))
            del block.keys[half:], block.values[half:]
        self.changed(where)

    def remove(self, key: _Key) -> _Value:
        """Take out an entry that is there."""
        where = self.find(key)
        block = self.blocks[where]
        at = bisect_left(block.keys, key)
        del block.keys[at]
        self.changed(where)
        if not block.keys:
            del self.blocks[where]
        return block.values.pop(at)

    def find(self, key: _Key) -> int:
        """The first block that ends with this key or behind it."""
        return bisect_left(self.blocks, key, key=lambda block: block.keys[-1])

    def behind(self, key: _Key | None) -> Iterator[tuple[Block[_Key, _Value, _Summary], int]]:
        """The blocks behind a key (None: all), and where in each its entries begin."""
        where = 0 if key is None else self.find(key)
        for block in self.blocks[where:]:
            yield block, 0 if key is None or block is not self.blocks[where] else bisect_right(block.keys, key)
