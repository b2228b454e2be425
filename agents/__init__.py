"""Agents for the environments of `bandit_envs`: the papers' algorithms, trained policies, and their evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .catalogue import make, names
from .core.agent import Agent
from .evaluation import Evaluation, evaluate

if TYPE_CHECKING:
    from .evolved.evolution import evolve as evolve
    from .learned import load as load
    from .learned import train as train

__all__ = ["Agent", "Evaluation", "evaluate", "make", "names"]


def __getattr__(name: str) -> Any:
    """`train` and `load` come with PyTorch and Stable-Baselines3, `evolve` with cmaes: they are imported on use."""
    if name == "evolve":
        from .evolved.evolution import evolve

        return evolve
    if name in ("load", "train"):
        from . import learned

        return getattr(learned, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
