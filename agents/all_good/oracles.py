"""Rivals of (ST)^2 in the experiments of Mason, Jain, Tripathy & Nowak, NeurIPS 2020, section 5: UCB and oracle APT.

symbols     m_i empirical mean, N_i pulls, C(t) = sigma sqrt(c ln(n log2(2t) / delta) / t), here with c = 2.08
departures  D1 ties go to the lowest arm
            D2 the answers are the strict ones of the authors' code: m_i > (1 - epsilon) max m, and m_i > threshold
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandit_envs.kernels import number

from ..core.agent import Bools, Floats, Ints, Observation, seen_means
from ..core.confidence import bounds_of, delta_of, scale_of
from ..core.index_kernels import ArmRule, rule_of_method
from ..core.index_policy import IndexPolicy


class UCB(IndexPolicy):
    """Pull the arm with the highest upper confidence bound.

    Args:
        bounds: "running" (upper bounds never rise, as in the authors' code) or "current".
    """

    name, source = "ucb", "Mason et al., NeurIPS 2020, section 5 (authors' code)"
    solves = ("AllGood", "BestArm")
    needs = "delta"

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        c: float = 2.08,
        bounds: str = "running",
        sigma: float | None = None,
    ) -> None:
        super().__init__(task)
        self.level = delta_of(self.name, self.task, delta) / self.task.K
        self.factor = number("c", c, 0, above=True) * scale_of(self.task, sigma) ** 2
        self.running = bounds_of(bounds)

    def value(self, T: Floats, x: Floats) -> Floats:
        return -(x + np.sqrt(self.factor * np.log(np.log2(2 * T) / self.level) / T))

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        if self.problem.answer_size is not None:
            return super().recommend(observation, state, slots)
        return _above(self.problem.margin(seen_means(observation, slots)))


class APTOracle(IndexPolicy):
    """APT with tolerance 0 at the true threshold: pull argmin sqrt(N_i) |m_i - threshold|.

    Args:
        task: a task or an environment. threshold: the best true mean less epsilon (as a fraction of it in the
            multiplicative form), which `agents.make` fills in from a fixed instance.
    """

    name, source = "apt-oracle", "Mason et al., NeurIPS 2020, section 5; Locatelli et al., ICML 2016"
    solves = ("AllGood",)
    oracles = {"threshold": lambda problem, means: float(np.max(means - problem.margin(means)))}

    def __init__(self, task: Any, threshold: float | None = None) -> None:
        super().__init__(task)
        if threshold is None:
            raise ValueError("apt-oracle is an oracle: it needs threshold=, which is known only for a fixed instance")
        self.threshold = number("threshold", threshold)

    def arm_rule(self) -> ArmRule | None:
        return self.tried(rule_of_method(self, "index", self.threshold), self.value)

    def value(self, T: Floats, x: Floats) -> Floats:
        return self.index(T, x - self.threshold)

    def index(self, T: Floats, D: Floats) -> Floats:
        return np.sqrt(T) * np.abs(D)

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        return _above(seen_means(observation, slots) - self.threshold)


def _above(margin: Floats) -> Bools:
    """Arms whose margin is > 0; NaN, an arm never pulled, is not."""
    with np.errstate(invalid="ignore"):
        answer: Bools = margin > 0
    return answer
