"""The learning curve of a training, as a picture beside its card."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..evaluation.plots import COLOURS, LINES, save


def draw_curve(card: Mapping[str, Any], path: Path) -> None:
    """Draw the mean return of each checkpoint on the held-out episodes, beside reference agents on other episodes."""
    from matplotlib.figure import Figure

    rows, result = card["checkpoints"], card["result"]["agents"]
    figure = Figure(figsize=(7.2, 4.2), layout="constrained")
    axes = figure.add_subplot()
    steps = [row["steps"] for row in rows]
    axes.plot(steps, [row["return"] for row in rows], marker="o", color=COLOURS[0], label=card["algorithm"])
    (kept,) = {row["return"] for row in rows if row["steps"] == card["kept"]}
    axes.plot([card["kept"]], [kept], "o", markersize=11, fillstyle="none", color=COLOURS[0], label="kept")
    others = [name for name in result if name not in (card["algorithm"], "untrained")]
    for i, name in enumerate(others, 1):
        axes.axhline(result[name]["return"], color=COLOURS[i], linestyle=LINES[i], label=name)
    axes.set(xlabel="pulls trained for", ylabel="mean return on held-out episodes")
    axes.legend()
    save(figure, path)
