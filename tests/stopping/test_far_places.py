"""Gaussian arms far from 0, whose sums and means are rounded: by up to N eps |mean|, which is no evidence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bandit_envs
from bandit_envs.stopping.betting import BETS
from bandit_envs.stopping.boundaries import ROUNDED
from bandit_envs.stopping.intervals import arm_intervals, is_excluded

PROBLEMS: dict[str, Any] = {
    "threshold": lambda at: bandit_envs.Threshold(threshold=at),
    "best arm": lambda at: bandit_envs.BestArm(),
    "control": lambda at: bandit_envs.BetterThanControl(tolerance=0.0),
    "feasible": lambda at: bandit_envs.Feasible(A=[[1.0]], b=[at]),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("boundary", ["mixture", "kaufmann-koolen"])
def test_rounding_is_no_evidence(name: str, boundary: str) -> None:
    """Equal arms, at the threshold if there is one, with the largest errors of their sums: at any place and time."""
    place, N = (x.ravel() for x in np.meshgrid(10.0 ** np.arange(2, 13, 2), 10 ** np.arange(2, 9)))
    off = ROUNDED * N[:, None] / 2 * place[:, None] * np.array([1.0, -1.0, -1.0])
    found = np.empty(len(N))
    for at in np.unique(place):
        rows = place == at
        certifier = PROBLEMS[name](at).certifier(3, distribution="gaussian", boundary=boundary)
        T = np.broadcast_to(N[rows, None], (rows.sum(), 3)).copy()
        inside = np.full(T.shape, -1, np.int8)
        found[rows] = certifier.alternatives(T, at + off[rows], np.ones(T.shape), inside)[:, 0]
    assert found.max() < 0.1, (place[found.argmax()], N[found.argmax()], found.max())


def test_intervals_cover_a_mean_that_is_off_by_rounding() -> None:
    numbers = bandit_envs.Threshold().certifier(1, distribution="gaussian").numbers
    for place in 10.0 ** np.arange(2, 13, 2):
        for N in 10 ** np.arange(2, 9):
            [[low, high]] = arm_intervals(
                numbers, np.array([N]), np.array([place * (1 + ROUNDED * N / 2)]), np.ones(1), 0.1
            )
            assert low <= place <= high


def test_what_a_column_has_excluded_stays_excluded() -> None:
    """Whatever fails later: a step goes by the rows before it alone."""
    rng = np.random.default_rng(2)
    for _ in range(30):
        scores = np.where(rng.random(40) < 0.8, rng.random(40) < 0.5, 0.5)
        scores[8:][rng.random(32) < 0.3] = np.nan
        for c in (0.2, 0.35, 0.5):
            told = [is_excluded(scores, t, 0, c, 1.01, np.empty(len(BETS))) for t in range(41)]
            assert told == sorted(told)
