"""Tao, Blanco, Peng & Zhou, NeurIPS 2019, Figure 1: average aggregate regret on a logarithmic scale, three set-ups.

And two of the experiments of its appendix, of which we have only what the main text says: simple regret against APT(0)
(F.1), and other values of LSA's alpha (F.4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from .claims import Number, last, ratio
from .declared import declared
from .panels import Panel, Sweep

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
        [T // 20, *(T * (j + 1) // 10 for j in range(10))],
        {"LSA": "lsa", **COMPETITORS},
        5000,
        "misclassified",
        "ln(regret / K)",
    )
    for i, T in ((1, 1_000), (2, 40_000), (3, 100_000))
]

APTS = [name for name in COMPETITORS if name.startswith("APT")]
GAPS = Sweep(
    "Largest budgets",
    "bandit_envs/Threshold-v0",
    {float(i): {"instance": f"tao2019-{i}"} for i in (1, 2, 3)},
    {"LSA": "lsa", **COMPETITORS},
    5000,
    "misclassified",
    "misclassified arms",
    "set-up",
    log=True,
)


def influence(panel: str) -> Number:
    """The worst of the settings of APT has 1.5 times the regret of the best."""
    text = "the worst epsilon of APT has at least 1.5 times the regret of the best at the largest budget"
    return ratio(panel, text, last(max, *APTS), last(min, *APTS), 1.5)


def noticeable(panel: str, of: str, setup: int) -> Number:
    """The smallest, or median, over the competitors of ln(regret / LSA's) is larger in a set-up than in Setup 1."""

    def gap(panel: Sweep, result: Any, x: int) -> float:
        means = {agent: panel.values(result, agent)[x].mean() for agent in panel.agents}
        gaps = [np.log(means[agent] / means["LSA"]) for agent in COMPETITORS]
        return float(np.min(gaps) if of == "smallest" else np.median(gaps))

    text = f"the {of} of ln(regret / LSA's) in Setup {setup} exceeds that in Setup 1"
    return Number(panel, text, lambda p, r: gap(p, r, setup) - gap(p, r, 1), np.nextafter(0, 1), x=setup)


# Simple regret: "the probability that at least one of the arms is incorrectly labeled", that is the error rate with
# tolerance 0. All agents are anytime, so that the budgets are checkpoints of one run.
ANYTIME = [replace(panel, budgets=panel.budgets[1:], at=True) for panel in PANELS]
ALPHAS = {f"LSA({alpha})": f"lsa(alpha={alpha})" for alpha in (0.34, 0.675, 1.35, 2.7, 5.4)}  # factors of 2
UNTUNED = {name: COMPETITORS[name] for name in ("APT(0)", "Opt-KG(1,1)", "Uniform")}  # without a parameter, or neutral
SIMPLE = {"LSA": "lsa", **{name: COMPETITORS[name] for name in ("APT(0)", "Uniform")}}

FIGURES = declared(
    "tao2019",
    {
        "tao2019-figure-1": [*PANELS, GAPS],
        "tao2019-figure-f1": [
            replace(panel, agents=SIMPLE, metric="error_rate", label="ln(simple regret)") for panel in ANYTIME
        ],
        "tao2019-figure-f4": [replace(panel, agents=ALPHAS | UNTUNED) for panel in ANYTIME],
    },
    {"influence": influence, "noticeable": noticeable},
)
