"""Running agents over common episodes, and what follows from it."""

from .result import Evaluation, results
from .run import evaluate
from .trace import Trace, play

__all__ = ["Evaluation", "Trace", "evaluate", "play", "results"]
