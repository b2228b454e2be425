"""The figure and the page of a `Benchmark`."""

from __future__ import annotations

import base64
import html
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.optional import require
from ..pictures.template import filled

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

__all__ = ["draw", "write"]

EXTREMES = 5  # tasks on which an agent does best, and worst, that the page names


def draw(result: Any, path: str | Path | None = None) -> Figure:
    """Overall scores with intervals; scores by group; performance profiles. `path`: of a file to write."""
    require("matplotlib", "a figure")
    from matplotlib.figure import Figure

    summary = result.summary()
    groups = [str(name) for name in summary if f"{name}_low" in summary and name != "score"]
    figure = Figure(figsize=(12, 2.6 + 0.26 * max(8, len(summary))), layout="constrained")
    whole, by_group, profiles = figure.subplots(1, 3, width_ratios=[1, 1.3, 1])
    y = np.arange(len(summary))[::-1]
    whole.errorbar(summary["score"], y, xerr=_reach(summary), fmt="o", markersize=4, capsize=2)
    whole.set(yticks=y, yticklabels=summary["agent"], xlabel="score over all tasks", title="0: uniform, 1: best known")
    shades = summary[groups].to_numpy(float)
    image = by_group.imshow(np.clip(shades, -0.5, 1.2), aspect="auto", cmap="viridis", vmin=-0.5, vmax=1.2)
    figure.colorbar(image, ax=by_group, label="score")
    by_group.set(xticks=range(len(groups)), yticks=range(len(summary)), yticklabels=[], title="by group")
    by_group.set_xticklabels([name.replace("_", "\n") for name in groups], fontsize=6)
    levels = np.arange(25) / 20
    for agent, share in result.profile(levels).items():
        profiles.plot(levels, share, label=agent)
    profiles.set(xlabel="score s", ylabel="share of tasks with a score above s", title="agents that take all tasks")
    if profiles.lines:
        profiles.legend(fontsize=7)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def write(result: Any, folder: str | Path) -> Path:
    """The tables as CSV, the figure and the page."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    result.table.to_csv(place / "table.csv", index=False)
    result.summary().to_csv(place / "summary.csv", index=False)
    figure, buffer = draw(result, place / "benchmark.png"), io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    picture = base64.b64encode(buffer.getvalue()).decode()
    sections = {
        "Scores": _summary(result.summary()),
        "Figure": f'<figure><img alt="Scores" style="width: 100%" src="data:image/png;base64,{picture}"></figure>',
        "Where each agent wins and loses": _extremes(result),
        "Tasks": _cells(result),
    }
    parts = {
        "TITLE": f"Benchmark {result.set}",
        "FACTS": f"{len(result.tasks)} tasks. 0 is uniform sampling, 1 the best that is known.",
        "PARTS": "".join(f"<section><h2>{head}</h2>{body}</section>" for head, body in sections.items()),
    }
    filled("report.html", parts, place / "benchmark.html")
    return place


def _reach(summary: DataFrame) -> Any:
    low, high = summary["score"] - summary["score_low"], summary["score_high"] - summary["score"]
    return np.maximum(np.nan_to_num([low, high]), 0.0)


def _score(value: float, low: float, high: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f} <span class=soft>[{low:.2f}, {high:.2f}]</span>"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [f"<tr>{''.join(f'<th>{html.escape(name)}</th>' for name in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows]
    return f"<div class=wide><table>{''.join(lines)}</table></div>"


def _summary(summary: DataFrame) -> str:
    names = [str(name) for name in summary if f"{name}_low" in summary]
    rows = [
        [html.escape(row["agent"]), *(_score(row[name], row[f"{name}_low"], row[f"{name}_high"]) for name in names)]
        for _, row in summary.iterrows()
    ]
    return _table(["agent", "all tasks", *(name.replace("_", ", ") for name in names[1:])], rows)


def _extremes(result: Any) -> str:
    """Where each agent wins and loses."""
    rows = []
    for agent, cells in result.cells.items():
        ordered = sorted((cell for cell in cells if not math.isnan(cell.score)), key=lambda cell: cell.score)
        worst, best = ordered[:EXTREMES], ordered[-EXTREMES:][::-1]
        names = [", ".join(f"{cell.task.name} ({cell.score:.2f})" for cell in some) for some in (best, worst)]
        rows.append([html.escape(agent), *names])
    return _table(["agent", "best on", "worst on"], rows)


def _cells(result: Any) -> str:
    """Scores by task, and below the notes."""
    rows = []
    for place, task in enumerate(result.tasks):
        found = [result.cells[agent][place].row for agent in result.agents]
        shown = [_score(row["score"], row["score_low"], row["score_high"]) for row in found]
        best = f"{task.best:.4g} ({html.escape(task.best_agent)})"
        rows.append([task.name, html.escape(task.source), f"{task.uniform:.4g}", best, *shown])
    notes = [
        [cell.task.name, html.escape(agent), html.escape(cell.note)]
        for agent, cells in result.cells.items()
        for cell in cells
        if cell.note
    ]
    head = ["task", "source", "uniform", "best known", *map(html.escape, result.agents)]
    return _table(head, rows) + (_table(["task", "agent", "note"], notes) if notes else "")
