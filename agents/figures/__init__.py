"""The figures of the papers: one short declaration each."""

from .catalogue import FIGURES, PAPERS, named
from .claims import (
    Alike,
    Claim,
    Extremes,
    Growth,
    Level,
    Line,
    Near,
    Peaks,
    Printed,
    Pulled,
    Quote,
    Share,
    Within,
)
from .figure import Figure, Values
from .panels import Allocation, AnyPanel, Conduct, Lead, Panel, Result, Sweep
from .reproduction import Reproduction, reproduce, reproduce_paper
from .store import Store

__all__ = [
    "FIGURES",
    "PAPERS",
    "Alike",
    "Allocation",
    "AnyPanel",
    "Claim",
    "Conduct",
    "Extremes",
    "Figure",
    "Growth",
    "Lead",
    "Level",
    "Line",
    "Near",
    "Panel",
    "Peaks",
    "Printed",
    "Pulled",
    "Quote",
    "Reproduction",
    "Result",
    "Share",
    "Store",
    "Sweep",
    "Values",
    "Within",
    "named",
    "reproduce",
    "reproduce_paper",
]
