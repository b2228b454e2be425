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
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs import Problem
from bandit_envs.kernels import fleeting, inlined, jit, number, part

from ..core.agent import FLOAT, INT, Bools, Floats, Ints, Observation, seen_means
from ..core.confidence import delta_of, scale_of
from ..core.largest import smallest
from ..core.plan_policy import PlanPolicy, Seen, add, count_pulls, round_rule
from ..core.spellings import AgentState

__all__ = ["UGapE", "complexity"]

C = 0.5


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    k: int
    epsilon: float  # -inf: it does not stop
    level: float  # UGapEc: 4 K / delta; UGapEb: 0
    factor: float  # UGapEc: b^2 c; UGapEb: b^2 a


class Kept(NamedTuple):
    """What a round hands on to the next one, and the arrays that it works on."""

    least: Floats  # (E,) the least B_J so far; UGapEb alone
    best: Bools  # (E, K) the J of that round
    inside: Bools  # (K,) J of the episode at hand
    U: Floats  # (K,)
    B: Floats  # (K,)
    scratch: Floats  # (K,)

    @classmethod
    def of(cls, E: int, K: int) -> Kept:
        """Before the first round of E episodes."""
        return cls(np.full(E, np.inf), np.zeros((E, K), np.bool_), np.zeros(K, np.bool_), *np.zeros((3, K)))


@fleeting
class Own(NamedTuple):
    """The rules of UGapE and its state."""

    rules: Rules
    kept: Kept


@dataclass
class State(AgentState):
    """State of UGapE for E episodes."""

    plans: Any  # (E,) the arm of this round
    kept: Kept


@inlined
def width(seen, e, rules):
    """beta_i sqrt(T_i), which is the same for all arms."""
    if rules.level == 0.0:
        return math.sqrt(rules.factor)
    return math.sqrt(rules.factor * (math.log(rules.level) + 3.0 * math.log(float(count_pulls(seen, e)))))


@part
def gather(seen, e, kept, rules):
    """Set U, B and J of episode e. Returns B_J."""
    K, m, U, B, scratch = seen.mean.shape[1], rules.k, kept.U, kept.B, kept.scratch
    scale = width(seen, e, rules)
    for i in range(K):
        beta = scale / math.sqrt(float(seen.pulls[e, i]))
        U[i] = scratch[i] = seen.mean[e, i] + beta
        B[i] = beta - seen.mean[e, i]  # -L
    next_U = smallest(scratch, K, K - m)  # the (m + 1)-th largest
    mth_U = scratch[K - m]
    for i in range(K - m + 1, K):
        mth_U = min(mth_U, scratch[i])
    for i in range(K):
        B[i] += next_U if U[i] >= mth_U else mth_U
        scratch[i] = B[i]
    B_J, places = smallest(scratch, K, m), m
    for i in range(K):
        kept.inside[i] = B[i] < B_J
        places -= kept.inside[i]
    for i in range(K):
        if places > 0 and B[i] == B_J:
            kept.inside[i] = True
            places -= 1
    return B_J


@inlined
def wider(seen, e, kept, rules):
    """l or u, whichever has the larger beta, which is the one with fewer pulls."""
    l, u = -1, -1  # noqa: E741
    scale, L = width(seen, e, rules), 0.0
    for i in range(seen.mean.shape[1]):
        if kept.inside[i]:
            low = seen.mean[e, i] - scale / math.sqrt(float(seen.pulls[e, i]))
            if l < 0 or low < L:
                l, L = i, low  # noqa: E741
        elif u < 0 or kept.U[i] > kept.U[u]:
            u = i
    fewer = seen.pulls[e, u] - seen.pulls[e, l]
    return u if fewer < 0 or (fewer == 0 and u < l) else l


@inlined
def observe(ep, own):
    """Find J, and keep the best one so far. Returns B_J."""
    e, kept = ep.e, own.kept
    B_J = gather(ep.seen, e, kept, own.rules)
    if ep.plan.beginning:
        kept.least[e] = math.inf
    if own.rules.level == 0.0 and kept.least[e] > B_J:
        kept.least[e] = B_J
        for i in range(len(kept.inside)):
            kept.best[e, i] = kept.inside[i]
    return B_J


@inlined
def stops(ep, own, B_J):
    """The stopping rule: B_J < epsilon."""
    return own.rules.epsilon > B_J


@round_rule(Own, observe=observe, stops=stops)
def ugape(ep, own, B_J):
    """The sampling rule: pull l or u, whichever is wider."""
    add(ep.plan, wider(ep.seen, ep.e, own.kept, own.rules))


@jit
def answers(seen, rules, kept, least, out):
    """Replace the answers out (E, K) of sets with B_J = least (E,) by J where its B_J is less, all arms being seen."""
    for e in range(len(out)):
        if seen.pulls[e].min() > 0 and gather(seen, e, kept, rules) < least[e]:
            out[e] = kept.inside


def complexity(problem: Problem, means: Floats) -> float:
    """H = sum over arms of max((Delta_i + epsilon) / 2, epsilon)^-2, of an instance; infinite where it divides by 0."""
    epsilon, gap = _epsilon(problem), np.abs(problem.margin(means))
    with np.errstate(divide="ignore", over="ignore"):
        return float((np.maximum((gap + epsilon) / 2, epsilon) ** -2.0).sum())


def _epsilon(problem: Any) -> float:
    """The tolerance of one arm by the problem's criterion.   D3"""
    each = problem.criterion == "each" or (problem.criterion == "aggregate" and problem.k == 1)
    return float(problem.epsilon) if each else 0.0


class UGapE(PlanPolicy):
    """UGapE (Gabillon, Ghavamzadeh & Lazaric 2012): k arms, each within epsilon of the k-th best.

    Args:
        task: a task or an environment. With a budget it is UGapEb, else UGapEc.
        delta: UGapEc: None takes the task's. sigma: sub-Gaussian scale of a sample; None takes the task's.
        H: UGapEb: complexity of the instance, > 0. scale: factor of a = (n - K) / (4 H b^2), > 0.
        a: UGapEb: the constant itself, > 0, in place of H and scale.
    """

    name, source, stops = "ugape", "Gabillon, Ghavamzadeh & Lazaric, NIPS 2012", True
    solves = ("TopK", "BestArm")
    needs = "delta or budget"
    promises = ("each",)
    oracles = {"H": complexity}

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
        self.k: int = self.problem.k  # type: ignore[attr-defined]
        self.stops = budget is None
        scale, b = number("scale", scale, 0, above=True), 2.0 * scale_of(self.task, sigma)
        infinite = isinstance(H, float) and math.isinf(H)  # which `agents.make` may have found
        H = H if H is None or infinite else number("H", H, 0, above=True)
        a = None if a is None else number("a", a, 0, above=True)
        if budget is None:
            level = 4.0 * K / delta_of(self.name, self.task, delta)
            self.rules = Rules(self.k, _epsilon(self.problem), level, b**2 * C)
            return
        if a is None:
            if budget <= K:
                raise ValueError(f"ugape needs a budget > K = {K}, got {budget}")
            if H is None:
                raise ValueError(
                    "ugape with a budget is an oracle: it needs H= (or a=), which is known only for a fixed instance"
                )
            if infinite:
                raise ValueError("ugape needs a finite H, got inf: arms at the border are equal; pass a= instead")
        factor = scale * (budget - K) / (4.0 * H) if a is None else b**2 * a  # type: ignore[operator]
        self.rules = Rules(self.k, -math.inf, 0.0, factor)

    def idle(self) -> dict[str, str]:
        if self.task.budget is None:
            return dict.fromkeys(("H", "scale", "a"), "which is of tasks with a budget alone")
        found = {"delta": "which is of tasks without a budget alone"}
        if "a" in self._parameters and self._parameters["a"] is not None:
            return found | dict.fromkeys(("H", "scale"), "as a= stands in its place")
        return found | {"sigma": "as with a budget it cancels, unless a= is given"}

    def initial_state(self, observation: Observation) -> State:
        return State(self.new_plans(observation), Kept.of(*observation["pulls"].shape))

    def rule(self, seen: Seen, observation: Observation, state: State, out: Ints) -> Any:
        return ugape, (seen, state.plans, Own(self.rules, state.kept), out)

    def recommend(self, observation: Observation, state: Any = None, slots: Ints | None = None) -> Bools:
        """The recommendation rule: J; with a budget, the J of the least B_J so far.

        Until all arms have been pulled, it is the plug-in answer.
        """
        means = seen_means(observation, slots)
        answer, single = np.atleast_2d(self.problem.plug_in(means)), means.ndim == 1
        pulls = np.asarray(observation["pulls"])
        pulls = np.ascontiguousarray(np.atleast_2d(pulls if slots is None else pulls[slots]), INT)
        E, K = pulls.shape
        least = np.full(E, np.inf)
        if state is not None and self.task.budget is not None:
            rows: Any = slice(None) if slots is None else slots
            going = (state.plans["beginning"][rows] == 0) & (pulls.min(axis=1) > 0)
            least[going], answer[going] = state.kept.least[rows][going], state.kept.best[rows][going]
        mean = np.ascontiguousarray(np.nan_to_num(np.atleast_2d(means)), FLOAT)
        answers(Seen(pulls, mean), self.rules, Kept.of(1, K), least, answer)
        return answer[0] if single else answer
