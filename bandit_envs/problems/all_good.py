"""All epsilon-good arms: every arm nearly as good as the best. Mason, Jain, Tripathy & Nowak, NeurIPS 2020."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .base import Floats, SetProblem, number

__all__ = ["AllGood"]


class AllGood(SetProblem):
    """All arms within epsilon of the best mean m: mean >= m - epsilon, or mean >= (1 - epsilon) m.

    Args:
        epsilon: > 0 (multiplicative: in (0, 1)).
        multiplicative: measure epsilon and slack as fractions of the best mean, which must be positive.
        slack: arms this much worse than epsilon may be answered, >= 0.

    An answer is correct when it holds all good arms and none that is worse than epsilon + slack. The score is F1.
    """

    name, parameters = "AllGood", ("epsilon", "multiplicative", "slack")

    def __init__(self, epsilon: float = 0.1, multiplicative: bool = False, slack: float = 0.0) -> None:
        if not isinstance(multiplicative, (bool, np.bool_)):
            raise ValueError(f"multiplicative must be True or False, got {multiplicative!r}")
        self.multiplicative = bool(multiplicative)
        high = 1.0 if multiplicative else np.inf
        self.epsilon = number("epsilon", epsilon, 0, high, above=True, below=True)
        self.slack = number("slack", slack, 0)

    @property
    def bands(self) -> tuple[float, float]:
        return 0.0, self.slack

    def _boundary(self, means: Floats) -> Floats:
        """Means at or above this are good, shape (..., 1); -inf where all are NaN."""
        best = np.fmax.reduce(means, axis=-1, keepdims=True)
        if self.multiplicative:
            return np.minimum((1 - self.epsilon) * best, best)  # never above the best, also where it is negative
        return best - self.epsilon

    def margin(self, means: ArrayLike) -> Floats:
        """mean - boundary; NaN for arms never pulled."""
        m = np.asarray(means, np.float64)
        return m - self._boundary(m)

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
        return self.margin(m) / best

    def _score(self, verdict: dict[str, NDArray[Any]], K: int) -> Floats:
        return verdict["f1"]

    def hardness(self, means: ArrayLike) -> dict[str, Any]:
        """`good`: number of good arms; `alpha`, `beta`: distance of the nearest good and bad arm from the boundary."""
        margin = self.margin(means)
        inside, outside = margin[margin >= 0], -margin[margin < 0]
        return {"good": len(inside), "alpha": float(inside.min()), "beta": float(outside.min(initial=np.inf))}
