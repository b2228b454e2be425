"""Arms judged by their differences from a control: APT and LSA of these.

symbols     m_i empirical means, N_i pulls, c the control; an arm is better where mu_i > a mu_c + b
            D_i = m_i - a m_c - b; T_i = 1 / (1 / N_i + a^2 / N_c), the pulls of one arm that tell its mean as well as
            those of both tell the difference, where all have one scale
departures  D1 the papers know no control: it is pulled while its share of the pulls is below `control_share`, None:
               1 / (1 + sqrt(K - 1)), at which all differences are known best (Dunnett, JASA 1955)
            D2 ties go to the lowest arm
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

from bandit_envs import BetterThanControl
from bandit_envs.kernels import inlined, number

from ..core.agent import LOCAL_PROBLEMS, Problems, task_of
from ..core.algorithm import Algorithm
from ..core.confidence import comparison_of
from ..core.declared import setting
from ..core.index_policy import IndexPolicy
from ..core.plans import count_pulls, pull

CONTROLLED = Problems(lambda kind: issubclass(kind, BetterThanControl), "a problem with a control")


@inlined
def lacks_control(ep, own):
    """Whether the control has less than its share of the pulls."""
    return ep.pulls[own.control] < own.share * count_pulls(ep)


class APTOnDifferences(Algorithm):
    """APT against a control: the arm with the least `factor` T_i (|D_i| + tolerance)^2 + `logs` ln T_i, or it, D1."""

    name, solves, prices, reads, factor, tolerance = "apt", CONTROLLED, True, (), setting(float), setting(float)
    control, a, b, share, logs = setting(int), setting(float), setting(float), setting(float), setting(float)

    def sample(ep, own):
        """The sampling rule."""
        arm, least, M = own.control, math.inf, float(ep.pulls[own.control])
        for i in range(0 if lacks_control(ep, own) else len(ep.pulls)):
            T = 1.0 / (1.0 / ep.pulls[i] + own.a * own.a / M)
            D = abs(ep.mean[i] - (own.a * ep.mean[own.control] + own.b)) + own.tolerance
            index = own.factor * T * D * D + own.logs * math.log(T)
            if i != own.control and index < least:
                arm, least = i, index
        pull(ep, arm)

    def __init__(self, task: Any, tolerance: float | None = None, control_share: float | None = None) -> None:
        super().__init__(task)
        self.control, self.a, self.b, self.share = comparison_of(self, control_share)
        self.factor, self.logs = 1.0, 0.0
        self.tolerance = number("tolerance", self.problem.tolerance if tolerance is None else tolerance, 0)


class ControlledIndex(IndexPolicy):
    """An index policy that on a problem with a control is another class, `on_differences`; `control_share`: see D1."""

    solves = Problems(lambda kind: kind.local or kind.name in CONTROLLED, f"{LOCAL_PROBLEMS.needed}, or a control")
    prices = True
    on_differences: ClassVar[Any]

    def __new__(cls, *arguments: Any, **keywords: Any) -> Any:
        source = arguments[0] if arguments else keywords.get("task")  # None: a copy is made
        agent = super().__new__(cls, *arguments, **keywords)  # which needs the task first
        if source is not None and task_of(source).problem in CONTROLLED:
            return cls.on_differences(*arguments, **keywords)
        return agent

    def idle(self) -> dict[str, str]:
        return {"control_share": f"as {self.task.problem} has no control"}
