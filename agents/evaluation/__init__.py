"""Running agents over common episodes, and what follows from it."""

from .result import Evaluation
from .run import evaluate

__all__ = ["Evaluation", "evaluate"]
