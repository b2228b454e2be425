"""The environments, single and vector: what they show, record and draw."""

from .benchmark import BenchmarkTask, benchmark_tasks
from .catalogue import ENVIRONMENTS, LEARN, register_problem
from .drawing import View, Viewer, arms_that_matter, boundary_of, image, limits_of, outline
from .env import PureExplorationEnv
from .episodes import fresh_root
from .history import History, entries_of, tally
from .observations import FEATURES, NUMBERS, FeatureTable, box_of, numbers_of, shown_by, shows_pending
from .setting import LearnerWarning, for_learners
from .vector import PureExplorationVectorEnv

__all__ = [
    "BenchmarkTask", "ENVIRONMENTS", "FEATURES", "FeatureTable", "History", "LEARN", "LearnerWarning", "NUMBERS",
    "PureExplorationEnv", "PureExplorationVectorEnv", "View", "Viewer", "arms_that_matter", "benchmark_tasks",
    "boundary_of", "box_of", "entries_of", "for_learners", "fresh_root", "image", "limits_of", "numbers_of", "outline",
    "register_problem", "shown_by", "shows_pending", "tally",
]  # fmt: skip
