"""The figures of the papers: one short declaration each."""

from . import chen2017, kalyanakrishnan2010, katz_samuels2018, mason2020, tao2019
from .claims import Claim, Growth, Level, Peaks, Printed
from .figure import Figure, Reproduction, reproduce
from .panels import Allocation, AnyPanel, Panel, Sweep

__all__ = [
    "FIGURES",
    "Allocation",
    "AnyPanel",
    "Claim",
    "Figure",
    "Growth",
    "Level",
    "Panel",
    "Peaks",
    "Printed",
    "Reproduction",
    "Sweep",
    "reproduce",
]

MODULES = (tao2019, chen2017, kalyanakrishnan2010, mason2020, katz_samuels2018)
FIGURES: dict[str, Figure] = {figure.name: figure for module in MODULES for figure in module.FIGURES}
