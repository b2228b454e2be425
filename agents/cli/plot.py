"""`bandit-envs plot`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

import agents

from .options import Command, Place, Switch, Word


@dataclass(frozen=True)
class Plot(Command):
    """Draw what `bandit-envs evaluate --out` has written.

    Examples:
      bandit-envs plot results/tao --metric misclassified --figure tao.svg
      bandit-envs plot results/tao --log
      bandit-envs plot results/tao --size column --figure column.pdf
    """

    folder: Positional[Annotated[Path, arg(metavar="FOLDER")]]
    """The folder."""
    metric: Word = None
    """error_rate, score, total_pulls, or a metric of the problem; left out: what `evaluate` compares."""
    figure: Place = None
    """File for the figure: .png, .svg or .pdf; left out: METRIC.png in the folder."""
    log: Switch = False
    """Logarithmic axis of the metric."""
    title: Annotated[str | None, arg(metavar="TEXT", help_behavior_hint="")] = None
    """Title of the figure."""
    level: Annotated[float, arg(metavar="X")] = 0.95
    """Of the confidence bands."""
    size: Annotated[str, arg(metavar="screen|column|page")] = "screen"
    """For a paper, what the figure is to fill: a column or a page."""
    trust: Switch = False
    """Import the module of a problem of somebody else that the folder names, which runs its code."""

    def run(self) -> None:
        """Write the figure."""
        from ..evaluation.plots import check_path
        from ..evaluation.rows import main_metric

        given = None if self.figure is None else check_path(self.figure)
        result = agents.results(self.folder, trust=self.trust)
        metric = self.metric or main_metric(result.runs)
        path = given or self.folder / f"{metric}.png"
        result.plot(metric, path=path, log=self.log, title=self.title, level=self.level, size=self.size)
        print(f"wrote {path}")
