"""Agents for the environments of `bandit_envs`: the papers' algorithms, trained policies, and their evaluation.

The names below are the public face. An author of agents derives from `Algorithm`, `IndexPolicy` or `Agent`; what else
such a file needs is in `agents.core`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .core import Agent, Algorithm, IndexPolicy, per_arm, per_episode, pull, setting
from .core.former import refuse
from .registry import make, names, register

if TYPE_CHECKING:
    from .benchmarking import Benchmark, benchmark
    from .evaluation import Evaluation, evaluate, play, record, results
    from .evolved.evolution import evolve
    from .gating import Gate, gate
    from .language import LanguageAgent
    from .learned import load, train
    from .logs import compare_logs, logs_table
    from .pictures import game, race, report, watch
    from .session import Session, ab_test, ab_test_plan, rehearse

# Modules, and the names that are imported from them when they are first asked for. `train` and `load` come with
# PyTorch and Stable-Baselines3, `evolve` with cmaes.
_ON_USE = {
    ".benchmarking": ("Benchmark", "benchmark"),
    ".evaluation": ("Evaluation", "evaluate", "play", "record", "results"),
    ".evolved.evolution": ("evolve",),
    ".gating": ("Gate", "gate"),
    ".language": ("LanguageAgent",),
    ".learned": ("load", "train"),
    ".logs": ("compare_logs", "logs_table"),
    ".pictures": ("game", "race", "report", "watch"),
    ".session": ("Session", "ab_test", "ab_test_plan", "rehearse"),
}

__all__ = [
    "Agent", "Algorithm", "Benchmark", "Evaluation", "Gate", "IndexPolicy", "LanguageAgent", "Session", "ab_test",
    "ab_test_plan", "benchmark", "compare_logs", "evaluate", "evolve", "game", "gate", "load", "logs_table", "make",
    "names", "per_arm", "per_episode", "play", "pull", "race", "record", "register", "rehearse", "report", "results",
    "setting", "train", "watch",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """A name of the public face that is imported on use, or the module `agents.evaluation`."""
    if name == "evaluation":
        return importlib.import_module(".evaluation", __name__)
    for module, held in _ON_USE.items():
        if name in held:
            return getattr(importlib.import_module(module, __name__), name)
    refuse(__name__, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
