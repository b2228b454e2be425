"""bandit-envs: pure-exploration bandit problems as Gymnasium environments. Importing registers them.

What authors of agents, problems and distributions need besides is in the packages: `kernels`, `instances`, `problems`,
`stopping`, `simulation`, `envs`, each with an `__all__`.
"""

from __future__ import annotations

from typing import NoReturn

from .envs import (
    ENVIRONMENTS,
    FEATURES,
    BenchmarkTask,
    History,
    PureExplorationEnv,
    PureExplorationVectorEnv,
    benchmark_tasks,
    register_problem,
)
from .instances import (
    DISTRIBUTIONS,
    INSTANCES,
    Arms,
    Bernoulli,
    Captions,
    Categorical,
    Gaussian,
    Instance,
    Measurement,
    Measurements,
    Polyhedra,
    PromptSelection,
    Registry,
    Resampled,
    Sampler,
    ScoreTables,
    Shared,
    Tabulated,
    Uniform,
    captions,
    from_table,
    measurements,
    register_distribution,
    register_instance,
)
from .kernels import Polyhedron, agent_uniforms
from .problems import (
    PROBLEMS,
    AllGood,
    BestArm,
    BetterThanControl,
    Feasible,
    Problem,
    SetProblem,
    Task,
    Threshold,
    TopK,
)
from .simulation import Simulation

__version__ = "0.2.0"
__all__ = [
    "AllGood", "Arms", "BenchmarkTask", "Bernoulli", "BestArm", "BetterThanControl", "Captions", "Categorical",
    "DISTRIBUTIONS", "ENVIRONMENTS", "FEATURES", "Feasible", "Gaussian", "History", "INSTANCES", "Instance",
    "Measurement", "Measurements", "PROBLEMS", "Polyhedra", "Polyhedron", "Problem", "PromptSelection",
    "PureExplorationEnv", "PureExplorationVectorEnv", "Registry", "Resampled", "Sampler", "ScoreTables",
    "SetProblem", "Shared", "Simulation", "Tabulated", "Task", "Threshold", "TopK", "Uniform", "agent_uniforms",
    "benchmark_tasks", "captions", "from_table", "measurements", "register_distribution", "register_instance",
    "register_problem",
]  # fmt: skip
_RENAMED = {
    **{"LAWS": "DISTRIBUTIONS", "register_law": "register_distribution"},
    **{"LookaheadRoom": "problems.LookaheadScratch", "nearest_way": "stopping.nearest_alternative"},
}


def __getattr__(name: str) -> NoReturn:
    if name in _RENAMED:
        raise ImportError(f"bandit_envs.{name} is now bandit_envs.{_RENAMED[name]}")
    for package in ("envs", "kernels", "problems", "simulation", "stopping"):
        if name in globals()[package].__all__:
            raise ImportError(f"bandit_envs.{name} is now bandit_envs.{package}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
