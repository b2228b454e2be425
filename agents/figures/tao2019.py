"""Tao, Blanco, Peng & Zhou, NeurIPS 2019, Figure 1: average aggregate regret on a logarithmic scale, three set-ups.

And two of the experiments of its appendix, of which we have only what the main text says: simple regret against APT(0)
(F.1), and other values of LSA's alpha (F.4).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .claims import Number, last, ratio
from .declared import declared
from .panels import Sweep

APTS = ("APT(0)", "APT(.025)", "APT(.05)", "APT(.1)")


def noticeable(panel: str, of: str, setup: int) -> Number:
    """The smallest, or median, over the competitors of ln(regret / LSA's) is larger in a set-up than in Setup 1."""

    def gap(panel: Sweep, result: Any, x: int) -> float:
        ours, *others = [panel.values(result, agent)[x].mean() for agent in panel.agents]
        gaps = [np.log(other / ours) for other in others]
        return float(np.min(gaps) if of == "smallest" else np.median(gaps))

    text = f"the {of} of ln(regret / LSA's) in Setup {setup} exceeds that in Setup 1"
    return Number(panel, text, lambda p, r: gap(p, r, setup) - gap(p, r, 1), np.nextafter(0, 1), x=setup)


INFLUENCE = "the worst epsilon of APT has at least 1.5 times the regret of the best at the largest budget"
FIGURES = declared(
    "tao2019",
    tests={
        "influence": lambda panel: ratio(panel, INFLUENCE, last(max, *APTS), last(min, *APTS), 1.5),
        "noticeable": noticeable,
    },
)
