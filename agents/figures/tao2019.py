"""Tao, Blanco, Peng & Zhou, NeurIPS 2019, Figure 1: average aggregate regret on a logarithmic scale, three set-ups."""

from __future__ import annotations

import numpy as np

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

FIGURES = alike([FIGURE_1])
