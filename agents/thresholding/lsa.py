"""LSA, the Logarithmic-Sample Algorithm: Tao, Blanco, Peng & Zhou, NeurIPS 2019, Algorithm 1. Anytime, fixed budget.

symbols     theta threshold, T_i pulls, D_i = |mean_i - theta| empirical gap, alpha tuning constant (1.35 in section 5)
departures  D1 ties go to the lowest index (the paper does not say)
            D2 gaps are distances from the problem's boundary, so that it runs on Feasible too; against a control they
               are of differences, see `control.differences`
            D3 alpha is for samples in [0, 1], of scale 1/2; gaps are measured in units of 2 sigma
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandit_envs.kernels import number

from ..control.differences import APTOnDifferences, ControlledIndex
from ..core.agent import Floats
from ..core.confidence import MOST, scale_of


class LSA(ControlledIndex):
    """LSA (Tao et al. 2019): minimises the expected number of misclassified arms; alpha > 0, of samples in [0, 1]."""

    name, source = "lsa", "Tao, Blanco, Peng & Zhou, NeurIPS 2019, Algorithm 1"

    def __init__(self, task: Any, alpha: float = 1.35, control_share: float | None = None) -> None:
        super().__init__(task)
        self.alpha = number("alpha", alpha, 0, MOST, above=True)
        self.per_square = self.alpha / (2.0 * scale_of(self.task, None)) ** 2  # D3

    def index(self, T: Floats, D: Floats) -> Floats:
        return self.per_square * T * (D * D) + 0.5 * np.log(T)  # Alg. 1, line 4


class LSAOnDifferences(APTOnDifferences):
    """`LSA` against a control.   D2"""

    name, source, _made_by_class = LSA.name, LSA.source, LSA

    def __init__(self, task: Any, alpha: float = 1.35, control_share: float | None = None) -> None:
        super().__init__(task, 0.0, control_share)
        self.factor = number("alpha", alpha, 0, MOST, above=True) / (2.0 * scale_of(self.task, None)) ** 2  # D3
        self.logs = 0.5


LSA.on_differences = LSAOnDifferences
