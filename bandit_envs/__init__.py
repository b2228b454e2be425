"""bandit-envs: pure-exploration bandit problems as Gymnasium environments. Importing registers them.

The names below are the public face. What an author of agents, problems or arm laws needs is among them: checks of what
users hand in, compilation of kernels, and random numbers.
"""

from __future__ import annotations

import gymnasium as gym

from .arms import Arms, Bernoulli, Categorical, Gaussian, Resampled, Uniform
from .catalogue import ENVIRONMENTS
from .checks import choice, flag, integer, number
from .compiled import episode_kernel, inlined, jit, lean, slot_kernel
from .datasets import Captions, captions
from .env import PureExplorationEnv, fresh_root
from .geometry import Polyhedron
from .instances import Instance, Polyhedra, Sampler
from .naming import parse_call, unknown
from .observations import FEATURES, beta_below
from .problems import PROBLEMS, AllGood, BestArm, Feasible, Problem, Threshold, TopK
from .problems.certificates import Deviation, Samples, at_boundary, cutoff, deviations
from .registry import Registry
from .rng import EPISODES_LIMIT, PULLS_LIMIT, agent_uniform, agent_uniforms, root_number
from .simulator import MOST_TIMES
from .task import Task
from .vector import PureExplorationVectorEnv

__version__ = "0.1.0"
__all__ = [
    # the environments, their arms and their problems
    "ENVIRONMENTS", "PROBLEMS", "AllGood", "Arms", "Bernoulli", "BestArm", "Captions", "Categorical", "Feasible",
    "Gaussian", "Instance", "Polyhedra", "Polyhedron", "Problem", "PureExplorationEnv", "PureExplorationVectorEnv",
    "Resampled", "Sampler", "Task", "Threshold", "TopK", "Uniform", "captions",
    # for authors: checks of what users hand in, and names with parameters
    "choice", "flag", "integer", "number", "parse_call", "unknown", "Registry",
    # compilation
    "episode_kernel", "inlined", "jit", "lean", "slot_kernel",
    # random numbers
    "agent_uniform", "agent_uniforms", "fresh_root", "root_number",
    # limits, features, and what statistics tell of the k best arms
    "EPISODES_LIMIT", "FEATURES", "MOST_TIMES", "PULLS_LIMIT", "Deviation", "Samples", "at_boundary", "beta_below",
    "cutoff", "deviations",
]  # fmt: skip

for _row in ENVIRONMENTS.values():
    if _row.id not in gym.registry:
        gym.register(
            id=_row.id,
            entry_point="bandit_envs.env:PureExplorationEnv",
            vector_entry_point="bandit_envs.vector:PureExplorationVectorEnv",
            kwargs={"problem": _row.problem},
        )
