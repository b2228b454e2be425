"""Kalyanakrishnan & Stone, ICML 2010: Figure 1, the bounds of pi_1 to pi_4 when they stop; Figures 2 and 3, rivals.

Figures 2 and 3 run on one draw of the paper's instance (its own is not printed); so do the two variants that the text
mentions. RACING is shown with both of its bounds, the tightest per arm.

delta^c is by a policy's own bounds: Hoeffding's for pi_1, pi_2 and pi_3, the tightest for ADAPT. The range in the
empirical Bernstein bound is the width of a sample, sqrt(12), and in a second panel 1: the paper's theory is for
Bernoulli arms, and that its experiments have kept their range is a hypothesis, by which its numbers come nearer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from bandit_envs import Categorical, Instance
from bandit_envs.problems import Deviation, Samples, deviations

from ..evaluation.plots import style
from ..registry import make
from .claims import Number, ratio
from .declared import declared
from .panels import Allocation, Exact, Numbers, Panel, Sweep, bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ENV = "bandit_envs/TopK-v0"
PI1, PI2, PI3, ADAPT = "pi1 (UNIFORM)", "pi2", "pi3", "pi4 (ADAPT)"
POLICIES = {PI1: "pi1", PI2: "pi2", PI3: "pi3", ADAPT: "adapt"}

# --- Figure 1 --------------------------------------------------------------------------------------------------------


def _schematic() -> Instance:
    """Five arms on {0, 0.1, ..., 1} with small spreads, so that the empirical Bernstein bound has something to gain."""
    values = np.arange(11) / 10
    means, spreads = np.array([0.85, 0.6, 0.45, 0.3, 0.1]), np.array([0.1, 0.08, 0.08, 0.1, 0.1])
    weights = np.exp(-0.5 * ((values - means[:, None]) / spreads[:, None]) ** 2)
    return Instance(Categorical(values, weights), "five-arms", {"": {"shuffle_arms": False}})


def _bounds(agent: str, label: str, seed: int, epsilon: float = 0.1, delta: float = 0.05) -> Numbers:
    """The pulls of one policy when it stops, in one episode on five arms with m = 2, drawn with its bounds."""
    env: Any = gym.make(
        ENV, instance=_schematic(), k=2, epsilon=epsilon, criterion="each", delta=delta, actions="full"
    ).unwrapped
    policy, (observation, _), state, over = make(agent, env), env.reset(seed=seed), None, False
    while not over:
        action, state = policy.predict(observation, state)
        observation, _, over, *_ = env.step(action)
    order = np.argsort(-observation["mean"], kind="stable")
    pulls, mean, variance = (observation[name][order] for name in ("pulls", "mean", "variance"))
    high, d, W = np.arange(5) < 2, np.full(5, delta / 5), env.task.width
    if agent in ("pi1", "pi2"):
        cut = np.nan
        width = W * np.sqrt(np.log(5 / delta) / (2 * pulls))
    else:
        bound = Deviation(epsilon, W, W, agent == "adapt", False, np.inf)
        deviations(Samples(pulls, mean, variance), high, bound, d)
        error = np.sqrt(variance / (pulls - 1))
        cut = mean[2] + (mean[1] + epsilon - mean[2]) * error[2] / (error[1] + error[2])
        width = np.where(high, mean + epsilon - cut, cut - mean)

    def draw(ax: Axes, order: Sequence[str]) -> None:
        """The interval of each arm on the side that matters, in the policy's colour; filled: in High."""
        colour = style(order.index(label))["color"]
        shown = mean + np.where(high, epsilon, 0.0)
        end = shown + np.where(high, -1, 1) * width
        for i in range(5):
            ax.plot([i + 1, i + 1], [shown[i], end[i]], color=colour, linewidth=1.8)
            ax.plot([i + 1], [shown[i]], "o", color=colour, mfc=colour if high[i] else "white")
            ax.plot([i + 1], [end[i]], "_", color=colour, markersize=14)
            side: dict[str, Any] = {"xytext": (0, -6), "va": "top"} if high[i] else {"xytext": (0, 6), "va": "bottom"}
            text = f"{d[i]:.1g}, {width[i]:.2g}\nN = {pulls[i]:,}"
            ax.annotate(text, (i + 1, end[i]), textcoords="offset points", ha="center", fontsize=7, **side)
        if np.isfinite(cut):
            ax.axhline(cut, color="#7F7F7F", linewidth=0.8, linestyle="dashed")
        ax.set_xlim(0.4, 5.6)
        ax.margins(y=0.18)
        ax.set_xticks(np.arange(1, 6), [f"({i})" for i in range(1, 6)])
        ax.set(xlabel=f"arm, by empirical mean; {pulls.sum():,} pulls", ylabel="mean (filled: in High, + epsilon)")

    return Numbers([(label, i + 1.0, float(n)) for i, n in enumerate(pulls)], draw, {"agent": label}, [label])


# --- Figures 2 and 3 -------------------------------------------------------------------------------------------------

INSTANCE = "kalyanakrishnan2010"
PULLS = [1_000 * (j + 1) for j in range(30)]
EPISODES = 1000


def _against_pulls(title: str, agents: dict[str, str], metric: str, label: str, instance: str = INSTANCE) -> Panel:
    return Panel(title, ENV, {"instance": instance}, PULLS, agents, EPISODES, metric, label)


def _by_rank(title: str, agents: dict[str, str]) -> Allocation:
    return Allocation(title, ENV, {"instance": INSTANCE}, PULLS, agents, EPISODES)


def _schedules(seed: int) -> Numbers:
    """Pulls that DIRECT and HALVING take at the epsilon and delta of the instance, without a single one of them."""
    env: Any = gym.make(ENV, actions="full", instance=INSTANCE).unwrapped
    direct, halving = make("direct", env), make("halving", env)
    rounds = zip(halving.sizes, halving.times, strict=False)
    pulls = {"DIRECT": env.task.K * direct.times, "HALVING": sum(int(n) * int(times) for n, times in rounds)}
    settings, most = {"env_id": ENV, "env_kwargs": {"instance": INSTANCE}}, 30 * max(pulls.values())
    return bars(pulls, settings, xscale="log", xlabel="pulls", xlim=(1e4, most))


def peaks(panel: str, agent: str, *ranks: int) -> Number:
    """In a panel of pulls by rank, an agent pulls the arms of these ranks most, counted from 1."""

    def found(panel: Allocation, result: Any) -> float:
        """How many of these ranks are among as many most pulled ones."""
        most = np.argsort(-panel.by_rank(result, agent), kind="stable")[: len(ranks)] + 1
        return len(set(most.tolist()) & set(ranks))

    return Number(panel, f"{agent} pulls ranks {' and '.join(map(str, ranks))} most", found, len(ranks))


def share(panel: str, more: str, less: str, first: int, last: int) -> Number:
    """In a panel of pulls by rank, an agent spends a larger share of its pulls on these ranks than another agent."""

    def found(panel: Allocation, result: Any) -> float:
        """The difference of the shares, of the pulls of all episodes."""
        pulls = [panel.by_rank(result, agent) for agent in (more, less)]
        one, other = (some[first - 1 : last].sum() / some.sum() for some in pulls)
        return float(one - other)

    claim = f"{more} spends a larger share on ranks {first} to {last} than {less}"
    return Number(panel, claim, found, np.nextafter(0, 1))  # above 0


DELTA_C = _against_pulls("2a: delta^c", POLICIES, "delta_c", "delta^c")
# A hypothesis: the experiments have kept the range of the Bernoulli arms of the theory in Bernstein's bound.
RANGE_1 = _against_pulls(
    "2a: delta^c, range 1", {PI3: "pi3", ADAPT: "adapt(bernstein_range=1)"}, "delta_c", "delta^c (Bernstein's range 1)"
)
MILLIONS = Exact("DIRECT and HALVING", _schedules)
NSS = _against_pulls("2b: NSS", POLICIES, "normalised_sum", "NSS")
BY_RANK = _by_rank("2c: pulls by rank", POLICIES)

OCBA = {f"OCBA-m, n0 = {n0}": f"ocba-m(n0={n0})" for n0 in (20, 100, 500)}
RACING = {f"RACING, R = {R}": f"racing(rounds={R})" for R in (1, 5, 20, 100, 500)}
RACING_1 = "RACING, R = 1"
BASE = {PI1: "pi1", ADAPT: "adapt"}
WITH_OCBA = _against_pulls("3a: OCBA-m", BASE | OCBA, "normalised_sum", "NSS")
WITH_RACING = _against_pulls("3b: RACING", BASE | RACING, "normalised_sum", "NSS")
ALL_BY_RANK = _by_rank("3c: pulls by rank", {ADAPT: "adapt"} | OCBA | {RACING_1: RACING[RACING_1]})
GAUSSIAN = _against_pulls("Gaussian arms, epsilon 0", BASE | OCBA, "normalised_sum", "NSS", f"{INSTANCE}-gaussian")
SMALL = _against_pulls(
    "10 arms, epsilon 0", BASE | {RACING_1: RACING[RACING_1]}, "normalised_sum", "NSS", f"{INSTANCE}-small"
)

# --- what else the text says -----------------------------------------------------------------------------------------

# The paper has one draw of the means, which it does not print, and gives no number of runs for what follows.
NONE = math.nan
RANGE = "pi4 (ADAPT), range 1"


def _drawn(name: str, draws: int, **kwargs: object) -> dict[float, dict[str, object]]:
    return {float(seed): {"instance": f"{name}(seed={seed})", **kwargs} for seed in range(draws)}


def _sweep(title: str, sweep: Mapping[float, Any], agents: dict[str, str], runs: int, shown: str, x: str) -> Sweep:
    """`shown`: the metric and its name on the axis, as "total_pulls: pulls"."""
    metric, label = shown.split(": ")
    return Sweep(title, ENV, sweep, agents, runs, metric, label, x, log=metric == "total_pulls", trials=NONE)


ENDLESS = {"budget": None, "max_pulls": 10**7}
NS, SDS, RS = (10, 20, 50, 100), (0.125, 0.25, 0.5, 1.0, 2.0), (1, 5, 20, 100, 500)
MISTAKES = "misidentified: misidentified arms"
WITHIN = {float(R): {"instance": INSTANCE, "budget": None, "max_pulls": 50 * R} for R in RS}
BY_N = {float(n): {"instance": f"{INSTANCE}(n={n})", "budget": 200 * n} for n in NS}
BY_SD = {sd: {"instance": f"{INSTANCE}(sd={sd:g})", "budget": 10_000} for sd in SDS}
TEN = _drawn(f"{INSTANCE}-small", 5, epsilon=0.1, **ENDLESS)
EXACTLY = _drawn(f"{INSTANCE}-small", 10, budget=30_000)
DRAW, RACER = "draw of the means", BASE | {RACING_1: RACING[RACING_1]}
TIGHT = {ADAPT: "adapt", RANGE: "adapt(bernstein_range=1)"}

UNTIL = _sweep(
    "pulls until delta^c is .15, 25 draws", _drawn(INSTANCE, 25, **ENDLESS), TIGHT, 20, "total_pulls: pulls", DRAW
)
SAVED = _sweep("pulls until delta^c is .15, 10 arms", TEN, {PI2: "pi2", PI3: "pi3"}, 100, "total_pulls: pulls", DRAW)
SMALL_DRAWS = _sweep(
    "10 arms, epsilon 0, 10 draws", EXACTLY, RACER, 200, "normalised_sum: NSS after 30,000 pulls", DRAW
)
ARMS = _sweep("200 pulls an arm, n arms", BY_N, BASE, 500, MISTAKES, "arms n")
SPREADS = _sweep("10,000 pulls, standard deviation", BY_SD, BASE, 500, MISTAKES, "standard deviation")
ROUNDS = _sweep("RACING within R rounds", WITHIN, RACING, 100, "truncated: share of runs that end later", "R")
LOW = {"OCBA-m, n0 = 5": "ocba-m(n0=5)", "OCBA-m, n0 = 100": OCBA["OCBA-m, n0 = 100"], ADAPT: "adapt"}
AT_30000, TIMES = {"instance": INSTANCE, "budget": 30_000}, [2_000, 5_000, 10_000, 20_000, 30_000]
FIVE = Panel("OCBA-m, n0 = 5", ENV, AT_30000, TIMES, LOW, EPISODES, "normalised_sum", "NSS", at=True)


def over_draws(panel: str, agent: str, of: str) -> Number:
    """The median or the least over the draws of an agent's mean pulls is what the paper prints, 22,000, within 20 %."""

    def found(panel: Sweep, result: Any) -> float:
        means = [x.mean() for x in panel.values(result, agent).values()]
        return float(np.median(means) if of == "median" else np.min(means))

    text = f"{agent}: the {of} over the draws is 22,000 within 20%"
    return Number(panel, text, found, 22_000 * (1 - 0.2), 22_000 * (1 + 0.2))


def sides(panel: str, agent: str) -> Number:
    """The pulls of ranks 1 to 15 and of ranks 16 to 30 differ by a factor of at most 1.25."""
    above, below = (lambda p, r, i=i: p.by_rank(r, agent)[i : i + 15].sum() for i in (0, 15))
    text = f"{agent}: pulls of ranks 1 to 15 over those of 16 to 30 within a factor of 1.25"
    return ratio(panel, text, above, below, 0.8, 1.25)


SIDES = Allocation(
    "pulls by rank at 30,000", ENV, {"instance": INSTANCE}, [30_000], {PI3: "pi3", ADAPT: "adapt"}, EPISODES
)

FIGURES = declared(
    "kalyanakrishnan2010",
    {
        "kalyanakrishnan2010-figure-1": [
            Exact(one, partial(_bounds, name, one), [one]) for one, name in POLICIES.items()
        ],
        "kalyanakrishnan2010-figure-2": [DELTA_C, NSS, BY_RANK, RANGE_1, MILLIONS],
        "kalyanakrishnan2010-figure-3": [WITH_OCBA, WITH_RACING, ALL_BY_RANK, GAUSSIAN, SMALL],
        "kalyanakrishnan2010-further": [UNTIL, SAVED, SMALL_DRAWS, ARMS, SPREADS, ROUNDS, FIVE, SIDES],
    },
    {
        "peaks": lambda panel, agent: peaks(panel, agent, 15, 16),
        "share": share,
        "over draws": over_draws,
        "sides": sides,
    },
)
