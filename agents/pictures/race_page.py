"""A race: several agents in the same episode, on one page of HTML with a slider over the pulls.

The page takes nothing from elsewhere and holds all that it shows. Its frames are thinned so that the file stays below
2 MB for any number of arms and agents; of many arms it shows columns, each of several arms that are neighbours in
the order of the true means.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bandit_envs import Polyhedron
from bandit_envs.envs import View, outline

from ..evaluation.environment import environment_id
from ..registry import recipes_of
from .template import check_page, filled, json_text
from .watching import MOST_FRAMES, Film, films

COLUMNS = 120  # arms from which on neighbours share a column, and the number of columns then
MOST_BYTES = 1_700_000  # of the numbers of a page, as text
CELL_BYTES = 20  # of an arm in a frame, as text: four numbers of two bytes, one of four, one of one
MOST_AGENTS = 8
MISSING = 2**16 - 1  # stands for no number among the whole numbers that stand for values

Floats = NDArray[np.float64]


def race(
    agents: object,
    env_id: str,
    *,
    out: str | Path | None = None,
    env_kwargs: Mapping[str, object] | None = None,
    seed: int = 0,
    episode: int = 0,
    frames: int | None = None,
    title: str | None = None,
    force: bool = False,
    trust: bool = False,
) -> str:
    """Let agents play the same episode, and make a page of it that plays in any browser: one HTML file.

    The arms and the samples are those of this episode in `evaluate`: the same for all agents.

    Args:
        agents: as for `evaluate`: a list of names or a dict {label: agent}; at most 8.
        env_id, env_kwargs, seed, episode, trust: as for `play`.
        out: file to write the page into, .html; None: it is returned only.
        frames: at most, spread evenly over the pulls; None: as many as the size of the file allows, 240 at most.
        title: of the page; None: problem and instance.
        force: overwrite a file that is no page of this package.

    Returns:
        The HTML.

    Raises:
        ValueError: for too many agents, for a file that is no .html, and as `play`.
    """
    path = None if out is None else check_page(out, force)
    runners = recipes_of(agents, trust)
    if len(runners) > MOST_AGENTS:
        raise ValueError(f"a race is of at most {MOST_AGENTS} agents, got {len(runners)}")

    def most(K: int) -> int:
        """Frames that fit."""
        return max(2, min(MOST_FRAMES, MOST_BYTES // (CELL_BYTES * len(runners) * min(K, COLUMNS))))

    how: dict[str, object] = {"env_kwargs": env_kwargs, "seed": seed, "episode": episode, "trust": trust}
    made = films(runners, environment_id(env_id), frames=most if frames is None else frames, **how)
    task, instance = made[0].trace.task, (env_kwargs or {}).get("instance")
    named = instance if isinstance(instance, str) else f"{task.K:,} arms"
    title = f"{task.problem}: {named}" if title is None else title
    data = {"title": title, "facts": _facts(task, named, seed, episode)} | _numbers(made)
    parts = {"TITLE": html.escape(title), "TABLE": _table(made), "DATA": json_text(data)}
    return filled("drawing race", parts, path)


def _facts(task: Any, named: str, seed: int, episode: int) -> str:
    """Parameters of the problem, arms, rules and seed, in one line."""
    own = [f"{name} {value}" for name, value in task.parameters.items() if isinstance(value, (int, float, str))]
    arms = f"{task.K:,} arms"
    facts = [f"{task.problem} ({', '.join(own)})" if own else task.problem, named, *[arms] * (named != arms)]
    facts += [] if task.budget is None else [f"budget {task.budget:,}"]
    facts += [] if task.delta is None else [f"delta {task.delta:g}"]
    return " · ".join([*facts, f"seed {seed}, episode {episode}"])


def _table(made: Sequence[Film]) -> str:
    """The ends of the episodes, as rows of a table: what the page shows without its script."""
    rows = []
    for film in made:
        trace = film.trace
        cells = [f"{film.end:,}", f"{trace.answer.sum():,}", f"{trace.score:.4f}", "yes" if trace.correct else "no"]
        row = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{html.escape(film.label)}</th>{row}</tr>')
    return "\n".join(rows)


class _Columns:
    """Which arms share a column, from left to right."""

    def __init__(self, truth: Floats) -> None:
        K = len(truth)
        self.shared = K > COLUMNS
        self.order = np.argsort(-truth, kind="stable") if self.shared else np.arange(K)
        self.starts = np.linspace(0, K, min(K, COLUMNS) + 1).astype(np.int64)
        self.sizes = np.diff(self.starts)
        self.column = np.repeat(np.arange(len(self.sizes)), self.sizes)
        self.place = np.arange(K) - self.starts[self.column]  # of each arm in its column

    def sum(self, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """The sum of each column, of counts."""
        return np.add.reduceat(values[self.order], self.starts[:-1], dtype=np.int64)

    def quantiles(self, values: Floats, *shares: float) -> list[Floats]:
        """For each share, the value below which that share of the column's arms lies; NaN where no arm has a value."""
        table = np.full((len(self.sizes), self.sizes.max()), np.nan)
        table[self.column, self.place] = values[self.order]
        table.sort(axis=1)  # NaN last
        last = np.maximum(np.isfinite(table).sum(axis=1) - 1, 0)
        return [table[np.arange(len(table)), np.rint(share * last).astype(np.int64)] for share in shares]

    def shown(self, view: View) -> list[Floats]:
        """The value of each column, and the ends of its interval, or of the spread of several arms."""
        if self.shared:
            return self.quantiles(view.value, 0.5, 0.1, 0.9)
        return [view.value, view.value - view.reach, view.value + view.reach]


def number_bytes(values: NDArray[np.generic], kind: str) -> str:
    """Numbers as text: base64 of their bytes, the lowest first."""
    return base64.b64encode(np.ascontiguousarray(values).astype(np.dtype(kind).newbyteorder("<")).tobytes()).decode()


def _steps(values: Floats, low: float, high: float) -> str:
    """Values as text, in steps of 1/65534 of a range; what is outside is put on its ends."""
    with np.errstate(invalid="ignore"):
        steps = np.rint(np.clip((values - low) / (high - low), 0.0, 1.0) * (MISSING - 1))
    return number_bytes(np.where(np.isfinite(values), steps, MISSING), "u2")


def _numbers(made: Sequence[Film]) -> dict[str, Any]:
    """What the page of a race draws, JSON-able, of the episode of each agent at the same numbers of pulls."""
    trace, viewer = made[0].trace, made[0].viewer
    ones, zeros = np.ones(trace.task.shape, np.int64), np.zeros(trace.means.shape)
    truth = viewer.view(ones, trace.means, zeros).value
    columns = _Columns(truth)
    low, high = (end(film.limits[i] for film in made) for i, end in enumerate((min, max)))
    data: dict[str, Any] = {
        "asks": viewer.problem.asks,
        "value": viewer.value,
        "limits": [low, high],
        "arms": trace.task.K,
        "columns": columns.sizes.tolist() if columns.shared else len(columns.sizes),
        "truth": _steps(columns.quantiles(truth, 0.5)[0], low, high),
        "at": [0, *trace.at.tolist()],
        "plane": None,
        "agents": [],
    }
    for film in made:
        views, verdicts = film.views, film.trace.verdicts
        values, lows, highs = (np.array(part) for part in zip(*map(columns.shown, views), strict=True))
        shares = [np.rint(255 * columns.sum(view.answer) / columns.sizes) for view in views]
        one: dict[str, Any] = {
            "label": film.label,
            "end": film.end,
            "pulls": [int(view.pulls.sum()) for view in views],
            "score": [None, *(round(float(x), 6) for x in verdicts["score"])],
            "correct": [None, *(bool(x) for x in verdicts["correct"])],
            "inside": [int(view.answer.sum()) for view in views],
            "boundary": [None if view.boundary is None else round(view.boundary, 6) for view in views],
            "values": _steps(values, low, high),
            "lows": _steps(lows, low, high),
            "highs": _steps(highs, low, high),
            "counts": number_bytes(np.array([columns.sum(view.pulls) for view in views]), "u4"),
            "shares": number_bytes(np.array(shares), "u1"),
        }
        data["agents"].append(one)
    if viewer.plane is None or columns.shared:
        return data
    points = [np.array([view.points for view in film.views]) for film in made]
    data["plane"] = plane_of(viewer.plane, np.concatenate([trace.means, *(part.reshape(-1, 2) for part in points)]))

    def coordinates(values: Floats) -> list[str]:
        return [_steps(values[..., d], *(data["plane"][end][d] for end in ("low", "high"))) for d in range(2)]

    data["plane"]["truth"] = coordinates(trace.means)
    for one, part in zip(data["agents"], points, strict=True):
        one["points"] = coordinates(part)
    return data


def plane_of(polyhedron: Polyhedron, points: Floats) -> dict[str, Any]:
    """A polyhedron in a box around all points (n, 2) that are finite, with a margin."""
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0), points.max(axis=0)
    pad = 0.06 * np.where(high > low, high - low, 1.0)
    corners = outline(polyhedron, low - pad, high + pad)
    return {"low": (low - pad).tolist(), "high": (high + pad).tolist(), "corners": corners.tolist()}
