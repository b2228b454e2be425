"""A race: several agents in the same episode, on one page of HTML with a slider over the pulls.

The page takes nothing from elsewhere and holds all that it shows. Its frames are thinned so that the file stays below
2 MB, whatever the number of arms and agents; of many arms it shows columns, each of several arms that are neighbours in
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

from bandit_envs import View, outline

from ..catalogue import recipes_of
from ..core.files import write_alone
from ..evaluation.environment import environment_id
from .film import MOST_FRAMES, Film, films
from .template import check_page, filled, json_text

__all__ = ["COLUMNS", "MOST_BYTES", "race", "race_data"]

COLUMNS = 120  # arms from which on neighbours share a column, and the number of columns then
MOST_BYTES = 1_700_000  # of the numbers of a page, as text
CELL_BYTES = 20  # of an arm in a frame, as text: four numbers of two bytes, one of four, one of one
MOST_AGENTS = 8
MISSING = 2**16 - 1  # stands for no number among the whole numbers that stand for values

Floats = NDArray[np.float64]


def race(
    agents: Any,
    env_id: str,
    *,
    out: str | Path | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
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
    how: dict[str, Any] = {"env_kwargs": env_kwargs, "seed": seed, "episode": episode}
    env_id = environment_id(env_id)

    def most(K: int) -> int:
        """Frames for which there is room."""
        return max(2, min(MOST_FRAMES, MOST_BYTES // (CELL_BYTES * len(runners) * min(K, COLUMNS))))

    made = films(runners, env_id, frames=most if frames is None else frames, trust=trust, **how)
    data = race_data(made, env_kwargs=dict(env_kwargs or {}), seed=seed, episode=episode, title=title)
    text = filled("race.html", {"TITLE": html.escape(data["title"]), "TABLE": _table(made), "DATA": json_text(data)})
    if path is not None:
        write_alone(path, lambda place: place.write_text(text, encoding="utf-8"))
    return text


def _table(made: Sequence[Film]) -> str:
    """The ends of the episodes, as rows of a table: what the page tells without its script."""
    rows = []
    for film in made:
        trace = film.trace
        cells = [f"{film.end:,}", f"{trace.answer.sum():,}", f"{trace.score:.4f}", "yes" if trace.correct else "no"]
        told = "".join(f"<td>{cell}</td>" for cell in cells)
        rows.append(f'<tr><th scope="row">{html.escape(film.label)}</th>{told}</tr>')
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

    def sum(self, values: NDArray[Any]) -> NDArray[np.int64]:
        """The sum of each column, of counts."""
        sums: NDArray[np.int64] = np.add.reduceat(values[self.order], self.starts[:-1], dtype=np.int64)
        return sums

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


def _bytes(values: NDArray[Any], kind: str) -> str:
    """Numbers as text: base64 of their bytes, the lowest first."""
    return base64.b64encode(np.ascontiguousarray(values).astype(np.dtype(kind).newbyteorder("<")).tobytes()).decode()


def _steps(values: Floats, low: float, high: float) -> str:
    """Values as text, in steps of 1/65534 of a range; what is outside is put on its ends."""
    with np.errstate(invalid="ignore"):
        steps = np.rint(np.clip((values - low) / (high - low), 0.0, 1.0) * (MISSING - 1))
    return _bytes(np.where(np.isfinite(values), steps, MISSING), "u2")


def race_data(
    made: Sequence[Film], *, env_kwargs: Mapping[str, Any], seed: int, episode: int, title: str | None = None
) -> dict[str, Any]:
    """What the page of a race shows, JSON-able.

    Args:
        made: the episode of each agent, with frames at the same numbers of pulls.
        env_kwargs, seed, episode: how they came about. title: of the page; None: problem and instance.
    """
    first = made[0]
    task, viewer = first.trace.task, first.viewer
    columns = _Columns(first.truth)
    low, high = (end(film.limits[i] for film in made) for i, end in enumerate((min, max)))
    instance = env_kwargs.get("instance")
    named = instance if isinstance(instance, str) else f"{task.K:,} arms"
    in_plane = viewer.plane is not None and not columns.shared
    data: dict[str, Any] = {
        "title": f"{task.problem}: {named}" if title is None else title,
        "asks": first.viewer.problem.asks,
        "facts": _facts(task, named, seed, episode),
        "value": viewer.value,
        "limits": [low, high],
        "arms": task.K,
        "columns": columns.sizes.tolist() if columns.shared else len(columns.sizes),
        "truth": _steps(columns.quantiles(first.truth, 0.5)[0], low, high),
        "at": [0, *first.trace.at.tolist()],
        "plane": None,
        "agents": [],
    }
    corners = np.zeros((2, 2))
    if in_plane:
        corners = _corners(made)
        assert viewer.plane is not None
        shape = outline(viewer.plane, *corners)
        data["plane"] = {
            "low": corners[0].tolist(),
            "high": corners[1].tolist(),
            "corners": shape.tolist(),
            "truth": [_steps(first.trace.means[:, d], corners[0, d], corners[1, d]) for d in range(2)],
        }
    for film in made:
        views, verdicts = film.views, film.trace.verdicts
        values, lows, highs = (np.array(part) for part in zip(*map(columns.shown, views), strict=True))
        one: dict[str, Any] = {
            "label": film.label,
            "end": film.end,
            "pulls": film.pulls.tolist(),
            "score": [None, *(round(float(x), 6) for x in verdicts["score"])],
            "correct": [None, *(bool(x) for x in verdicts["correct"])],
            "inside": [int(view.answer.sum()) for view in views],
            "boundary": [None if view.boundary is None else round(view.boundary, 6) for view in views],
            "values": _steps(values, low, high),
            "lows": _steps(lows, low, high),
            "highs": _steps(highs, low, high),
            "counts": _bytes(np.array([columns.sum(view.pulls) for view in views]), "u4"),
            "shares": _bytes(
                np.array([np.rint(255 * columns.sum(view.answer) / columns.sizes) for view in views]), "u1"
            ),
        }
        if in_plane:
            points = np.array([view.points for view in views])
            one["points"] = [_steps(points[:, :, d], corners[0, d], corners[1, d]) for d in range(2)]
        data["agents"].append(one)
    return data


def _facts(task: Any, named: str, seed: int, episode: int) -> str:
    """Parameters of the problem, arms, rules and seed, in one line."""
    told = [f"{name} {value}" for name, value in task.parameters.items() if isinstance(value, (int, float, str))]
    told = [f"{task.problem} ({', '.join(told)})" if told else task.problem, named]
    if named != f"{task.K:,} arms":
        told.append(f"{task.K:,} arms")
    if task.budget is not None:
        told.append(f"budget {task.budget:,}")
    if task.delta is not None:
        told.append(f"delta {task.delta:g}")
    return " · ".join([*told, f"seed {seed}, episode {episode}"])


def _corners(made: Sequence[Film]) -> Floats:
    """Corners of a box around all points that are shown, (2, 2)."""
    shown = [made[0].trace.means, *(view.points for film in made for view in film.views if view.points is not None)]
    points = np.concatenate(shown)
    points = points[np.isfinite(points).all(axis=1)]
    low, high = points.min(axis=0), points.max(axis=0)
    pad = 0.06 * np.where(high > low, high - low, 1.0)
    return np.array([low - pad, high + pad])
