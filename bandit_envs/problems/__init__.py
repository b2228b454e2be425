"""The problems: one file each."""

from .all_good import AllGood
from .base import Problem
from .feasible import Feasible
from .threshold import Threshold
from .top_k import BestArm, TopK

__all__ = ["PROBLEMS", "AllGood", "BestArm", "Feasible", "Problem", "Threshold", "TopK"]

PROBLEMS: dict[str, type[Problem]] = {row.name: row for row in (Threshold, AllGood, TopK, Feasible, BestArm)}
