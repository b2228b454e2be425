"""Chen, Chen, Zhang & Zhou, ICML 2017, Figures 1 to 4: failure probability against the budget, four data sets.

A run fails where the aggregate regret of its answer exceeds epsilon = 0.01, which is the error of these instances.
"""

from __future__ import annotations

from .claims import Claim
from .figure import Figure, alike
from .panels import Panel

__all__ = ["FIGURES"]

ADAPTIVE, CLUCB, OPT, POOLED = "AdaptiveTopK", "CLUCB", "OptMAI", "OptMAI, pooled means"
AGENTS = {ADAPTIVE: "adaptive-top-k", CLUCB: "clucb", OPT: "opt-mai", POOLED: "opt-mai(reuse=True)"}
DATA = {"two-group": 100_000, "synthetic-0.5": 40_000, "uniform": 60_000, "synthetic-6": 80_000}  # largest budgets
SIZES = (100, 250, 500)


def _figure(number: int, data: str) -> Figure:
    """The three panels of a data set; the arms are shuffled, since they are listed best first and ties are common."""
    budgets = range(5_000, DATA[data] + 1, 5_000)
    titles = {K: f"{data}, K = {K}" for K in SIZES}
    panels = [
        Panel(
            title,
            "bandit_envs/TopK-v0",
            {"instance": f"chen2017-{data}(K={K})", "shuffle_arms": True},
            list(budgets),
            AGENTS,
            200,
            "error_rate",
            "failure probability",
        )
        for K, title in titles.items()
    ]
    # "AdaptiveTopK outperforms CLUCB-PAC in almost all the datasets."
    claims = [Claim(title, ADAPTIVE, CLUCB) for title in titles.values()]
    if data == "two-group":  # "AdaptiveTopK outperforms other algorithms significantly for all values of K"
        claims += [Claim(title, ADAPTIVE, other) for title in titles.values() for other in (OPT, POOLED)]
    else:  # "When K is relatively small, OptMAI has the best performance in most datasets. When K is large,
        # AdaptiveTopK outperforms OptMAI."
        claims += [Claim(titles[100], one, other) for one in (OPT, POOLED) for other in (ADAPTIVE, CLUCB)]
        claims += [Claim(titles[500], ADAPTIVE, other) for other in (OPT, POOLED)]
    source = f"Chen, Chen, Zhang & Zhou, ICML 2017, Figure {number}"
    return Figure(f"chen2017-figure-{number}", source, panels, claims)


FIGURES = alike([_figure(j + 1, data) for j, data in enumerate(DATA)])
