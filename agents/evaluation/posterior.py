"""Instances drawn from the posterior of the means, given all samples of an episode.

Given the samples, draws from the posterior have the same distribution as the true means. So the mean loss of an answer
on some draws (1 less its score) has the same expectation as its loss on the true means, under any policy, with far less
noise. The training of `evolved` uses this where `drawable`.

Each coordinate of each arm is drawn independently. The prior of a mean is uniform on one or two intervals, or on
finitely many values. The posterior is a histogram: each interval has CELLS cells of the same width, on its part within
WIDE standard errors of the empirical mean.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import PureExplorationVectorEnv, Sampler
from bandit_envs.kernels import jit

Floats = NDArray[np.float64]
CELLS, WIDE = 48, 6.0
FAR = -600.0  # the log width of a cell where no part of an interval is within WIDE standard errors
DRAWS = 16  # instances for each episode
CHUNK = 2000  # episodes that are drawn for at a time


def drawable(envs: PureExplorationVectorEnv) -> bool:
    """Whether `drawn_losses` takes an environment: Bernoulli or Gaussian arms of a `Sampler`, the score as reward."""
    source = envs.setting.source
    scored = envs.setting.reward == "score" and envs.task.pull == "arm"
    known = type(source) is Sampler and source.distribution in ("bernoulli", "gaussian")  # subclasses draw otherwise
    return scored and known and "normal" not in source.to_dict()["sampler"]["mean"]


def pieces(sampler: Sampler) -> list[tuple[float, float]]:
    """The intervals (low, high) of the prior, of equal probability; a single value is an interval of length 0."""
    [(kind, values)] = sampler.to_dict()["sampler"]["mean"].items()
    if kind == "uniform":
        low, high = values
        return [(low, high)]
    if kind == "around":
        centre, least, most = values
        return [(centre - most, centre - least), (centre + least, centre + most)]
    return [(value, value) for value in values]


@jit
def _draw(n, mean, variance, low, high, u, out):
    """Fill out (E, M, K) with draws, by inversion at u (E, M, K); n pulls, mean: (E, K); variance: 0 for Bernoulli."""
    P = len(low)
    start, width, mass = np.empty(P), np.empty(P), np.empty(P * CELLS)
    for e in range(n.shape[0]):
        for k in range(n.shape[1]):
            N, m = n[e, k], mean[e, k]
            v = variance if variance > 0.0 else (N * m * (1.0 - m) + 1.0) / (N + 2.0)
            reach = WIDE * math.sqrt(v / max(N, 1e-9))
            for p in range(P):
                begin, end = max(low[p], m - reach), min(high[p], m + reach)
                if begin > end:  # the interval is beyond reach: take its nearer end
                    begin = end = low[p] if low[p] > m else high[p]
                start[p], width[p] = begin, (end - begin) / CELLS
            best = -math.inf
            for p in range(P):
                size = 0.0  # log width of a cell; of single values all have the same mass
                if high[p] > low[p]:
                    size = math.log(width[p]) if width[p] > 0.0 else FAR
                for c in range(CELLS):
                    x = start[p] + (c + 0.5) * width[p]
                    if variance > 0.0:
                        value = -0.5 * N * (x - m) ** 2 / variance
                    else:
                        y = min(max(x, 1e-12), 1.0 - 1e-12)
                        value = N * (m * math.log(y) + (1.0 - m) * math.log(1.0 - y))
                    value += size
                    mass[p * CELLS + c] = value
                    best = max(best, value)
            total = 0.0
            for i in range(len(mass)):
                total += math.exp(mass[i] - best)
                mass[i] = total
            for j in range(u.shape[1]):
                wanted = u[e, j, k] * total
                a = min(np.searchsorted(mass, wanted), len(mass) - 1)  # the cell
                before = mass[a - 1] if a > 0 else 0.0
                share = (wanted - before) / max(mass[a] - before, 1e-300)
                out[e, j, k] = start[a // CELLS] + (a % CELLS + share) * width[a // CELLS]


def drawn_losses(envs: PureExplorationVectorEnv, root: int, episodes: NDArray[np.int64]) -> Floats:
    """Losses of the plug-in answers in all N slots, (N,), each the mean over DRAWS instances; for `drawable` ones.

    Every slot is at the end of its episode. Slots of the same episode draw by the same uniform numbers.
    """
    numbers, which = np.unique(episodes, return_inverse=True)
    random = np.random.default_rng([root, int(numbers[0])])
    source: Any = envs.setting.source
    K, D = envs.task.K, envs.task.D
    shape = len(numbers), DRAWS, K * D
    layers = random.permuted(np.broadcast_to(np.arange(DRAWS)[:, None], shape), axis=1)  # one draw from each layer
    u = (layers + random.random(shape)) / DRAWS
    low, high = np.array(pieces(source), np.float64).T.copy()
    variance = 0.0 if source.distribution == "bernoulli" else source.spread**2
    lost, seen = np.empty(len(episodes)), envs.means()
    answers = envs.problem.plug_in(seen)
    mean = np.nan_to_num(seen).reshape(len(episodes), K * D)
    for first in range(0, len(episodes), CHUNK):
        rows = slice(first, first + CHUNK)
        own = u[which[rows]]
        n, means = np.repeat(envs.pulls[rows].astype(np.float64), D, axis=1), np.empty(own.shape)
        _draw(n, mean[rows], variance, low, high, own, means)
        repeated = np.repeat(answers[rows][:, None], DRAWS, axis=1)
        shown = means if D == 1 else means.reshape(-1, DRAWS, K, D)
        lost[rows] = 1.0 - envs.problem.score(repeated, shown).mean(1)
    return lost
