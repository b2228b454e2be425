"""Two agents: an index policy, and an algorithm."""

from agents import Algorithm, IndexPolicy, pull, setting
from bandit_envs.kernels import number


class NearestFirst(IndexPolicy):
    """Pull the arm with the least T^power |D|: T pulls, D the margin of its mean. APT has the power 1/2."""

    name, source = "nearest-first", "an example"

    def __init__(self, task, power: float = 0.5) -> None:
        super().__init__(task)
        self.power = number("power", power, 0)

    def index(self, T, D):
        return T**self.power * abs(D)


class BothSides(Algorithm):
    """Pull the least sure arm of the answer and the least sure of the others, round by round."""

    name, source, solves = "both-sides", "an example", ("FarGood",)
    threshold, epsilon = setting(float), setting(float)

    def __init__(self, task) -> None:
        super().__init__(task)
        self.threshold, self.epsilon = self.problem.threshold, self.problem.epsilon

    def sample(ep, own):
        """The sampling rule."""
        for inside in (True, False):
            which, least = -1, 0.0
            for i in range(len(ep.pulls)):
                margin = abs(ep.mean[i] - own.threshold) - own.epsilon
                sure = ep.pulls[i] * margin**2
                if (margin >= 0) == inside and (which < 0 or sure < least):
                    which, least = i, sure
            if which >= 0:
                pull(ep, which)
