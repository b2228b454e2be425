"""Chen, Chen, Zhang & Zhou, ICML 2017, Figures 1 to 4: failure probability against the budget, four data sets.

A run fails where the aggregate regret of its answer exceeds epsilon = 0.01, which is the error of these instances. The
first round of AdaptiveTopK takes 49,000 pulls, and below that it samples uniformly: hence a line with other constants.
"""

from __future__ import annotations

from .claims import Claim, Extremes
from .figure import Figure, alike
from .panels import Lead, Panel

__all__ = ["FIGURES"]

ADAPTIVE, CLUCB, OPT, POOLED = "AdaptiveTopK", "CLUCB", "OptMAI", "OptMAI, pooled means"
PRACTICAL = "AdaptiveTopK, practical"
AGENTS = {
    ADAPTIVE: "adaptive-top-k",
    CLUCB: "clucb",
    OPT: "opt-mai",
    POOLED: "opt-mai(reuse=True)",
    PRACTICAL: "adaptive-top-k(constants='practical')",
}
DATA = {"two-group": 100_000, "synthetic-0.5": 40_000, "uniform": 60_000, "synthetic-6": 80_000}  # largest budgets
SIZES = (100, 250, 500)


def _figure(number: int, data: str) -> Figure:
    """The three panels of a data set."""
    budgets = range(5_000, DATA[data] + 1, 5_000)
    titles = {K: f"{data}, K = {K}" for K in SIZES}
    panels = [
        Panel(
            title,
            "bandit_envs/TopK-v0",
            {"instance": f"chen2017-{data}(K={K})"},
            list(budgets),
            AGENTS,
            200,
            "error_rate",
            "failure probability",
        )
        for K, title in titles.items()
    ]
    # "AdaptiveTopK outperforms CLUCB-PAC in almost all the datasets."
    ours = (ADAPTIVE, PRACTICAL)
    claims = [Claim(title, one, CLUCB) for title in titles.values() for one in ours]
    if data == "two-group":  # "AdaptiveTopK outperforms other algorithms significantly for all values of K"
        claims += [Claim(title, one, other) for one in ours for title in titles.values() for other in (OPT, POOLED)]
    else:  # "When K is relatively small, OptMAI has the best performance in most datasets. When K is large,
        # AdaptiveTopK outperforms OptMAI."
        claims += [Claim(titles[100], one, other) for one in (OPT, POOLED) for other in (*ours, CLUCB)]
        claims += [Claim(titles[500], one, other) for one in ours for other in (OPT, POOLED)]
    source = f"Chen, Chen, Zhang & Zhou, ICML 2017, Figure {number}"
    return Figure(f"chen2017-figure-{number}", source, panels, claims)


def _extremes() -> Figure:
    """The text on SYNTHETIC-p, p = .5, 1 (UNIFORM) and 6, for each K."""
    sweep = {0.5: "synthetic-0.5", 1.0: "uniform", 6.0: "synthetic-6"}
    panels = [
        Lead(
            f"K = {K}",
            "bandit_envs/TopK-v0",
            {p: {"instance": f"chen2017-{data}(K={K})"} for p, data in sweep.items()},
            {name: AGENTS[name] for name in (ADAPTIVE, OPT, POOLED, PRACTICAL)},
            200,
            "error_rate",
            "pulls ahead of OptMAI",
            "p",
            budgets=range(5_000, 80_001, 5_000),
            rival=OPT,
        )
        for K in SIZES
    ]
    # "the advantage of AdaptiveTopK over other algorithms (OptMAI in particular) becomes significant in both extreme
    # scenarios, i.e., when arms are very well separated (p << 1) and when arms are very close to the separation
    # boundary (p >> 1)"
    claims = [
        Extremes(panel.title, one, other, 1.0)
        for panel in panels
        for one in (ADAPTIVE, PRACTICAL)
        for other in (OPT, POOLED)
    ]
    return Figure("chen2017-extremes", "Chen, Chen, Zhang & Zhou, ICML 2017, section 3", panels, claims)


FIGURES = alike([*(_figure(j + 1, data) for j, data in enumerate(DATA)), _extremes()])
