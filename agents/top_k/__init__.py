"""Algorithms for the k best arms."""

from .lucb import LUCB
from .median_elimination import MedianElimination

__all__ = ["LUCB", "MedianElimination"]
