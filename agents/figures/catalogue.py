"""All figures by name, and by the paper that they are of."""

from __future__ import annotations

from collections.abc import Sequence

from bandit_envs.kernels import unknown

from . import chen2017, kalyanakrishnan2010, katz_samuels2018, mason2020, tao2019
from .declared import Figure, declared

PAPERS: dict[str, Sequence[Figure]] = {
    "tao2019": tao2019.FIGURES,
    "chen2017": chen2017.FIGURES,
    "kalyanakrishnan2010": kalyanakrishnan2010.FIGURES,
    "mason2020": mason2020.FIGURES,
    "katz-samuels2018": katz_samuels2018.FIGURES,
    "fixed-confidence": declared("fixed_confidence"),
}
FIGURES: dict[str, Figure] = {figure.name: figure for figures in PAPERS.values() for figure in figures}


def named(name: str) -> Figure:
    """The figure of this name."""
    if name not in FIGURES:
        raise unknown("figure", name, [*FIGURES, *PAPERS])
    return FIGURES[name]
