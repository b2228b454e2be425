"""Algorithms for all epsilon-good arms."""

from .elimination import East, UniformElimination
from .fareast import Fareast
from .oracles import UCB, APTOracle
from .st2 import ST2

__all__ = ["ST2", "UCB", "APTOracle", "East", "Fareast", "UniformElimination"]
