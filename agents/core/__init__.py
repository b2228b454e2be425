"""What every algorithm builds on: the agent, its shapes, confidence widths, tournament trees.

The names below are for authors of agents, beside `Agent` and its shapes, which `agents` has too:

* `seen_means`, what the arms have shown; `ALL_PROBLEMS`, `LOCAL_PROBLEMS` and `Problems`, for an agent's `solves`;
* `Seen`, `following`, `planned`, `add` and `clear`, for the function of one episode of a `PlanPolicy`;
* `IndexState`, `PlanState` and `RoundState`, the states of these shapes;
* `delta_of`, `scale_of` and `width_of`, for parameters that stand in for what the task says.

The module `agents.core.trees` finds extremes of many arms quickly; `agents.core.bulk` has the plans of a `BulkPolicy`.
"""

import warnings
from typing import Any

from .agent import ALL_PROBLEMS, LOCAL_PROBLEMS, Agent, Problems, seen_means, task_of
from .confidence import delta_of, scale_of, width_of
from .index_policy import IndexPolicy, IndexState
from .plan_policy import PlanPolicy, PlanState, Seen, add, clear, following, planned
from .round_policy import BulkPolicy, RoundPolicy, RoundState

__all__ = [
    "ALL_PROBLEMS",
    "LOCAL_PROBLEMS",
    "Agent",
    "BulkPolicy",
    "IndexState",
    "IndexPolicy",
    "PlanState",
    "PlanPolicy",
    "Problems",
    "RoundState",
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


def __getattr__(name: str) -> Any:
    """The classes of states under their earlier names, as `RoundMemory`."""
    now = name.replace("Memory", "State")
    if name != now and now in __all__:
        warnings.warn(f"agents.core.{name} is now agents.core.{now}", DeprecationWarning, stacklevel=2)
        return globals()[now]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
