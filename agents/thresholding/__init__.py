"""Algorithms for thresholding and, by the margin, for feasible arms."""

from .apt import APT
from .lsa import LSA
from .opt_kg import OptKG
from .ucbe import UCBE

__all__ = ["APT", "LSA", "UCBE", "OptKG"]
