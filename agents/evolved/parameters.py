"""The parameters of `evolved`: their names, which depend on how the episodes of a task end, and tables of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task

from ..models.cards import stored_parameters
from .formula import PARAMETERS, START
from .network import WEIGHTS

STOPPING, STOP_START = ("tau0", "tau1"), (0.0, 0.5)  # the names of the parameters for stopping; where a search starts


def parameter_names(stops: bool) -> tuple[str, ...]:
    """The names of all parameters, in order, weights last. stops: whether the index stops by itself: two more."""
    return (*PARAMETERS, *(STOPPING if stops else ()), *WEIGHTS)


def read_parameters(task: Task, known: Mapping[str, float]) -> list[float]:
    """The parameters for a task, in order, of those that a card names; 0 for those that it does not."""
    names = parameter_names(task.budget is None)
    needed = {PARAMETERS[0], *STOPPING} & set(names)
    if missing := sorted(needed - set(known)):
        of = "with a budget" if PARAMETERS[0] in known and missing[0] in STOPPING else "that end otherwise"
        raise ValueError(f"these parameters are for tasks {of}, and lack {missing[0]}, which this task needs")
    return [known.get(name, 0.0) for name in names]


def index_start(stops: bool) -> list[float]:
    """The parameters that the search for an index starts from. stops: whether it stops by itself."""
    return [*START, *(STOP_START if stops else ())]


def parameter_table(task: Task, parameters: object, names: Sequence[str], wanted: int) -> NDArray[np.float64]:
    """Parameters (P, number of names), weights 0 where left out; None: the stored ones; "start": `index_start`."""
    if parameters is None:
        parameters = stored_parameters(task, names)
    elif isinstance(parameters, str) and parameters == "start":
        parameters = index_start(task.budget is None)
    try:
        table = np.atleast_2d(np.array(parameters, np.float64))
    except (TypeError, ValueError, OverflowError):
        table = np.empty((0, 0))
    every = len(names)
    if table.ndim != 2 or table.shape[-1] not in (wanted, every) or not len(table) or not np.isfinite(table).all():
        text = f"evolved takes {wanted} finite parameters here, or {every},"
        raise ValueError(f"{text} or 'start', got {parameters!r:.200}")
    return np.pad(table, ((0, 0), (0, every - table.shape[-1])))
