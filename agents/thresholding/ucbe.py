"""UCBE for thresholding: Audibert & Bubeck, COLT 2010, as adapted by Locatelli et al. 2016 and Tao et al. 2019.

symbols     T_i pulls, D_i = |mean_i - theta| empirical gap, T budget, K arms, H = sum of squared inverse gaps
departures  D1 ties go to the lowest index
            D2 gaps are distances from the problem's boundary: on Feasible this is MD-UCBE (Katz-Samuels & Scott 2018)

An oracle: it needs the true H, which `agents.make` fills in from a fixed instance.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import number

from ..core.agent import Floats
from ..core.index_policy import IndexPolicy


class UCBE(IndexPolicy):
    """UCBE(b) with a = 4^b (T - K) / H; with `scale`, a = scale * 25/36 (T - K) / H (the form of MD-UCBE). T > K.

    Args:
        b: exponent of the exploration constant. scale: replaces 4^b by scale * 25/36, > 0.
        H: hardness of the instance, > 0. a: the constant itself, >= 0, in place of all others.
    """

    name, source = "ucbe", "Audibert & Bubeck, COLT 2010; Tao et al., NeurIPS 2019; Katz-Samuels & Scott, ICML 2018"
    anytime = False
    oracles = {"H": lambda problem, means: problem.hardness(means).get("H")}

    def __init__(
        self, task: Any, b: float = 0.0, scale: float | None = None, H: float | None = None, a: float | None = None
    ) -> None:
        super().__init__(task)
        budget, K, b = self.task.budget, self.task.K, number("b", b, -500, 500)
        scale = None if scale is None else number("scale", scale, 0, above=True)
        infinite = isinstance(H, float) and math.isinf(H)  # which `agents.make` may have found
        H = H if H is None or infinite else number("H", H, 0, above=True)
        if a is not None:
            self.a = number("a", a, 0)
            return
        if budget is None or budget <= self.task.stop:
            arms = "K" if self.task.pull == "arm" else "K * D"
            raise ValueError(f"ucbe needs a budget > {arms} = {self.task.stop}, got {budget}")
        if H is None:
            raise ValueError("ucbe is an oracle: it needs H= (or a=), which is known only for a fixed instance")
        if infinite:
            raise ValueError("ucbe needs a finite H, got inf: some arms lie exactly on the boundary; pass a= instead")
        factor = 4.0**b if scale is None else scale * 25 / 36
        # Where coordinates are pulled, the budget is worth budget * K / stop pulls of whole arms.
        self.a = factor * (budget * K / self.task.stop - K) / H

    def idle(self) -> dict[str, str]:
        given = [name for name in ("a", "scale") if self._parameters.get(name) is not None]
        if "a" in given:
            return dict.fromkeys(("b", "scale", "H"), "as a= stands in its place")
        return {"b": "as scale= stands in its place"} if given else {}

    def index(self, T: Floats, D: Floats) -> Floats:
        return np.abs(D) - np.sqrt(self.a / T)
