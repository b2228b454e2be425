"""Choosing one of many prompts or language models: an instance from a table of scores, and a law of such tables.

A table has a row for each example and a column for each candidate; a cell is the grade of the candidate's output on the
example. A pull of a candidate grades one example, drawn from those of its column, with replacement and independently
of all other pulls.
"""

from __future__ import annotations

import csv
import importlib
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import rng
from .arms import Arms, Bernoulli, Resampled
from .checks import integer, number
from .instances import Instance, Sampler

__all__ = ["PromptSelection", "scores"]

Floats = NDArray[np.float64]
MISSING = ("", "na", "n/a", "nan", "none", "null")  # cells that are empty, whatever their case
CANDIDATES = {"BestArm": {"shuffle_arms": True}, "TopK": {"shuffle_arms": True}}  # tables are often sorted


def scores(path: Any, index: str | int | None = None, name: str = "scores") -> Instance:
    """An instance whose arms are the candidates of a table of scores: Bernoulli where all scores are 0 or 1.

    Args:
        path: of a CSV file (UTF-8, a header line with the candidates' names) or a Parquet file; or the table itself: a
            pandas DataFrame, or numbers (examples, candidates), NaN where a cell is missing. Empty cells are missing
            too, and so are "NA", "NaN", "null" and "None".
        index: the column, by its name or number from 0, that holds names of examples and no scores. None: the first
            one where its name is empty, as pandas writes the index of a table; else there is no such column.
        name: of the instance.

    Raises:
        ValueError: naming the row and the column of a cell that is no finite number, a column without any score or
            whose name comes twice, a table of less than 2 candidates, or in which all scores are equal.
        TypeError: for what is no table. FileNotFoundError: where there is no such file.
        ImportError: where a Parquet file needs pandas and pyarrow.
    """
    if isinstance(path, (str, Path)):
        of = str(path)
        frame = _read_parquet(path) if of.lower().endswith((".parquet", ".pq")) else None
        candidates, examples, rows = _read_csv(path) if frame is None else _cells_of(frame)
    elif hasattr(path, "columns") and hasattr(path, "to_numpy"):
        of, (candidates, examples, rows) = "the table", _cells_of(path)
    else:
        of = "the table"
        table = np.asarray(path)
        if table.ndim != 2 or table.dtype.kind not in "biuf":
            raise TypeError(
                "a table of scores is the path of a CSV or Parquet file, a DataFrame, or an array of numbers "
                f"(examples, candidates), got {path!r:.200}"
            )
        candidates = [f"candidate {j}" for j in range(table.shape[1])]
        examples, rows = [str(i) for i in range(len(table))], table.tolist()
    candidates, examples, rows = _without_index(of, candidates, examples, rows, index)
    if len(candidates) < 2:
        raise ValueError(f"{of} must have at least 2 columns of scores, got {candidates}")
    if twice := sorted({one for one in candidates if candidates.count(one) > 1}):
        raise ValueError(f"{of} has columns of the same name: {twice[:5]}")
    graded = _graded(of, candidates, examples, rows)
    values = np.concatenate(graded)
    if values.min() == values.max():
        raise ValueError(f"all scores of {of} are {values[0]:g}: no candidate is better than another")
    arms: Arms = Bernoulli([float(x.mean()) for x in graded]) if np.isin(values, (0, 1)).all() else Resampled(graded)
    return Instance(arms, name, CANDIDATES, tuple(candidates))


def _read_csv(path: str | Path) -> tuple[list[str], list[str], list[list[Any]]]:
    """Names of the columns, numbers of the lines, and the cells."""
    with open(path, encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        lines, rows = list[str](), list[list[Any]]()
        try:
            header = next(reader, [])
            for fields in reader:
                if fields:
                    if len(fields) != len(header):
                        raise ValueError(f"it has {len(fields)} cells, the header has {len(header)}")
                    lines.append(f"line {reader.line_num}")
                    rows.append(list(fields))
        except (csv.Error, UnicodeDecodeError, ValueError) as error:
            raise ValueError(f"{path}, line {reader.line_num}: {error}") from None
    return header, lines, rows


def _read_parquet(path: str | Path) -> Any:
    try:
        reader: Any = importlib.import_module("pandas")
        return reader.read_parquet(path)
    except ImportError as error:
        hint = 'pip install "bandit-envs[evaluation]"'
        raise ImportError(f"a Parquet file of scores needs pandas and pyarrow: {hint}") from error


def _cells_of(frame: Any) -> tuple[list[str], list[str], list[list[Any]]]:
    """Names of the columns, names of the rows, and the cells of a DataFrame."""
    table = frame.to_numpy(dtype=object)
    return [str(one) for one in frame.columns], [str(one) for one in frame.index], table.tolist()


def _without_index(
    of: str, candidates: list[str], examples: list[str], rows: list[list[Any]], index: str | int | None
) -> tuple[list[str], list[str], list[list[Any]]]:
    """The table without the column that holds names of examples."""
    if index is None and candidates and candidates[0].strip() == "":
        index = 0
    if index is None:
        return candidates, examples, rows
    if isinstance(index, str):
        if index not in candidates:
            raise ValueError(f"{of} has no column {index!r}, only {candidates[:10]}")
        index = candidates.index(index)
    j = integer("index", index, 0, max(len(candidates) - 1, 0))
    names = [f"{where} ({row[j]!s:.40})" for where, row in zip(examples, rows, strict=True)]
    return candidates[:j] + candidates[j + 1 :], names, [row[:j] + row[j + 1 :] for row in rows]


def _graded(of: str, candidates: list[str], examples: list[str], rows: list[list[Any]]) -> list[Floats]:
    """The scores of each candidate."""
    graded: list[list[float]] = [[] for _ in candidates]
    for where, row in zip(examples, rows, strict=True):
        for candidate, found, cell in zip(candidates, graded, row, strict=True):
            value = _score(cell)
            if value is None:
                raise ValueError(
                    f"{of}, row {where}, column {candidate!r}: a score is a finite number, or nothing, got {cell!r:.80}"
                )
            if not math.isnan(value):
                found.append(value)
    if empty := [candidate for candidate, found in zip(candidates, graded, strict=True) if not found]:
        raise ValueError(f"{of} has no score in column {empty[0]!r}")
    return [np.array(found) for found in graded]


def _score(cell: Any) -> float | None:
    """The score in a cell; NaN where it is missing, None where it is no score."""
    if cell is None or isinstance(cell, str) and cell.strip().lower() in MISSING or type(cell).__name__ == "NAType":
        return math.nan
    try:
        value = float(cell)
    except (TypeError, ValueError):
        return None
    return None if math.isinf(value) else value


class PromptSelection(Sampler):
    """Fresh candidates in each episode: K prompts or models, graded right or wrong, whose accuracies are logit-normal.

    The logits of the accuracies are independent normal numbers. The defaults are fitted to the win rates of the 223
    models of the leaderboard AlpacaEval 2; accuracy .81 and spread 1.12 to the 102 of AlpacaEval 1.

    Args:
        K: candidates, 2 or more.
        accuracy: median of the accuracies, in (0, 1).
        spread: standard deviation of their logits, > 0.
    """

    name = "prompt-selection"
    defaults: Mapping[str, Mapping[str, Any]] = MappingProxyType({})

    def __init__(self, K: int = 30, accuracy: float = 0.16, spread: float = 1.26) -> None:
        K = integer("K", K, 2, rng.ARMS_LIMIT)
        self.accuracy = number("accuracy", accuracy, 0, 1, above=True, below=True)
        self.logit_spread = number("spread", spread, 0, 20, above=True)
        super().__init__("bernoulli", K)

    @property
    def positive(self) -> bool:
        """Every instance has a best mean > 0."""
        return True

    def draw(self, key: NDArray[np.uint64], episode: NDArray[np.uint64]) -> tuple[Floats, Floats]:
        """Means (E, K), and kernel parameters (E, K, 1), of the episodes (E,) with keys (2, E)."""
        u = rng.uniforms(key, episode, self.K, self.D, stream=rng.INSTANCE)
        logit = math.log(self.accuracy / (1 - self.accuracy)) + self.logit_spread * rng.normal_quantiles(u)
        means = 1.0 / (1.0 + np.exp(-logit))
        return means[..., 0], self.pack(means)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form that `find` reads."""
        return {self.name: {"K": self.K, "accuracy": self.accuracy, "spread": self.logit_spread}}
