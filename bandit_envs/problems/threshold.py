"""Thresholding: all arms whose mean is at least a threshold.

Locatelli, Gutzeit & Carpentier, ICML 2016 (tolerance, P[any arm wrong]); Tao, Blanco, Peng & Zhou, NeurIPS 2019
(aggregate regret: the expected number of misclassified arms).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..instances.instance import Instance, Sampler
from ..kernels.checks import Floats, number
from ..stopping import Certifier
from ..stopping.boundaries import range_of
from .base import SetProblem, TaskLike
from .potential import LOCAL, Potential
from .threshold_measures import hardness


class Threshold(SetProblem):
    """All arms with mean >= threshold.

    Args:
        threshold: theta.
        tolerance: arms closer than this to the threshold may be answered either way, >= 0.

    The score is 1 - misclassified / K.
    """

    name, asks = "Threshold", "all arms with mean at least a threshold"
    source = "Locatelli, Gutzeit & Carpentier 2016; Tao, Blanco, Peng & Zhou 2019"
    parameters = {
        "threshold": "The arms wanted have at least this mean.",
        "tolerance": "Arms nearer to the threshold may be answered either way.",
    }
    local, any_order = True, True

    def __init__(self, threshold: float = 0.5, tolerance: float = 0.0) -> None:
        self.threshold, self.tolerance = number("threshold", threshold), number("tolerance", tolerance, 0)
        self.boundary = self.threshold

    def check(self, task: TaskLike, source: Instance | Sampler | None = None) -> None:
        super().check(task, source)
        if task.support is not None and not task.support[0] <= self.threshold <= task.support[1]:
            support = list(task.support)
            raise ValueError(f"threshold must lie in the support {support} of the arms, got {self.threshold}")

    def in_words(self, which: str, nouns: str, unit: str = "", minimize: bool = False) -> str:
        question = f"{which} have a mean of {self.threshold:.15g}{unit} or {'less' if minimize else 'more'}?"
        near = f" Those within {self.tolerance:.15g}{unit} of it may be put on either side."
        return question + near * (self.tolerance > 0)

    def mirrored(self, pivot: float) -> dict[str, object] | None:
        return self.settings | {"threshold": pivot - self.threshold}

    def margin(self, means: ArrayLike) -> Floats:
        """mean - threshold."""
        return np.asarray(means, np.float64) - self.threshold

    def potential(self) -> Potential:
        return Potential(LOCAL, np.array([[-1.0]]), np.array([-self.threshold]), self.tolerance, exact=True)

    def evidence_routine(self, K: int, numbers: Floats, search: str) -> Certifier:
        fall, rise = self.threshold - self.tolerance, self.threshold + self.tolerance
        low, width = range_of(numbers)
        fall = low - width if fall <= low else fall  # no mean is below the range
        return Certifier.of("threshold", K, numbers, fall, rise, self.threshold)

    def hardness(self, means: ArrayLike) -> dict[str, Any]:
        """`H` = sum of gap^-2 (Tao et al. 2019); `H_tolerance` with gap + tolerance (Locatelli et al. 2016, eq. 2).

        `problems.threshold_measures` has what else Tao et al. derive from the gaps, |margin|.
        """
        gap = np.abs(self.margin(means))
        return {"H": hardness(gap), "H_tolerance": hardness(gap + self.tolerance)}
