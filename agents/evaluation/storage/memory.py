"""`Store`: where blocks are kept, and what is known of the first ones; and `Memory`, which keeps them in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..blocks import Block
from ..moments import Moments, SummedRun
from ..rows import Run

__all__ = ["Memory", "Store", "moments_of"]


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


class Store:
    """Blocks of an evaluation.

    Args:
        rooms: all but the rows, of each run.
        blocks: all of the plan.
        form: makes the contents of blocks, given them and for each run the rows of each.
        sums: whether counts and sums are kept, and no rows.

    Attributes:
        blocks: where a run has ended early, those before its end.
        ended: the look at which it has.
    """

    def __init__(
        self, rooms: Sequence[Run], blocks: list[Block], form: Callable[..., Sequence[Any]], sums: bool
    ) -> None:
        self.rooms, self.blocks, self.form, self.sums = rooms, blocks, form, sums
        self.ended: int | None = None
        self.counted, self._known = 0, list[Moments]()

    @property
    def episodes(self) -> int:
        """How many each run has."""
        return sum(block.episodes for block in self.blocks if 0 in block.runs)

    def has(self, block: Block) -> bool:
        """Whether the block is there."""
        raise NotImplementedError

    def put(self, block: Block, content: Any) -> None:
        """Keep what a block holds."""
        raise NotImplementedError

    def spend(self, run: int, pulls: int, seconds: float) -> None:
        """Note how long so many pulls of a run took."""
        raise NotImplementedError

    def pace(self, run: int) -> float:
        """Seconds of one core that a pull of a run takes; NaN where nothing tells."""
        raise NotImplementedError

    def moments(self, block: Block) -> Moments:
        """What is known of a block, without its rows."""
        raise NotImplementedError

    def runs(self) -> list[Run]:
        """All that is kept, by run."""
        raise NotImplementedError

    def lacking(self, blocks: Sequence[Block]) -> list[Block]:
        """Those of these blocks that are to be made."""
        return list(blocks)

    @contextmanager
    def at_work(self, told: Mapping[str, Any]) -> Iterator[bool]:
        """Around the making of blocks; tells whether others make some at the same time. `told`: of this call."""
        yield False

    def advice(self) -> str | None:
        """How to go on where the making of blocks was interrupted, in words."""
        return None

    def merged(self, count: int | None = None) -> Moments:
        """What is known of the first blocks, merged in their order; no fewer than before, None: of all."""
        while self.counted < (len(self.blocks) if count is None else count):
            part = self.moments(self.blocks[self.counted])
            self._known = [self._known[0].merged(part) if self._known else part]
            self.counted += 1
        return self._known[0]

    def advance(self, count: int) -> list[Run]:
        """What is known of the first blocks, by run, without their rows."""
        runs = [SummedRun(room, i, self) for i, room in enumerate(self.rooms)]
        for run in runs:
            run.moments = self.merged(count)
        return list(runs)

    def end(self, count: int, look: int) -> None:
        """Let the first blocks alone count, as they were found to be enough at this look."""
        self.blocks, self.ended = self.blocks[:count], look


class Memory(Store):
    """Blocks in memory.

    Args:
        rooms, blocks, sums: see `Store`.
        eager: merge counts and sums as soon as they are there: no block is looked at by itself.
    """

    def __init__(self, rooms: Sequence[Run], blocks: list[Block], sums: bool, eager: bool) -> None:
        super().__init__(rooms, blocks, moments_of if sums else rows_of, sums)
        self._eager, self._held = sums and eager, dict[int, Any]()
        self._pulls, self._seconds = [0] * len(rooms), [0.0] * len(rooms)
        self._runs = list[Run]()

    def has(self, block: Block) -> bool:
        return block.number in self._held or self.sums and block.number < self.counted

    def put(self, block: Block, content: Any) -> None:
        self._held[block.number] = content
        while self._eager and self.counted in self._held:
            self.merged(self.counted + 1)

    def spend(self, run: int, pulls: int, seconds: float) -> None:
        self._pulls[run] += pulls
        self._seconds[run] += seconds

    def pace(self, run: int) -> float:
        return self._seconds[run] / self._pulls[run] if self._pulls[run] else math.nan

    def moments(self, block: Block) -> Moments:
        held: Moments = self._held.pop(block.number) if self.sums else Moments.of(self._held[block.number])
        return held

    def runs(self) -> list[Run]:
        if self.sums:
            return self.advance(len(self.blocks))
        if not self._runs:
            for i, room in enumerate(self.rooms):
                parts = [self._held[block.number][block.runs.index(i)] for block in self.blocks if i in block.runs]
                self._runs.append(room.joined(parts, self.pace(i)))
            self._held.clear()
        return self._runs
