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
rules       sampling         `TopTwo`: leader and challenger are `closest(ep)`, where EB-TCI has + ln N, see `BONUS` of
                             `policy`; `Thompson`: `thompson_pair`. `pull_pair` chooses between the two
            stopping         `is_certified` of `policy`
            recommendation   `Agent.recommend`: the plug-in answer
departures  D1 the answer is certified by the boundaries of this package, looked at after every 1/200 more pulls
            D2 k arms, TTTS: the leader is drawn evenly among arms of the first answer that the second has not, and the
               challenger among those that it has instead
            D3 AllGood: leader and challenger are the closest pair, in whichever direction. TTTS: an arm that two
               samples classify differently, drawn evenly, and the best other arm of the second sample
               BetterThanControl: the arm and the control
            D4 Threshold: an alternative moves one arm, which is pulled: proportions do not matter. TTTS: an arm that
               two samples classify differently, drawn evenly
            D5 TTTS: posteriors are N(m, s^2 / N), s the scale, of samples in a range the empirical one, or
               Beta(1 + hits, 1 + misses); after 20 samples that all give the first answer, the alternative with the
               least C is taken
            D6 every arm is pulled once first; there is no forced exploration
            D7 leader and challenger are kept for max(1, sqrt(N) / 2) pulls, rounded down, N the pulls of the rarer one,
               and of more than 127 arms for at least min(N, (K / 128)^2, K / 16), but on Threshold;
               chance decides of each which is pulled, and those of one arm are made together
            D8 where pulls have prices c_i, the share is one of money: the leader is pulled with probability
               s / c_i over s / c_i + (1 - s) / c_j

With a budget it does not stop, and delta is 0.01 where none is named.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bandit_envs.kernels import agent_uniform, choice, integer, number, part, view
from bandit_envs.stopping import BERNOULLI

from ..core.declared import per_episode, scratch, setting
from ..core.plans import pull
from .alternatives import BONUS, CONTROL, LOCAL, PULLS, TOP_K, Alternative, mark_answer
from .desk import scale_of
from .policy import CertifiedAlgorithm, ask, closest, found, held, races

RULES, PROPORTIONS = ("eb-tci", "eb-tc", "ttts"), ("ids", "fixed")
EB_TCI, _EB_TC, TTTS = range(3)
TRIES = 20  # samples of the posterior for a challenger


@view
def uniform(ep, own):
    """The next random number in [0, 1) of an episode."""
    ep.now.draws += 1
    return agent_uniform(ep.seed, ep.now.draws - 1, own.seed)


@view
def normal(ep, own):
    """A standard normal number (Box & Muller 1958)."""
    u, angle = uniform(ep, own), uniform(ep, own)
    return math.sqrt(-2.0 * math.log1p(-u)) * math.cos(2.0 * math.pi * angle)


@part
def gamma(shape, ep, own):
    """A number of the Gamma distribution of this shape, >= 1, and scale 1 (Marsaglia & Tsang 2000)."""
    if not 1.0 <= shape < 2.0**52:  # of no pulls that can be made; it would draw for ever
        return shape
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(ep, own)
        v = (1.0 + c * x) ** 3
        if v > 0.0:
            u = uniform(ep, own)
            if math.log1p(-u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return d * v


@part
def sample_answer(ep, own, answer):
    """Draw theta from the posterior, and fill in the answer that is right for it."""
    sides, theta = ep.desk, own.theta
    for i in range(len(theta)):
        N, m = float(ep.pulls[i]), ep.mean[i]
        if sides.distribution == BERNOULLI:
            hits = gamma(1.0 + N * m, ep, own)
            theta[i] = hits / (hits + gamma(1.0 + N * (1.0 - m), ep, own))
        else:
            theta[i] = m + math.sqrt(scale_of(sides, N, ep.variance[i]) / N) * normal(ep, own)
        answer[i] = theta[i] >= own.threshold
    if sides.kind != LOCAL:
        mark_answer(sides, theta, answer)


@part
def largest(theta, but):
    """The arm with the largest theta, the first of equals, of all but one."""
    best = -1
    for i in range(len(theta)):
        best = i if i != but and (best < 0 or theta[i] > theta[best]) else best
    return best


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
def thompson_pair(ep, own):
    """TTTS: an arm of a first sampled answer, and one of a second that differs; -1 twice where TRIES samples agree."""
    sample_answer(ep, own, own.one)
    for _ in range(TRIES):
        sample_answer(ep, own, own.other)
        same = True
        for i in range(len(own.one)):
            same &= own.one[i] == own.other[i]
        if not same:
            u, kind = uniform(ep, own), ep.desk.kind
            leader = one_of(own.one, own.other, u, kind != TOP_K)
            if kind != TOP_K:
                other = ep.desk.k if kind == CONTROL else largest(own.theta, leader)
                return leader, leader if kind == LOCAL else other
            u = uniform(ep, own) if ep.desk.k > 1 else 0.0
            return leader, one_of(own.other, own.one, u, False)
    return -1, -1


@view
def pull_pair(ep, own, alternative):
    """Pull leader and challenger, as chance has it: the leader by beta, or N_i d_i / (N_i d_i + N_j d_j)."""
    leader, challenger, share = alternative.lowered, alternative.raised, own.beta
    times = held(ep, leader if ep.pulls[leader] <= ep.pulls[challenger] else challenger)
    if leader == challenger:
        pull(ep, leader, times)
        return
    if own.ids:
        down, up = ep.pulls[leader] * alternative.down, ep.pulls[challenger] * alternative.up
        share = down / (down + up) if 0.0 < down + up < math.inf else 0.5
    if own.price[leader] != own.price[challenger]:  # D8
        share /= share + (1.0 - share) * own.price[leader] / own.price[challenger]
    first, second = leader, challenger
    if not uniform(ep, own) < share:
        first, second, share = challenger, leader, 1.0 - share
    count = 1
    for _ in range(times - 1):
        count += uniform(ep, own) < share
    pull(ep, first, count)
    if count < times:
        pull(ep, second, times - count)


class TopTwo(CertifiedAlgorithm):
    """Top-two rules (Russo 2016; Jourdan et al. 2022; You et al. 2023) for all but Feasible, of the problems here.

    Args:
        rule: "eb-tci", "eb-tc" or "ttts". proportions: "ids", information-directed, or "fixed", by `beta`.
        beta: probability of the leader, in (0, 1), with proportions="fixed". race: the share of pulls that race, in
            [0, 1], as those of `Evidence` do; it is not the papers'. All others: see `CertifiedAlgorithm`.
    """

    name, source = "top-two", "Russo, COLT 2016; Jourdan et al., NeurIPS 2022; You et al., COLT 2023"
    solves = ("BestArm", "TopK", "AllGood", "Threshold", "BetterThanControl")
    _sampling_boundary = "none"
    ids, beta, seed = setting(bool), setting(float), setting(int)
    draws = per_episode(int)  # random numbers used

    def begin(ep, own):
        """The random numbers of an episode go on from its pulls."""
        ep.now.draws = ep.now.t

    def sample(ep, own):
        """EB-TC, EB-TCI: leader and challenger are the closest pair."""
        if not races(ep, own.race):
            pull_pair(ep, own, closest(ep))

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        *,
        rule: str = "eb-tci",
        proportions: str = "ids",
        beta: float = 0.5,
        seed: int = 0,
        race: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(task, delta, **options)
        self.race = self._racing(race)
        self.rule = RULES.index(choice("rule", rule, RULES))
        self._weighed = BONUS if self.rule == EB_TCI else PULLS
        self.ids = choice("proportions", proportions, PROPORTIONS) == "ids"
        self.beta, self.seed = number("beta", beta, 0, 1, above=True, below=True), integer("seed", seed, 0, 2**32 - 1)
        self.threshold = 0.0 if self.problem.boundary is None else self.problem.boundary
        if self.rule == TTTS:
            self.form = Thompson.form
            self._asks = (*self._asks, *["compare"] * self.ids)

    def idle(self) -> dict[str, str]:
        found = super().idle()
        if self.ids:
            found["beta"] = "which is of proportions='fixed' alone"
        if self.problem.local:
            why = f"as on {self.problem.name} the leader and the challenger are one arm"
            found |= dict.fromkeys(("proportions", "beta"), why)
            if self.rule != TTTS:
                found["seed"] = f"{why}, and nothing is drawn"
        return found


class Thompson(TopTwo):
    """What `TopTwo` is with rule="ttts"."""

    threshold = setting(float)  # of Threshold
    theta, one, other = scratch(float), scratch(np.int8), scratch(np.int8)  # samples of the posterior; their answers

    def sample(ep, own):
        """TTTS: leader and challenger by two samples of the posterior; the closest pair where TRIES samples agree."""
        if races(ep, own.race):
            return
        leader, challenger = thompson_pair(ep, own)
        if leader < 0:
            alternative = closest(ep)
            leader, challenger = alternative.lowered, alternative.raised
        alternative = Alternative(leader, challenger, 0.0, 0.0)
        if own.ids and leader != challenger:
            ep.desk.lowered, ep.desk.raised = leader, challenger
            ask(ep, ep.desk.compare)
            alternative = found(ep)
        pull_pair(ep, own, alternative)
