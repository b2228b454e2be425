"""Two agents: an index policy, and a free algorithm written as a function of one episode."""

from agents import IndexPolicy, PlanPolicy
from agents.core import Seen, add, clear, following
from bandit_envs.kernels import episode_kernel, number


class NearestFirst(IndexPolicy):
    """Pull the arm with the least T^power |D|: T pulls, D the margin of its mean. APT has the power 1/2."""

    name, source = "nearest-first", "an example"

    def __init__(self, task, power: float = 0.5) -> None:
        super().__init__(task)
        self.power = number("power", power, 0)

    def index(self, T, D):
        return T**self.power * abs(D)


@episode_kernel
def next_arm(e, seen: Seen, threshold, epsilon, plans):
    """The next arm of episode e. A round pulls the least sure arm of the answer and the least sure of the others."""
    arm = following(seen, e, plans[e])
    if arm < 0:  # every arm has been pulled once, and the plan is over
        clear(plans[e])
        for inside in (True, False):
            which, least = -1, 0.0
            for i in range(seen.pulls.shape[1]):
                margin = abs(seen.mean[e, i] - threshold) - epsilon
                sure = seen.pulls[e, i] * margin**2
                if (margin >= 0) == inside and (which < 0 or sure < least):
                    which, least = i, sure
            if which >= 0:
                add(plans[e], which)
        arm = following(seen, e, plans[e])
    return arm


class BothSides(PlanPolicy):
    """The algorithm as an agent."""

    name, source, solves = "both-sides", "an example", ("FarGood",)

    def rule(self, seen, observation, state, out):
        return next_arm, (seen, self.problem.threshold, self.problem.epsilon, state.plans, out)
