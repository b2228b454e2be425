"""Kalyanakrishnan & Stone, ICML 2010: Figure 1, the bounds of pi_1 to pi_4 when they stop; Figures 2 and 3, rivals.

Figures 2 and 3 run on one draw of the paper's instance (its own is not printed); so do the two variants that the text
mentions. RACING is shown with both of its bounds, the tightest per arm.

delta^c is by a policy's own bounds: Hoeffding's for pi_1, pi_2 and pi_3, the tightest for ADAPT. The range in the
empirical Bernstein bound is the width of a sample, sqrt(12), and in a second panel 1: the paper's theory is for
Bernoulli arms, and that its experiments have kept their range is a hypothesis, by which its numbers come nearer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from bandit_envs import Categorical, Instance
from bandit_envs.problems import Deviation, Samples, deviations

from ..evaluation.plots import style
from ..registry import make
from .claims import Claim, Level, Number, Quote, printed
from .figure import Figure, Values, alike
from .panels import Allocation, Exact, Numbers, Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FIGURES"]

SOURCE, ENV = "Kalyanakrishnan & Stone, ICML 2010", "bandit_envs/TopK-v0"
PI1, PI2, PI3, ADAPT = "pi1 (UNIFORM)", "pi2", "pi3", "pi4 (ADAPT)"
POLICIES = {PI1: "pi1", PI2: "pi2", PI3: "pi3", ADAPT: "adapt"}

# --- Figure 1 --------------------------------------------------------------------------------------------------------


def _schematic() -> Instance:
    """Five arms on {0, 0.1, ..., 1} with small spreads, so that the empirical Bernstein bound has something to gain."""
    values = np.arange(11) / 10
    means, spreads = np.array([0.85, 0.6, 0.45, 0.3, 0.1]), np.array([0.1, 0.08, 0.08, 0.1, 0.1])
    weights = np.exp(-0.5 * ((values - means[:, None]) / spreads[:, None]) ** 2)
    return Instance(Categorical(values, weights), "five-arms")


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
        deviations(Samples(pulls[None], mean[None], variance[None]), np.uint64(0), high[None], bound, d)
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


FIGURE_1 = Figure(
    name="kalyanakrishnan2010-figure-1",
    source=f"{SOURCE}, Figure 1",
    panels=[Exact(label, partial(_bounds, name, label), [label]) for label, name in POLICIES.items()],
    claims=[],
    values=[Values({label: range(1, 6) for label in POLICIES}, "pulls of arm", ",.0f")],
)

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

    def draw(ax: Axes, order: Sequence[str]) -> None:
        """A bar for each algorithm, with its number of pulls."""
        bars = ax.barh(list(pulls), list(pulls.values()), color="#BFBFBF")
        ax.bar_label(bars, [f"{n:,}" for n in pulls.values()], padding=4)
        ax.set(xscale="log", xlabel="pulls", xlim=(1e4, 30 * max(pulls.values())))

    settings = {"env_id": ENV, "env_kwargs": {"instance": INSTANCE}}
    return Numbers([(name, np.nan, float(n)) for name, n in pulls.items()], draw, settings)


def peaks(title: str, agent: str, *ranks: int) -> Number:
    """In a panel of pulls by rank, an agent pulls the arms of these ranks most, counted from 1."""

    def found(panel: Allocation, result: Any) -> float:
        """How many of these ranks are among as many most pulled ones."""
        most = np.argsort(-panel.by_rank(result, agent), kind="stable")[: len(ranks)] + 1
        return len(set(most.tolist()) & set(ranks))

    return Number(title, f"{agent} pulls ranks {' and '.join(map(str, ranks))} most", found, len(ranks))


def share(title: str, more: str, less: str, first: int, last: int) -> Number:
    """In a panel of pulls by rank, an agent spends a larger share of its pulls on these ranks than another agent."""

    def found(panel: Allocation, result: Any) -> float:
        """The difference of the shares, of the pulls of all episodes."""
        pulls = [panel.by_rank(result, agent) for agent in (more, less)]
        one, other = (some[first - 1 : last].sum() / some.sum() for some in pulls)
        return float(one - other)

    claim = f"{more} spends a larger share on ranks {first} to {last} than {less}"
    return Number(title, claim, found, np.nextafter(0, 1))  # above 0


DELTA_C = _against_pulls("2a: delta^c", POLICIES, "delta_c", "delta^c")
# A hypothesis: the experiments have kept the range of the Bernoulli arms of the theory in Bernstein's bound.
RANGE_1 = _against_pulls(
    "2a: delta^c, range 1", {PI3: "pi3", ADAPT: "adapt(bernstein_range=1)"}, "delta_c", "delta^c (Bernstein's range 1)"
)
MILLIONS = Exact("DIRECT and HALVING", _schedules)
NSS = _against_pulls("2b: NSS", POLICIES, "normalised_sum", "NSS")
BY_RANK = _by_rank("2c: pulls by rank", POLICIES)

FIGURE_2 = Figure(
    name="kalyanakrishnan2010-figure-2",
    source=f"{SOURCE}, Figure 2",
    panels=[DELTA_C, NSS, BY_RANK, RANGE_1, MILLIONS],
    claims=[
        Quote(
            "22000",
            "pi_4 takes roughly 22,000 pulls to deliver the PAC guarantee",
            [Level(DELTA_C.title, ADAPT, 0.15, 22_000)],
        ),
        Quote(
            "22000-range-1",
            "pi_4 takes roughly 22,000 pulls to deliver the PAC guarantee",
            [Level(RANGE_1.title, ADAPT, 0.15, 22_000)],
            "Bernstein's range 1",
        ),
        Quote(
            "only",
            "only pi_4 is able to achieve the desired threshold of .15 within the 30,000 samples",
            [
                Level(DELTA_C.title, ADAPT, 0.15, 30_000),
                *(Level(DELTA_C.title, name, 0.15, 30_000, above=True) for name in (PI1, PI2, PI3)),
            ],
        ),
        Quote(
            "only-range-1",
            "only pi_4 is able to achieve the desired threshold of .15 within the 30,000 samples",
            [Level(RANGE_1.title, ADAPT, 0.15, 30_000), Level(RANGE_1.title, PI3, 0.15, 30_000, above=True)],
            "Bernstein's range 1",
        ),
        Quote(
            "order",
            "the order among the policies is consistent with our expectation",
            [Claim(DELTA_C.title, *pair) for pair in ((ADAPT, PI3), (PI3, PI2), (PI2, PI1))],
        ),
        Quote(
            "order-range-1",
            "the order among the policies is consistent with our expectation",
            [Claim(RANGE_1.title, ADAPT, PI3)],
            "Bernstein's range 1",
        ),
        Quote(
            "millions",
            "straightforward implementations of DIRECT and HALVING would take millions of pulls",
            [printed(MILLIONS.title, name, 1_000_000, or_more=True) for name in ("DIRECT", "HALVING")],
        ),
        Quote(
            "gulf",
            "a clear gulf between pi_3 and pi_4 on the one hand, and pi_1 and pi_2 on the other",
            [Claim(NSS.title, better, worse, larger=True) for better in (PI3, ADAPT) for worse in (PI1, PI2)],
        ),
        Quote(
            "gulf-30000",
            "even after 30,000 pulls, this gap is significant",
            [
                Claim(NSS.title, better, worse, larger=True, since=30_000, until=30_000)
                for better in (PI3, ADAPT)
                for worse in (PI1, PI2)
            ],
        ),
        Quote(
            "peaks",
            "peaks around 15 (m) and 16 (m + 1) under policies pi_3 and pi_4",
            [peaks(BY_RANK.title, name, 15, 16) for name in (PI3, ADAPT)],
        ),
        Quote(
            "bias",
            'as we proceed from pi_1 to pi_4 a growing bias towards "contentious" arms is apparent',
            [share(BY_RANK.title, *pair, 13, 18) for pair in ((PI2, PI1), (PI3, PI2), (ADAPT, PI3))],
        ),
    ],
    values=[
        Values({DELTA_C.title: (10_000, 20_000, 22_000, 25_000, 30_000)}, "delta^c at"),
        Values({RANGE_1.title: (10_000, 20_000, 22_000, 25_000, 30_000)}, "delta^c at, Bernstein's range 1"),
        Values({NSS.title: (2_000, 5_000, 10_000, 20_000, 30_000)}, "NSS at", ".4f"),
        Values({MILLIONS.title: ()}, "pulls of the schedule", ",.0f"),
    ],
)

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

OCBA_20, OCBA_100, OCBA_500 = OCBA
TIMES = (2_000, 5_000, 10_000, 20_000, 30_000)

FIGURE_3 = Figure(
    name="kalyanakrishnan2010-figure-3",
    source=f"{SOURCE}, Figure 3",
    panels=[WITH_OCBA, WITH_RACING, ALL_BY_RANK, GAUSSIAN, SMALL],
    claims=[
        Quote(
            "best",
            "ADAPT predominantly achieves the best results with the fewest samples",
            [
                *(Claim(WITH_OCBA.title, ADAPT, name, larger=True) for name in OCBA),
                Claim(WITH_RACING.title, ADAPT, RACING_1, larger=True),
                Claim(WITH_OCBA.title, ADAPT, PI1, larger=True),
            ],
        ),
        Quote(
            "plateau",
            "for such low values (n0 = 20) we notice premature plateauing",
            [Claim(WITH_OCBA.title, name, OCBA_20, larger=True, since=10_000) for name in (OCBA_100, OCBA_500)],
        ),
        Quote(
            "coincides",
            "for higher values of n0 (100, 500), OCBA-m coincides with UNIFORM until a large number of pulls",
            [
                Claim(WITH_OCBA.title, OCBA_100, PI1, within=0.001, until=5_000),
                Claim(WITH_OCBA.title, OCBA_500, PI1, within=0.001, until=25_000),
            ],
        ),
        Quote(
            "period",
            "and then outperforms it for a period",
            [
                Claim(WITH_OCBA.title, OCBA_100, PI1, larger=True, since=6_000, until=15_000),
                Claim(WITH_OCBA.title, OCBA_500, PI1, larger=True, since=26_000),
            ],
        ),
        Quote(
            "r-1",
            "the best NSS results are achieved when we set R = 1",
            [Claim(WITH_RACING.title, RACING_1, name, larger=True) for name in RACING if name != RACING_1],
        ),
        Quote(
            "r-500",
            "as R is increased, RACING progressively tends towards the UNIFORM algorithm",
            [Claim(WITH_RACING.title, "RACING, R = 500", PI1, within=0.001)],
        ),
        Quote(
            "gaussian",
            "ADAPT still outperforms OCBA-m, for all the n0 values, after 30,000 samples",
            [Claim(GAUSSIAN.title, ADAPT, name, larger=True, since=30_000, until=30_000) for name in OCBA],
        ),
        Quote(
            "small-uniform",
            "RACING (R = 1) achieves a higher NSS value after 30,000 pulls compared to UNIFORM",
            [Claim(SMALL.title, RACING_1, PI1, larger=True, since=30_000, until=30_000)],
        ),
        Quote(
            "small-adapt",
            "and is not distinguishable from ADAPT (p < 0.05)",
            [Claim(SMALL.title, RACING_1, ADAPT, since=30_000, until=30_000, p_value=0.05)],
        ),
        Quote(
            "peaked",
            "OCBA-m and ADAPT are both more peaked than RACING",
            [share(ALL_BY_RANK.title, name, RACING_1, 13, 18) for name in (ADAPT, *OCBA)],
        ),
        Quote(
            "rises",
            "ADAPT has a gradual slope on either side of its peak, while OCBA-m rises more dramatically",
            [share(ALL_BY_RANK.title, name, ADAPT, 15, 16) for name in OCBA],
        ),
    ],
    values=[
        Values({WITH_OCBA.title: TIMES}, "NSS at", ".4f"),
        Values({WITH_RACING.title: TIMES}, "NSS at", ".4f", agents=list(RACING)),
        Values({GAUSSIAN.title: TIMES, SMALL.title: TIMES}, "NSS at", ".4f"),
    ],
)

FIGURES = alike([FIGURE_1, FIGURE_2, FIGURE_3])
