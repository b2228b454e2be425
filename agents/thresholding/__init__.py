"""Algorithms for thresholding and, by the margin, for feasible arms."""

from .apt import APT
from .dp_index import DPIndex
from .lsa import LSA
from .opt_kg import OptKG
from .sar import SAR
from .ucbe import UCBE

__all__ = ["APT", "LSA", "SAR", "UCBE", "DPIndex", "OptKG"]
