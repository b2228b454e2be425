"""Algorithms for the k best arms."""

from .adaptive_top_k import AdaptiveTopK
from .direct import Direct
from .halving import Halving
from .improved_top_k import ImprovedTopK
from .incremental import Incremental
from .lucb import LUCB
from .median_elimination import MedianElimination
from .opt_mai import OptMAI
from .racing import Racing

__all__ = ["LUCB", "AdaptiveTopK", "Direct", "Halving", "ImprovedTopK", "Incremental", "MedianElimination", "OptMAI",
           "Racing"]  # fmt: skip
