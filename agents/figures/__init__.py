"""The figures of the papers: one short declaration each."""

from . import mason2020, tao2019
from .claims import Claim, Growth, Printed
from .figure import Figure, Reproduction, reproduce
from .panels import AnyPanel, Panel, Sweep

__all__ = ["FIGURES", "AnyPanel", "Claim", "Figure", "Growth", "Panel", "Printed", "Reproduction", "Sweep", "reproduce"]

FIGURES: dict[str, Figure] = {figure.name: figure for figure in (*tao2019.FIGURES, *mason2020.FIGURES)}
