"""What tests of long evaluations share."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from pandas.testing import assert_frame_equal

import agents
from agents.evaluation.result import Evaluation

TAO = {"instance": "tao2019-1", "budget": 60}
NAMES = ["lsa", "opt-kg"]  # one in compiled code, one in lockstep


def evaluate(names: Any = NAMES, env_id: str = "Threshold", episodes: int = 3000, **more: Any) -> Evaluation:
    return agents.evaluate(names, env_id, episodes=episodes, **({"env_kwargs": TAO, "progress": False} | more))


def same(a: Evaluation, b: Evaluation) -> None:
    """Every row, if there are rows, and every count, bit for bit."""
    assert a.settings["rows"] == b.settings["rows"]
    if a.settings["rows"] == "all":
        equal(a, b)
    assert_frame_equal(a.pulls, b.pulls, check_exact=True)
    left_out = ["pulls_per_second"]
    assert_frame_equal(a.summary().drop(columns=left_out), b.summary().drop(columns=left_out), check_exact=True)


def equal(a: Evaluation, b: Evaluation) -> None:
    """Every row and every count, bit for bit."""
    assert_frame_equal(a.episodes, b.episodes, check_exact=True)
    assert_frame_equal(a.pulls, b.pulls, check_exact=True)


@functools.cache
def reference() -> Evaluation:
    """Rows in memory at two numbers of pulls, which what is kept elsewhere is compared with."""
    return evaluate(at=[20, 60])


def files(folder: Path, inside: str = "episodes.parquet") -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / inside).iterdir()}
