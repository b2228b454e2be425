"""Mason, Jain, Tripathy & Nowak, NeurIPS 2020, Figures 1, 3, 4, 5, Appendix A: captions, synthetic instances, drugs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bandit_envs import INSTANCES, captions

from ..evaluation.plots import COLOURS
from .declared import declared
from .panels import Exact, Numbers, Panel, Sweep, bars

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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


# --- Figure 3 --------------------------------------------------------------------------------------------------------

# The constants of the authors' simulations: widths 2 sigma sqrt(...), that is c = 4, for (ST)^2, the good filter and
# the finder, whose kappa is 1/2; running bounds. c = 2.08 belongs to the experiments on captions and drugs alone.
ST2, FAREAST, PRINTED = "(ST)^2", "FAREAST, LUCB as finder", "FAREAST, Median Elimination"
BOTH = {ST2: "st2(c=4, bounds='running')", FAREAST: "fareast(finder='lucb', kappa=0.5, c=4, tau=4)"}


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
SLACKS = {slack: {"instance": "mason2020-3a(n=25)", "slack": slack} for slack in (0.025, 0.05, 0.1, 0.2, 0.4)}
SLACK = Sweep(
    "A: slack", ENV, SLACKS, WITH_UNIFORM, SYNTHETIC, "total_pulls", "pulls", "slack gamma", log=True, trials=NONE
)
AGAINST_RIVALS = {ST2: PUBLISHED, "LUCB, the true k (oracle)": "lucb(widths='lil')", **RIVALS}
EPSILONS = {epsilon: {"instance": "captions-651", "epsilon": epsilon} for epsilon in (0.05, 0.15, 0.2)}
OTHER_EPSILON = [
    Panel(f"Captions 651, epsilon {epsilon:g}", ENV, kwargs, BUDGETS, AGAINST_RIVALS, REAL, "f1", "F1", trials=NONE)
    for epsilon, kwargs in EPSILONS.items()
]

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


def _drugs(seed: int) -> Numbers:
    """How many inhibitors there are, and how many are good."""
    arms = INSTANCES["kinase-acvrl1"].build().arms
    good = int((arms.means >= 0.2 * arms.means.max()).sum())
    return bars({"inhibitors": arms.K, "good": good}, {"instance": "kinase-acvrl1"})


FIGURES = declared(
    "mason2020",
    {
        "mason2020-figure-1": [ratings(contest) for contest in (627, 651, 690)],
        "mason2020-figure-3": [LEFT, RIGHT],
        "mason2020-figures-4-5": PANELS,
        "mason2020-appendix-a": [LEFT_UNIFORM, RIGHT_UNIFORM, SLACK, *OTHER_EPSILON],
        "mason2020-further": [
            replace(ratings(651, 0.1), title="Contest 651, epsilon .1"),
            Exact("ACVRL1", _drugs),
            *LONG_PANELS,
            *OTHERS,
            AS_PRINTED,
        ],
    },
)
