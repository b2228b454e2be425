"""Agents for the environments of `bandit_envs`: the papers' algorithms, trained policies, and their evaluation.

The names below are the public face. An author of agents derives from `Algorithm`, `IndexPolicy` or `Agent`; what else
such a file needs is in `agents.core`. The forms of 0.2.0, `PlanPolicy`, `RoundPolicy` and `BulkPolicy`, are found here
until 0.4.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .core import Agent, Algorithm, IndexPolicy, per_arm, per_episode, pull, setting
from .registry import make, names, register

if TYPE_CHECKING:
    from .benchmarking import Benchmark as Benchmark
    from .benchmarking import benchmark as benchmark
    from .evaluation import Evaluation as Evaluation
    from .evaluation import evaluate as evaluate
    from .evaluation import play as play
    from .evaluation import results as results
    from .evolved.evolution import evolve as evolve
    from .learned import load as load
    from .learned import train as train
    from .pictures import race as race
    from .pictures import report as report
    from .pictures import watch as watch
    from .session import Session as Session

# Names that are imported when they are first asked for, and the modules that hold them. `train` and `load` come with
# PyTorch and Stable-Baselines3, `evolve` with cmaes.
_ON_USE = {
    "Benchmark": ".benchmarking",
    "Session": ".session",
    "RoundPolicy": ".earlier",
    "PlanPolicy": ".earlier",
    "BulkPolicy": ".earlier",
    "Evaluation": ".evaluation",
    "benchmark": ".benchmarking",
    "evaluate": ".evaluation",
    "evolve": ".evolved.evolution",
    "load": ".learned",
    "play": ".evaluation",
    "race": ".pictures",
    "report": ".pictures",
    "results": ".evaluation",
    "train": ".learned",
    "watch": ".pictures",
}

__all__ = [
    "Agent",
    "Algorithm",
    "Benchmark",
    "Evaluation",
    "IndexPolicy",
    "Session",
    "benchmark",
    "evaluate",
    "evolve",
    "load",
    "make",
    "names",
    "per_arm",
    "per_episode",
    "play",
    "pull",
    "race",
    "register",
    "report",
    "results",
    "setting",
    "train",
    "watch",
]


def __getattr__(name: str) -> Any:
    """A name of the public face that is imported on use, or the module `agents.evaluation`."""
    if name == "evaluation":
        return importlib.import_module(".evaluation", __name__)
    if name in _ON_USE:
        return getattr(importlib.import_module(_ON_USE[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
