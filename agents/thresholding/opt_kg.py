"""Opt-KG, the optimistic knowledge gradient: Chen, Lin & Zhou, JMLR 2015, Algorithm 1. Binary samples, anytime.

symbols     Beta(a, b) the posterior of an arm's mean, theta threshold, I(a, b) = P(Beta(a, b) >= theta)
            h(x) = max(x, 1 - x), R the larger of the two gains of h(I) that one more sample can bring
departures  D1 ties go to the lowest index
            D2 theta is any number in (0, 1), not only 1/2
            D3 gains are compared as logarithms, since late in a run all of them underflow
            D4 logarithms that agree to nine decimals are ties, so that rounding does not break the exact ones: with
               theta = 1/2 and prior (1, 1), Beta(2, 1) and Beta(3, 2) both gain 1/8

With P = I(a, b) and d = theta^a (1 - theta)^b / B(a, b) a success moves P to P + d/a and a failure to P - d/b, so that
for P >= 1/2 the gains are d/a and, where the failure crosses 1/2, d/b - (2P - 1); for P < 1/2 the same mirrored.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandit_envs.kernels import number

from ..core.agent import Bools, Floats, Ints, Observation
from ..core.index_policy import IndexPolicy
from ..core.optional import require

GRID = 2.0**30  # D4
KEPT = 2**22  # pulls up to which logarithms of the Gamma function are kept
MOST = 1e9  # of a prior: beyond it logarithms of a posterior lose their digits


def prior_of(prior: Any) -> tuple[float, float]:
    """The parameters (a0, b0) of a Beta prior."""
    if not isinstance(prior, (tuple, list)) or len(prior) != 2:
        raise ValueError(f"prior must be a pair (a, b) of numbers > 0, got {prior!r:.200}")
    a, b = (number("prior", part, 0, above=True) for part in prior)
    if max(a, b) > MOST:
        raise ValueError(f"prior must be two numbers of at most {MOST:g}, got {prior!r:.200}")
    return a, b


def log_gain(a: Floats, b: Floats, threshold: float, log_beta: Floats | None = None) -> Floats:
    """ln R of arms with posterior Beta(a, b), (n,); `log_beta` is ln B(a, b) if known. [Chen, Lin & Zhou 2015, eq. 13]

    A sample that contradicts the present label brings a gain only where it can turn it. The median of Beta(a, b) lies
    between its mode and its mean (a, b > 1), so for most arms it is clear without I(a, b) that it cannot.
    """
    from scipy import special

    log_d = a * np.log(threshold) + b * np.log1p(-threshold)
    log_d -= special.betaln(a, b) if log_beta is None else log_beta
    n = a + b
    with np.errstate(divide="ignore", invalid="ignore"):
        above = threshold < np.minimum(a / (n + 1), (a - 1) / (n - 1))  # also after one more failure
        below = threshold > np.maximum((a + 1) / (n + 1), a / (n - 1))  # also after one more success
    gain: Floats = log_d - np.log(np.where(above, a, b))
    doubt = np.flatnonzero(~((above | below) & (a > 1) & (b > 1)))
    if len(doubt):
        a, b, log_d = a[doubt], b[doubt], log_d[doubt]
        P = special.betaincc(a, b, threshold)
        confirms, contradicts = np.where(P >= 0.5, a, b), np.where(P >= 0.5, b, a)
        turn = np.exp(log_d) / contradicts - np.abs(2.0 * P - 1.0)
        with np.errstate(divide="ignore"):
            gain[doubt] = np.maximum(log_d - np.log(confirms), np.log(np.maximum(turn, 0.0)))
    return gain


class OptKG(IndexPolicy):
    """Opt-KG (Chen et al. 2015): Threshold in (0, 1) with Bernoulli arms, whose prior is Beta(a0, b0), both > 0.

    Its own answer, `recommend`, goes by the posterior; with `actions="arm"` the plug-in answer is scored instead.
    """

    name, source, solves = "opt-kg", "Chen, Lin & Zhou, JMLR 2015, Algorithm 1", ("Threshold",)

    def __init__(self, task: Any, prior: tuple[float, float] = (1.0, 1.0)) -> None:
        super().__init__(task)
        if self.task.distribution != "bernoulli":
            raise ValueError(f"opt-kg needs Bernoulli arms, got {self.task.distribution}")
        require("scipy.special", "opt-kg")
        self.threshold = number("threshold", self.task.parameters["threshold"], 0, 1, above=True, below=True)
        self.prior = prior_of(prior)
        self._log_gamma: Floats = np.zeros((3, 0))  # of a0 + n, b0 + n, a0 + b0 + n for n = 0, 1, ...
        self.first = float(self.value(np.zeros(1), np.zeros(1))[0])  # no initial pulls

    def _log_beta(self, hits: Floats, misses: Floats) -> Floats:
        """ln B(a, b) of the posteriors after so many ones and zeros."""
        from scipy import special

        a0, b0 = self.prior
        i, j = hits.astype(np.intp), misses.astype(np.intp)
        n = i + j
        if n.max() >= KEPT:
            return np.asarray(special.gammaln(a0 + i) + special.gammaln(b0 + j) - special.gammaln(a0 + b0 + n))
        if (most := int(n.max())) >= self._log_gamma.shape[1]:
            counts = np.arange(2 * most + 64)
            self._log_gamma = special.gammaln(np.stack([a0 + counts, b0 + counts, a0 + b0 + counts]))
        log_beta: Floats = self._log_gamma[0][i] + self._log_gamma[1][j] - self._log_gamma[2][n]
        return log_beta

    def value(self, T: Floats, x: Floats) -> Floats:
        hits = np.rint(T * x)
        misses = T - hits
        gain = log_gain(self.prior[0] + hits, self.prior[1] + misses, self.threshold, self._log_beta(hits, misses))
        return -np.rint(gain * GRID) / GRID  # D4

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """Arms with I(a, b) >= 1/2: more likely above than below."""
        from scipy import special

        rows: Any = ... if slots is None else slots
        pulls, mean = (np.asarray(observation[name])[rows] for name in ("pulls", "mean"))
        hits = np.rint(pulls * mean)
        a, b = self.prior[0] + hits, self.prior[1] + (pulls - hits)
        answer: Bools = special.betaincc(a, b, self.threshold) >= 0.5
        return answer
