"""dp-index: the Whittle-type index of a Bernoulli arm under a Beta prior, by dynamic programming. Fixed budget.

The arms are independent but for the budget. Relaxed to hold on average, with a price lambda per pull, the problem falls
apart into one problem of optimal stopping per arm (Whittle, Journal of Applied Probability 25A, 1988):

    V(a, b) = min(L(a, b), lambda + p V(a + 1, b) + (1 - p) V(a, b + 1))                               (1)

The index of a state is the price at which pulling once more, and going on as is best, costs as much as stopping; it is
the largest drop of the error per pull that any stopping rule can bring (Opt-KG looks one pull ahead). The policy pulls
the arm with the largest index. `relaxed` of `examples/bounds` is what the relaxation says of any policy.

symbols     Beta(a, b) posterior of an arm's mean, p = a / (a + b), theta threshold, N the horizon: pulls of an arm
            L(a, b) = min(P(mean < theta), P(mean >= theta)) the error of stopping
departures  D1 ties go to the lowest index
            D2 rules are optimised for a grid of prices; an index is the drop per pull of the best rule at the price
               below it or above it, whichever is larger: low by less than 1 %
            D3 states beyond the horizon, or whose index lies below the grid, go by ln L - ln n, below all others
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from bandit_envs.kernels import beta_below, integer, jit, number

from ..core.agent import Floats, Ints
from ..core.index_kernels import ArmRule
from ..core.index_policy import IndexPolicy
from .opt_kg import prior_of

HORIZON = 6000  # the largest table: 1.9 million states, some two seconds
BAND = 3.0  # only states with |s - theta n| <= BAND sqrt(n + 1) are in a table: six standard deviations, errors of 1e-9
LEAST, RATIO = 1e-12, 1.2  # the grid of prices: LEAST, LEAST * RATIO, ... to 1/2
LOG_LEAST = math.log(LEAST)
NEVER = -1e4  # stands for the logarithm of 0


@jit
def _losses(theta, a0, b0, low, start, out):
    """L of all states of the table."""
    for n in range(len(low)):
        for i in range(start[n + 1] - start[n]):
            a, b = a0 + low[n] + i, b0 + n - low[n] - i
            out[start[n] + i] = min(beta_below(theta, a, b), beta_below(1.0 - theta, b, a))


@jit
def value_of_prior(table, a0, b0, price, row, length, gain, pulls):
    """V of the prior at this price [1]; gain, pulls (S,) get what going on saves, and its mean pulls; else scratch."""
    low, start, losses = table
    N = len(low) - 1
    row[:], length[:] = 0.0, 0.0  # outside the band the loss is taken to be none; row[s + 1] holds s
    for i in range(start[N + 1] - start[N]):
        row[low[N] + i + 1] = losses[start[N] + i]
    for n in range(N - 1, -1, -1):
        count = start[n + 1] - start[n]
        for i in range(count):
            s = low[n] + i
            p = (a0 + s) / (a0 + b0 + n)
            on, stop = price + p * row[s + 2] + (1.0 - p) * row[s + 1], losses[start[n] + i]
            more = 1.0 + p * length[s + 2] + (1.0 - p) * length[s + 1]
            gain[start[n] + i], pulls[start[n] + i] = stop - on, more
            row[s + 1], length[s + 1] = (on, more) if on < stop else (stop, 0.0)
        row[low[n]], length[low[n]] = 0.0, 0.0
        row[low[n] + count + 1 :], length[low[n] + count + 1 :] = 0.0, 0.0
    return row[1]


@jit
def _indices(table, a0, b0, prices, out):
    """The index of every state with n < N, NaN below the least price; prices in descending order."""
    N = len(table.low) - 1
    states = table.start[N]
    row, length, gain, pulls = np.zeros(N + 3), np.zeros(N + 3), np.empty(states), np.empty(states)
    above = np.zeros(states)  # the drop per pull of the best rule at the price above
    for j in range(len(prices)):
        value_of_prior(table, a0, b0, prices[j], row, length, gain, pulls)
        for i in range(states):
            if gain[i] > 0.0 and math.isnan(out[i]):
                out[i] = max(prices[j] + gain[i] / pulls[i], above[i])
            above[i] = prices[j] + gain[i] / pulls[i]


class Table(NamedTuple):
    """A number for each state with n <= N pulls and s ones, s near theta n; it is at start[n] + s - low[n]."""

    low: Ints  # (N + 1,)
    start: Ints  # (N + 2,)
    losses: Floats  # (S,)

    @classmethod
    def of(cls, threshold: float, prior: tuple[float, float], horizon: int, whole: bool = False) -> Table:
        """The losses up to N = `horizon`, of the states near theta n, or, if `whole`, of all states."""
        n = np.arange(horizon + 1)
        width = (math.sqrt(horizon) + 1.0 if whole else BAND) * np.sqrt(n + 1.0)
        low = np.maximum(np.floor(threshold * n - width), 0).astype(np.int64)
        most = np.minimum(np.ceil(threshold * n + width), n).astype(np.int64)
        start = np.append(0, np.cumsum(most - low + 1))
        losses = np.empty(start[-1])
        _losses(threshold, *prior, low, start, losses)
        return cls(low, start, losses)


@functools.lru_cache(maxsize=8)
def index_table(threshold: float, prior: tuple[float, float], horizon: int) -> tuple[Table, Floats]:
    """ln of the index of the states of a table, (S,), of the prior (a0, b0) and up to horizon >= 1 pulls."""
    table = Table.of(threshold, prior, horizon)
    index = np.full(len(table.losses), np.nan)
    count = math.ceil(math.log(0.5 / LEAST) / math.log(RATIO))
    _indices(table, *prior, LEAST * RATIO ** np.arange(count, -1, -1.0), index)
    n = np.repeat(np.arange(horizon + 1), np.diff(table.start))
    with np.errstate(divide="ignore"):
        late = np.maximum(np.log(table.losses) - np.log(n + 1.0), NEVER) + math.log(LEAST)  # D3
        logs: Floats = np.where(np.isnan(index), late, np.log(index))
    return table, logs


class Lookup(NamedTuple):
    """What the index of a state is read from."""

    low: Ints  # of the table: (N + 1,) and (N + 2,)
    start: Ints
    logs: Floats  # (S,) ln of the index
    horizon: int
    threshold: float


def price_index(own: Any, T: Any, x: Any) -> Any:
    """Minus the logarithm of the index of an arm with T pulls and mean x."""
    n = np.int64(T)
    at = min(n, own.horizon)
    i = np.int64(np.rint(T * x)) - own.low[at]
    if n == at and 0 <= i < own.start[at + 1] - own.start[at]:
        return -own.logs[own.start[at] + i]
    z2 = T * (x - own.threshold) ** 2 / (2 * own.threshold * (1 - own.threshold))  # -ln L, roughly
    return z2 + np.log(T + 1.0) - LOG_LEAST  # D3


class DPIndex(IndexPolicy):
    """Pull the arm with the largest index, by dynamic programming: Threshold in (0, 1) with Bernoulli arms.

    Args:
        prior: (a0, b0) of the Beta prior, both > 0.
        horizon: pulls of an arm that the table covers, >= 2; None: the budget, at most 6000.
    """

    name, source, solves = "dp-index", "Whittle, Journal of Applied Probability 1988, for the loss here", ("Threshold",)
    anytime = False

    def __init__(self, task: Any, prior: tuple[float, float] = (1.0, 1.0), horizon: int | None = None) -> None:
        super().__init__(task)
        if self.task.distribution != "bernoulli":
            raise ValueError(f"dp-index needs Bernoulli arms, got {self.task.distribution}")
        self.threshold = number("threshold", self.task.parameters["threshold"], 0, 1, above=True, below=True)
        self.prior = prior_of(prior)
        most = min(self.task.budget or HORIZON, HORIZON)
        self.horizon = max(most, 2) if horizon is None else integer("horizon", horizon, 2, 20_000)
        self._table, self._logs = index_table(self.threshold, self.prior, self.horizon)
        self.first = float(-self._logs[0])  # no initial pulls

    def arm_rule(self) -> ArmRule:
        table = self._table
        last = len(table.low) - 1  # the horizon that it was made for
        return ArmRule(price_index, Lookup(table.low, table.start, self._logs, last, self.threshold))

    def value(self, T: Floats, x: Floats) -> Floats:
        return self.values(T, x)
