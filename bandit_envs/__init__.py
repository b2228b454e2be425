"""bandit-envs: pure-exploration bandit problems as Gymnasium environments. Importing registers them."""

from __future__ import annotations

import gymnasium as gym

from .arms import Arms, Bernoulli, Categorical, Gaussian, Resampled, Uniform
from .catalogue import ENVIRONMENTS
from .env import PureExplorationEnv
from .instances import Instance, Polyhedra, Sampler
from .problems import AllGood, BestArm, Feasible, Problem, Threshold, TopK
from .task import Task
from .vector import PureExplorationVectorEnv

__version__ = "0.1.0"
__all__ = [
    "AllGood",
    "Arms",
    "Bernoulli",
    "BestArm",
    "Categorical",
    "Feasible",
    "Gaussian",
    "Instance",
    "Polyhedra",
    "Problem",
    "PureExplorationEnv",
    "PureExplorationVectorEnv",
    "Resampled",
    "Sampler",
    "Task",
    "Threshold",
    "TopK",
    "Uniform",
]

for _row in ENVIRONMENTS.values():
    if _row.id not in gym.registry:
        gym.register(
            id=_row.id,
            entry_point="bandit_envs.env:PureExplorationEnv",
            vector_entry_point="bandit_envs.vector:PureExplorationVectorEnv",
            kwargs={"problem": _row.problem},
        )
