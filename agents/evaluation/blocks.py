"""An evaluation cut into blocks of consecutive episodes, the units of storing and of going on after a kill.

The size of a block depends on nothing but the plan: not on the number of jobs, nor on the machine. What a block holds
is a function of the plan, the root seed and the range of episodes alone, so that it may be made anywhere, twice, or in
any order. Several neighbouring blocks, a span, may be played in one go where that saves time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from bandit_envs.kernels import integer

MOST = 2**26  # pulls of a block, roughly: a second of the fastest agents
LEAST = 2**14  # pulls below which nothing is cut: a fraction of a millisecond
GRAIN, SLOW_GRAIN = 2**21, 2**17  # pulls from which on a block is cut further: some 30 ms of the fastest agents
LEAST_PARTS, PARTS, FINE = 8, 128, 256  # blocks of a run at least and at most between these, and where it may end early
CELLS = 2**21  # rows of a block, at most: some hundred MB
TAIL, FRACTION = 2, 4  # so many blocks of the largest size are cut further at the end, so that jobs end together
SPAN = 2**25  # pulls of the blocks that are played in one go, roughly
SLOW_SPAN = 2**18  # the same of agents that decide in Python: what a kill loses are seconds, not minutes
GUESS = 2**14  # pulls of an episode that ends when the agent wants it to
SHARES = 4  # spans for each job, where there are that many blocks


@dataclass(frozen=True)
class Work:
    """What the size of the blocks depends on, of one run."""

    pulls: int | None  # of an episode, None if the agent may stop by itself: then `cap` of them at most
    cells: int = 1  # rows of an episode
    cap: int = GUESS  # pulls that an episode can have
    slow: bool = False  # whether the agent decides in Python
    grain: int = GRAIN  # pulls that are worth a block of their own

    @property
    def expected(self) -> int:
        """Pulls of an episode, or a guess."""
        return max(1, min(self.cap, GUESS) if self.pulls is None else self.pulls)


@dataclass(frozen=True)
class Block:
    """Consecutive episodes of one run, or of several that are compared."""

    number: int  # among the blocks of the plan
    runs: tuple[int, ...]  # their places in the plan
    first: int  # the number of the first episode
    episodes: int


def _sizes(episodes: int, runs: Sequence[Work], fine: bool) -> tuple[int, int]:
    """Episodes of a block, and of those at the end.

    There are as many blocks as the grain asks for, `LEAST_PARTS` to `PARTS`, where these are not too large or small.
    """
    pulls, cells = sum(run.expected for run in runs), sum(run.cells for run in runs)
    most = max(1, min(MOST // pulls, CELLS // cells))
    parts = min(max(LEAST_PARTS, episodes * pulls // min(run.grain for run in runs)), PARTS)
    wanted = math.ceil(episodes / (FINE if fine else parts))
    size = min(episodes, most, max(wanted, math.ceil(LEAST / pulls)))
    return size, math.ceil(size / FRACTION) if size == most and not fine else size


@dataclass(frozen=True)
class Group:
    """Runs that go through the same blocks."""

    runs: tuple[int, ...]  # their places in the plan
    size: int  # episodes of a block
    last: int  # of those at the end, the very last of which may have fewer


def grouped(runs: Sequence[Work], episodes: int, *, together: bool = False, fine: bool = False) -> list[Group]:
    """How the runs of a plan, of so many episodes each, are cut.

    Args:
        together: whether all runs go through the same blocks, in which they are compared; else each has its own.
        fine: smaller blocks, for plans that may end after any of them.
    """
    places = [tuple(range(len(runs)))] if together else [(i,) for i in range(len(runs))]
    return [Group(group, *_sizes(episodes, [runs[i] for i in group], fine)) for group in places]


def cut(groups: Iterable[Group], episodes: int) -> list[Block]:
    """All blocks of a plan, numbered in order."""
    blocks: list[Block] = []
    for group in groups:
        end = group.size * max(0, episodes // group.size - TAIL)
        for size, begin, stop in ((group.size, 0, end), (group.last, end, episodes)):
            for first in range(begin, stop, size):
                blocks.append(Block(len(blocks), group.runs, first, min(size, stop - first)))
    return blocks


def spans(blocks: Iterable[Block], runs: Sequence[Work], jobs: int) -> list[tuple[Block, ...]]:
    """Blocks that are played in one go, all of the same size but the last one.

    They are neighbours, as many as is worth it for so many jobs at the same time: fewer where little is left to do.
    """
    blocks = list(blocks)
    cost = {block.number: block.episodes * sum(runs[i].expected for i in block.runs) for block in blocks}
    left = sum(cost.values())
    made: list[tuple[Block, ...]] = []
    for _, neighbours in groupby(enumerate(blocks), key=lambda one: (one[1].runs, one[1].number - one[0])):
        together: list[Block] = []
        allowed = 0.0
        for _, block in neighbours:
            alike = together and together[0].episodes == together[-1].episodes >= block.episodes
            if together and (cost[block.number] > allowed or not alike):
                made.append(tuple(together))
                together = []
            if not together:
                most = SLOW_SPAN if any(runs[i].slow for i in block.runs) else SPAN
                allowed = most if jobs == 1 else min(most, left / (SHARES * jobs))
            together.append(block)
            allowed -= cost[block.number]
            left -= cost[block.number]
        made.append(tuple(together))
    return made


def part_of(shard: Any) -> tuple[int, int] | None:
    """Which part of the blocks is to be made, (i, n) with 1 <= i <= n; None: all of them."""
    if shard is None:
        return None
    if shard == "slurm":
        return _slurm_task()
    parts = shard.split("/") if isinstance(shard, str) else shard
    try:
        i, n = (int(part) if isinstance(part, str) else integer("shard", part, 1, 2**20) for part in parts)
    except (TypeError, ValueError):
        raise ValueError(f"shard must be 'i/n', as '2/8', or 'slurm', got {shard!r:.80}") from None
    if not 1 <= i <= n:
        raise ValueError(f"shard must be one of 1/{n} to {n}/{n}, got {i}/{n}")
    return i, n


def _slurm_task() -> tuple[int, int]:
    """Which task of a job array of SLURM this process is, from 1 on, and of how many."""
    found = {name: os.environ.get(f"SLURM_ARRAY_TASK_{name}") for name in ("ID", "MIN", "STEP", "COUNT")}
    if found["ID"] is None or found["COUNT"] is None:
        raise ValueError("shard='slurm' needs a job array of SLURM: SLURM_ARRAY_TASK_ID and _COUNT are not set")
    said = ", ".join(f"SLURM_ARRAY_TASK_{name}={value}" for name, value in found.items() if value is not None)
    try:
        task, first, step, count = (
            int(other if (value := found[name]) is None else value)
            for name, other in zip(found, (0, 0, 1, 1), strict=True)
        )
        place, between = divmod(task - first, step)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"shard='slurm' needs whole numbers, got {said}") from None
    if between or not 0 <= place < count:
        raise ValueError(f"shard='slurm' needs an array of equally spaced numbers, as 1-8 or 0-30:2, got {said}")
    return place + 1, count
