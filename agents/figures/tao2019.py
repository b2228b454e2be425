"""Tao, Blanco, Peng & Zhou, NeurIPS 2019, Figure 1: average aggregate regret on a logarithmic scale, three set-ups.

And two of the experiments of its appendix, of which we have only what the main text says: simple regret against APT(0)
(F.1), and other values of LSA's alpha (F.4).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .claims import Claim
from .figure import Figure, alike
from .panels import Panel

__all__ = ["FIGURES"]

COMPETITORS = {
    "APT(0)": "apt(tolerance=0)",
    "APT(.025)": "apt(tolerance=0.025)",
    "APT(.05)": "apt(tolerance=0.05)",
    "APT(.1)": "apt(tolerance=0.1)",
    "UCBE(-1)": "ucbe(b=-1)",
    "UCBE(0)": "ucbe(b=0)",
    "UCBE(4)": "ucbe(b=4)",
    "Opt-KG(1,1)": "opt-kg(prior=(1, 1))",
    "Opt-KG(.5,.5)": "opt-kg(prior=(.5, .5))",
    "Uniform": "uniform",
}

PANELS = [
    Panel(
        f"Setup {i}",
        "bandit_envs/Threshold-v0",
        {"instance": f"tao2019-{i}"},
        [T * (j + 1) // 10 for j in range(10)],
        {"LSA": "lsa", **COMPETITORS},
        5000,
        "misclassified",
        "ln(regret / K)",
    )
    for i, T in ((1, 1_000), (2, 40_000), (3, 100_000))
]

FIGURE_1 = Figure(
    name="tao2019-figure-1",
    source="Tao, Blanco, Peng & Zhou, NeurIPS 2019, Figure 1",
    panels=PANELS,
    # "LSA works best among all choices of budget" (set-up 1; significantly so but against APT(.05) and APT(.025));
    # "LSA consistently outperforms other methods over almost all choices of budget" (set-ups 2 and 3)
    claims=[Claim(panel.title, "LSA", other) for panel in PANELS for other in COMPETITORS],
    transform=lambda mean, K: np.log(mean / K),
)

# --- appendix --------------------------------------------------------------------------------------------------------


def log_rates(rate: NDArray[np.float64], K: int) -> NDArray[np.float64]:
    """Natural logarithm; NaN, a gap in the line, where nothing failed."""
    return np.log(np.where(rate > 0, rate, np.nan))


# Simple regret: "the probability that at least one of the arms is incorrectly labeled", that is the error rate with
# tolerance 0. All agents are anytime, so that the budgets are checkpoints of one run.
SIMPLE = [
    replace(panel, agents=agents, metric="error_rate", label="ln(simple regret)", at=True)
    for agents in ({"LSA": "lsa", **{name: COMPETITORS[name] for name in ("APT(0)", "Uniform")}},)
    for panel in PANELS
]

FIGURE_F1 = Figure(
    name="tao2019-figure-f1",
    source="Tao, Blanco, Peng & Zhou, NeurIPS 2019, Appendix F.1",
    panels=SIMPLE,
    # "LSA performs better than APT(0) towards the simple regret objective"
    claims=[Claim(panel.title, "LSA", "APT(0)") for panel in SIMPLE],
    transform=log_rates,
)

ALPHAS = {f"LSA({alpha})": f"lsa(alpha={alpha})" for alpha in (0.34, 0.675, 1.35, 2.7, 5.4)}  # factors of 2
UNTUNED = ("APT(0)", "Opt-KG(1,1)", "Uniform")  # competitors without a parameter, or with a neutral one
ROBUST = [
    replace(panel, agents={**ALPHAS, **{name: COMPETITORS[name] for name in UNTUNED}}, at=True) for panel in PANELS
]

FIGURE_F4 = Figure(
    name="tao2019-figure-f4",
    source="Tao, Blanco, Peng & Zhou, NeurIPS 2019, Appendix F.4",
    panels=ROBUST,
    # "the choice of alpha in our LSA is quite robust": whatever it is, LSA is ahead of what needs no parameter either
    claims=[Claim(panel.title, lsa, other) for panel in ROBUST for lsa in ALPHAS for other in UNTUNED],
    transform=FIGURE_1.transform,
)

FIGURES = alike([FIGURE_1, FIGURE_F1, FIGURE_F4])
