"""The features that an agent may see in place of the statistics: functions of them, normalised for learning."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from ..instances.arms import Bernoulli
from ..kernels.belief import EXACT, beta_below
from ..kernels.checks import Floats, Ints
from ..kernels.compiled import inlined
from ..kernels.structs import fleeting, kernel
from ..problems import BELIEFS, Problem
from ..problems.task import Task

TINY, HUGE = 1e-300, 1e300  # so that no feature is 0/0 or inf/inf

FEATURES = (
    "pulls",  # ln(1 + pulls) / ln(1 + scale), at most 1; scale: budget, else max_pulls, else 10^6
    "share",  # pulls of the arm / pulls of all arms
    "width",  # 1 / sqrt(1 + pulls)
    "margin",  # m / (|m| + sigma), m the margin of the empirical mean
    "score",  # z / (1 + |z|), z the margin in standard errors (the prior worth one sample of variance sigma^2)
    "error",  # the posterior probability that the plug-in answer is wrong about the arm, see below
    "doubt",  # 4 / (4 - ln(2 error)), at most 1: the error on a logarithmic scale
    "left",  # share of the budget left, 0 without a budget
    "horizon",  # ln(1 + pulls left per arm) / ln(1 + scale), at most 1; 0 without a budget
)
# Of observations that are an array: how many numbers of each arm, how many after them, and their largest value.
NUMBERS = {"features": (len(FEATURES), 0, 1.0), **BELIEFS}


def numbers_of(form: str, pending: bool = False) -> tuple[int, int, float]:
    """The entry of `NUMBERS` for a form; `pending`: with a number of each arm for its pending pulls, the last one."""
    each, more, reach = NUMBERS[form]
    return each + pending, more, reach


def box_of(K: int, form: str, pending: bool = False) -> spaces.Box:
    """The space of observations of K arms; `pending`: where they show pending pulls."""
    each, more, reach = numbers_of(form, pending)
    if not pending:
        return spaces.Box(-reach, reach, (each * K + more,), np.float32)
    high = np.full(each * K + more, reach, np.float32)
    low, share = -high, slice(each - 1, each * K, each)
    low[share], high[share] = 0.0, 1.0
    return spaces.Box(low, high, dtype=np.float32)


def shows_pending(space: Any) -> bool:
    """Whether a space is one of `box_of` in which observations show pending pulls."""
    return isinstance(space, spaces.Box) and space.low.size > 0 and bool(space.low.min() < space.low.max())


def shown_by(size: int, actions: int, pending: bool | None = None) -> tuple[str, bool, bool] | None:
    """Of which form an observation of so many numbers is, whether the last action stops, and whether it shows pending.

    None: of no form. pending: whether it does, where that is known: else, rarely, both are possible, and it does not.
    """
    for shown in (False, True) if pending is None else (pending,):
        for stop in (True, False):
            for form in NUMBERS:
                each, more, _ = numbers_of(form, shown)
                if actions - stop > 1 and size == each * (actions - stop) + more:
                    return form, stop, shown
    return None


def with_pending(form: str, seen: NDArray[np.float32], pulls: Ints, pending: Ints) -> NDArray[np.float32]:
    """Observations (E, each K + more) with pending / (pulls + pending), 0 without any, behind the numbers of each arm.

    pulls, pending: (E, K), in the order in which the arms are shown.
    """
    (E, K), each = pulls.shape, NUMBERS[form][0]
    share = (pending / np.maximum(pulls + pending, 1)).astype(np.float32)
    arms = np.concatenate([seen[:, : each * K].reshape(E, K, each), share[..., None]], axis=2)
    return np.concatenate([arms.reshape(E, -1), seen[:, each * K :]], axis=1)


@inlined
def _by_margin(n, m, precision, sigma, theta, tolerance):
    """The features that a new margin m of the empirical mean changes: margin, score, error and doubt."""
    m = max(min(m, HUGE), -HUGE)
    z = max(min(m * precision, HUGE), -HUGE)
    if math.isnan(theta) or n > EXACT:
        error = 0.5 * math.erfc((abs(z) + tolerance * precision) * 0.7071067811865476)
    else:
        ones = math.floor((m + theta) * n + 0.5)
        if n > 0.0 and m >= 0.0:
            error = beta_below(theta - tolerance, ones + 1.0, n - ones + 1.0)
        else:
            error = beta_below(1.0 - theta - tolerance, n - ones + 1.0, ones + 1.0)
    doubt = min(4.0 / (4.0 - math.log(max(2.0 * error, TINY))), 1.0)
    return m / (abs(m) + sigma), z / (1.0 + abs(z)), min(error, 1.0), doubt


@fleeting
class Scales(NamedTuple):
    """Numbers of the features."""

    sigma: float  # sub-Gaussian scale of a sample
    scale: float  # pulls at which the feature `pulls` reaches 1
    theta: float  # the boundary of scalar Bernoulli arms, where it is known beforehand and errors are exact; else NaN
    tolerance: float  # an arm nearer to the boundary may be classified either way


@kernel
def _features(pulls, margin, variance, remaining, scales: Scales, known, out):
    """Fill out (E, K, F) with the features of `FEATURES`, all in [-1, 1], of arms that are no longer as in `known`.

    `known` (E, K, 3), -1 at first: the pulls and margins at which they were computed, and 1 / standard error.
    """
    E, K = pulls.shape
    (sigma, scale, theta, tolerance), D = scales, variance.shape[1] // K
    unit = 1.0 / math.log1p(scale)
    for e in range(E):
        spent = 0
        for k in range(K):
            spent += pulls[e, k]
        left = max(float(remaining[e, 0]), 0.0)
        share_left = left / max(left + spent, 1.0)
        horizon = min(math.log1p(left / K) * unit, 1.0)
        for k in range(K):
            n, m, f = float(pulls[e, k]), margin[e, k], out[e, k]
            f[1], f[7], f[8] = n / max(spent, 1), share_left, horizon
            unseen = n == 0.0 and m != -math.inf  # that of a control, which is in no answer
            m = 0.0 if unseen or math.isnan(m) else max(min(m, HUGE), -HUGE)
            if known[e, k, 0] != n:
                known[e, k, 0], known[e, k, 1], v = n, math.nan, 0.0
                for d in range(D):
                    v += variance[e, k * D + d] / D
                f[0], f[2] = min(math.log1p(n) * unit, 1.0), 1.0 / math.sqrt(1.0 + n)
                known[e, k, 2] = math.sqrt(n * (n + 1.0)) / math.sqrt(max(v * n + sigma * sigma, TINY))
            if known[e, k, 1] != m:
                known[e, k, 1] = m
                f[3], f[4], f[5], f[6] = _by_margin(n, m, known[e, k, 2], sigma, theta, tolerance)


class FeatureTable:
    """The features of E episodes of a task, computed again where an arm has changed since they were asked for."""

    def __init__(self, task: Task, problem: Problem, count: int) -> None:
        self.task, self.problem = task, problem
        self._matrix = np.zeros((count, task.stop, len(FEATURES)), np.float32)
        self._known = np.full((count, task.stop, 3), -1.0)
        exact = task.distribution == Bernoulli.distribution and task.D == 1 and problem.boundary is not None
        theta = problem.boundary if exact else None
        self._scales = task.sigma, task.scale, math.nan if theta is None else theta, problem.tolerance

    def fill(self, pulls: Ints, seen: Floats, variance: Floats, remaining: Ints) -> NDArray[np.float32]:
        """The observation (E, stop * F), a live view; `seen`: the means (E, K, ..), NaN for arms never pulled."""
        E, each = len(pulls), self.task.stop // self.task.K  # a row for each coordinate, where they are pulled
        margin, spread = np.repeat(self.problem.margin(seen), each, axis=1), np.ascontiguousarray(variance)
        _features(pulls, margin, spread.reshape(E, -1), remaining, Scales(*self._scales), self._known, self._matrix)
        return self._matrix.reshape(E, -1)
