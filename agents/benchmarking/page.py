"""The figure and the page of a `Benchmark`."""

from __future__ import annotations

import base64
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.optional import require
from ..pictures.template import filled, table
from .scores import profile, with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW = 8  # so many agents at most are drawn as points with intervals
EXTREMES = 5  # so many best and worst tasks of an agent stand on the page


def draw(result: Any, path: str | Path | None = None) -> Figure:
    """Scores with intervals, over all tasks and by group, and performance profiles. `path`: of a file to write.

    More than `FEW` agents are rows of a heat map in place of points. Profiles are of the agents that have scores on all
    tasks; where there are none, of all agents, on the tasks on which all of them have scores.
    """
    require("matplotlib", "a figure")
    from matplotlib.figure import Figure

    summary = result.summary()
    names = [name for name in result.columns if summary[name].notna().any()]
    ticks = ["all tasks" if name == "score" else name.replace("_", ", ") for name in names]
    figure = Figure(figsize=(11, 2.2 + 0.3 * max(10, len(summary))), layout="constrained")
    scores, profiles = figure.subplots(1, 2, width_ratios=[1.5, 1])
    if len(summary) <= FEW:
        for i, (_, row) in enumerate(summary.iterrows()):
            x, low, high = (np.array([row[name + end] for name in names], float) for end in ("", "_low", "_high"))
            y = np.arange(len(names))[::-1] - 0.6 * (i + 0.5) / len(summary) + 0.3
            reach = np.maximum(np.nan_to_num([x - low, high - x]), 0.0)
            scores.errorbar(x, y, xerr=reach, fmt="o", markersize=4, capsize=2, color=f"C{i}", label=row["agent"])
        for reference in (0, 1):
            scores.axvline(reference, color="#7F7F7F", linewidth=0.8, linestyle="dashed")
        scores.set(yticks=np.arange(len(names))[::-1], yticklabels=ticks, xlabel="score (0: uniform, 1: best known)")
        scores.legend(fontsize=8)
    else:
        shades = np.clip(summary[names].to_numpy(float), -0.5, 1.2)
        image = scores.imshow(shades, aspect="auto", cmap="viridis", vmin=-0.5, vmax=1.2)
        figure.colorbar(image, ax=scores, label="score (0: uniform, 1: best known)")
        scores.set(xticks=range(len(names)), yticks=range(len(summary)), yticklabels=summary["agent"])
        scores.set_xticklabels(ticks, rotation=60, ha="right", fontsize=8)
    levels = np.arange(25) / 20
    shares, tasks = _profiles(result, levels)
    for i, agent in enumerate(summary["agent"]):
        if agent in shares:
            profiles.plot(levels, shares[agent], color=f"C{i % 10}", label=agent)
    profiles.set(xlabel="score s", ylabel=f"share of {tasks} tasks with a score above s", ylim=(0, 1.02))
    if 0 < len(shares) <= 2 * FEW:
        profiles.legend(fontsize=8)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _profiles(result: Any, levels: Any) -> tuple[dict[str, Any], int]:
    """The share of tasks above each level, of the agents that are drawn, and the number of tasks."""
    cells = {agent: np.array([cell.score for cell in own]) for agent, own in result.cells.items()}
    whole = {agent: own for agent, own in cells.items() if not np.isnan(own).any()} or cells
    common = ~np.isnan(list(whole.values())).any(axis=0)
    chosen = {agent: own[common].tolist() for agent, own in whole.items() if common.any()}
    return profile(chosen, levels), int(common.sum())


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
        "Scores": _summary(result),
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


def _score(row: Any, name: str = "score") -> tuple[str, object]:
    """The text of a score, and what it is sorted by."""
    text = with_interval(row, name)
    return text, float(row[name]) if text else ""


def _summary(result: Any) -> str:
    rows = [[row["agent"], *(_score(row, name) for name in result.columns)] for _, row in result.summary().iterrows()]
    return table(["agent", "all tasks", *(name.replace("_", ", ") for name in result.columns[1:])], rows)


def _extremes(result: Any) -> str:
    """The tasks with the highest and the lowest scores of each agent."""
    rows = []
    for agent, cells in result.cells.items():
        ordered = sorted((cell for cell in cells if not math.isnan(cell.score)), key=lambda cell: cell.score)
        worst, best = ordered[:EXTREMES], ordered[-EXTREMES:][::-1]
        names = [", ".join(f"{cell.task.name} ({cell.score:.2f})" for cell in some) for some in (best, worst)]
        rows.append([agent, *names])
    return table(["agent", "best on", "worst on"], rows)


def _cells(result: Any) -> str:
    """The scores by task, and below the notes, such as why a score is missing."""
    rows = []
    for place, task in enumerate(result.tasks):
        scores = [_score(result.cells[agent][place].row) for agent in result.agents]
        best = f"{task.best:.4g} ({task.best_agent})", task.best
        rows.append([task.name, task.source, (f"{task.uniform:.4g}", task.uniform), best, *scores])
    cells = [cell for own in result.cells.values() for cell in own if cell.note]
    notes = [[cell.task.name, cell.agent, cell.note] for cell in cells]
    head = ["task", "source", "uniform", "best known", *result.agents]
    return table(head, rows) + (table(["task", "agent", "note"], notes) if notes else "")
