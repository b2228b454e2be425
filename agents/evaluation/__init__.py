"""Runs agents over common episodes, and evaluates the results."""

from .result import Evaluation, results
from .run import evaluate
from .trace import Trace, play, record

__all__ = ["Evaluation", "Trace", "evaluate", "play", "record", "results"]
