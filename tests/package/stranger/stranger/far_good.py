"""The problem FarGood: the arms that are far from a threshold."""

import numpy as np

from bandit_envs import SetProblem
from bandit_envs.kernels import number


class FarGood(SetProblem):
    """All arms whose mean is at a distance of at least epsilon from a threshold, on either side.

    Args:
        threshold: the threshold. epsilon: the least distance, > 0.
    """

    name, asks, source = "FarGood", "all arms whose mean is far from a threshold", "an example"
    parameters = {
        "threshold": "The arms wanted are far from it.",
        "epsilon": "The arms wanted are at least this far away.",
    }
    local = True

    def __init__(self, threshold: float = 0.5, epsilon: float = 0.2) -> None:
        self.threshold = number("threshold", threshold)
        self.epsilon = number("epsilon", epsilon, 0, above=True)

    def margin(self, means):
        return np.abs(np.asarray(means, np.float64) - self.threshold) - self.epsilon
