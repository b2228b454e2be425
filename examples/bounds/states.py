"""The states of all arms together after so many pulls, one after another in memory.

A state is how often each arm was pulled, and how often it showed a one. States with the same pulls form a block: in it
the ones of the last arm count fastest. Where arms are exchangeable, blocks whose pulls do not increase stand for all.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.core.agent import Floats, Ints
from bandit_envs.kernels import jit, part

__all__ = ["Level", "look_back", "next_ones"]

MOST = 2 * 10**7  # states of one level: their values take 160 MB


def _splits(total: int, arms: int, most: int, descending: bool) -> Iterator[tuple[int, ...]]:
    """All ways to split so many pulls over the arms: at most `most` for each, or no more than for the arm before."""
    if arms == 1:
        if total <= most:
            yield (total,)
        return
    for first in range(min(total, most), -1, -1):
        for rest in _splits(total - first, arms - 1, first if descending else most, descending):
            yield first, *rest


@part
def next_ones(ones: Any, pulls: Any) -> None:
    """The ones (K,) of the next state of a block, in place; after the last state those of the first."""
    for j in range(len(ones) - 1, -1, -1):
        ones[j] += 1
        if ones[j] <= pulls[j]:
            break
        ones[j] = 0


@dataclass(frozen=True)
class Level:
    """The states after the same number of pulls.

    Attributes:
        spent: the pulls. pulls: of the arms in each block, (B, K).
        first: where the states of each block begin, (B + 1,); the last is their number.
        exchangeable: whether the pulls of a block do not increase from arm to arm.
    """

    spent: int
    pulls: Ints
    first: Ints
    exchangeable: bool

    @classmethod
    def of(cls, arms: int, spent: int, exchangeable: bool) -> Level:
        """The level after so many pulls.

        Raises:
            ValueError: for more states than fit into memory.
        """
        every = math.comb(spent + 2 * arms - 1, 2 * arms - 1)
        if every > MOST * (math.factorial(arms) if exchangeable else 1):
            raise ValueError(f"{arms} arms have {every:.1e} states after {spent} pulls, too many to look at")
        pulls = np.array(list(_splits(spent, arms, spent, exchangeable)), np.int64)
        return cls(spent, pulls, np.concatenate([[0], np.cumsum((pulls + 1).prod(axis=1))]), exchangeable)

    def __len__(self) -> int:
        return int(self.first[-1])

    @functools.cached_property
    def places(self) -> dict[tuple[int, ...], int]:
        """The number of each block, by its pulls."""
        return {tuple(pulls): block for block, pulls in enumerate(self.pulls.tolist())}

    def blocks(self) -> Iterator[tuple[slice, Ints, Ints]]:
        """For each block: its states, their pulls (K,), and their ones (n, K)."""
        for (start, end), pulls in zip(itertools.pairwise(self.first.tolist()), self.pulls, strict=True):
            yield slice(start, end), pulls, np.indices(pulls + 1).reshape(len(pulls), -1).T

    def observation(self, budget: int) -> dict[str, NDArray[Any]]:
        """What an agent would see in each state, as one batch of episodes."""
        pulls = np.repeat(self.pulls, np.diff(self.first), axis=0)
        ones = np.concatenate([ones for _, _, ones in self.blocks()])
        mean = ones / np.maximum(pulls, 1)
        size = len(self)
        return {
            "pulls": pulls,
            "total": ones.astype(np.float64),
            "mean": mean,
            "variance": mean * (1 - mean),
            "remaining": np.full((size, 1), budget - self.spent),
            "public_seed": np.zeros((size, 1), np.int64),
        }

    def ordered(self, other: Level) -> tuple[Ints, Ints]:
        """For each state, the same state in a level of exchangeable arms, (S,), and its arms in that order, (S, K)."""
        at, arms = np.empty(len(self), np.int64), np.empty((len(self), self.pulls.shape[1]), np.int64)
        for states, pulls, ones in self.blocks():
            order = np.argsort(-pulls, kind="stable")
            start = other.first[other.places[tuple(pulls[order].tolist())]]
            at[states] = start + np.ravel_multi_index(tuple(ones[:, order].T), tuple(pulls[order] + 1))
            arms[states] = order
        return at, arms

    def after(self, later: Level) -> tuple[Ints, Ints]:
        """Where a pull of each arm leads: the first state of the block of the next level, and the arm's place there.

        In an exchangeable level the arm changes places with the first one that has as many pulls. (B, K) each.
        """
        start, place = np.empty_like(self.pulls), np.empty_like(self.pulls)
        for block, pulls in enumerate(self.pulls.tolist()):
            for i, n in enumerate(pulls):
                at = pulls.index(n) if self.exchangeable else i
                pulled = (*pulls[:at], n + 1, *pulls[at + 1 :])
                start[block, i], place[block, i] = later.first[later.places[pulled]], at
        return start, place


@jit
def _look_back(
    pulls: Any, first: Any, start: Any, place: Any, a0: Any, b0: Any, later: Any, chosen: Any, value: Any
) -> None:
    B, K = pulls.shape
    ones = np.empty(K, np.int64)
    for block in range(B):
        ones[:] = 0
        for state in range(first[block], first[block + 1]):
            least = np.inf
            for i in range(K):
                if len(chosen) > 0 and chosen[state] != i:
                    continue
                at, miss, step = place[block, i], 0, 0
                for j in range(K):
                    seen = ones[i] if j == at else ones[at] if j == i else ones[j]
                    size = pulls[block, j] + 1 + (j == at)
                    miss, step = miss * size + seen, 1 if j == at else step * size
                miss += start[block, i]
                p = (a0 + ones[i]) / (a0 + b0 + pulls[block, i])
                least = min(least, p * later[miss + step] + (1.0 - p) * later[miss])
            value[state] = least
            next_ones(ones, pulls[block])


def look_back(level: Level, later: Level, prior: tuple[float, float], values: Floats, chosen: Ints | None) -> Floats:
    """The expected loss in each state, (S,), given that in each state after one pull more.

    Args:
        level: its states are looked at. later: after one pull more. prior: (a0, b0), the prior of the means.
        values: of the later level. chosen: the arm that is pulled in each state; None: the best one.
    """
    out = np.empty(len(level))
    arms = np.empty(0, np.int64) if chosen is None else np.ascontiguousarray(chosen, np.int64)
    _look_back(level.pulls, level.first, *level.after(later), *prior, values, arms, out)
    return out
