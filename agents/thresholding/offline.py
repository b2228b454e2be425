"""The offline algorithm with known gaps: Tao, Blanco, Peng & Zhou, NeurIPS 2019, section 3. An oracle.

symbols     T_i pulls, D_i = |true mean of arm i - theta|
departures  D1 ties go to the lowest index (the paper does not say)
            D2 samples of sub-Gaussian scale sigma: the logarithm is multiplied by 4 sigma^2, which is 1 for samples in
               [0, 1], the paper's; minimising the sum of exp(-x_i D_i^2 / (2 sigma^2)) asks for it

It is the algorithm that LSA imitates without knowing the gaps. It needs them, and `agents.make` fills them in from a
fixed instance whose arms keep their order. What it pulls depends on no sample, and so adaptive algorithms can beat it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.confidence import scale_of
from .static import Static, margins_of


class Offline(Static):
    """An oracle: the offline algorithm with known gaps, margins > 0 (Tao et al. 2019, section 3); LSA imitates it."""

    name, source = "offline", "Tao, Blanco, Peng & Zhou, NeurIPS 2019, section 3"
    solves = ("Threshold",)
    oracles = {"margins": lambda problem, means: np.abs(problem.margin(means)).tolist()}

    def __init__(self, task: Any, margins: Sequence[float] | None = None, sigma: float | None = None) -> None:
        super().__init__(task, margins)
        self.logs = -4 * scale_of(self.task, sigma) ** 2 * np.log(margins_of(self, margins))  # D2
