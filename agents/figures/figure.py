"""A figure of a paper as a declaration: panels of agents on instances, and the orders that the paper claims.

`reproduce` runs it, and gives every claimed order a paired interval and a verdict, cell by cell: "yes" where the
interval of the difference lies on the claimed side of 0, "no" where it lies on the other, "open" where it holds 0.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..evaluation import Evaluation, evaluate
from ..evaluation.result import _pandas

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Claim", "Figure", "Panel", "Reproduction", "reproduce"]


@dataclass(frozen=True)
class Panel:
    """One panel: agents {label: name} on one environment, at several budgets.

    Attributes:
        episodes: runs per point in the paper. metric: what is drawn, and label of its axis. log: of the axis of pulls.
    """

    title: str
    env_id: str
    env_kwargs: Mapping[str, Any]
    budgets: Sequence[int]
    agents: Mapping[str, str]
    episodes: int
    metric: str
    label: str


@dataclass(frozen=True)
class Claim:
    """In a panel, `better` has a smaller (or larger) mean of the panel's metric than `worse`, at every budget."""

    panel: str
    better: str
    worse: str
    larger: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure: its panels, what is drawn, and what the paper claims.

    Attributes:
        name: for the command line. source: paper and figure. transform: of the mean and interval drawn.
    """

    name: str
    source: str
    panels: Sequence[Panel]
    claims: Sequence[Claim]
    transform: Callable[[NDArray[np.float64], int], NDArray[np.float64]] = lambda mean, K: mean


@dataclass(eq=False)
class Reproduction:
    """What came out: an evaluation per panel, and the verdicts."""

    figure: Figure
    evaluations: dict[str, Evaluation]
    level: float = 0.95

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """One row per claim and budget: panel, better, worse, budget, difference, low, high, p_value, verdict."""
        rows = []
        for claim in self.figure.claims:
            panel = next(p for p in self.figure.panels if p.title == claim.panel)
            evaluation = self.evaluations[claim.panel]
            for budget in panel.budgets:
                d = evaluation.compare(claim.better, claim.worse, panel.metric, budget=budget, level=self.level)
                less, more = ("no", "yes") if claim.larger else ("yes", "no")
                verdict = less if d.high < 0 else more if d.low > 0 else "open"
                rows.append({"panel": claim.panel, "better": claim.better, "worse": claim.worse, "budget": budget,
                             "difference": d.difference, "low": d.low, "high": d.high, "p_value": d.p_value,
                             "verdict": verdict})  # fmt: skip
        table: pd.DataFrame = _pandas().DataFrame(rows)
        return table

    def scorecard(self) -> pd.DataFrame:
        """Per claim: at how many budgets it came out (yes), did not (no), or stays open."""
        table = self.verdicts.groupby(["panel", "better", "worse"], sort=False)["verdict"]
        counts = table.value_counts().unstack(fill_value=0)
        card: pd.DataFrame = counts.reindex(columns=["yes", "open", "no"], fill_value=0).reset_index()
        return card

    def plot(self, path: str | Path | None = None) -> Any:
        """The figure: a panel each, mean of the metric against budget; writes it to `path` (.png, .svg, .pdf)."""
        from ..evaluation.plots import plot_panels

        return plot_panels(self, path)

    def save(self, folder: str | Path) -> Path:
        """Write verdicts, scorecard, points (.csv), figure (.png, .svg) and settings.json into `folder`; returns it."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.verdicts.to_csv(folder / "verdicts.csv", index=False)
        self.scorecard().to_csv(folder / "scorecard.csv", index=False)
        parts = [e.summary().assign(panel=title) for title, e in self.evaluations.items()]
        _pandas().concat(parts, ignore_index=True).to_csv(folder / "points.csv", index=False)
        settings = {title: e.settings for title, e in self.evaluations.items()}
        (folder / "settings.json").write_text(json.dumps(settings, indent=1, default=repr) + "\n")
        for suffix in ("png", "svg"):
            self.plot(folder / f"figure.{suffix}")
        return folder


def reproduce(
    figure: Figure | str, *, episodes: int | None = None, seed: int = 0, panels: Sequence[str] | None = None,
    progress: bool | None = None,
) -> Reproduction:  # fmt: skip
    """Run a figure of a paper.

    Args:
        figure: the figure, or its name. episodes: runs per point; None: as many as the paper's.
        seed: root seed. panels: titles of the panels to run; None: all.

    Raises:
        ValueError: for an unknown figure or panel, with the known ones.
    """
    from bandit_envs.naming import unknown

    from . import FIGURES

    if isinstance(figure, str):
        if figure not in FIGURES:
            raise unknown("figure", figure, FIGURES)
        figure = FIGURES[figure]
    titles = [panel.title for panel in figure.panels]
    for title in panels or []:
        if title not in titles:
            raise unknown("panel", title, titles)
    chosen = [panel for panel in figure.panels if panels is None or panel.title in panels]
    done: dict[str, Evaluation] = {}  # panels that show several metrics of the same runs share them
    evaluations = {}
    for panel in chosen:
        key = repr((panel.env_id, panel.env_kwargs, panel.budgets, panel.agents, panel.episodes))
        if key not in done:
            done[key] = evaluate(dict(panel.agents), panel.env_id, episodes=episodes or panel.episodes, seed=seed,
                                 budgets=panel.budgets, env_kwargs=panel.env_kwargs, progress=progress)  # fmt: skip
        evaluations[panel.title] = done[key]
    claims = [claim for claim in figure.claims if claim.panel in evaluations]
    return Reproduction(replace(figure, panels=chosen, claims=claims), evaluations)
