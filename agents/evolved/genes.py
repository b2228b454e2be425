"""The genes of `evolved`: their names, which depend on how the episodes of a task end, and tables of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Task

from ..models.cards import stored_genes
from .formula import PARAMETERS, START
from .network import WEIGHTS

__all__ = ["STOPPING", "gene_names", "index_start", "names_for", "read_genes", "shared_by", "told"]

STOPPING, STOP_START = ("tau0", "tau1"), (0.0, 0.5)  # the names of the genes for stopping; where a search starts


def gene_names(stops: bool) -> tuple[str, ...]:
    """The names of all genes of the index, in order. stops: whether it stops by itself, so that it has two more."""
    return (*PARAMETERS, *(STOPPING if stops else ()), *WEIGHTS)


def names_for(task: Task) -> tuple[str, ...]:
    """The names of all genes for a task, in order; those of the network's weights are the last."""
    return gene_names(task.budget is None)


def read_genes(task: Task, known: Mapping[str, float]) -> list[float]:
    """The genes for a task, in order, of those that a card names; 0 for those that it does not.

    Raises:
        ValueError: if the card is of tasks that end otherwise.
    """
    names = names_for(task)
    needed = {PARAMETERS[0], *STOPPING} & set(names)
    if missing := sorted(needed - set(known)):
        of = "with a budget" if PARAMETERS[0] in known and missing[0] in STOPPING else "that end otherwise"
        raise ValueError(f"these genes are for tasks {of}, and lack {missing[0]}, which this task needs")
    return [known.get(name, 0.0) for name in names]


def index_start(stops: bool) -> list[float]:
    """The genes that the search for an index starts from. stops: whether it stops by itself."""
    return [*START, *(STOP_START if stops else ())]


def told(task: Task, genes: Any, names: Sequence[str], wanted: int) -> NDArray[np.float64]:
    """Genes as numbers (P, number of names), of one candidate or more; weights are 0 where they are left out.

    Args:
        task: to be solved.
        genes: as a user tells them; None: those that are stored for the task; "start": those of `index_start`.
        names: of all. wanted: how many of them are not weights.

    Raises:
        ValueError: naming what they are instead, or where none are stored, telling how to evolve some.
    """
    if genes is None:
        genes = stored_genes(task, names)
    elif isinstance(genes, str) and genes == "start":
        genes = index_start(task.budget is None)
    try:
        table = np.atleast_2d(np.array(genes, np.float64))
    except (TypeError, ValueError, OverflowError):
        table = np.empty((0, 0))
    every = len(names)
    if table.ndim != 2 or table.shape[-1] not in (wanted, every) or not len(table) or not np.isfinite(table).all():
        raise ValueError(f"evolved takes {wanted} finite genes here, or {every}, or 'start', got {genes!r:.200}")
    return np.pad(table, ((0, 0), (0, every - table.shape[-1])))


def shared_by(candidates: int, E: int) -> int:
    """How many of E episodes side by side, or of their arms, in a row have the genes of each candidate.

    Raises:
        ValueError: where they cannot be shared out evenly.
    """
    if E % candidates:
        raise ValueError(f"the genes of {candidates} candidates need a multiple of {candidates} episodes, got {E}")
    return max(E // candidates, 1)
