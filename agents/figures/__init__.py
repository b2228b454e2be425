"""The figures of the papers: one short declaration each."""

from .catalogue import FIGURES
from .claims import Alike, Claim, Extremes, Growth, Level, Line, Peaks, Printed
from .figure import Figure
from .panels import Allocation, AnyPanel, Lead, Panel, Result, Sweep
from .reproduction import Reproduction, reproduce

__all__ = [
    "FIGURES",
    "Alike",
    "Allocation",
    "AnyPanel",
    "Claim",
    "Extremes",
    "Figure",
    "Growth",
    "Lead",
    "Level",
    "Line",
    "Panel",
    "Peaks",
    "Printed",
    "Reproduction",
    "Result",
    "Sweep",
    "reproduce",
]
