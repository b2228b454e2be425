"""Kalyanakrishnan & Stone, ICML 2010: Figure 1, the bounds of pi_1 to pi_4 when they stop; Figures 2 and 3, rivals.

Figures 2 and 3 run on one draw of the paper's instance (its own is not printed); so do the two variants that the text
mentions. RACING is shown with both of its bounds, the tightest per arm.

delta^c is by a policy's own bounds: Hoeffding's for pi_1, pi_2 and pi_3, the tightest for ADAPT. The range in the
empirical Bernstein bound is the width of a sample, sqrt(12), and in a second panel 1: the paper's theory is for
Bernoulli arms, and that its experiments have kept their range is a hypothesis, by which its numbers come nearer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from bandit_envs import Categorical, Instance
from bandit_envs.problems import Deviation, Samples, deviations

from ..evaluation.plots import style
from ..registry import make
from .claims import Claim, Level, Number, Quote, printed, ratio
from .figure import Figure, Values, alike
from .panels import Allocation, Exact, Numbers, Panel, Sweep, bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SOURCE, ENV = "Kalyanakrishnan & Stone, ICML 2010", "bandit_envs/TopK-v0"
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


FIGURE_1 = Figure(
    name="kalyanakrishnan2010-figure-1",
    source=f"{SOURCE}, Figure 1",
    panels=[Exact(label, partial(_bounds, name, label), [label]) for label, name in POLICIES.items()],
    claims=[],
    values=[Values({label: range(1, 6) for label in POLICIES}, "pulls of arm", ",.0f")],
)

# --- Figures 2 and 3 -------------------------------------------------------------------------------------------------

LEAST_P = "p at most .0005, the least that 2,000 resamples can show"
INSTANCE = "kalyanakrishnan2010"
PULLS = [1_000 * (j + 1) for j in range(30)]
EPISODES, AT_LAST = 1000, {"since": 30_000.0, "until": 30_000.0}


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

NARROW = "Bernstein's range 1"


def _at_30000(panel: Panel, agent: str, above: bool = False) -> Level:
    """Whether delta^c is at most .15 after 30,000 samples."""
    return Level(panel.title, agent, 0.15, 30_000, above)


def _gulf(**when: float) -> list[Claim]:
    return [Claim(NSS.title, better, worse, larger=True, **when) for better in (PI3, ADAPT) for worse in (PI1, PI2)]


FIGURE_2 = Figure(
    name="kalyanakrishnan2010-figure-2",
    source=f"{SOURCE}, Figure 2",
    panels=[DELTA_C, NSS, BY_RANK, RANGE_1, MILLIONS],
    claims=[
        *Quote.readings(
            "pi_4 takes roughly 22,000 pulls to deliver the PAC guarantee",
            ("22000", [Level(DELTA_C.title, ADAPT, 0.15, 22_000)]),
            ("22000-range-1", [Level(RANGE_1.title, ADAPT, 0.15, 22_000)], NARROW),
        ),
        *Quote.readings(
            "only pi_4 is able to achieve the desired threshold of .15 within the 30,000 samples",
            ("only", [_at_30000(DELTA_C, ADAPT), *(_at_30000(DELTA_C, name, above=True) for name in (PI1, PI2, PI3))]),
            ("only-range-1", [_at_30000(RANGE_1, ADAPT), _at_30000(RANGE_1, PI3, above=True)], NARROW),
        ),
        *Quote.readings(
            "the order among the policies is consistent with our expectation",
            ("order", [Claim(DELTA_C.title, *pair) for pair in ((ADAPT, PI3), (PI3, PI2), (PI2, PI1))]),
            ("order-range-1", [Claim(RANGE_1.title, ADAPT, PI3)], NARROW),
        ),
        Quote(
            "millions",
            "straightforward implementations of DIRECT and HALVING would take millions of pulls",
            [printed(MILLIONS.title, name, 1_000_000, or_more=True) for name in ("DIRECT", "HALVING")],
        ),
        Quote(
            "gulf",
            "a clear gulf between pi_3 and pi_4 on the one hand, and pi_1 and pi_2 on the other",
            _gulf(),
        ),
        Quote(
            "gulf-30000",
            "even after 30,000 pulls, this gap is significant (p < 0.0001)",
            _gulf(**AT_LAST),
            LEAST_P,
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
            "ADAPT still outperforms OCBA-m, for all the n_0 values reported in Figure 3(a), after 30,000 samples (p "
            "< 0.0001)",
            [Claim(GAUSSIAN.title, ADAPT, name, larger=True, **AT_LAST) for name in OCBA],
            LEAST_P,
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
LOW = {"OCBA-m, n0 = 5": "ocba-m(n0=5)", "OCBA-m, n0 = 100": OCBA[OCBA_100], ADAPT: "adapt"}
AT_30000 = {"instance": INSTANCE, "budget": 30_000}
FIVE = Panel("OCBA-m, n0 = 5", ENV, AT_30000, list(TIMES), LOW, EPISODES, "normalised_sum", "NSS", at=True)


def over_draws(agent: str, value: float, tolerance: float, of: Callable[[Any], Any] = np.median) -> Number:
    """The median over the draws of an agent's mean pulls is a number that the paper prints, up to a part of it."""

    def found(panel: Sweep, result: Any) -> float:
        """The median."""
        return float(of([x.mean() for x in panel.values(result, agent).values()]))

    claim = (
        f"{agent}: the {'median' if of is np.median else 'least'} over the draws is {value:,.0f} within {tolerance:.0%}"
    )
    return Number(UNTIL.title, claim, found, value * (1 - tolerance), value * (1 + tolerance))


def sides(agent: str) -> Number:
    """The pulls of ranks 1 to 15 and of ranks 16 to 30 differ by a factor of at most 1.25."""
    above, below = (lambda p, r, i=i: p.by_rank(r, agent)[i : i + 15].sum() for i in (0, 15))
    told = f"{agent}: pulls of ranks 1 to 15 over those of 16 to 30 within a factor of 1.25"
    return ratio(SIDES.title, told, above, below, 0.8, 1.25)


SIDES = Allocation(
    "pulls by rank at 30,000", ENV, {"instance": INSTANCE}, [30_000], {PI3: "pi3", ADAPT: "adapt"}, EPISODES
)

FURTHER = Figure(
    name="kalyanakrishnan2010-further",
    source=f"{SOURCE}, section 5",
    panels=[UNTIL, SAVED, SMALL_DRAWS, ARMS, SPREADS, ROUNDS, FIVE, SIDES],
    claims=[
        Quote(
            "22000-draws",
            "pi_4 takes roughly 22,000 pulls to deliver the PAC guarantee",
            [over_draws(ADAPT, 22_000, 0.2)],
            "the median of 25 draws of the means, within 20 %",
            beside=True,
        ),
        Quote(
            "22000-draws-range-1",
            "pi_4 takes roughly 22,000 pulls to deliver the PAC guarantee",
            [over_draws(RANGE, 22_000, 0.2, np.min)],
            "the easiest of 25 draws of the means, within 20 %, and Bernstein's range 1",
            beside=True,
        ),
        Quote(
            "early",
            "In our experiments we do not find such a need, as the PAC guarantee is typically realized early",
            [Level(UNTIL.title, ADAPT, 100_000, float(seed)) for seed in range(25)],
            "within 100,000 pulls on each of 25 draws, where DIRECT takes 697,100",
        ),
        Quote(
            "saving",
            "Empirical results (Section 5) confirm that pi_3 achieves a significant reduction in sample complexity "
            "over pi_2",
            [Claim(SAVED.title, PI3, PI2)],
            "5 draws of 10 arms",
        ),
        Quote(
            "symmetric",
            "Recall that the arms have equal variances; this leads to a fairly symmetric pattern about m and m+1 for "
            "policies pi_3 and pi_4",
            [sides(PI3), sides(ADAPT)],
            "as many pulls for the 15 ranks above the boundary as for the 15 below, within a quarter",
        ),
        Quote(
            "n0-5",
            "for such low values (n0 = 5) we notice premature plateauing",
            [Claim(FIVE.title, "OCBA-m, n0 = 100", "OCBA-m, n0 = 5", larger=True, since=10_000)],
            "the smallest n0 that Chen et al. recommend",
            beside=True,
        ),
        Quote(
            "rounds",
            "On our test instance, we are unable to select a subset of size m within the specified number of rounds R "
            "despite trying multiple values (between 1 and 500)",
            [Level(ROUNDS.title, f"RACING, R = {R:g}", 0.9, R, above=True) for R in ROUNDS.sweep],
            "in 90 % of the runs",
        ),
        Quote(
            "small-uniform-draws",
            "Indeed RACING (R = 1) achieves a higher NSS value after 30,000 pulls compared to UNIFORM",
            [Claim(SMALL_DRAWS.title, RACING_1, PI1, larger=True)],
            "10 draws of the means",
            beside=True,
        ),
        Quote(
            "pronounced",
            "the superior sample efficiency of ADAPT is most pronounced when the number of arms n is large, and the "
            "arms have relatively high variances",
            [Claim(ARMS.title, ADAPT, PI1, than=10.0), Claim(SPREADS.title, ADAPT, PI1, than=0.125)],
            "misidentified arms less those of UNIFORM, by n from 10 to 100 and by the standard deviation from 1/8 to 2",
        ),
    ],
    values=[
        Values({UNTIL.title: (0, 1, 2, 3, 4, 5)}, "pulls, draw", ",.0f"),
        Values({SAVED.title: tuple(range(5))}, "pulls, draw", ",.0f"),
        Values({ARMS.title: (10, 20, 50, 100)}, "misidentified arms, n", ".3f"),
        Values({SPREADS.title: (0.125, 0.25, 0.5, 1, 2)}, "misidentified arms, sd", ".3f"),
        Values({FIVE.title: (2_000, 5_000, 10_000, 20_000, 30_000)}, "NSS at", ".4f"),
    ],
)

FIGURES = [*alike([FIGURE_1, FIGURE_2, FIGURE_3]), *alike([FURTHER])]
