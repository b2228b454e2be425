"""Tao, Blanco, Peng & Zhou, NeurIPS 2019, Figure 1: average aggregate regret on a logarithmic scale, three set-ups."""

from __future__ import annotations

import numpy as np

from .claims import Alike, Claim, Quote
from .figure import Figure, Values, alike
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

TUNED = ("APT(.05)", "APT(.025)")

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
    claims=[
        Quote(
            "best",
            "in Setup 1 LSA works best among all choices of budget T",
            [Claim("Setup 1", "LSA", other) for other in COMPETITORS],
        ),
        Quote(
            "satisfactory",
            "with the right choice of parameter, APT and Opt-KG also achieve satisfactory performance",
            [Claim("Setup 1", name, "Uniform") for name in ("APT(.05)", "Opt-KG(1,1)")],
            "ahead of uniform sampling in Setup 1",
        ),
        Quote(
            "significantly",
            "LSA is significantly better than most of the other methods, except APT(.05) and APT(.025)",
            [
                *(Claim("Setup 1", "LSA", other) for other in COMPETITORS if other not in TUNED),
                *(Alike("Setup 1", "LSA", other, 1_000) for other in TUNED),
            ],
            "at the largest budget where no difference is claimed",
        ),
        Quote(
            "consistently",
            "LSA consistently outperforms other methods in both settings over almost all choices of budget T with "
            "statistical significance",
            [Claim(title, "LSA", other) for title in ("Setup 2", "Setup 3") for other in COMPETITORS],
        ),
        Quote(
            "reasonably",
            "APT works also reasonably well in Setup 2 when T is small",
            [Claim("Setup 2", "APT(.05)", other, until=8_000) for other in ("Uniform", "APT(0)")],
            "ahead of uniform sampling and of APT(0) up to 8000 pulls",
        ),
        Quote(
            "parameter",
            "the best parameter epsilon is different from that for bigger T and other setups",
            [
                Claim("Setup 2", "APT(.05)", "APT(.025)", until=4_000),
                Claim("Setup 2", "APT(.025)", "APT(.05)", since=20_000),
                Claim("Setup 1", "APT(.05)", "APT(.025)", since=500),
                Claim("Setup 3", "APT(.025)", "APT(.05)"),
            ],
        ),
    ],
    transform=lambda mean, K: np.log(mean / K),
    values=[
        Values(
            {"Setup 1": (200, 500, 1_000), "Setup 2": (8_000, 20_000, 40_000), "Setup 3": (20_000, 50_000, 100_000)},
            "ln(regret / K)",
            ".2f",
            drawn=True,
        )
    ],
)

FIGURES = alike([FIGURE_1])
