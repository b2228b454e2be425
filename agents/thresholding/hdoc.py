"""HDoC, LUCB-G and APT-G: Kano, Honda, Sakamaki, Matsuura, Nakamura & Sugiyama, Machine Learning 2019.

symbols     K arms, xi the threshold, N_i pulls, t the pulls of all arms; an arm is output as good where
            mean_i - C_i >= xi, and deleted where mean_i + C_i < xi, C_i = W sqrt(ln(4 K N_i^2 / delta) / (2 N_i)); of
            the arms that are left, the next one is
            "hdoc"    argmax of mean_i + W sqrt(ln t / (2 N_i))
            "lucb-g"  argmax of mean_i + C_i
            "apt-g"   argmin of sqrt(N_i) |mean_i - xi|
departures  D1 ties go to the lowest arm
            D2 samples of sub-Gaussian scale sigma: W = 2 sigma
            D3 the problem's tolerance, under which an arm may be answered either way, widens both sides: an arm is
               left where C_i < |mean_i - xi| + tolerance, and answered by its mean

Good arm identification outputs arms one by one; Threshold asks for all of them at the end, when every arm has been
output or deleted. An arm is left by its own samples alone, and so all three rules need the same pulls to the end, as
round robin over the arms that are left would: they differ in when which arm is known.
"""

from __future__ import annotations

import math
from typing import Any

from bandit_envs.kernels import choice, inlined

from ..core.algorithm import Algorithm
from ..core.confidence import delta_of, scale_of
from ..core.declared import per_arm, setting
from ..core.plans import count_pulls, planned, pull

SAMPLING = ("hdoc", "lucb-g", "apt-g")


@inlined
def half_width(N, own):
    """C_i after N pulls."""
    n = float(N)
    return math.sqrt(own.factor * (math.log(own.level) + 2.0 * math.log(n)) / n)


@inlined
def is_open(ep, own, i):
    """Whether arm i can be neither output nor deleted yet."""
    return half_width(ep.pulls[i], own) >= abs(ep.mean[i] - own.xi) + own.tolerance


class HDoC(Algorithm):
    """HDoC (Kano et al. 2019), run until every arm is known to be good or not, with probability 1 - delta.

    Args:
        delta: None takes the task's, or 0.01 with a budget. sampling: "hdoc", "lucb-g" or "apt-g".
    """

    name, source = "hdoc", "Kano et al., Machine Learning 2019"
    solves = ("Threshold",)
    needs = "delta or budget"
    reads = ()

    xi, tolerance = setting(float), setting(float)
    level, factor = setting(float), setting(float)  # 4 K / delta and W^2 / 2
    sampling = setting(int)  # its place in `SAMPLING`
    undecided = per_arm(bool)  # the arms that are neither output nor deleted

    def __init__(
        self, task: Any, delta: float | None = None, sampling: str = "hdoc", sigma: float | None = None
    ) -> None:
        super().__init__(task)
        self.sampling = SAMPLING.index(choice("sampling", sampling, SAMPLING))
        self.level = 4.0 * self.task.K / delta_of(self.name, self.task, delta, with_budget=0.01)
        self.factor = (2.0 * scale_of(self.task, sigma)) ** 2 / 2.0
        p: Any = self.problem
        self.xi, self.tolerance = p.threshold, p.tolerance

    def begin(ep, own):
        """Every arm has been pulled once."""
        for i in range(len(ep.pulls)):
            own.undecided[i] = is_open(ep, own, i)

    def observe(ep, own):
        """Output or delete the arm that has been pulled."""
        for i in planned(ep):
            own.undecided[i] = is_open(ep, own, i)

    def stops(ep, own):
        """The stopping rule: no arm is left."""
        return not own.undecided.any()

    def sample(ep, own):
        """The sampling rule: pull the arm with the largest index of those that are left."""
        arm, best = 0, -math.inf
        log_t = own.factor * math.log(float(count_pulls(ep))) if own.sampling == 0 else 0.0
        for i in range(len(ep.pulls)):
            if not own.undecided[i]:
                continue
            N = float(ep.pulls[i])
            if own.sampling == 0:
                index = ep.mean[i] + math.sqrt(log_t / N)
            elif own.sampling == 1:
                index = ep.mean[i] + half_width(N, own)
            else:
                index = -math.sqrt(N) * abs(ep.mean[i] - own.xi)
            if index > best:
                arm, best = i, index
        pull(ep, arm)
