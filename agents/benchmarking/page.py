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
from .scores import with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FEW = 8  # so many agents of a picture are named
EXTREMES = 5  # so many best and worst tasks of an agent stand on the page


def draw(result: Any, path: str | Path | None = None) -> Figure:
    """Performance profiles, a panel for each setting. `path`: of a file to write.

    They are those of `Benchmark.profile`. The best `FEW` agents are named, in the same colours.
    """
    require("matplotlib", "a figure")
    from matplotlib.figure import Figure

    settings, levels = result.settings, np.arange(-100, 151) / 100
    figure = Figure(figsize=(5.5 * len(settings), 4), layout="constrained")
    summary = result.summary()
    colours = {agent: i for i, agent in enumerate(summary["agent"])}
    for axes, setting in zip(figure.subplots(1, len(settings), squeeze=False)[0], settings, strict=True):
        shares = result.profile(levels, setting)
        order = [agent for agent in summary.sort_values(setting, ascending=False)["agent"] if agent in shares]
        for place, agent in enumerate(order):
            i, name = colours[agent], agent if place < FEW else None
            style: Any = {"color": f"C{i % 10}", "linestyle": ("solid", "dashed", "dotted")[i % 3]}
            style = style if name else {"color": "#C0C0C0", "zorder": 1}
            axes.step(levels, shares[agent], label=name, where="post", **style)
        axes.set(xlabel="score s (0: uniform, 1: the reference)", ylabel="share of tasks with a score above s")
        axes.set(title=setting, ylim=(0, 1.02), xlim=(levels[0], levels[-1]))
        if order:
            axes.legend(fontsize=8)
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
        "All problems": _summary(result, [x for x in result.columns if "_" not in x]),
        **{
            f"By problem: {name}": _summary(result, [x for x in result.columns if x.endswith(f"_{name}")])
            for name in result.settings
        },
        "Profiles": f'<figure><img alt="Profiles" style="width: 100%" src="data:image/png;base64,{picture}"></figure>',
        "Where each agent wins and loses": _extremes(result),
        "Stops by a proof of one's own, as the agent says": _stops(result, "own"),
        "Stops without a proof": _stops(result, "none"),
        "Tasks": _cells(result),
    }
    parts = {
        "TITLE": f"Benchmark {result.set}",
        "FACTS": f"{len(result.tasks)} tasks. 0 is uniform sampling, 1 the reference; deltas are certified.",
        "PARTS": "".join(f"<section><h2>{head}</h2>{body}</section>" for head, body in sections.items() if body),
    }
    filled("report", parts, place / "benchmark.html")
    return place


def _score(row: Any, name: str = "score") -> tuple[str, object]:
    """The text of a score, and what it is sorted by."""
    text = with_interval(row, name)
    return text, float(row[name]) if text else ""


def _summary(result: Any, columns: list[str]) -> str:
    """Scores of the agents that have one of these, the best first."""
    summary = result.summary().sort_values(columns, ascending=False, kind="stable").dropna(subset=columns, how="all")
    more = {"mean": "{:.2f}", "worst": "{:.2f}", "errors": "{:.3%}", "seconds_a_pull": "{:.1e}"}
    more = more if "all" in columns else {}
    rows = []
    for _, row in summary.iterrows():
        others = [how.format(row[name]) if row[name] == row[name] else "" for name, how in more.items()]
        rows.append([row["agent"], *(_score(row, name) for name in columns), *others])
    heads = [*(name.replace("_", ", ") for name in columns), *(name.replace("_", " ") for name in more)]
    return table(["agent", *heads], rows)


def _stops(result: Any, proof: str) -> str:
    """Pulls and errors of agents that stop by themselves."""
    rows = result.stop_rows(proof)
    return table(["task", "agent", "pulls", "cut", "errors"], rows) if rows else ""


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
        cells = [result.cells[agent][place] for agent in result.agents]
        scores = [_score(x.row) if task.scored else f"{x.value:.4g} pulls" * (x.value == x.value) for x in cells]
        best = f"{task.best:.4g} ({task.best_agent})", task.best
        bound = (f"{task.bound:.4g}", task.bound) if task.bound == task.bound else ("", "")
        rows.append([task.name, task.source, (f"{task.uniform:.4g}", task.uniform), best, bound, *scores])
    cells = [cell for own in result.cells.values() for cell in own if cell.note]
    notes = [[cell.task.name, cell.agent, cell.note] for cell in cells]
    head = ["task", "source", "uniform", "reference", "bound", *result.agents]
    return table(head, rows) + (table(["task", "agent", "note"], notes) if notes else "")
