"""What every algorithm builds on: the agent, its shapes, confidence widths, tournament trees.

The names below are for authors of agents, beside `Agent` and its shapes, which `agents` has too:

* `seen_means`, what the arms have shown; `ALL_PROBLEMS`, `LOCAL_PROBLEMS` and `Problems`, for an agent's `solves`;
* `Seen`, `following`, `planned`, `add` and `clear`, for the function of one episode of a `PlanPolicy`;
* `IndexMemory`, `PlanMemory` and `RoundMemory`, what these shapes remember;
* `delta_of`, `scale_of` and `width_of`, for parameters that stand in for what the task says.

The module `agents.core.trees` finds extremes of many arms quickly; `agents.core.bulk` has the plans of a `BulkPolicy`.
"""

from .agent import ALL_PROBLEMS, LOCAL_PROBLEMS, Agent, Problems, seen_means, task_of
from .confidence import delta_of, scale_of, width_of
from .index_policy import IndexMemory, IndexPolicy
from .plan_policy import PlanMemory, PlanPolicy, Seen, add, clear, following, planned
from .round_policy import BulkPolicy, RoundMemory, RoundPolicy

__all__ = [
    "ALL_PROBLEMS",
    "LOCAL_PROBLEMS",
    "Agent",
    "BulkPolicy",
    "IndexMemory",
    "IndexPolicy",
    "PlanMemory",
    "PlanPolicy",
    "Problems",
    "RoundMemory",
    "RoundPolicy",
    "Seen",
    "add",
    "clear",
    "delta_of",
    "following",
    "planned",
    "scale_of",
    "seen_means",
    "task_of",
    "width_of",
]
