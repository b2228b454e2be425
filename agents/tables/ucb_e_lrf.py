"""UCB-E-LRF, UCB-E with low-rank factorization: Zhou et al., ICLR 2025. Fixed budget.

symbols     K arms, N items, x_ij the score of arm i on item j; an ensemble of M factorizations x_ij ~ u_i . v_j of rank
            r with ridge lambda; mu_ij and s_ij mean and standard deviation (divisor M - 1) of their predictions; eta

L1  Warm up    grade arms until the share `warm_up` of all cells is seen.
L2  Fit        each member starts at u ~ N(0, 1), leaves out each cell with probability `drop`, and alternates `sweeps`
               times between v_j = (sum_i u_i u_i' + lambda I)^-1 sum_i u_i x_ij over the cells that it keeps, and
               likewise u_i.
L3  Cells      x_ij where it is seen, else mu_ij + eta s_ij.
L4  Arm        the one with the largest mean of L3 over all items; none that is complete. Ties to the first.
L5  Items      the next `batch` items that the arm has not been graded on, at most as many as are left. Then L2.
L6  Recommend  fit once more: the arm with the largest mean over all items of x_ij where it is seen, else mu_ij.

departures  D1 the items come in the environment's order, the same for all arms, so that the agent chooses arms alone;
               in L5 it is the items with the largest s_ij there. Of items that no arm has been graded on all
               predictions are 0 by L2, for every arm: they change no choice, and are left out of the fit
            D2 L1 grades all arms on the same items, at most budget / K of them; there it draws single cells at random
            D3 the random numbers of a fit are a function of the number of pulls so far: a recommendation and a choice
               after the same pulls go by the same fit
            D4 once all arms are complete it goes on with the first of them, which shows nothing new
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from bandit_envs import agent_uniforms
from bandit_envs.kernels import integer, normal_quantiles, number

from ..core.agent import Agent, Bools, Floats, Ints, Observation
from ..core.phases import budget_for, rows_of


def factors(w: Floats, wx: Floats, f: Floats, ridge: float) -> Floats:
    """The factors (M, n, r) of n rows, by ridge regression on those of p columns. [L2]

    Args:
        w: (M, n, p), 1 for a cell that a member keeps, else 0. wx: the same, times the scores.
        f: (M, p, r). ridge: lambda.
    """
    M, p, r = f.shape
    squares = w @ (f[..., :, None] * f[..., None, :]).reshape(M, p, r * r)
    left = squares.reshape(M, -1, r, r) + ridge * np.eye(r)
    right = wx @ f
    if r == 1:
        return right / left[..., 0]
    return np.asarray(np.linalg.solve(left, right[..., None])[..., 0], np.float64)


def alternated(x: Floats, w: Floats, u: Floats, ridge: float, sweeps: int) -> Floats:
    """The predictions (M, K, P) of scores x (K, P), of which members keep w; u (M, K, r): where arms start. [L2]"""
    wx = w * x
    for _ in range(sweeps):
        v = factors(w.swapaxes(1, 2), wx.swapaxes(1, 2), u, ridge)
        u = factors(w, wx, v, ridge)
    return u @ v.swapaxes(1, 2)


class UCBELRF(Agent):
    """UCB-E on a table whose missing cells are predicted by an ensemble of low-rank factorizations.

    It recommends by the predictions, too: the mean of what is seen and what is predicted.

    Args:
        task: a task or an environment with a budget >= K, whose arms are the columns of one table.
        rank: r. ensemble: M, 2 or more. ridge: lambda, > 0. drop: probability, below 1. sweeps: of a fit. eta: >= 0.
        batch: items at a time. warm_up: share of the cells, in (0, 1].
    """

    name, source = "ucb-e-lrf", "Zhou et al., ICLR 2025"
    solves, anytime = ("BestArm",), False
    needs = "a table, the budget"
    ready_for: ClassVar[tuple[str, ...]] = ()  # no problem: it needs arms of a table

    def __init__(
        self,
        task: Any,
        rank: int = 1,
        ensemble: int = 64,
        ridge: float = 0.1,
        drop: float = 0.05,
        sweeps: int = 10,
        eta: float = 5.0,
        batch: int = 32,
        warm_up: float = 0.05,
        seed: int = 0,
    ) -> None:
        super().__init__(task)
        self.N = rows_of(self.name, self.task)
        budget = budget_for(self.name, self.task, self.task.K)
        self.rank, self.ensemble = integer("rank", rank, 1, 1000), integer("ensemble", ensemble, 2, 10_000)
        self.ridge, self.drop = number("ridge", ridge, 0, 1e9, above=True), number("drop", drop, 0, 1, below=True)
        self.sweeps, self.eta = integer("sweeps", sweeps, 1, 10_000), number("eta", eta, 0, 1e9)
        self.batch = integer("batch", batch, 1, 2**24)
        self.warm_up = number("warm_up", warm_up, 0, 1, above=True)
        self.first = min(math.ceil(round(self.warm_up * self.N, 9)), budget // self.task.K)  # L1, D2
        self.seed = integer("seed", seed, 0, 2**32 - 1)

    def choose(self, observation: Observation, state: Any) -> tuple[Ints, Ints]:
        found = np.array([self.next_items(observation, e) for e in range(len(observation["pulls"]))], np.int64)
        return found[:, 0], found[:, 1]

    def next_items(self, observation: Observation, e: int) -> tuple[int, int]:
        """The arm to grade in episode e, and on how many items: the rest of those begun, where there are such."""
        pulls, arm = observation["pulls"][e], 0
        begun = np.where(pulls < self.N, (pulls - self.first) % self.batch, 0)
        if pulls.min() < self.first:
            arm = int(np.argmax(pulls < self.first))
            return arm, int(self.first - pulls[arm])  # L1
        if begun.any():
            arm = int(begun.argmax())
        elif observation["remaining"][e, 0] != 0 and (pulls < self.N).any():  # D4
            arm = int(np.where(pulls < self.N, self.sums(observation, e, self.eta), -np.inf).argmax())  # L4
        return arm, int(np.clip(self.N - pulls[arm], 1, self.batch - begun[arm]))  # L5

    def sums(self, observation: Observation, e: int, eta: float) -> Floats:
        """For each arm the sum of its scores, scaled to [0, 1]; of an item without one mu + eta s, (K,). [L2, L3]"""
        pulls, (K, M, r) = observation["pulls"][e], (self.task.K, self.ensemble, self.rank)
        P, public = int(min(pulls.max(), self.N)), np.asarray(observation["public_seed"][e], np.int64)
        low, high = self.task.support or (0.0, 1.0)  # scores are scaled: the model is not one of every unit
        x = np.ascontiguousarray((observation["scores"][e, :, :P] - low) / (high - low))
        seen = np.arange(P) < pulls[:, None]
        uniform = agent_uniforms(public, pulls.sum(keepdims=True), M * K * (r + P), seed=self.seed)[0]  # D3
        start, kept = uniform[: M * K * r].reshape(M, K, r), uniform[M * K * r :].reshape(M, K, P) >= self.drop
        predicted = alternated(x, (kept & seen).astype(np.float64), normal_quantiles(start), self.ridge, self.sweeps)
        cells = predicted.mean(axis=0) + (eta * predicted.std(axis=0, ddof=1) if eta else 0.0)
        sums: Floats = np.where(seen, x, cells).sum(axis=1)
        return sums

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """L6. The arms that have not been pulled, and before the first pull all arms, count 0."""
        batch, single = self._batched(observation)
        rows = range(len(batch["pulls"])) if slots is None else np.arange(len(batch["pulls"]))[slots]
        best = np.array([self.sums(batch, e, 0.0).argmax() for e in rows], np.int64)
        answer: Bools = np.arange(self.task.K) == best[:, None]
        return answer[0] if single else answer
