"""What an answer is expected to lose, given the ones that each arm has shown.

Where an arm's place in the answer has its own threshold, by the posterior of each arm. For the k best arms, by
quadrature: the posterior densities of all arms together, over means in ascending order,

    x_K = y,  x_1 = y z,  x_j = x_1 + (x_K - x_1) v_j,  v_(K-1) = w_(K-1),  v_j = v_(j+1) w_j                       (1)

with all of y, z, w in [0, 1], once for each order of the arms. The densities are polynomials there, and what an answer
loses is constant, a polynomial, or a ratio of two without a zero below, so that Gauss's rule is exact to rounding.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from agents.core.agent import Bools, Floats
from bandit_envs import Problem
from bandit_envs.kernels import beta_below, jit

from .states import Level, next_ones

__all__ = ["Answers", "answers_of"]

MORE_NODES = 4  # than a polynomial needs: for ratios
MOST_NODES = 5 * 10**7  # numbers in the table of densities: 400 MB


class Answers(ABC):
    """The expected losses of answers of a problem.

    Args:
        prior: (a0, b0), the prior of the means.
    """

    def __init__(self, prior: tuple[float, float]) -> None:
        self.prior = prior

    @abstractmethod
    def least(self, level: Level) -> Floats:
        """What the best answer loses in each state, (S,)."""

    @abstractmethod
    def of(self, level: Level, answers: Bools) -> Floats:
        """What these answers (S, K) lose in each state, (S,)."""


def answers_of(problem: Problem, K: int, loss: str, prior: tuple[float, float], budget: int) -> Answers:
    """The expected losses of a problem's answers after a number of pulls.

    Args:
        problem: Threshold or any other whose answer holds the arms above a known boundary, or one for the k best arms.
        K: number of arms.
        loss: "score": 1 - score; "error": 1 if the answer is not correct; or one of the problem's metrics.
        prior: (a0, b0), the prior of the means. budget: the pulls.

    Raises:
        ValueError: for another problem or loss.
    """
    losses = ("score", "error", *problem.metric_names)
    if loss not in losses:
        raise ValueError(f"loss must be one of {', '.join(losses)}, got {loss!r:.200}")
    if problem.boundary is not None and problem.scores_arms and problem.tolerance == 0:
        return Separate(problem.boundary, loss, prior)
    if problem.answer_size is not None:
        return Ranked(problem, K, loss, prior, budget)
    raise ValueError(f"bounds are for Threshold without tolerance, TopK and BestArm, got {problem!r}")


@jit
def _errors(theta: Any, a0: Any, b0: Any, out: Any) -> None:
    """Fill out (2, n + 1) with the probabilities that an arm with s of n ones lies above, or below, theta."""
    n = out.shape[1] - 1
    for s in range(n + 1):
        out[0, s], out[1, s] = beta_below(1.0 - theta, b0 + n - s, a0 + s), beta_below(theta, a0 + s, b0 + n - s)


class Separate(Answers):
    """Of arms that are right in the answer where their mean is at least theta."""

    def __init__(self, theta: float, loss: str, prior: tuple[float, float]) -> None:
        super().__init__(prior)
        self.theta, self.loss = theta, loss

    def least(self, level: Level) -> Floats:
        return self._lost(level, None)

    def of(self, level: Level, answers: Bools) -> Floats:
        return self._lost(level, answers)

    def _lost(self, level: Level, answers: Bools | None) -> Floats:
        errors = []
        for n in range(level.spent + 1):
            errors.append(np.empty((2, n + 1)))
            _errors(self.theta, *self.prior, errors[-1])
        out = np.empty(len(level))
        for states, pulls, ones in level.blocks():
            both = np.stack(
                [errors[n][:, s] for n, s in zip(pulls.tolist(), ones.T, strict=True)], axis=-1
            )  # (2, n, K)
            wrong = both.min(axis=0) if answers is None else np.where(answers[states], both[1], both[0])
            if self.loss == "error":
                out[states] = 1 - (1 - wrong).prod(axis=1)
            else:
                out[states] = wrong.sum(axis=1) / (len(pulls) if self.loss == "score" else 1)
        return out


@jit
def _expected(pulls: Any, first: Any, density: Any, orders: Any, lost: Any, answer: Any, out: Any) -> None:
    """Fill out (S, A) with what each answer loses.

    Args:
        density: (n (n + 1) / 2 + s, K, G), of an arm at the j-th of the means of a node.
        orders: (P, K), arms with ascending means. lost: (A, G), of an answer in terms of these, with the weights.
        answer: (P, A), which answer that is in terms of the arms.
    """
    K, G, A = pulls.shape[1], density.shape[2], len(lost)
    ones, ids, product = np.empty(K, np.int64), np.empty(K, np.int64), np.empty(G)
    out[:] = 0.0
    for block in range(len(pulls)):
        ones[:] = 0
        for state in range(first[block], first[block + 1]):
            for i in range(K):
                ids[i] = pulls[block, i] * (pulls[block, i] + 1) // 2 + ones[i]
            for o in range(len(orders)):
                product[:] = density[ids[orders[o, 0]], 0]
                for j in range(1, K):
                    factor = density[ids[orders[o, j]], j]
                    for g in range(G):
                        product[g] *= factor[g]
                for r in range(A):
                    total = 0.0
                    for g in range(G):
                        total += product[g] * lost[r, g]
                    out[state, answer[o, r]] += total
            next_ones(ones, pulls[block])


class Ranked(Answers):
    """Of the arms with the largest means.

    Args:
        problem: with answers of k arms, for which all arms are alike. K: number of arms.
        loss: see `answers_of`. prior: (a0, b0), whole numbers. budget: pulls of the level that is asked for.

    Raises:
        ValueError: for a prior that is not of whole numbers, and for more nodes than fit into memory.
    """

    def __init__(self, problem: Problem, K: int, loss: str, prior: tuple[float, float], budget: int) -> None:
        super().__init__(prior)
        a0, b0 = prior
        if a0 != int(a0) or b0 != int(b0):
            raise ValueError(f"prior must be two whole numbers for {problem.name}, got {prior}")
        self.K, k = K, problem.answer_size or 1
        means, weights = _nodes(K, (budget + K * int(a0 + b0 - 1)) // 2 + MORE_NODES)
        n = np.repeat(np.arange(budget + 1), np.arange(1, budget + 2))
        s = np.arange(len(n)) - n * (n + 1) // 2
        if len(n) * means.size > MOST_NODES:
            raise ValueError(f"{K} arms and {budget} pulls need too many nodes to integrate over their means")
        log_beta = np.array(
            [
                math.lgamma(a0 + b0 + m) - math.lgamma(a0 + t) - math.lgamma(b0 + m - t)
                for m, t in zip(n, s, strict=True)
            ]
        )
        up, down = np.log(means.T), np.log1p(-means.T)
        self.density = np.exp(
            log_beta[:, None, None] + (a0 + s - 1)[:, None, None] * up + (b0 + n - s - 1)[:, None, None] * down
        )
        sets = [sum(1 << i for i in chosen) for chosen in itertools.combinations(range(K), k)]
        masks = (np.array(sets)[:, None] >> np.arange(K)) & 1 > 0  # (A, K)
        self.lost = np.array([_lost(problem, mask, means, loss) for mask in masks]) * weights
        self.number = np.full(1 << K, -1)  # of an answer, by its bits
        self.number[sets] = np.arange(len(sets))
        self.orders = np.array(list(itertools.permutations(range(K))))
        self.answer = self.number[np.stack([(masks @ (1 << order)) for order in self.orders])]

    def _expected(self, level: Level) -> Floats:
        """What each answer loses, (S, A)."""
        out = np.empty((len(level), len(self.lost)))
        _expected(level.pulls, level.first, self.density, self.orders, self.lost, self.answer, out)
        return out

    def least(self, level: Level) -> Floats:
        found: Floats = self._expected(level).min(axis=1)
        return found

    def of(self, level: Level, answers: Bools) -> Floats:
        alike = Level.of(self.K, level.spent, True)
        at, arms = level.ordered(alike)
        number = self.number[np.take_along_axis(answers, arms, axis=1) @ (1 << np.arange(self.K))]
        found: Floats = self._expected(alike)[at, number]
        return found


def _lost(problem: Problem, mask: Bools, means: Floats, loss: str) -> Floats:
    """What an answer loses at each of the means (G, K)."""
    verdict = problem.verdict(np.broadcast_to(mask, means.shape), means)
    told = {"score": "score", "error": "correct"}.get(loss, loss)
    values: Floats = np.asarray(verdict[told], np.float64)
    return 1.0 - values if loss in ("score", "error") else values


def _nodes(K: int, per_axis: int) -> tuple[Floats, Floats]:
    """Ascending means (G, K), and weights (G,), of Gauss's rule in the variables of [1]."""
    points, masses = np.polynomial.legendre.leggauss(per_axis)
    axes = np.stack(np.meshgrid(*[(points + 1) / 2] * K, indexing="ij"), axis=-1).reshape(-1, K)
    weights = np.stack(np.meshgrid(*[masses / 2] * K, indexing="ij"), axis=-1).reshape(-1, K).prod(axis=1)
    y, z = axes[:, 0], axes[:, 1]
    means = np.empty_like(axes)
    means[:, 0], means[:, -1] = y * z, y
    weights *= y
    inner = np.ones(len(y))
    for j in range(K - 2, 0, -1):
        weights *= inner * y * (1 - z)
        inner = inner * axes[:, j + 1]
        means[:, j] = means[:, 0] + (y - means[:, 0]) * inner
    return means, weights
