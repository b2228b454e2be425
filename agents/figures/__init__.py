"""The figures of the papers: a file of data for each paper, and what its module computes."""

from .catalogue import FIGURES, PAPERS, named
from .claims import AnyClaim, Claim, Growth, Level, Number, Quote, printed
from .declared import Figure, Values
from .panels import Allocation, AnyPanel, Conduct, Exact, Numbers, Panel, Result, Sweep
from .reproduction import Reproduction, Store, reproduce, reproduce_paper

__all__ = [
    "FIGURES", "PAPERS", "Allocation", "AnyClaim", "AnyPanel", "Claim", "Conduct", "Exact", "Figure", "Growth",
    "Level", "Number", "Numbers", "Panel", "Quote", "Reproduction", "Result", "Store", "Sweep", "Values", "named",
    "printed", "reproduce", "reproduce_paper",
]  # fmt: skip
