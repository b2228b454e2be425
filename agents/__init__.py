"""Agents for the environments of `bandit_envs`: the papers' algorithms, trained policies, and their evaluation."""

from __future__ import annotations

from pathlib import Path

from bandit_envs import compiled

compiled.watch(Path(__file__).parent)  # kernels here call kernels there: one cache stamp over both

from .agent import Agent  # noqa: E402
from .catalogue import make, names  # noqa: E402
from .evaluation import Evaluation, evaluate  # noqa: E402

__all__ = ["Agent", "Evaluation", "evaluate", "make", "names"]
