"""Blocks that are kept in memory: their rows, or counts and sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..blocks import Block
from ..moments import Moments, SummedRun
from ..rows import Run

__all__ = ["Memory", "MemoryOfBlocks", "MemoryOfMoments", "Prefix", "moments_of"]


def moments_of(blocks: Sequence[Block], parts: Sequence[Sequence[Run]]) -> list[Moments]:
    """What is kept of blocks without rows.

    Args:
        blocks: what they are.
        parts: for each run the rows of each block.
    """
    return [Moments.of([rows[i] for rows in parts]) for i in range(len(blocks))]


def rows_of(blocks: Sequence[Block], parts: Sequence[Sequence[Run]]) -> list[list[Run]]:
    """The rows of blocks: of each block those of each run."""
    return [[rows[i] for rows in parts] for i in range(len(blocks))]


class Prefix:
    """What is kept of the first blocks, merged in their order."""

    def __init__(self) -> None:
        self.count, self._merged = 0, list[Moments]()

    def to(self, count: int, moments: Callable[[int], Moments]) -> Moments:
        """Of so many blocks, no fewer than before.

        Args:
            count: how many.
            moments: of the block of this number.
        """
        while self.count < count:
            part = moments(self.count)
            self._merged = [self._merged[0].merged(part)] if self._merged else [part]
            self.count += 1
        return self._merged[0]


class Memory:
    """Rows in memory.

    Args:
        runs: room for all rows, of each run.
    """

    form: Any = None  # blocks of one span need not be cut

    def __init__(self, runs: list[Run]) -> None:
        self._runs = runs

    def has(self, block: Block) -> bool:
        """Whether the block is there."""
        return False

    def put(self, block: Block, content: list[Run]) -> None:
        """Keep what a block, or several neighbours that were made in one go, hold."""
        for i, part in zip(block.runs, content, strict=True):
            self._runs[i].put(block.first, part)

    def spent(self, run: int, pulls: int, seconds: float) -> None:
        """Note how long so many pulls of a run took."""
        self._runs[run].seconds += seconds

    def runs(self) -> list[Run]:
        """All rows."""
        return self._runs


class MemoryOfBlocks(Memory):
    """Rows in memory, of which only the first blocks may count in the end.

    Args:
        plans: makes room for so many episodes, of each run.
        blocks: all of them.
    """

    form = staticmethod(rows_of)

    def __init__(self, plans: Sequence[Callable[[int], Run]], blocks: Sequence[Block]) -> None:
        super().__init__([room(0) for room in plans])
        self._plans, self.blocks, self._prefix = plans, blocks, Prefix()
        self._parts: dict[int, list[Run]] = {}

    def has(self, block: Block) -> bool:
        """Whether the block is there."""
        return block.number in self._parts

    def put(self, block: Block, content: list[Run]) -> None:
        """Keep what a block holds."""
        self._parts[block.number] = content

    def advance(self, count: int) -> list[Run]:
        """What is known of the first blocks, without their rows."""
        moments = self._prefix.to(count, lambda i: Moments.of(self._parts[i]))
        return [SummedRun(room, moments, i, room.seconds) for i, room in enumerate(self._runs)]

    def end(self, count: int, look: int) -> None:
        """Let the first blocks alone count."""
        kept = self.blocks[:count]
        for i, (timed, room) in enumerate(zip(self._runs, self._plans, strict=True)):
            run = room(sum(block.episodes for block in kept))
            run.seconds = timed.seconds
            for block in kept:
                run.put(block.first, self._parts[block.number][i])
            self._runs[i] = run


class MemoryOfMoments(Memory):
    """Counts and sums in memory, merged in the order of the blocks.

    Args:
        rooms: all but the rows, of each run.
        blocks: all of them.
        eager: merge blocks as soon as they are there; else when `advance` says so.
    """

    form = staticmethod(moments_of)

    def __init__(self, rooms: list[Run], blocks: Sequence[Block], eager: bool) -> None:
        super().__init__(rooms)
        self.blocks, self._eager, self._prefix = blocks, eager, Prefix()
        self._waiting: dict[int, Moments] = {}

    def has(self, block: Block) -> bool:
        """Whether the block is there."""
        return block.number < self._prefix.count or block.number in self._waiting

    def put(self, block: Block, content: Moments) -> None:  # type: ignore[override]
        """Keep what a block holds."""
        self._waiting[block.number] = content
        while self._eager and self._prefix.count in self._waiting:
            self.advance(self._prefix.count + 1)

    def advance(self, count: int) -> list[Run]:
        """What is known of the first blocks."""
        moments = self._prefix.to(count, self._waiting.pop)
        return [SummedRun(room, moments, i, room.seconds) for i, room in enumerate(self._runs)]

    def end(self, count: int, look: int) -> None:
        """Let the first blocks alone count."""

    def runs(self) -> list[Run]:
        """All that is kept."""
        return self.advance(self._prefix.count)
