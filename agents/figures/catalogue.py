"""All figures by name."""

from __future__ import annotations

from . import chen2017, fixed_confidence, kalyanakrishnan2010, katz_samuels2018, mason2020, tao2019
from .figure import Figure

__all__ = ["FIGURES"]

PAPERS = (tao2019, chen2017, kalyanakrishnan2010, mason2020, katz_samuels2018, fixed_confidence)
FIGURES: dict[str, Figure] = {figure.name: figure for paper in PAPERS for figure in paper.FIGURES}
