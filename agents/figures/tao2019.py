"""Tao, Blanco, Peng & Zhou, NeurIPS 2019, Figure 1: average aggregate regret on a logarithmic scale, three set-ups.

And two of the experiments of its appendix, of which we have only what the main text says: simple regret against APT(0)
(F.1), and other values of LSA's alpha (F.4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from .claims import Claim, Number, Quote, last, ratio
from .figure import Figure, Values, alike
from .panels import Panel, Sweep, log_rates

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
        [T // 20, *(T * (j + 1) // 10 for j in range(10))],
        {"LSA": "lsa", **COMPETITORS},
        5000,
        "misclassified",
        "ln(regret / K)",
    )
    for i, T in ((1, 1_000), (2, 40_000), (3, 100_000))
]

APTS, UCBES = [[name for name in COMPETITORS if name.startswith(kind)] for kind in ("APT", "UCBE")]
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


INFLUENCE = "the worst epsilon of APT has at least 1.5 times the regret of the best at the largest budget"


def noticeable(name: str, of: Callable[..., Any]) -> list[Number]:
    """A number (`of`) over the competitors of ln(regret / LSA's) is larger in Setups 2 and 3 than in Setup 1."""

    def more(x: float) -> Number:
        def gap(panel: Sweep, result: Any, x: float) -> float:
            means = {agent: panel.values(result, agent)[x].mean() for agent in panel.agents}
            return float(of([np.log(means[agent] / means["LSA"]) for agent in COMPETITORS]))

        told = f"the {name} of ln(regret / LSA's) in Setup {x:g} exceeds that in Setup 1"
        return Number(GAPS.title, told, lambda p, r: gap(p, r, x) - gap(p, r, 1.0), np.nextafter(0, 1), x=x)

    return [more(2.0), more(3.0)]


SHOWN = {"Setup 1": (200, 500, 1_000), "Setup 2": (8_000, 20_000, 40_000), "Setup 3": (20_000, 50_000, 100_000)}
LOG_REGRET = Values(SHOWN, "ln(regret / K)", ".2f", drawn=True)

FIGURE_1 = Figure(
    name="tao2019-figure-1",
    source="Tao, Blanco, Peng & Zhou, NeurIPS 2019, Figure 1",
    panels=[*PANELS, GAPS],
    claims=[
        Quote(
            "apt-ucbe",
            "When the goal is to minimize the aggregate regret, the APT algorithm also works better than UCBE",
            [Claim(panel.title, apt, ucbe) for panel in PANELS for apt in APTS for ucbe in UCBES],
        ),
        Quote(
            "influence",
            "we notice that the choice of precision parameter epsilon has significant influence on the algorithm's "
            "performance",
            [ratio(panel.title, INFLUENCE, last(max, *APTS), last(min, *APTS), 1.5) for panel in PANELS],
            "the worst of the four has 1.5 times the regret of the best at the largest budget",
        ),
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
                *(Claim("Setup 1", "LSA", other, since=1_000, until=1_000, p_value=0.05) for other in TUNED),
            ],
            "at the largest budget where no difference is claimed",
        ),
        *Quote.readings(
            "In Setup 2 and 3, where ambiguous arms close to the threshold are presented, the performance difference "
            "between LSA and other methods is more noticeable",
            (
                "noticeable",
                noticeable("smallest", min),
                "the smallest over the others of ln(regret / LSA's) at the largest budget",
            ),
            ("noticeable-median", noticeable("median", np.median), "the median over the others"),
        ),
        Quote(
            "all-setups",
            "In all setups, LSA outperforms its competitors with various parameter choices",
            [Claim(panel.title, "LSA", other) for panel in PANELS for other in COMPETITORS],
            "Setups 1 to 3; those of Appendix F.3 are not to be had",
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
    values=[LOG_REGRET],
)

# --- appendix --------------------------------------------------------------------------------------------------------


# Simple regret: "the probability that at least one of the arms is incorrectly labeled", that is the error rate with
# tolerance 0. All agents are anytime, so that the budgets are checkpoints of one run.
SIMPLE = [
    replace(panel, budgets=panel.budgets[1:], agents=agents, metric="error_rate", label="ln(simple regret)", at=True)
    for agents in ({"LSA": "lsa", **{name: COMPETITORS[name] for name in ("APT(0)", "Uniform")}},)
    for panel in PANELS
]

FIGURE_F1 = Figure(
    name="tao2019-figure-f1",
    source="Tao, Blanco, Peng & Zhou, NeurIPS 2019, Appendix F.1",
    panels=SIMPLE,
    claims=[
        Quote(
            "simple",
            "LSA performs better than APT(0) towards the simple regret objective",
            [Claim(panel.title, "LSA", "APT(0)") for panel in SIMPLE],
        )
    ],
    transform=log_rates,
    values=[Values(SHOWN, "simple regret")],
)

ALPHAS = {f"LSA({alpha})": f"lsa(alpha={alpha})" for alpha in (0.34, 0.675, 1.35, 2.7, 5.4)}  # factors of 2
UNTUNED = ("APT(0)", "Opt-KG(1,1)", "Uniform")  # competitors without a parameter, or with a neutral one
ROBUST = [
    replace(
        panel, budgets=panel.budgets[1:], agents={**ALPHAS, **{name: COMPETITORS[name] for name in UNTUNED}}, at=True
    )
    for panel in PANELS
]

FIGURE_F4 = Figure(
    name="tao2019-figure-f4",
    source="Tao, Blanco, Peng & Zhou, NeurIPS 2019, Appendix F.4",
    panels=ROBUST,
    claims=[
        Quote(
            "robust",
            "the choice of alpha in our LSA is quite robust",
            [Claim(panel.title, lsa, other) for panel in ROBUST for lsa in ALPHAS for other in UNTUNED],
            "with a quarter to four times the alpha, ahead of what needs no tuning either",
        )
    ],
    transform=FIGURE_1.transform,
    values=[LOG_REGRET],
)

FIGURES = [*alike([FIGURE_1, FIGURE_F1]), *alike([FIGURE_F4])]  # together they have more agents than there are colours
