"""Katz-Samuels & Scott, ICML 2018, Figures 1 to 7: logarithm of the failure probability against time, one run each.

Beside the printed panels: experiment 3 with tolerance 0 and the Gaussian crowd workers, whose figures are in the
paper's supplement, and experiment 4 on rows of norm 1. LSA on margins is not in the paper.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .claims import Claim
from .figure import Figure, alike
from .panels import Panel

__all__ = ["FIGURES"]

UCBE = {f"MD-UCBE[{scale}]": f"md-ucbe(scale={scale})" for scale in (".1", "1", "10", "100")}
AGENTS = {"MD-APT": "md-apt", "MD-SAR": "md-sar", "UA": "uniform", **UCBE, "LSA": "lsa"}

PAPER = {
    "1: four groups, irrelevant arms": ("katz-samuels2018-1", 2000),
    "2: four groups": ("katz-samuels2018-2", 2000),
    "3: linear progression": ("katz-samuels2018-3", 2000),
    "4: simplex": ("katz-samuels2018-4", 2000),
    "5: ordered polyhedron": ("katz-samuels2018-5", 2000),
    "6: dose-finding": ("dose-finding", 1000),
    "7: crowdsourcing": ("crowdsourcing", 4000),
}
BESIDE = {
    "3 with tolerance 0": ("katz-samuels2018-3(tolerance=0)", 2000),
    "4 on rows of norm 1": ("katz-samuels2018-4(normalise=True)", 2000),
    "7 with Gaussian workers": ("crowdsourcing(gaussian=True)", 4000),
}
ONE, TWO, THREE, FOUR, FIVE, DOSES, CROWD = PAPER


def log_failures(rate: NDArray[np.float64], K: int) -> NDArray[np.float64]:
    """Natural logarithm; NaN, a gap in the line, where nothing failed."""
    return np.log(np.where(rate > 0, rate, np.nan))


PANELS = [
    Panel(
        title,
        "bandit_envs/Feasible-v0",
        {"instance": name},
        [T * (j + 1) // 10 for j in range(10)],
        AGENTS,
        2000,
        "error_rate",
        "ln(failure probability)",
        at=True,
    )
    for title, (name, T) in (PAPER | BESIDE).items()
]

FIGURE_1_7 = Figure(
    name="katz-samuels2018-figures-1-7",
    source="Katz-Samuels & Scott, ICML 2018, Figures 1 to 7",
    panels=PANELS,
    claims=[
        # "MD-APT performs better than MD-SAR in experiments 1, 4, and 5 and worse than MD-SAR in experiments 2 and 3";
        # "we observe a similar phenomenon in a variant of experiment 3 where we set eps = 0"
        *(Claim(title, "MD-APT", "MD-SAR") for title in (ONE, FOUR, FIVE, "4 on rows of norm 1")),
        *(Claim(title, "MD-SAR", "MD-APT") for title in (TWO, THREE, "3 with tolerance 0")),
        # "MD-SAR and MD-APT tend to perform dramatically better than UA"
        *(Claim(title, name, "UA") for title in PAPER for name in ("MD-APT", "MD-SAR")),
        # "MD-UCBE[100] explores too much so that it tends to perform only slightly better than UA"; "MD-UCBE[.1] ..
        # never makes progress"
        *(Claim(title, "MD-UCBE[100]", "UA") for title in (ONE, TWO, THREE, FOUR, FIVE)),
        *(Claim(title, "UA", "MD-UCBE[.1]") for title in (ONE, TWO, THREE, FOUR, FIVE)),
        # "MD-APT and MD-UCBE[10] perform better than the rest"; "MD-UCBE[1] performs slightly worse than UA"
        *(Claim(DOSES, name, other) for name in ("MD-APT", "MD-UCBE[10]") for other in ("MD-SAR", "MD-UCBE[1]")),
        Claim(DOSES, "MD-UCBE[10]", "UA"),
        Claim(DOSES, "UA", "MD-UCBE[1]"),
        # "Until roughly time step 3000, MD-APT and MD-UCBE[10] perform the best. Afterwards, MD-SAR does substantially
        # better"; "in the supplementary material .. Gaussian .. the results are very similar"
        *(
            Claim(title, name, "MD-SAR", until=2800)
            for title in (CROWD, "7 with Gaussian workers")
            for name in ("MD-APT", "MD-UCBE[10]")
        ),
        *(
            Claim(title, "MD-SAR", name, since=3200)
            for title in (CROWD, "7 with Gaussian workers")
            for name in ("MD-APT", "MD-UCBE[10]")
        ),
    ],
    transform=log_failures,
)

FIGURES = alike([FIGURE_1_7])
