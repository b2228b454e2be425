"""APT, Anytime Parameter-free Thresholding: Locatelli, Gutzeit & Carpentier, ICML 2016, Algorithm 1.

symbols     tau threshold, T_i pulls, D_i = |mean_i - tau| empirical gap, eps precision
departures  D1 ties go to the lowest index
            D2 gaps are distances from the problem's boundary: on Feasible this is MD-APT (Katz-Samuels & Scott 2018)
            D3 against a control they are of differences, see `control.differences`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandit_envs.kernels import number

from ..control.differences import APTOnDifferences, ControlledIndex
from ..core.agent import Floats


class APT(ControlledIndex):
    """APT (Locatelli et al. 2016), with a tolerance eps >= 0, None: the problem's; MD-APT on Feasible."""

    name, source = "apt", "Locatelli, Gutzeit & Carpentier, ICML 2016, Algorithm 1; Katz-Samuels & Scott, ICML 2018"

    def __init__(self, task: Any, tolerance: float | None = None, control_share: float | None = None) -> None:
        super().__init__(task)
        self.tolerance = number("tolerance", self.problem.tolerance if tolerance is None else tolerance, 0)

    def index(self, T: Floats, D: Floats) -> Floats:
        return np.sqrt(T) * (np.abs(D) + self.tolerance)  # Alg. 1, B_i(t)


APT.on_differences, APTOnDifferences.source, APTOnDifferences._made_by_class = APTOnDifferences, APT.source, APT
