"""FAREAST: Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 4.1.

symbols     G arms declared good, A active arms, V arms that are undecided, gamma slack
            r round, delta_r = delta / (2 r^2), tau_r = ceil(8 4^r sigma^2 ln(8 n / delta_r)), i_r the finder's arm
            m_i, N_i mean and number of the good filter's own samples, t their common number among the active arms
            C = C_{delta/2n}(t) = sigma sqrt(c ln(log2(2t) 2n / delta) / t), kappa failure probability of the finder
            H pulls of the finder: H_ME(n, 2^-r, kappa) of Median Elimination
departures  D1 the factor 8 of tau_r, lost in print, is restored: each fresh mean is within 2^-(r+1) but for
               delta_r / (4n); the authors' code has 4
            D2 arms that the bad filter declares bad leave A, as in the authors' code
            D3 t is the common number of samples; ties go to the lowest arm
            D4 slack and the multiplicative form are derived: the paper prints the additive form with gamma = 0
            D5 finder="lucb": LUCB1 over the arms of G (all arms while G is empty) with running bounds of C_kappa, as in
               the authors' experiments; H is then the number of its pulls
               (which test before they pull, with fresh rivals; the authors' finder tests after, with stale ones)
            D6 Median Elimination with its constant of rewards in [0, 1], else 8 sigma^2
            D7 the good filter's bounds are current ones; the authors' code keeps the tightest so far
            D8 the accuracy of round r is unit 2^-r: the paper's unit, 1, is for samples whose scale is about 1

Line numbers are the paper's: its text and its margin give 9 to 12 (bad filter), 16, 19, 20, 22 and 23 (good filter);
the others follow by counting, comments included. No set B is kept: the arms outside A and G are bad, V is A without G.
Each filter has samples of its own, told apart by the sums of samples when it begins and ends. Without its state it
refuses an episode that has begun; `begin_anew` makes one, and it takes fresh samples.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandit_envs.kernels import choice, episode_kernel, inlined, jit, number, part

from ..core import bulk, trees
from ..core.agent import Floats, Ints, Observation
from ..core.bulk import Plans, Sums, Times
from ..core.confidence import LEAST, MOST, delta_of, lil_width, scale_of
from ..core.rivals import put_running, rivals
from ..core.round_policy import BulkPolicy, RoundState
from ..core.trees import Forest
from ..top_k.median_elimination import Accuracy, elimination_pulls, plan_survivors, width_constant
from .elimination import activate_all, all_decided, sort_out

__all__ = ["Fareast", "bad_filter_pulls"]

FINDERS = ("median-elimination", "lucb")
FOREVER = 2**62  # rounds
# The stages of a round: it begins; i_r is sought; i_r is sampled; the arms of V are; the good filter is at work.
BEGIN, FIND, SAMPLE_BEST, SAMPLE_OTHERS, GOOD = range(5)


class Rules(NamedTuple):
    """What stays the same in all episodes."""

    epsilon: float
    gamma: float
    multiplicative: bool
    delta: float
    sigma: float
    level: float  # delta / 2n
    factor: float  # c sigma^2
    kappa: float
    constant: float  # of Median Elimination
    tau: float  # the factor of tau_r
    lucb: bool  # the finder is LUCB1
    unit: float  # D8


# Of an episode: the stage of its round, r; i_r, `best`, and its fresh mean; H; how many pulls the good filter has left
# in this round; |A|, `size`; t; and how many arms of A, the first ones, have t + 1 samples of the good filter, `ahead`.
STATE = np.dtype(
    [*((name, np.int64) for name in ("stage", "r", "best", "H", "left", "size", "t", "ahead")), ("m_best", np.float64)]
)
# Of an arm when the bad filter begins: its pulls, the sum of its samples, how much of that is not the good filter's. Of
# a place in A: the arm there, `active`.
MARK = np.dtype([("pulls", np.int64), ("total", np.float64), ("others", np.float64), ("active", np.int64)])


class Kept(NamedTuple):
    """What FAREAST keeps of a batch of episodes. A is the plan of the good filter, G the answer of the plan."""

    states: Any  # (E,) of STATE
    marks: Any  # (E, K) of MARK
    nodes: Floats  # of a `Forest`, in whose trees the finder ranks arms
    levels: Any


class Episode(NamedTuple):
    """What one episode has shown, its plan, and what FAREAST keeps of it."""

    pulls: Any  # (K,)
    total: Any  # (K,)
    plan: Any
    state: Any
    marks: Any  # (K,)
    tree: Any


@jit
def bad_filter_pulls(r, n, delta, sigma=1.0, factor=8.0):
    """tau_r = ceil(factor 4^r sigma^2 ln(8 n / delta_r)), delta_r = delta / (2 r^2).   [line 7] D1"""
    return bulk.whole(factor * 4.0**r * sigma**2 * math.log(8 * n / (delta / (2 * r**2))))


@part
def begin_episode(episode):
    """All arms are active, none is known, and the good filter has no samples.   [lines 3 to 5]"""
    state = episode.state
    activate_all(episode.plan)
    bulk.mark(episode.plan, episode.total)
    state.stage, state.r, state.size, state.t, state.ahead = BEGIN, 1, len(episode.total), 0, 0


@part
def begin_round(episode, r):
    """The bad filter begins; A and the sums of samples are kept until it ends."""
    state, plan = episode.state, episode.plan
    for i in range(len(episode.total)):
        own = episode.marks[i]
        own.pulls, own.total = episode.pulls[i], episode.total[i]
        own.others, own.active = plan.base[i], plan.arms[i]
    bulk.begin(plan)
    state.stage, state.r = FIND, r


@part
def median_elimination(episode, r, rules):
    """Median Elimination(nu, 2^-r, kappa) over all arms. Returns i_r, -1 where it has planned pulls to find it."""
    accuracy = Accuracy(rules.unit * 2.0**-r, rules.kappa, rules.constant)
    episode.state.H = elimination_pulls(len(episode.total), accuracy.epsilon, rules.kappa, rules.constant)
    return plan_survivors(episode.plan, episode.total, episode.tree, accuracy)


@part
def lucb(episode, r, rules):
    """LUCB1 over the arms of G, or all. Returns i_r, -1 where it has planned pulls to find it.   D5"""
    plan, tree, marks = episode.plan, episode.tree, episode.marks
    if plan.book.made == 0:  # pull each arm once
        everywhere = not plan.answer.any()
        for i in range(len(marks)):
            if plan.answer[i] or everywhere:
                trees.put(tree, i, 0.0, -math.inf, math.inf, plan.book.size == 0)
                bulk.add(plan, i)
            else:
                trees.leave_out(tree, i)
        trees.build(tree)
        episode.state.H = 0
        if plan.book.size == 1:
            return plan.arms[0]
    else:
        for i in bulk.planned(plan):
            N = episode.pulls[i] - marks[i].pulls
            if N > 0:  # the statistics of an episode that has been cut off no longer move
                C = lil_width(float(N), rules.kappa, rules.factor)
                put_running(tree, i, (episode.total[i] - marks[i].total) / N, C)
                trees.refresh(tree, i)
        episode.state.H += plan.book.size
        h, l, gap = rivals(tree)  # noqa: E741
        if gap < rules.unit * 2.0**-r or h < 0 or l < 0:  # there are both, unless the state is of another episode
            return max(h, 0)
        bulk.clear(plan)
        bulk.add(plan, h)
        bulk.add(plan, l)
    bulk.repeat(plan, 1)
    return -1


@inlined
def is_bad(m_best, m, accuracy, rules):
    """Whether an arm is bad by its fresh mean and that of i_r.   [line 12] D4"""
    if rules.multiplicative:
        return (1.0 - rules.epsilon) * m_best - m >= (2.0 - rules.epsilon) * accuracy
    return m_best - m >= rules.epsilon + 2.0 * accuracy


@part
def end_bad_filter(episode, r, rules):
    """A without the bad arms is the plan again, and the samples of the good filter count.   [line 12] D2"""
    state, plan, marks, ahead, accuracy = episode.state, episode.plan, episode.marks, 0, rules.unit * 2.0**-r
    bulk.clear(plan)
    for j in range(state.size):
        i = marks[j].active
        if plan.answer[i] or not is_bad(state.m_best, bulk.fresh_mean(plan, episode.total, i), accuracy, rules):
            bulk.add(plan, i)
            ahead += j < state.ahead
    for i in range(len(marks)):
        plan.base[i] = marks[i].others + (episode.total[i] - marks[i].total)
    state.size, state.ahead = plan.book.size, ahead
    if ahead == state.size:
        state.t, state.ahead = state.t + 1, 0


@part
def bad_filter(episode, r, rules):
    """Lines 8 to 12, from where the episode stands. Returns whether they are over; if not, it has planned pulls."""
    state, plan, marks, total = episode.state, episode.plan, episode.marks, episode.total
    tau = bad_filter_pulls(r, len(total), rules.delta, rules.sigma / rules.unit, rules.tau)  # line 7
    if state.stage == FIND:
        state.best = lucb(episode, r, rules) if rules.lucb else median_elimination(episode, r, rules)  # line 9
        if state.best < 0:
            return False
        bulk.clear(plan)
        bulk.add(plan, state.best)
        state.stage = SAMPLE_BEST
    elif state.stage == SAMPLE_BEST:
        state.m_best = bulk.fresh_mean(plan, total, state.best)
        bulk.clear(plan)
        for j in range(state.size):  # line 10
            if not plan.answer[marks[j].active]:
                bulk.add(plan, marks[j].active)
        state.stage = SAMPLE_OTHERS
    else:
        state.left = state.H + (plan.book.size + 1) * tau  # for line 14; the plan is V
        end_bad_filter(episode, r, rules)  # line 12
        return True
    bulk.repeat(plan, tau)  # lines 9 and 11
    bulk.mark(plan, total)
    return False


@inlined
def test(episode, rules):
    """Lines 17 to 23. Returns whether the answer is known."""
    state, plan, gamma = episode.state, episode.plan, rules.gamma
    state.t, state.ahead = state.t + 1, 0
    U, L = sort_out(plan, episode.total, float(state.t), rules)  # lines 17 to 22
    state.size = plan.book.size
    enough = gamma / (2.0 - rules.epsilon) * L if rules.multiplicative else gamma / 2.0
    return all_decided(plan) or (gamma > 0.0 and enough >= U - L)  # line 23, D4


@inlined
def good_filter(episode, rules):
    """Lines 13 to 23, from where the episode stands. Returns whether they are over.

    If not, it has planned pulls, at most one of each active arm, or stopped.
    """
    state, plan, known = episode.state, episode.plan, False
    if state.stage != GOOD:
        known, state.stage = all_decided(plan), GOOD  # line 23 after line 12, D2
    elif plan.book.size == state.size:  # line 16
        known = test(episode, rules)
    else:
        state.ahead = plan.book.size
    if known:
        for i in bulk.planned(plan):  # nothing new without slack: D4
            plan.answer[i] = True
        bulk.stop(plan)
        return False
    plan.book.size = min(state.size, state.ahead + state.left)
    state.left -= plan.book.size - state.ahead  # line 14
    bulk.repeat(plan, 1, state.ahead)  # line 15: the arms with the fewest samples
    return plan.book.size == state.ahead


@inlined
def run(episode, rules):
    """Algorithm 4.1, from where the episode stands until pulls are planned or the answer is known."""
    state = episode.state
    if episode.plan.book.beginning:
        begin_episode(episode)  # lines 3 to 5
    for r in range(state.r, FOREVER):  # line 6
        if state.stage == BEGIN:
            begin_round(episode, r)
        if state.stage != GOOD and not bad_filter(episode, r, rules):
            return
        if not good_filter(episode, rules):
            return
        state.stage = BEGIN


@episode_kernel
def next_pull(e: int, sums: Sums, rules: Rules, plans: Plans, kept: Kept, times: Times):
    """The next arm of episode e, K to stop."""
    plan = bulk.plan_of(plans, e)
    bulk.watch(plan, sums.pulls, e)
    arm = bulk.following(plan, e, times)
    if arm < 0:
        tree = trees.tree_of(kept, e)
        run(Episode(sums.pulls[e], sums.total[e], plan, kept.states[e], kept.marks[e], tree), rules)
        arm = bulk.following(plan, e, times)
    return arm


@dataclass
class State(RoundState):
    """State of FAREAST for E episodes."""

    kept: Kept


class Fareast(BulkPolicy):
    """FAREAST (Mason et al. 2020): all epsilon-good arms, none worse than epsilon + slack, with probability 1 - delta.

    Args:
        finder: "median-elimination" (the paper's) or "lucb" (its experiments').
        kappa: failure probability of the finder, in (0, 1).
        tau: factor of tau_r, > 0: 8 is what the proof needs, 4 what the authors' code has.
        unit: the accuracy of round r is unit 2^-r, > 0; give about sigma for samples in other units than the paper's.

    Until it stops, `recommend` gives the plug-in answer.
    """

    name, source = "fareast", "Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Algorithm 4.1"
    solves, stops = ("AllGood",), True
    needs = "delta"

    def __init__(
        self,
        task: Any,
        delta: float | None = None,
        finder: str = "median-elimination",
        kappa: float = 1 / 16,
        c: float = 4.0,
        sigma: float | None = None,
        tau: float = 8.0,
        unit: float = 1.0,
    ) -> None:
        super().__init__(task)
        self.finder = choice("finder", finder, FINDERS)
        kappa = number("kappa", kappa, 0, 1, above=True, below=True)
        delta, scale = delta_of(self.name, self.task, delta), scale_of(self.task, sigma)
        level, factor = delta / (2 * self.task.K), number("c", c, 0, above=True) * scale**2
        constant, p = width_constant(self.task, sigma), self.task.parameters  # D6
        epsilon, gamma, by_lucb = float(p["epsilon"]), float(p["slack"]), finder == "lucb"
        tau = number("tau", tau, 0, above=True)
        terms = epsilon, gamma, p["multiplicative"], delta, scale, level, factor, kappa, constant
        self.rules = Rules(*terms, tau, by_lucb, number("unit", unit, LEAST, MOST))

    def cautions(self) -> Iterator[str]:
        yield from super().cautions()
        if self.rules.sigma > 4.0 * self.rules.unit:
            units = f"samples of scale {self.rules.sigma:g} in units of {self.rules.unit:g}"
            yield f"{self.name}: its first rounds are long for {units}: say unit={self.rules.sigma:g}"

    def initial_state(self, observation: Observation) -> State:
        E, K = observation["pulls"].shape
        kept = Kept(np.zeros(E, STATE), np.zeros((E, K), MARK), *Forest.of(E, K))
        return State(**RoundState.of(E, K), kept=kept)

    def rule(self, sums: Sums, observation: Observation, state: State, times: Times, out: Ints) -> Any:
        return next_pull, (sums, self.rules, state.plans, state.kept, times, out)
