"""The network that corrects the index of `formula`: a few bends for each arm, the same for all arms.

What is added to the index of an arm is

    correction = sum over h of out_h f(sum over j of in_jh x_j),    f(x) = x / (1 + |x|)                             (1)

with HIDDEN bends h, and inputs x_j without a unit: first what the arm itself has shown (OWN), then what all arms of its
side have in common (SHARED): the answer holds the arms of side 1, the others are of side -1. Where the problem is
`local`, arms do not depend on each other, and of the shared inputs the first three and `border` alone are not 0: then
the index of an arm is changed by its own pulls only. With out = 0 the index is given by the formula.

symbols     n pulls of the arm, w its evidence, m its mean, K arms, T budget (or 1 / price of a pull), rival: the arm of
            the other side whose mean is nearest to changing the answer, border: such an arm of its own side,
            leader: the arm with the largest mean
"""

from __future__ import annotations

import math

import numpy as np

from bandit_envs.kernels import inlined

from ..core.agent import Floats

HIDDEN = 8
OWN = (
    "evidence",  # ln(1 + w) / 3
    "decided",  # w / (1 + w)
    "share",  # ln(n K / T) / 2
    "spread",  # ln(4 m (1 - m)) / 2 of Bernoulli arms, m moved towards 1/2 by one sample
    "lead",  # 1 of the leader
)
SHARED = (
    "bias",  # 1
    "side",  # of Feasible min(w, 1) times it: of arms of which little is known neither side is likelier
    "rich",  # ln(T / 100 K) / 2
    "left",  # the share of the budget that is left, less a half
    "open",  # the mean of 1 / (1 + w) over all arms
    "rival",  # ln(n K / T) / 2 of the rival
    "border",  # of the border; where arms do not depend on each other, ln max(m - 1, 1) if m faces can meet
    "top",  # of the leader
)
SINGLE = (*OWN[:-1], *SHARED[:3])  # of arms that do not depend on each other; in more dimensions `border` too
LAYERS = len(OWN) + len(SHARED) + 1  # the last holds `out`
BIAS, SIDE, RICH, BORDER = (len(OWN) + SHARED.index(name) for name in ("bias", "side", "rich", "border"))
WEIGHTS = tuple(f"{layer}_{h}" for layer in (*OWN, *SHARED, "out") for h in range(HIDDEN))  # names of all parameters
HUNDRED = math.log(100.0)  # pulls per arm at which beta of the formula is the weight of ln n, and |kappa| is nu


def nets_of(parameters: Floats) -> Floats:
    """Networks (P, LAYERS, HIDDEN) of parameters (P, number of WEIGHTS); (0, 0, 0) where none corrects anything."""
    nets = np.ascontiguousarray(parameters, np.float64).reshape(len(parameters), LAYERS, HIDDEN)
    return nets if nets[:, -1].any() else np.zeros((0, 0, 0))


@inlined
def own_features(n, w, mean, fair):
    """The inputs OWN of a single arm, but for `lead`. mean: of Bernoulli arms, else NaN. fair: ln(T / K)."""
    spread = 0.0
    if not math.isnan(mean):
        m = (n * min(max(mean, 0.0), 1.0) + 0.5) / (n + 1.0)
        spread = 0.5 * math.log(4.0 * m * (1.0 - m))
    return math.log(1.0 + w) / 3.0, w / (1.0 + w), 0.5 * (math.log(n) - fair), spread


@inlined
def single_correction(nets, row, features, side, fair, faces):
    """The correction [1] of an arm that does not depend on the others."""
    one, two, three, four = features
    rich, total = 0.5 * (fair - HUNDRED), 0.0
    for h in range(HIDDEN):
        x = nets[row, BIAS, h] + side * nets[row, SIDE, h] + rich * nets[row, RICH, h]
        x += one * nets[row, 0, h] + two * nets[row, 1, h] + three * nets[row, 2, h] + four * nets[row, 3, h]
        x += faces * nets[row, BORDER, h]
        total += nets[row, LAYERS - 1, h] * x / (1.0 + abs(x))
    return total
