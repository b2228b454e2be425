"""Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Figures 1, 3, 4, 5, Appendix A: captions, synthetic instances, drugs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bandit_envs import INSTANCES, captions

from ..evaluation.plots import COLOURS
from .claims import Claim, Growth, Level, Quote, printed
from .figure import Figure, Values, alike
from .panels import Exact, Numbers, Panel, Sweep, bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SOURCE = "Mason, Jain, Tripathy & Nowak, NeurIPS 2020"
ENV = "bandit_envs/AllGood-v0"

# --- Figure 1 --------------------------------------------------------------------------------------------------------

FIXED = 1.5  # "a fixed threshold" of the introduction


def ratings(contest: int, epsilon: float = 0.2) -> Exact:
    """The mean ratings of the captions of a contest, best first, and how many are within epsilon of the best.

    Args:
        contest: its number.
        epsilon: captions whose mean is less than this fraction below the best are good.
    """
    return Exact(f"Contest {contest}", lambda seed: _rated(contest, epsilon))


def _rated(contest: int, epsilon: float) -> Numbers:
    """Captions, ratings, best mean, threshold, good captions, and how far below the best 1.5 lies."""
    data = captions(contest)
    means, best = np.sort(data.means)[::-1], data.means.max()
    threshold = (1 - epsilon) * float(best)
    good = int((means >= threshold).sum())
    found = {
        "captions": len(means),
        "ratings": data.counts.sum(),
        "best": best,
        "threshold": threshold,
        "good": good,
        "below_best": 1 - FIXED / best,
    }
    labels = ["captions", f"{1 - epsilon:g} of the best"]

    def draw(ax: Axes, order: Sequence[str]) -> None:
        """The means by rank, and a line at the threshold."""
        ax.plot(np.arange(1, len(means) + 1), means, color=COLOURS[0], label=labels[0])
        ax.axhline(threshold, color=COLOURS[1], linestyle="dashed", label=labels[1])
        ax.set(xlabel="rank", ylabel="mean rating", xscale="log")
        ax.grid(True, color="#D9D9D9", linewidth=0.6)
        ax.axvline(good, color="#7F7F7F", linewidth=1, linestyle="dotted")
        ax.annotate(f"{good}", (good, means[-1]), xytext=(4, 2), textcoords="offset points")

    shown = [(name, np.nan, float(value)) for name, value in found.items()]
    return Numbers(shown, draw, {"contest": data.contest, "epsilon": epsilon}, labels)


FIGURE_1 = Figure(
    name="mason2020-figure-1",
    source=f"{SOURCE}, Figure 1",
    panels=[ratings(contest) for contest in (627, 651, 690)],
    claims=[
        Quote(
            "good",
            "in contest 627, only k = 27 arms are within 20% of mu_1, but k = 748 are in contest 651",
            [printed("Contest 627", "good", 27), printed("Contest 651", "good", 748)],
        ),
        Quote(
            "fixed",
            "a fixed threshold of 1.5 admits captions within 30% of the best in contest 627, but only those within "
            "15% of the best in contest 651",
            [
                printed("Contest 627", "below_best", 0.3, tolerance=0.02),
                printed("Contest 651", "below_best", 0.15, tolerance=0.02),
            ],
        ),
        Quote(
            "651",
            "Contest 651, which had 9250 captions whose means we estimated from a total of 2.2 million ratings",
            [printed("Contest 651", "captions", 9250), printed("Contest 651", "ratings", 2.2e6, tolerance=5e4)],
        ),
    ],
    values=[Values({f"Contest {contest}": () for contest in (627, 651, 690)}, "ratings", ",.10g")],
)

# --- Figure 3 --------------------------------------------------------------------------------------------------------

# The constants of the authors' simulations: widths 2 sigma sqrt(...), that is c = 4, for (ST)^2, the good filter and
# the finder, whose kappa is 1/2; running bounds. c = 2.08 belongs to the experiments on captions and drugs alone.
ST2, FAREAST, PRINTED = "(ST)^2", "FAREAST, LUCB as finder", "FAREAST, Median Elimination"
BOTH = {ST2: "st2(c=4, bounds='running')", FAREAST: "fareast(finder='lucb', kappa=0.5, c=4, tau=4)"}
LINEAR, FLAT = (0.8, 1.2), (-0.2, 0.2)  # exponents of n
CROSSING = 50  # arms from which on FAREAST is the cheaper one


def _against_n(
    title: str,
    instance: str,
    sizes: Sequence[int],
    agents: dict[str, str],
    episodes: int = 250,
    trials: float | None = None,
) -> Sweep:
    sweep: dict[float, dict[str, str]] = {n: {"instance": f"{instance}(n={n})"} for n in sizes}
    return Sweep(title, ENV, sweep, agents, episodes, "total_pulls", "pulls", "arms n", log=True, trials=trials)


LEFT = _against_n("3a: diverse means", "mason2020-3a", (25, 50, 100, 200, 400), BOTH)
RIGHT = _against_n("3b: one bad arm", "mason2020-3b", (20, 50, 100, 200), BOTH)
AS_PRINTED = _against_n("3b: as printed", "mason2020-3b", (10, 20, 50), {PRINTED: "fareast"})

FIGURE_3 = Figure(
    name="mason2020-figure-3",
    source=f"{SOURCE}, Figure 3",
    panels=[LEFT, RIGHT],
    claims=[
        Quote(
            "constants",
            "FAREAST is asymptotically optimal, but suffers worse constant factors compared to (ST)^2",
            [Claim(LEFT.title, ST2, FAREAST)],
        ),
        Quote(
            "scaling",
            "both are optimal in this setting; we show the scaling of their sample complexity as n increases",
            [Growth(LEFT.title, name, *LINEAR) for name in (ST2, FAREAST)],
            "left: pulls grow with n",
        ),
        Quote("constant", "the average complexity of FAREAST is constant", [Growth(RIGHT.title, FAREAST, *FLAT)]),
        Quote("linear", "but (ST)^2 scales linearly with n", [Growth(RIGHT.title, ST2, 1 / 2, 2, line=True)]),
        Quote(
            "crossing",
            "the average complexity of FAREAST is constant, but (ST)^2 scales linearly with n",
            [Claim(RIGHT.title, FAREAST, ST2, since=CROSSING)],
            "so that FAREAST becomes the cheaper one",
        ),
    ],
    values=[
        Values({LEFT.title: (25, 50, 100, 200, 400)}, "pulls at n, left", ",.0f"),
        Values({RIGHT.title: (20, 50, 100, 200)}, "pulls at n, right", ",.0f"),
    ],
)

# --- Figures 4 and 5 -------------------------------------------------------------------------------------------------

# The constants of the experiments on captions and drugs: widths with c = 2.08, running bounds, sigma 1.
PUBLISHED = "st2(c=2.08, bounds='running')"
RIVALS = {"UCB": "ucb", "APT (oracle)": "apt-oracle"}
CAPTIONS = {
    "(ST)^2": PUBLISHED,
    "LUCB, k = 46 (oracle)": "lucb(k=46, widths='lil')",
    "LUCB, k = 23": "lucb(k=23, widths='lil')",
    "LUCB, k = 92": "lucb(k=92, widths='lil')",
    **RIVALS,
}
DRUGS = {"(ST)^2": PUBLISHED, "LUCB, k = 34 (oracle)": "lucb(k=34, widths='lil')", **RIVALS}

BUDGETS = [250_000 * (j + 1) for j in range(12)]
SHORT = [500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000]

PANELS = [
    *(
        Panel(f"Captions 651, {metric}", ENV, {"instance": "captions-651"}, BUDGETS, CAPTIONS, 600, key, metric)
        for metric, key in (("F1", "f1"), ("precision", "precision"), ("recall", "recall"))
    ),
    Panel("ACVRL1 inhibitors, F1", ENV, {"instance": "kinase-acvrl1"}, SHORT, DRUGS, 600, "f1", "F1"),
]

F1, PRECISION, RECALL, KINASE = (panel.title for panel in PANELS)
ORACLE, KINASE_ORACLE = "LUCB, k = 46 (oracle)", "LUCB, k = 34 (oracle)"
WRONG_K = ("LUCB, k = 23", "LUCB, k = 92")
SHOWN = (250_000, 500_000, 1_000_000, 2_000_000, 3_000_000)

FIGURES_4_5 = Figure(
    name="mason2020-figures-4-5",
    source=f"{SOURCE}, Figures 4 and 5",
    panels=PANELS,
    claims=[
        Quote(
            "outperforms",
            "(ST)^2 outperforms all baselines including the oracle APT",
            [Claim(F1, ST2, other, larger=True) for other in (*RIVALS, *WRONG_K)],
        ),
        Quote(
            "almost",
            "and almost matches the performance of the TOP-k oracle",
            [Claim(F1, ST2, ORACLE, within=0.05)],
            "almost: F1 within .05",
        ),
        Quote(
            "wrong-k",
            "both cases (k = 23, k = 92) result in a poor performance",
            [Claim(F1, ORACLE, other, larger=True) for other in WRONG_K],
            "poor: F1 below that of the right k",
        ),
        Quote(
            "ucb",
            "UCB is not able to estimate the epsilon-good set",
            [Level(F1, "UCB", 0.9, 3_000_000), Claim(F1, ST2, "UCB", larger=True, since=2_000_000)],
            "F1 at most .9 at the end, and below (ST)^2 from 2,000,000 pulls on",
        ),
        Quote(
            "precision",
            "(ST)^2 achieves near-perfect precision quickly",
            [Level(PRECISION, ST2, 0.95, x, above=True) for x in (250_000, 500_000, 1_000_000, 3_000_000)],
            "near-perfect: above .95",
        ),
        Quote(
            "matched",
            "matched only by UCB",
            [Claim(PRECISION, "UCB", ST2, within=0.05)],
            "UCB's precision within .05 of (ST)^2's",
        ),
        Quote(
            "matched-only",
            "matched only by UCB",
            [Claim(PRECISION, ST2, other, larger=True) for other in CAPTIONS if other not in (ST2, "UCB")],
            "all others have less precision",
        ),
        Quote(
            "apt",
            "APT's poor performance is a consequence of having low precision",
            [Claim(PRECISION, ST2, "APT (oracle)", larger=True), Level(PRECISION, "APT (oracle)", 0.5, 3_000_000)],
        ),
        Quote(
            "recall",
            "(ST)^2 achieves high recall more slowly",
            [Claim(RECALL, ST2, other, until=1_000_000) for other in CAPTIONS if other not in (ST2, "LUCB, k = 23")],
            "up to 1,000,000 pulls; LUCB with k = 23 cannot reach it",
        ),
        Quote(
            "competitive",
            "but is still competitive with other methods",
            [Claim(RECALL, ST2, ORACLE, within=0.1, since=2_000_000)],
            "recall within .1 of the oracle's from 2,000,000 pulls on",
        ),
        Quote(
            "kinase-best",
            "in this experiment as well, (ST)^2 performs best",
            [Claim(KINASE, ST2, other, larger=True) for other in (*RIVALS, KINASE_ORACLE)],
        ),
        Quote(
            "kinase-oracles",
            "with only the oracle methods competitive with it",
            [
                *(Claim(KINASE, ST2, other, within=0.1) for other in (KINASE_ORACLE, "APT (oracle)")),
                Claim(KINASE, ST2, "UCB", larger=True),
            ],
            "oracles within .1 of its F1, UCB below it",
        ),
    ],
    values=[
        Values({F1: SHOWN, PRECISION: SHOWN, RECALL: SHOWN}, "at", ".2f"),
        Values({KINASE: (500, 2_000, 10_000, 50_000, 200_000)}, "F1 at, ACVRL1", ".2f"),
    ],
)

# --- appendix --------------------------------------------------------------------------------------------------------

# Of Appendix A we have only what the main text says: uniform sampling and gamma > 0 on the instances of Figure 3, and
# captions with other epsilon. n = 25 and epsilon = .75 are also those of the authors' simulation with gamma.
UNIFORM = "Uniform"
WITH_UNIFORM = {**BOTH, UNIFORM: "uniform-elimination(c=4)"}
SYNTHETIC, REAL, NONE = 40, 100, math.nan  # episodes; the paper does not say
LEFT_UNIFORM = _against_n(
    "A: uniform sampling, diverse means", "mason2020-3a", (25, 50, 100, 200, 400), WITH_UNIFORM, SYNTHETIC, trials=NONE
)
RIGHT_UNIFORM = _against_n(
    "A: uniform sampling, one bad arm", "mason2020-3b", (20, 50, 100), WITH_UNIFORM, SYNTHETIC, trials=NONE
)
SLACKS: dict[float, dict[str, object]] = {
    slack: {"instance": "mason2020-3a(n=25)", "slack": slack} for slack in (0.025, 0.05, 0.1, 0.2, 0.4)
}
SLACK = Sweep(
    "A: slack", ENV, SLACKS, WITH_UNIFORM, SYNTHETIC, "total_pulls", "pulls", "slack gamma", log=True, trials=NONE
)
AGAINST_RIVALS = {ST2: PUBLISHED, "LUCB, the true k (oracle)": "lucb(widths='lil')", **RIVALS}
EPSILONS = {epsilon: {"instance": "captions-651", "epsilon": epsilon} for epsilon in (0.05, 0.15, 0.2)}
OTHER_EPSILON = [
    Panel(f"Captions 651, epsilon {epsilon:g}", ENV, kwargs, BUDGETS, AGAINST_RIVALS, REAL, "f1", "F1", trials=NONE)
    for epsilon, kwargs in EPSILONS.items()
]

FIGURE_A = Figure(
    name="mason2020-appendix-a",
    source=f"{SOURCE}, Appendix A",
    panels=[LEFT_UNIFORM, RIGHT_UNIFORM, SLACK, *OTHER_EPSILON],
    claims=[
        Quote(
            "uniform",
            "a naive uniform sampling strategy performed very poorly",
            [Claim(one.title, agent, UNIFORM) for one in (LEFT_UNIFORM, RIGHT_UNIFORM, SLACK) for agent in BOTH],
            "it takes more pulls than both algorithms",
        ),
        # Theorem 3.1: no arm needs more than about 1 / gamma^2 pulls.
        *(Growth(SLACK.title, agent, -2.0, 0.0) for agent in (ST2, FAREAST, UNIFORM)),
        Quote(
            "epsilon",
            "(ST)2 outperforms all baselines including the oracle APT",
            [Claim(panel.title, ST2, other, larger=True) for panel in OTHER_EPSILON for other in RIVALS],
            "with other epsilon; LUCB apart",
        ),
    ],
    values=[
        Values({LEFT_UNIFORM.title: (25, 50, 100, 200, 400)}, "pulls at n, diverse means", ",.0f"),
        Values({RIGHT_UNIFORM.title: (20, 50, 100)}, "pulls at n, one bad arm", ",.0f"),
        Values({SLACK.title: tuple(SLACKS)}, "pulls at slack gamma", ",.0f"),
        Values({panel.title: SHOWN for panel in OTHER_EPSILON}, "F1 at", ".2f"),
    ],
)

# --- what else the text says -----------------------------------------------------------------------------------------

LONG = [250_000, 500_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000, 10_000_000]  # the last one is of the authors' UCB
FEW = 40  # episodes; the paper has 600
METRICS = ("precision", "recall")


def _long(title: str, kwargs: Mapping[str, object], budgets: Sequence[int], agents: dict[str, str], key: str) -> Panel:
    kwargs = {**kwargs, "budget": budgets[-1]}
    return Panel(title, ENV, kwargs, budgets, agents, FEW, key, key, at=True, trials=600)


LONG_PANELS = [
    _long(f"Captions 651 to 10 million, {metric}", {"instance": "captions-651"}, LONG, CAPTIONS, metric.lower())
    for metric in ("F1", *METRICS)
]
OTHERS = [
    _long(f"Captions 651, epsilon {epsilon:g}, {metric}", kwargs, LONG[:5], AGAINST_RIVALS, metric)
    for epsilon, kwargs in EPSILONS.items()
    for metric in METRICS
]
GOOD = ratings(651, 0.1)


def _drugs(seed: int) -> Numbers:
    """How many inhibitors there are, and how many are good."""
    arms = INSTANCES["kinase-acvrl1"].build().arms
    good = int((arms.means >= 0.2 * arms.means.max()).sum())
    return bars({"inhibitors": arms.K, "good": good}, {"instance": "kinase-acvrl1"})


DRUGS_COUNTED = Exact("ACVRL1", _drugs)
AT_3M = {"since": 3_000_000, "until": 3_000_000}
F1_LONG, _, RECALL_LONG = (panel.title for panel in LONG_PANELS)

FURTHER = Figure(
    name="mason2020-further",
    source=f"{SOURCE}, section 5",
    panels=[replace(GOOD, title="Contest 651, epsilon .1"), DRUGS_COUNTED, *LONG_PANELS, *OTHERS, AS_PRINTED],
    claims=[
        Quote(
            "46",
            "LUCB1 [4] with k set to the number of epsilon-good arms (here it was 46)",
            [printed("Contest 651, epsilon .1", "good", 46)],
        ),
        Quote(
            "189",
            "we performed an experiment on a dataset [27] of 189 inhibitors whose activities were tested against "
            "ACVRL1",
            [printed(DRUGS_COUNTED.title, "inhibitors", 189)],
        ),
        Quote(
            "million",
            "The New Yorker editors select final winners from a set with the highest average crowd-ratings (typically "
            "over 1 million ratings per contest)",
            [printed("Contest 651, epsilon .1", "ratings", 1e6, or_more=True)],
            "contest 651",
        ),
        Quote(
            "competitive-all",
            "but is still competitive with other methods",
            [
                *(Claim(RECALL_LONG, ST2, other, larger=True, **AT_3M) for other in ("UCB", "LUCB, k = 23")),
                Claim(RECALL_LONG, ST2, ORACLE, within=0.1, since=3_000_000),
            ],
            "recall at 3,000,000 pulls above that of UCB and of LUCB with k = 23, and within .1 of the oracle's from "
            "there on",
        ),
        Quote(
            "as-printed",
            "the average complexity of FAREAST is constant",
            [Growth(AS_PRINTED.title, PRINTED, *FLAT)],
            "Algorithm 4.1 as printed",
            beside=True,
        ),
        Quote(
            "ucb-long",
            "UCB is not able to estimate the epsilon-good set",
            [Claim(F1_LONG, ST2, "UCB", larger=True, since=2_000_000), Level(F1_LONG, "UCB", 0.9, 10_000_000)],
            "up to 10,000,000 pulls",
            beside=True,
        ),
        Quote(
            "other-precision",
            "(ST)^2 achieves near-perfect precision quickly",
            [Level(one.title, ST2, 0.95, x, above=True) for one in OTHERS[::2] for x in (LONG[0], LONG[2], LONG[4])],
            "other epsilon; near-perfect: above .95",
            beside=True,
        ),
    ],
    values=[
        Values({AS_PRINTED.title: (10, 20, 50)}, "pulls at n, as printed", ",.0f"),
        Values({panel.title: tuple(LONG) for panel in LONG_PANELS}, "at", ".2f"),
        Values({panel.title: tuple(LONG[:5]) for panel in OTHERS}, "at", ".2f"),
    ],
)

FIGURES = [*alike([FIGURE_1, FIGURE_3, FIGURES_4_5, FIGURE_A]), *alike([FURTHER])]
