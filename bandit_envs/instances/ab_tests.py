"""A prior for A/B tests: variants beside a control, of which many change nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..kernels import rng
from ..kernels.checks import LARGEST, Floats, array, choice, integer, number
from .arms import Arms, Bernoulli, Categorical, Form, Gaussian
from .instance import Sampler

KINDS = ("conversions", "revenue", "marks")
PRICES = 20  # of a purchase


class ABTests(Sampler):
    """Fresh A/B tests in each episode: arm 0 is the control, and of the other arms some are better.

    The logarithm of the control's rate r is uniform. Other arms are no better with probability `nulls`: half of these
    have the rate r, half r / (1 + x), x exponential of mean `worse`. The others have r (1 + x), x of mean `lift`.

    Args:
        arms: K, with the control.
        distribution: "conversions": Bernoulli arms of these rates. "revenue": a visitor buys at this rate, at one of 20
            prices, and else pays 0; prices are quantiles of a lognormal distribution, and the highest is 1. "marks":
            Gaussian arms of these means.
        base: the lowest and the highest r, > 0; None: .01 and .2, of marks 1 and 10. Rates are at most 1.
        nulls: in [0, 1]. lift, worse: > 0.
        spread: standard deviation of marks, or of the logarithm of a price, > 0, of prices at most 10.
        budget: visitors in an episode; None: 2000 for each arm, of marks 20.
    """

    name, positive = "ab-tests", True

    def __init__(
        self,
        arms: int = 10,
        distribution: str = "conversions",
        base: Sequence[float] | None = None,
        nulls: float = 0.5,
        lift: float = 0.1,
        worse: float = 0.02,
        spread: float = 1.0,
        budget: int | None = None,
    ) -> None:
        self.K, self.kind = integer("arms", arms, 2, rng.ARMS_LIMIT), choice("distribution", distribution, KINDS)
        marks = self.kind == "marks"
        most, usual = (LARGEST, [1.0, 10.0]) if marks else (1.0, [0.01, 0.2])
        ends = array("base", usual if base is None else base)
        if ends.shape != (2,) or not 0 < ends[0] <= ends[1] <= most:
            raise ValueError(f"base must be two rates, 0 < lowest <= highest <= {most:g}, got {base!r:.200}")
        self.base, self.nulls = ends.tolist(), number("nulls", nulls, 0, 1)
        self.lift, self.worse = number("lift", lift, 0, 1e6, above=True), number("worse", worse, 0, 1e6, above=True)
        self.spread = number("spread", spread, 0, LARGEST if marks else 10, above=True)
        self.budget = integer("budget", (20 if marks else 2000) * self.K if budget is None else budget, 1)
        self.defaults = {"BetterThanControl": {"budget": self.budget}}
        z, rates = rng.normal_quantiles((np.arange(PRICES) + 0.5) / PRICES), np.full(self.K, ends[1])
        self._prices = np.exp(self.spread * (z - z[-1]))
        made: Arms = Gaussian(rates, self.spread) if marks else Bernoulli(rates)
        if self.kind == "revenue":
            made = Categorical(np.append(0.0, self._prices), self._chances(rates))
        self.arms, self.D, self.distribution = made, 1, made.distribution

    def _chances(self, rates: Floats) -> Floats:
        """The chances (..., K, 21) of the samples 0 and of each price, at rates (..., K)."""
        sold = np.broadcast_to(rates[..., None] / PRICES, (*rates.shape, PRICES))
        return np.concatenate([1.0 - rates[..., None], sold], axis=-1)

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        u, (low, high) = rng.uniforms(key, episode, self.K, 2, stream=rng.INSTANCE), self.base
        x = -np.log1p(-u[..., 1])
        factor = np.where(u[..., 0] < self.nulls, 1 / (1 + self.worse * x), 1 + self.lift * x)
        factor[u[..., 0] < self.nulls / 2] = factor[:, 0] = 1.0
        rates = np.clip(low * (high / low) ** u[:, :1, 0], low, high) * factor
        rates = rates if self.kind == "marks" else np.minimum(rates, 1.0)
        if self.kind != "revenue":
            return rates, self.pack(rates[..., None])
        table = np.cumsum(self._chances(rates), axis=-1)
        table[..., -1] = 2.0  # as those of `Categorical`
        return rates * self._prices.mean(), table

    def to_dict(self) -> Form:
        form: Form = {"arms": self.K, "distribution": self.kind}
        names = ("base", "nulls", "lift", "worse", "spread", "budget")
        return {self.name: form | {name: getattr(self, name) for name in names}}
