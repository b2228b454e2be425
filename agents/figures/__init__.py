"""The figures of the papers: one short declaration each."""

from .figure import Claim, Figure, Panel, Reproduction, reproduce
from .mason2020 import FIGURES_4_5
from .tao2019 import FIGURE_1

__all__ = ["FIGURES", "Claim", "Figure", "Panel", "Reproduction", "reproduce"]

FIGURES: dict[str, Figure] = {figure.name: figure for figure in (FIGURE_1, FIGURES_4_5)}
