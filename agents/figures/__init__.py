"""The figures of the papers: one short declaration each."""

from . import chen2017, katz_samuels2018, mason2020, tao2019
from .claims import Claim, Growth, Printed
from .figure import Figure, Reproduction, reproduce
from .panels import AnyPanel, Panel, Sweep

__all__ = ["FIGURES", "AnyPanel", "Claim", "Figure", "Growth", "Panel", "Printed", "Reproduction", "Sweep", "reproduce"]

MODULES = (tao2019, chen2017, mason2020, katz_samuels2018)
FIGURES: dict[str, Figure] = {figure.name: figure for module in MODULES for figure in module.FIGURES}
