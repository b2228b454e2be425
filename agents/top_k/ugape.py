"""UGapE, unified gap-based exploration: Gabillon, Ghavamzadeh & Lazaric, NIPS 2012. UGapEb, fixed budget, and UGapEc.

symbols     K arms, m = k wanted, T_i pulls, t - 1 the pulls of all arms so far, n the budget; beta_i = b sqrt(a / T_i)
            (UGapEb) or b sqrt(c ln(4 K (t - 1)^3 / delta) / T_i), c = 1/2 (UGapEc); U_i, L_i = mean_i +- beta_i;
            B_i = (the m-th largest U of the other arms) - L_i; J the m arms with the least B, B_J the largest of these;
            l in J with the least L, u outside with the largest U; gap Delta_i: from the m-th mean or the (m+1)-th
            H = sum over arms of max((Delta_i + epsilon) / 2, epsilon)^-2: the paper's H_epsilon over b^2
departures  D1 ties go to the lowest arm
            D2 samples of sub-Gaussian scale sigma count as rewards of width b = 2 sigma
            D3 epsilon is 0 where the criterion is another one than the paper's, "each": there the exact set is right
            D4 the answer of UGapEb, J(t) with the least B_J(t), has regard to the samples of the last pull, too
            D5 UGapEb that has lost its state answers the best of the sets that it sees from then on

UGapEb is an oracle: it needs the true H, which `agents.make` fills in from a fixed instance. As
a = (n - K) / (4 H b^2), b cancels: beta_i = sqrt((n - K) / (4 H T_i)).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs import Problem
from bandit_envs.kernels import inlined, number, part, view

from ..core.agent import Bools, Floats, Ints, Observation, seen_means
from ..core.algorithm import Algorithm
from ..core.confidence import delta_of, scale_of
from ..core.declared import per_arm, per_episode, scratch, setting
from ..core.largest import keep_largest, nth_largest, smallest
from ..core.plans import count_pulls, pull

C = 0.5


@inlined
def width(ep, own):
    """beta_i sqrt(T_i), which is the same for all arms."""
    if own.level == 0.0:
        return math.sqrt(own.factor)
    return math.sqrt(own.factor * (math.log(own.level) + 3.0 * math.log(float(count_pulls(ep)))))


@view
def sees(own):
    """J of the samples so far."""
    return own.best if own.level > 0.0 else own.J


@part
def gather(pulls, mean, m, scale, U, B, J, work):
    """Set U, B and J, by beta_i = scale / sqrt(T_i). Returns B_J."""
    K = len(mean)
    for i in range(K):
        beta = scale / math.sqrt(float(pulls[i]))
        U[i] = work[i] = mean[i] + beta
        B[i] = mean[i] - beta  # L
    next_U = smallest(work, K, K - m)  # the (m + 1)-th largest
    mth_U = work[K - m]
    for i in range(K - m + 1, K):
        mth_U = min(mth_U, work[i])
    for i in range(K):
        B[i], J[i] = B[i] - (next_U if U[i] >= mth_U else mth_U), True  # -B
    B_J = -nth_largest(B, J, m, work)
    keep_largest(B, J, m, work)
    return B_J


def complexity(problem: Problem, means: Floats) -> float:
    """H = sum over arms of max((Delta_i + epsilon) / 2, epsilon)^-2, of an instance; infinite where it divides by 0."""
    epsilon, gap = _epsilon(problem), np.abs(problem.margin(means))
    with np.errstate(divide="ignore", over="ignore"):
        return float((np.maximum((gap + epsilon) / 2, epsilon) ** -2.0).sum())


def _epsilon(problem: Any) -> float:
    """The tolerance of one arm by the problem's criterion.   D3"""
    each = problem.criterion == "each" or (problem.criterion == "aggregate" and problem.k == 1)
    return float(problem.epsilon) if each else 0.0


class UGapE(Algorithm):
    """UGapE (Gabillon, Ghavamzadeh & Lazaric 2012): k arms, each within epsilon of the k-th best.

    Args:
        task: a task or an environment. With a budget it is UGapEb, else UGapEc.
        delta: UGapEc: None takes the task's. sigma: sub-Gaussian scale of a sample; None takes the task's.
        H: UGapEb: complexity of the instance, > 0. scale: factor of a = (n - K) / (4 H b^2), > 0.
        a: UGapEb: the constant itself, > 0, in place of H and scale.
    """

    name, source, reads = "ugape", "Gabillon, Ghavamzadeh & Lazaric, NIPS 2012", ()
    solves = ("TopK", "BestArm")
    needs = "delta or budget"
    promises = ("each",)
    oracles = {"H": complexity}

    k, epsilon = setting(int), setting(float)
    level = setting(float)  # UGapEc: 4 K / delta; UGapEb: 0
    factor = setting(float)  # UGapEc: b^2 c; UGapEb: b^2 a
    U, B, J, work = scratch(float), scratch(float), scratch(bool), scratch(float)
    best = per_arm(bool)  # the answer: J, of UGapEb the J of the least B_J so far
    least = per_episode(float)  # its B_J
    width = per_episode(float)  # beta_i sqrt(T_i)

    def begin(ep, own):
        """Nothing has been seen yet."""
        ep.now.least = math.inf

    def observe(ep, own):
        """Find J, the answer of UGapEc; UGapEb keeps it only if its B_J is the least so far."""
        ep.now.width, J = width(ep, own), sees(own)
        B_J = gather(ep.pulls, ep.mean, own.k, ep.now.width, own.U, own.B, J, own.work)
        if own.level > 0.0:
            ep.now.least = B_J
        elif ep.now.least > B_J:
            ep.now.least = B_J
            for i in range(len(own.J)):
                own.best[i] = own.J[i]

    def stops(ep, own):
        """The stopping rule of UGapEc: B_J < epsilon."""
        return ep.now.least < own.epsilon

    def sample(ep, own):
        """The sampling rule: pull l or u, whichever has the larger beta, which is the one with fewer pulls."""
        l, u, scale, L, J = -1, -1, ep.now.width, 0.0, sees(own)  # noqa: E741
        for i in range(len(ep.mean)):
            if J[i]:
                low = ep.mean[i] - scale / math.sqrt(float(ep.pulls[i]))
                if l < 0 or low < L:
                    l, L = i, low  # noqa: E741
            elif u < 0 or own.U[i] > own.U[u]:
                u = i
        fewer = ep.pulls[u] - ep.pulls[l]
        pull(ep, u if fewer < 0 or (fewer == 0 and u < l) else l)

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        sigma: float | None = None,
        H: float | None = None,
        scale: float = 1.0,
        a: float | None = None,
    ) -> None:
        super().__init__(task)
        K, budget = self.task.K, self.task.budget
        self.k = self.problem.k  # type: ignore[attr-defined]
        self.may_stop = budget is None
        self.level = self.epsilon = 0.0
        scale, b = number("scale", scale, 0, above=True), 2.0 * scale_of(self.task, sigma)
        infinite = isinstance(H, float) and math.isinf(H)  # which `agents.make` may have found
        H = H if H is None or infinite else number("H", H, 0, above=True)
        a = None if a is None else number("a", a, 0, above=True)
        if budget is None:
            self.level = 4.0 * K / delta_of(self.name, self.task, delta)
            self.epsilon, self.factor = _epsilon(self.problem), b**2 * C
            return
        if a is None:
            if budget <= K:
                raise ValueError(f"ugape needs a budget > K = {K}, got {budget}")
            if H is None:
                text = "ugape with a budget is an oracle:"
                raise ValueError(f"{text} it needs H= (or a=), which is known only for a fixed instance")
            if infinite:
                raise ValueError("ugape needs a finite H, got inf: arms at the border are equal; pass a= instead")
        self.factor = scale * (budget - K) / (4.0 * H) if a is None else b**2 * a  # type: ignore[operator]

    def idle(self) -> dict[str, str]:
        if self.task.budget is None:
            return dict.fromkeys(("H", "scale", "a"), "which is of tasks with a budget alone")
        found = {"delta": "which is of tasks without a budget alone"}
        if "a" in self._parameters and self._parameters["a"] is not None:
            return found | dict.fromkeys(("H", "scale"), "as a= stands in its place")
        return found | {"sigma": "as with a budget it cancels, unless a= is given"}

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The recommendation rule: J; with a budget, the J of the least B_J so far.

        Until all arms have been pulled, it is the plug-in answer.
        """
        found, pulls = seen_means(observation, slots), np.asarray(observation["pulls"])
        means, pulls = np.atleast_2d(found), np.atleast_2d(pulls if slots is None else pulls[slots])
        now, whole = {"pulls": pulls, "mean": np.nan_to_num(means)}, pulls.min(axis=1) > 0
        fresh = self.initial_state(now)  # J of the samples so far is what an agent without its state sees; D4, D5
        self.choose(now, fresh)
        answer: Bools = fresh.best.copy()
        if not whole.all():
            answer[~whole] = self.problem.plug_in(means[~whole])
        if state is not None and self.task.budget is not None:
            rows: Any = slice(None) if slots is None else slots
            kept = whole & (state.now["beginning"][rows] == 0) & ~(fresh.now["least"] < state.now["least"][rows])
            answer[kept] = state.best[rows][kept]
        return answer[0] if found.ndim == 1 else answer
