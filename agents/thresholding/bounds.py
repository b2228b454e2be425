"""Bounds on what any policy can reach on Threshold with Bernoulli arms whose means are uniform or of a Beta law.

`best` is exact, by dynamic programming over the states of all arms together, for few arms and pulls; `relaxed` is a
lower bound for any number of both, by Whittle's relaxation: one arm at a time, with a price per pull.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs import integer, jit

from ..core.agent import Floats
from .dp_index import HORIZON, LEAST, Table, value_of_prior

__all__ = ["best", "relaxed"]

STATES = 5 * 10**7  # of all arms together: 400 MB


def relaxed(arms: int, budget: int, threshold: float = 0.5, prior: tuple[float, float] = (1.0, 1.0)) -> float:
    """A lower bound on the expected number of misclassified arms of any policy, for means drawn from the prior.

    Where pulls have a price lambda, the budget needs to hold on average only, which can only help a policy; the bound
    is the largest K V(prior) - lambda T over all prices.

    Args:
        arms: K.
        budget: T.
        threshold: theta.
        prior: (a0, b0), the law of the means.
    """
    horizon = min(budget, HORIZON)
    table = Table.of(threshold, prior, horizon)
    if horizon < budget:  # pulls beyond the table are taken to be free and to tell all
        table.losses[table.start[horizon] :] = 0.0
    row, states = np.zeros((2, horizon + 3)), np.empty((2, len(table.losses)))

    def dual(log_price: float) -> float:
        price = math.exp(log_price)
        value = float(value_of_prior(table.losses, *prior, table.low, table.start, price, *row, *states))
        return arms * value - price * budget

    low, high = math.log(LEAST), math.log(0.5)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):  # concave in the price, so unimodal in its logarithm
        one, two = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, two) if dual(one) > dual(two) else (one, high)
    return max(dual((low + high) / 2), 0.0)


@jit
def _best(K: Any, budget: Any, losses: Any, up: Any, chance: Any, pulls: Any, index: Any, value: Any) -> Any:
    """V of the start; up (S, 2): the states after a one and a zero. With an index (S,): of its policy."""
    S = len(losses)
    ids, weight = np.empty(K, np.int64), np.empty(K, np.int64)
    for i in range(K):
        weight[i] = S ** (K - 1 - i)
    for state in range(S**K - 1, -1, -1):  # a pull leads to a state with a larger number
        rest, spent, loss = state, 0, 0.0
        for i in range(K):
            ids[i] = rest // weight[i]
            rest -= ids[i] * weight[i]
            spent += pulls[ids[i]]
            loss += losses[ids[i]]
        if spent > budget:
            continue
        if spent == budget:
            value[state] = loss
            continue
        least, chosen = math.inf, math.inf
        for i in range(K):
            j = ids[i]
            hit, miss = state + (up[j, 0] - j) * weight[i], state + (up[j, 1] - j) * weight[i]
            after = chance[j] * value[hit] + (1.0 - chance[j]) * value[miss]
            if len(index) == 0:
                least = min(least, after)
            elif index[j] < chosen:
                least, chosen = after, index[j]
        value[state] = least
    return value[0]


def best(
    arms: int,
    budget: int,
    threshold: float = 0.5,
    prior: tuple[float, float] = (1.0, 1.0),
    index: Floats | None = None,
) -> float:
    """The exact expected number of misclassified arms of the best policy, or of an index policy (smallest index first).

    Args:
        arms: K.
        budget: T.
        threshold: theta.
        prior: (a0, b0), the law of the means.
        index: of the state with s ones in n pulls at n (n + 1) / 2 + s, n <= T; ties go to the lowest arm.

    Raises:
        ValueError: for more states than fit into memory.
    """
    K, T = integer("arms", arms, 1, 8), integer("budget", budget, 1, 10**4)
    S = (T + 1) * (T + 2) // 2
    if S**K > STATES:
        raise ValueError(f"{K} arms and {T} pulls have {S**K:.1e} states, at most {STATES:.0e} are looked at")
    n = np.repeat(np.arange(T + 1), np.arange(1, T + 2))
    s = np.arange(S) - n * (n + 1) // 2
    losses = Table.of(threshold, prior, T, whole=True).losses
    up = np.stack([(n + 1) * (n + 2) // 2 + s + 1, (n + 1) * (n + 2) // 2 + s], axis=1)
    chance = (prior[0] + s) / (prior[0] + prior[1] + n)
    own = np.empty(0) if index is None else np.ascontiguousarray(index, np.float64)
    return float(_best(K, T, losses, up, chance, n, own, np.zeros(S**K)))
