"""All epsilon-good arms: every arm nearly as good as the best. Mason, Jain, Tripathy & Nowak, NeurIPS 2020."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..instances.instance import Instance, Sampler
from ..kernels.checks import Floats, flag, number
from ..kernels.routines import carray
from ..stopping import LEVELS_SCRATCH, Certifier
from ..stopping.boundaries import range_of
from ..stopping.statistics import one_instance
from .base import Arrays, Measure, Pointer, SetProblem, TaskLike
from .potential import ALL_GOOD, Potential


def _measure(pulls: Pointer, mean: Pointer, K: int, numbers: Pointer, out: Pointer) -> None:
    """The distances of one episode as a routine; numbers: epsilon, and 1 where it is multiplicative.

    An arm's own mean decides on the arm; the best one, and those that may come to be the best, also move the boundary.
    """
    n, m, found, given = carray(pulls, K), carray(mean, K), carray(out, K), carray(numbers, 2)
    epsilon, multiplicative, best, unseen = given[0], given[1] != 0.0, 0, False
    for i in range(K):
        unseen |= n[i] == 0
        found[i] = 0.0
        if m[i] > m[best]:
            best = i
    if unseen:
        return
    top = m[best]
    boundary = min((1.0 - epsilon) * top, top) if multiplicative else top - epsilon
    up, down = math.inf, math.inf  # how far the boundary moves until it meets an arm
    for i in range(K):
        margin = m[i] - boundary
        found[i] = margin
        if i != best:
            if margin >= 0.0:
                up = min(up, margin)
            else:
                down = min(down, -margin)
    for i in range(K):
        if i == best:
            found[i] = min(found[i], up, down)
        elif found[i] >= 0.0:
            found[i] = min(found[i], top - m[i] + up)


class AllGood(SetProblem):
    """All arms within epsilon of the best mean m: mean >= m - epsilon, or mean >= (1 - epsilon) m.

    Args:
        epsilon: > 0 (multiplicative: in (0, 1)).
        multiplicative: measure epsilon and slack as fractions of the best mean, which must be positive.
        slack: arms this much worse than epsilon may be answered, >= 0.

    An answer is correct if it holds all good arms and none that is worse than epsilon + slack. The score is F1. The
    plug-in answer holds the arms that are up to slack / 2 worse than epsilon: it is right wherever the errors of the
    empirical margins stay below slack / 2. With `multiplicative`, it takes at most 1 - epsilon for slack, as epsilon
    and slack together are then at most the whole of the best mean.
    """

    name, asks = "AllGood", "all arms nearly as good as the best"
    source = "Mason, Jain, Tripathy & Nowak 2020"
    parameters = {
        "epsilon": "Arms at most this much worse than the best one are wanted.",
        "multiplicative": "Epsilon and slack are fractions of the best mean.",
        "slack": "Arms at most this much worse than epsilon may be answered.",
    }
    scored = "F1, twice those asked for in the answer, divided by all in it plus all asked for"
    scores_arms, any_order, never_empty = False, True, True

    def __init__(self, epsilon: float = 0.1, multiplicative: bool = False, slack: float = 0.0) -> None:
        self.multiplicative = flag("multiplicative", multiplicative)
        high = 1.0 if self.multiplicative else np.inf
        self.epsilon = number("epsilon", epsilon, 0, high, above=True, below=True)
        self.slack = number("slack", slack, 0)

    def check(self, task: TaskLike, source: Instance | Sampler | None = None) -> None:
        super().check(task, source)
        if self.multiplicative and isinstance(source, Sampler) and not source.positive:
            raise ValueError(f"multiplicative {self.name} needs a best mean > 0 in every episode, got {source!r:.200}")

    @property
    def bands(self) -> tuple[float, float]:
        return 0.0, self.slack

    def in_words(self, which: str, nouns: str, unit: str = "", minimize: bool = False) -> str:
        most, more = (
            f"{100 * x:.15g} %" if self.multiplicative else f"{x:.15g}{unit}" for x in (self.epsilon, self.slack)
        )
        near = f" Those up to {more} worse than that may be put on either side."
        return f"{which} are at most {most} worse than the best one?" + near * (self.slack > 0)

    def mirrored(self, pivot: float) -> dict[str, object] | None:
        return None if self.multiplicative else self.settings

    def _boundary(self, means: Floats, epsilon: float) -> Floats:
        """Means at or above this are within epsilon of the best, shape (..., 1); NaN where all are NaN."""
        best: Floats = np.fmax.reduce(means, axis=-1, keepdims=True)
        if self.multiplicative:
            return np.minimum((1 - epsilon) * best, best)  # never above the best, also where it is negative
        return best - epsilon

    def plug_in(self, means: ArrayLike) -> NDArray[np.bool_]:
        m = np.asarray(means, np.float64)
        with np.errstate(invalid="ignore"):
            return m >= self._boundary(m, self._kept)

    def right_answer(self, means: ArrayLike) -> NDArray[np.bool_]:
        with np.errstate(invalid="ignore"):
            return self.margin(means) >= 0

    @property
    def _kept(self) -> float:
        """How much worse than the best an arm of the plug-in answer may be."""
        return self.epsilon + 0.5 * (min(self.slack, 1.0 - self.epsilon) if self.multiplicative else self.slack)

    def margin(self, means: ArrayLike) -> Floats:
        """mean - boundary; NaN for arms never pulled."""
        m = np.asarray(means, np.float64)
        return m - self._boundary(m, self.epsilon)

    def truth(self, means: ArrayLike) -> Floats:
        """The margins in units of epsilon and slack: as they are, or as fractions of the best mean.

        Raises:
            ValueError: in multiplicative form, where the best mean is not positive.
        """
        m = np.asarray(means, np.float64)
        if not self.multiplicative:
            return self.margin(m)
        best = m.max(axis=-1, keepdims=True)
        if (best <= 0).any():
            raise ValueError(f"multiplicative AllGood needs a best mean > 0, got {best.min():g}")
        with np.errstate(over="ignore"):
            share: Floats = self.margin(m) / best
        return share

    def _score(self, verdict: Arrays, K: int) -> Floats:
        return verdict["f1"]

    def distances(self, pulls: ArrayLike, mean: ArrayLike, out: Floats | None = None) -> Floats:
        return self.distance_routine().tell(pulls, mean, out)

    def distance_routine(self) -> Measure:
        return Measure.of(_measure, self._kept, self.multiplicative)

    def potential(self) -> Potential:
        return Potential(ALL_GOOD, epsilon=self.epsilon, multiplicative=self.multiplicative)

    def evidence_routine(self, K: int, numbers: Floats, search: str) -> Certifier:
        none = -math.inf
        if self.multiplicative:  # the best mean is positive
            keep = 1.0 - self.epsilon
            halves = keep - self.slack, 0.0, 0.0, 1.0 / keep, 0.0, 0.0, 1.0 - self._kept, 0.0
        else:
            worse, (_, width) = self.epsilon + self.slack, range_of(numbers)
            worse *= 2.0 if worse >= width else 1.0  # no arm is so much worse: the ends of the range are no exception
            halves = 1.0, -worse, none, 1.0, self.epsilon, none, 1.0, -self._kept
        if search != "exact":
            return Certifier.of("all-good", K, numbers, *halves)
        if halves[0] <= 0.0:
            raise ValueError(f"evidence for multiplicative {self.name} needs epsilon + slack < 1, got {self!r}")
        return Certifier.of("all-good-exactly", K, numbers, *halves, scratch=2 * K + LEVELS_SCRATCH)

    def hardness(self, means: ArrayLike) -> dict[str, Any]:
        """The quantities of the bounds of Mason et al. 2020, for one instance, means (K,).

        Returns:
            `good`: number of good arms. `alpha`, `beta`: distance of the nearest good and bad arm from the boundary.
            `H`: the sum over arms in the lower bound, of max of squared inverse distances (Theorem 2.1).
            `H_st2`: the sum in the upper bound of (ST)^2, with the slack (Theorems 3.1 and 3.2).
            `H_moderate`: the sum in the lower bound that does not depend on delta, up to a constant, where one arm is
            alone within 2 beta of the best one and beta < epsilon / 2 (Theorem 4.1; additive form).
            `H_fareast`: the sum over bad arms in the upper bound of FAREAST, which does not depend on delta
            (Theorem 4.2; additive form).
        """
        m = np.asarray(means, np.float64)
        margin = self.margin(m)
        inside, outside = margin[margin >= 0], -margin[margin < 0]
        alpha, beta, best = float(inside.min()), float(outside.min(initial=np.inf)), float(m.max())
        keep = 1 - self.epsilon if self.multiplicative else 1.0
        with np.errstate(divide="ignore"):
            boundary, above = margin**-2.0, (best + alpha / keep - m) ** -2.0
            below = (best + beta / keep - m) ** -2.0
            capped = (self.slack * (best if self.multiplicative else 1.0)) ** -2.0 if self.slack else np.inf
        lower = np.maximum(boundary, above)
        return {
            "good": len(inside),
            "alpha": alpha,
            "beta": beta,
            "H": float(lower.sum()),
            "H_st2": float(np.minimum(np.maximum(lower, below), capped).sum()),
            "H_moderate": float(((best + beta - m) ** -2.0).sum()),
            "H_fareast": float(len(m) * boundary[margin < 0].sum()),
        }

    def lower_bound(
        self, means: ArrayLike, delta: float, *, distribution: str | None = None, sigma: float | None = None
    ) -> float:
        """See `Problem.lower_bound`; NaN where the slack lets several answers be correct."""
        margin = self.truth(one_instance(means, "gaussian" if distribution is None else distribution))
        several = ((margin < 0) & (margin >= -self.slack)).any()
        return math.nan if several else super().lower_bound(means, delta, distribution=distribution, sigma=sigma)

    def paper_lower_bound(self, means: ArrayLike, delta: float) -> float:
        """2 ln(1 / (2.4 delta)) H pulls on average, for N(mean, 1) arms (Theorem 2.1; 0 where that is negative).

        For N(mean, sd^2) arms it is sd^2 times as many; for arms of other distributions it says nothing.
        """
        delta = number("delta", delta, 0, 1, above=True, below=True)
        return max(-2 * math.log(2.4 * delta), 0.0) * float(self.hardness(means)["H"])

    def fareast_bound(self, means: ArrayLike, delta: float, c3: float = 1.0, c4: float = 1.0) -> float:
        """c3 H ln(n / delta) + c4 H_fareast: pulls of FAREAST on an event of probability 1 - delta (Theorem 4.2).

        It is for arms of sub-Gaussian scale 1, the additive form without slack, and delta < 1/8. Doubly logarithmic
        terms are left out, as in the paper, which gives no constants: with 1 for both it shows how the bound grows from
        one instance to another, and not how many pulls there are.

        Args:
            means: (K,).
            delta: error probability in (0, 1/8).
            c3: constant of the term that grows with ln(1 / delta), > 0.
            c4: constant of the other term, > 0.

        Raises:
            ValueError: for the multiplicative form, and for slack, where the paper names no such sums.
        """
        if self.multiplicative or self.slack > 0:
            raise ValueError(f"Theorem 4.2 is about the additive form without slack, got {self!r:.200}")
        delta = number("delta", delta, 0, 1 / 8, above=True, below=True)
        c3, c4 = number("c3", c3, 0, above=True), number("c4", c4, 0, above=True)
        found = self.hardness(means)
        return c3 * float(found["H"]) * (math.log(np.size(means)) - math.log(delta)) + c4 * float(found["H_fareast"])
