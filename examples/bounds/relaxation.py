"""A lower bound for Threshold by Whittle's relaxation: one arm at a time, with a price per pull."""

from __future__ import annotations

import math

import numpy as np

from agents.thresholding.dp_index import HORIZON, LEAST, Table, value_of_prior

__all__ = ["relaxed"]


def relaxed(arms: int, budget: int, threshold: float = 0.5, prior: tuple[float, float] = (1.0, 1.0)) -> float:
    """A lower bound on the expected number of misclassified arms of any policy, for means drawn from the prior.

    Where pulls have a price lambda, the budget needs to hold on average only, which can only help a policy; the bound
    is the largest K V(prior) - lambda T over all prices.

    Args:
        arms: K.
        budget: T.
        threshold: theta.
        prior: (a0, b0), the prior of the means.
    """
    horizon = min(budget, HORIZON)
    table = Table.of(threshold, prior, horizon)
    if horizon < budget:  # pulls beyond the table are taken to be free and to tell all
        table.losses[table.start[horizon] :] = 0.0
    row, states = np.zeros((2, horizon + 3)), np.empty((2, len(table.losses)))

    def dual(log_price: float) -> float:
        price = math.exp(log_price)
        value = float(value_of_prior(table, *prior, price, *row, *states))
        return arms * value - price * budget

    low, high = math.log(LEAST), math.log(0.5)
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):  # concave in the price, so unimodal in its logarithm
        one, two = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, two) if dual(one) > dual(two) else (one, high)
    return max(dual((low + high) / 2), 0.0)
