"""Runs that end once their results are precise enough, decided on the first blocks of episodes, in their order.

The decision is taken at certain numbers of blocks, the looks, which the plan alone decides. It rests on the blocks
before the look alone, so that the progress of other processes changes nothing. Several looks have several chances of an
error. Therefore look j has the share 1 / (j (j + 1)) of the error probability; these shares sum to 1, so that all
limits of all looks hold together with the probability that one interval would have.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandit_envs.kernels import number

from . import statistics
from .blocks import Block
from .rows import Run, check_metric

LEVEL = 0.95  # of the intervals that are to be narrow
GROWTH = 1.25  # blocks at a look, over those at the look before


def level_at(look: int | None, level: float) -> float:
    """The level of the intervals of a look, so that those of all looks hold together at `level`; None: of no look."""
    return level if look is None else 1 - (1 - level) / (look * (look + 1))


def looks(blocks: int) -> Iterator[int]:
    """The numbers of blocks after which one looks, of so many."""
    count = 0
    while count < blocks:
        count = min(blocks, max(count + 1, math.floor(GROWTH * count)))
        yield count


@dataclass(frozen=True)
class Precision:
    """What is to be reached by all agents, at all budgets and numbers of pulls.

    A mean of values that are all equal has no interval in fewer than `statistics.ALIKE` episodes, and is precise then.
    """

    widths: Mapping[str, float]  # half of the width of an interval, by metric
    verdict: bool = False  # whether one on delta is wanted, at the end

    def lacks(self, runs: Sequence[Run], look: int) -> str | None:
        """What of it these runs do not reach at this look, in words; None: they reach all."""
        level = level_at(look, LEVEL)
        for run in runs:
            for metric, width in self.widths.items():
                _, low, high = run.estimate(metric, level)
                found = np.asarray(high) - low
                if np.isnan(found).any():
                    text = f"has been the same in {run.episodes} episodes, fewer than {statistics.ALIKE}"
                    return f"{metric} of {run.agent} {text}"
                if not np.all(found / 2 <= width):
                    return f"{metric} of {run.agent} is known to {found.max() / 2:.2g} to either side, not {width:g}"
            if self.verdict:
                stopped, wrong = run.stopped(len(run.cells) - 1)
                n = run.episodes
                verdict = statistics.verdict(wrong, n, run.task.delta or 0, level, open=n - stopped)
                if verdict not in ("met", "not met"):
                    return f"the verdict on delta of {run.agent} is {verdict!r}"
        return None


def precision_of(given: object, runs: Sequence[Run]) -> Precision | None:
    """What is given, checked: None, half a width of the error rate's interval, {metric: half a width}, or "verdict"."""
    if given is None:
        return None
    if isinstance(given, str):
        if given != "verdict":
            text = "precision must be a number, a dict of numbers by metric,"
            raise ValueError(f"{text} or 'verdict', got {given!r:.80}")
        if any(run.task.delta is None for run in runs):
            raise ValueError("precision='verdict' needs a delta, on which there can be a verdict")
        return Precision({}, True)
    widths = given if isinstance(given, Mapping) else {"error_rate": given}
    if not widths:
        raise ValueError("precision must name at least one metric, got {}")
    for metric in widths:
        check_metric(runs[0].task.problem, metric)
    return Precision({name: number("precision", width, 0, 1e300, above=True) for name, width in widths.items()})


class Ending:
    """Looks at the first blocks, until their estimates are precise enough."""

    def __init__(self, wanted: Precision, blocks: Sequence[Block]) -> None:
        self.wanted, self.look = wanted, 0  # the number of the last look
        self.count: int | None = None  # of the blocks before it; None as long as nothing is decided
        self._blocks, self._looks = blocks, looks(len(blocks))
        self._next, self._there = next(self._looks), 0

    def decided(self, kept: Any) -> bool:
        """Whether enough blocks are there, whoever has made them."""
        while self.count is None:
            while self._there < self._next and kept.has(self._blocks[self._there]):
                self._there += 1
            if self._there < self._next:
                return False
            self.look += 1
            runs = kept.advance(self._next)
            if self._next == len(self._blocks) or self.wanted.lacks(runs, self.look) is None:
                self.count = self._next
                kept.end(self.count, self.look)
            else:
                self._next = next(self._looks)
        return True
