"""Top-two rules: a leader and its challenger, of which one is pulled.

Russo, COLT 2016 (TTTS); Jourdan, Degenne, Baudry, de Heide & Kaufmann, NeurIPS 2022 (EB-TC, EB-TCI); You, Qin, Wang &
Yang, COLT 2023 (information-directed proportions; the k best arms; thresholding).

symbols     leader i: in the answer; challenger j: outside; C(i, j) their transportation cost: the evidence that mu_i >
            mu_j - epsilon, min over y of N_i d(m_i, y) + N_j d(m_j, y + epsilon)
            EB-TC    i and j of the plug-in answer with the least C. For the best arm: i is the empirical best
            EB-TCI   the least C + ln N_i + ln N_j (of the best arm, i is given, so that N_j alone matters)
            TTTS     a sample theta of the posterior gives i; the first of further samples whose answer differs gives j
            "fixed"  the leader is pulled with probability beta
            "ids"    with probability N_i d_i / (N_i d_i + N_j d_j), d the divergences at the least C
departures  D1 the answer is certified by the boundaries of this package, looked at after every 1/200 more pulls
            D2 k arms, TTTS: the leader is drawn evenly among arms of the first answer that the second has not, and the
               challenger among those that it has instead
            D3 Threshold: a way to be wrong moves one arm, which is pulled: proportions do not matter. TTTS: an arm that
               two samples classify differently, drawn evenly
            D4 TTTS: posteriors are N(m, s^2 / N), s the scale, or Beta(1 + hits, 1 + misses); after 20 samples that
               all give the first answer, the way with the least C is taken
            D5 every arm is pulled once first; there is no forced exploration
            D6 leader and challenger are kept for max(1, sqrt(N) / 2) pulls, rounded down, N the pulls of the rarer one,
               and of more than 127 arms for at least min(N, (K / 128)^2), but on Threshold;
               chance decides of each which is pulled, and those of one arm are made together

With a budget it does not stop, and delta is 0.01 where nobody names one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs import (
    BERNOULLI,
    STUDENT,
    agent_uniform,
    choice,
    episode_kernel,
    inlined,
    integer,
    number,
    part,
)

from ..core.agent import Fields, Floats, Ints, Observation
from ..core.plan_policy import add, following
from .policy import BONUS, PULLS, Certificate, CertifiedMemory, CertifiedPolicy, Shown, held, is_due, take_in
from .ways import LOCAL, TOP_K, Alone, Book, Sides, book_of, cheapest, mark_largest, moved, way_of

__all__ = ["TopTwo"]

RULES, PROPORTIONS = ("eb-tci", "eb-tc", "ttts"), ("ids", "fixed")
EB_TCI, _EB_TC, TTTS = range(3)  # kernel constants
TRIES = 20  # kernel constants: samples of the posterior for a challenger


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    rule: int
    ids: bool
    beta: float
    seed: int
    threshold: float  # of Threshold


class Sampled(NamedTuple):
    """Room for two samples of the posterior."""

    theta: Floats  # (K,)
    first: Any  # (K,) int8
    second: Any  # (K,) int8


@inlined
def uniform(public_seed, e, round, seed):
    """The next random number in [0, 1) of episode e."""
    round.draws += 1
    return agent_uniform(public_seed[e, 0], round.draws - 1, seed)


@inlined
def normal(public_seed, e, round, seed):
    """A standard normal number (Box & Muller 1958)."""
    u, angle = uniform(public_seed, e, round, seed), uniform(public_seed, e, round, seed)
    return math.sqrt(-2.0 * math.log1p(-u)) * math.cos(2.0 * math.pi * angle)


@part
def gamma(shape, public_seed, e, round, seed):
    """A number of the Gamma law of this shape, >= 1, and scale 1 (Marsaglia & Tsang 2000)."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(public_seed, e, round, seed)
        v = (1.0 + c * x) ** 3
        if v > 0.0:
            u = uniform(public_seed, e, round, seed)
            if math.log1p(-u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return d * v


@part
def answer_of_sample(shown, e, sides, rules, public_seed, round, theta, answer):
    """Fill in a sample theta of the posterior, and the answer that is right for it."""
    K = len(theta)
    for i in range(K):
        N, m = float(shown.pulls[e, i]), shown.mean[e, i]
        if sides.law == BERNOULLI:
            hits = gamma(1.0 + N * m, public_seed, e, round, rules.seed)
            theta[i] = hits / (hits + gamma(1.0 + N * (1.0 - m), public_seed, e, round, rules.seed))
        else:
            v = shown.variance[e, i] if sides.law == STUDENT else sides.variance
            theta[i] = m + math.sqrt(v / N) * normal(public_seed, e, round, rules.seed)
        answer[i] = theta[i] >= rules.threshold
    if sides.kind == TOP_K:
        mark_largest(theta, sides.k, answer)


@part
def one_of(first, second, u, either):
    """One of the arms of the first answer that the second has not, or of all that only one of them has: the u-th."""
    size = 0
    for i in range(len(first)):
        size += first[i] != second[i] and (first[i] == 1 or either)
    left = min(int(u * size), size - 1)
    for i in range(len(first)):
        left -= first[i] != second[i] and (first[i] == 1 or either)
        if left < 0:
            return i
    return -1


@part
def thompson(shown, e, sides, rules, public_seed, round, sampled):
    """TTTS: leader and challenger, or -1 twice."""
    answer_of_sample(shown, e, sides, rules, public_seed, round, sampled.theta, sampled.first)
    for _ in range(TRIES):
        answer_of_sample(shown, e, sides, rules, public_seed, round, sampled.theta, sampled.second)
        same = True
        for i in range(len(sampled.first)):
            same &= sampled.first[i] == sampled.second[i]
        if not same:
            u = uniform(public_seed, e, round, rules.seed)
            if sides.kind == LOCAL:
                i = one_of(sampled.first, sampled.second, u, True)
                return i, i
            i = one_of(sampled.first, sampled.second, u, False)
            u = uniform(public_seed, e, round, rules.seed) if sides.k > 1 else 0.0
            return i, one_of(sampled.second, sampled.first, u, False)
    return -1, -1


@part
def plan_pull(e, shown, D, sides, rules, public_seed, book, alone, certificate, sampled, plan, round):
    """Plan the next pulls, of the leader and the challenger; nothing if the answer is certified."""
    pulls = shown.pulls[e]
    if take_in(shown, e, D, sides, book, alone, BONUS if rules.rule == EB_TCI else PULLS, plan, round):
        round.draws = round.t
    if is_due(shown, e, round, certificate):
        return
    if rules.rule == TTTS:
        leader, challenger = thompson(shown, e, sides, rules, public_seed, round, sampled)
    if rules.rule != TTTS or leader < 0:
        i = cheapest(sides, book)
        way = moved(sides, book, max(i, 0))
        leader, challenger = way.lowered, way.raised
    share = rules.beta
    if rules.ids and leader != challenger:
        if rules.rule == TTTS:
            way = way_of(sides, book, leader, challenger, sides.a, sides.b, sides.floor)
        down, up = book.weight[leader] * way.down, book.weight[challenger] * way.up
        share = down / (down + up) if 0.0 < down + up < math.inf else 0.5
    times = held(min(pulls[leader], pulls[challenger]), len(pulls), sides)
    if leader == challenger:
        add(plan, leader, times)
        return
    first, second = leader, challenger
    if not uniform(public_seed, e, round, rules.seed) < share:
        first, second, share = challenger, leader, 1.0 - share
    as_first = 1
    for _ in range(times - 1):
        as_first += uniform(public_seed, e, round, rules.seed) < share
    add(plan, first, as_first)
    if as_first < times:
        add(plan, second, times - as_first)


@episode_kernel
def next_arm(
    e: int,
    shown: Shown,
    D: int,
    sides: Sides,
    rules: Rules,
    public_seed,
    book: Book,
    alone: Alone,
    certificate: Certificate,
    sampled: Sampled,
    plans,
    rounds,
):
    """The next arm of episode e, K to stop."""
    plan = plans[e]
    arm = following(shown, e, plan)
    if arm < 0:
        plan_pull(
            e, shown, D, sides, rules, public_seed, book_of(book, e), alone, certificate, sampled, plan, rounds[e]
        )
        arm = following(shown, e, plan)
    return arm if arm >= 0 else shown.pulls.shape[1]


@dataclass
class Memory(CertifiedMemory):
    """Memory of a top-two rule for E episodes."""

    sampled: Sampled


class TopTwo(CertifiedPolicy):
    """Top-two rules (Russo 2016; Jourdan et al. 2022; You et al. 2023) for BestArm, TopK and Threshold.

    Args:
        task: a task or an environment. delta: None takes the task's.
        rule: "eb-tci", "eb-tc" or "ttts". proportions: "ids", information-directed, or "fixed", by `beta`.
        beta: probability of the leader, in (0, 1), with proportions="fixed".
        boundary: "mixture" or "kaufmann-koolen", see docs/certificates.md; "nominal": ln((1 + ln t) / delta), of the
            papers' experiments, for which nothing is proven.
        law: "bernoulli" (also any samples in [0, 1]), "gaussian" (also sub-Gaussian ones), or "student", Gaussian of
            unknown variance; None: "bernoulli" where all samples lie in [0, 1], else "gaussian".
        rho: pulls of an arm at which the Gaussian mixture is sharpest; None: a mixture over several.
        sigma: scale; None takes the task's.
        seed: the agent's own seed, an integer in 0 .. 2^32 - 1.
    """

    name, source = "top-two", "Russo, COLT 2016; Jourdan et al., NeurIPS 2022; You et al., COLT 2023"
    solves = ("BestArm", "TopK", "Threshold")
    _sampling_boundary = "none"

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        rule: str = "eb-tci",
        proportions: str = "ids",
        beta: float = 0.5,
        boundary: str = "mixture",
        law: str | None = None,
        rho: float | None = None,
        sigma: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(task, delta, boundary, law, rho, sigma)
        which = RULES.index(choice("rule", rule, RULES))
        ids = choice("proportions", proportions, PROPORTIONS) == "ids"
        beta = number("beta", beta, 0, 1, above=True, below=True)
        threshold = 0.0 if self.problem.boundary is None else self.problem.boundary
        self.rules = Rules(which, ids, beta, integer("seed", seed, 0, 2**32 - 1), threshold)

    def idle(self) -> dict[str, str]:
        found = super().idle()
        if self.rules.ids:
            found["beta"] = "which is of proportions='fixed' alone"
        if self.problem.local:
            why = f"as on {self.problem.name} the leader and the challenger are one arm"
            found |= dict.fromkeys(("proportions", "beta"), why)
            if self.rules.rule != TTTS:
                found["seed"] = f"{why}, and nothing is drawn"
        return found

    def remember(self, observation: Observation) -> Memory:
        K = self.task.K
        sampled = Sampled(np.zeros(K), np.zeros(K, np.int8), np.zeros(K, np.int8))
        return Memory(**self._common(observation), sampled=sampled)

    def rule(self, seen: Fields, observation: Observation, state: Memory, out: Ints) -> Any:
        public_seed = np.ascontiguousarray(observation["public_seed"], np.int64)
        return next_arm, (
            *seen,
            self.task.D,
            *self.sides,
            *self.rules,
            public_seed,
            *state.book,
            *self._certificates(state),
            *state.sampled,
            state.plans,
            state.rounds,
            out,
        )
