"""What every algorithm builds on: the agent, its forms, confidence widths, tournament trees.

The names below are for authors of agents, beside `Agent`, `Algorithm` and `IndexPolicy`, which `agents` has too:

* `setting`, `per_episode`, `per_arm`, `scratch` and `parts_of`, the fields of an `Algorithm`; `pull`, `planned`,
  `arm_at` and `count_pulls`, for its compiled functions;
* `seen_means`, what the arms have shown; `ALL_PROBLEMS`, `LOCAL_PROBLEMS` and `Problems`, for an agent's `solves`;
* `IndexState`, the state of an index policy;
* `delta_of`, `scale_of` and `width_of`, for parameters that stand in for what the task says.

The module `agents.core.trees` finds extremes of many arms quickly.
"""

from typing import NoReturn

from .agent import ALL_PROBLEMS, LOCAL_PROBLEMS, Agent, Problems, seen_means, task_of
from .algorithm import Algorithm
from .confidence import delta_of, scale_of, width_of
from .declared import parts_of, per_arm, per_episode, scratch, setting
from .former import refuse
from .index_policy import IndexPolicy, IndexState
from .plans import arm_at, count_pulls, planned, pull

__all__ = [
    "ALL_PROBLEMS", "LOCAL_PROBLEMS", "Agent", "Algorithm", "IndexPolicy", "IndexState", "Problems", "arm_at",
    "count_pulls", "delta_of", "parts_of", "per_arm", "per_episode", "planned", "pull", "scale_of", "scratch",
    "seen_means", "setting", "task_of", "width_of",
]  # fmt: skip


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
