"""The problems, one file each; tasks; beliefs about an answer and the look-ahead potential."""

from .all_good import AllGood
from .base import Measure, Problem, SetProblem
from .certificates import CUTOFFS, Deviation, Samples, at_boundary, cutoff, deviations
from .control import BetterThanControl
from .feasible import Feasible
from .lookahead import BELIEFS, KEPT, Lookahead, LookaheadModel, LookaheadScratch, relative_gains
from .potential import Potential
from .registry import PROBLEMS
from .task import BLOCKS, MOST_PAIRED, Task, observation_form, prices_of
from .threshold import Threshold
from .top_k import BestArm, TopK

__all__ = [
    "AllGood", "BELIEFS", "BLOCKS", "BestArm", "BetterThanControl", "CUTOFFS", "Deviation", "Feasible",
    "KEPT", "Lookahead", "LookaheadModel", "LookaheadScratch", "MOST_PAIRED", "Measure", "PROBLEMS", "Potential",
    "Problem", "Samples", "SetProblem", "Task", "Threshold", "TopK", "at_boundary", "cutoff", "deviations",
    "observation_form", "prices_of", "relative_gains",
]  # fmt: skip
