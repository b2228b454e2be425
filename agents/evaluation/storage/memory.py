"""`Store`: the blocks of an evaluation, kept in memory, and facts about the first ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..blocks import Block
from ..moments import Moments, SummedRun
from ..rows import Run


def rows_of(blocks: Sequence[Block], parts: Sequence[Sequence[Run]]) -> list[list[Run]]:
    """The rows of each run in each block, of what are for each run the rows of each block."""
    return [[rows[i] for rows in parts] for i in range(len(blocks))]


def moments_of(blocks: Sequence[Block], parts: Sequence[Sequence[Run]]) -> list[Moments]:
    """What is kept of each block without rows, as `rows_of`."""
    return list(map(Moments.of, rows_of(blocks, parts)))


class Store:
    """Blocks of an evaluation, in memory.

    Args:
        empty_runs: all but the rows, of each run.
        blocks: all of the plan.
        sums: whether counts and sums are kept, and no rows.
        eager: whether these are merged as soon as they are there: no block is looked at by itself.

    Attributes:
        blocks: where a run has ended early, those before its end. ended: the look at which it has.
        form: makes the contents of blocks, given them and for each run the rows of each.
        counted: how many of the first blocks have been merged. survives: whether a kill leaves what is there.
    """

    survives = False
    form: Callable[..., Sequence[object]]

    def __init__(self, empty_runs: Sequence[Run], blocks: list[Block], sums: bool, eager: bool = False) -> None:
        self.empty_runs, self.blocks, self.sums = empty_runs, blocks, sums
        self.form = moments_of if sums else rows_of
        self.ended: int | None = None
        self.counted, self._known, self._eager = 0, list[Moments](), sums and eager
        self._held, self._runs = dict[int, Any](), list[Run]()
        self._pulls, self._seconds = [0] * len(empty_runs), [0.0] * len(empty_runs)

    def has(self, block: Block) -> bool:
        """Whether the block is there."""
        return block.number in self._held or self.sums and block.number < self.counted

    def lacking(self, blocks: Sequence[Block]) -> list[Block]:
        """Those of these blocks that are to be made."""
        return list(blocks)

    @contextmanager
    def at_work(self, told: Mapping[str, object]) -> Iterator[bool]:
        """Around the making of blocks; yields whether others make some at the same time. `told`: of this call."""
        yield False

    def advice(self) -> str | None:
        """How to go on where the making of blocks was interrupted, in words."""
        return None

    def put(self, block: Block, content: Any) -> None:
        """Keep what a block holds, as `form` has made it."""
        self._held[block.number] = content
        while self._eager and self.counted in self._held:
            self.merged(self.counted + 1)

    def spend(self, run: int, pulls: int, seconds: float) -> None:
        """Note how long so many pulls of a run took."""
        self._pulls[run] += pulls
        self._seconds[run] += seconds

    def spent(self, run: int) -> tuple[int, float]:
        """Pulls of a run that have been noted, and the seconds that they took."""
        return self._pulls[run], self._seconds[run]

    def pace(self, run: int) -> float:
        """Seconds of one core that a pull of a run takes; NaN where nothing is known."""
        pulls, seconds = self.spent(run)
        return seconds / pulls if pulls else math.nan

    def moments(self, block: Block) -> Moments:
        """What is known of a block, without its rows; asked for once."""
        held: Moments = self._held.pop(block.number) if self.sums else Moments.of(self._held[block.number])
        return held

    def merged(self, count: int | None = None) -> Moments:
        """What is known of the first blocks, merged in their order; no fewer than before, None: of all."""
        while self.counted < (len(self.blocks) if count is None else count):
            part = self.moments(self.blocks[self.counted])
            self._known = [self._known[0].merged(part) if self._known else part]
            self.counted += 1
        return self._known[0]

    def advance(self, count: int) -> list[Run]:
        """What is known of the first blocks, by run, without their rows."""
        runs = [SummedRun(empty, i, self) for i, empty in enumerate(self.empty_runs)]
        for run in runs:
            run.moments = self.merged(count)
        return list(runs)

    def end(self, count: int, look: int) -> None:
        """Let the first blocks alone count, as they were found to be enough at this look."""
        self.blocks, self.ended = self.blocks[:count], look

    def runs(self) -> list[Run]:
        """All that is kept, by run."""
        if self.sums:
            return self.advance(len(self.blocks))
        if not self._runs:
            for i, empty in enumerate(self.empty_runs):
                parts = [self._held[block.number][block.runs.index(i)] for block in self.blocks if i in block.runs]
                self._runs.append(empty.joined(parts, self.pace(i)))
            self._held.clear()
        return self._runs
