"""The figures of the papers: one short declaration each."""

from .catalogue import FIGURES
from .claims import Claim, Growth, Level, Line, Peaks, Printed
from .figure import Figure
from .panels import Allocation, AnyPanel, Panel, Result, Sweep
from .reproduction import Reproduction, reproduce

__all__ = [
    "FIGURES",
    "Allocation",
    "AnyPanel",
    "Claim",
    "Figure",
    "Growth",
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
