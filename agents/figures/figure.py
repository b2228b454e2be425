"""A figure of a paper as a declaration: panels of agents on instances, and what the paper claims of them.

`reproduce` runs it, and gives every claim an interval and a verdict, point by point.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..core.optional import pandas
from .claims import AnyClaim
from .panels import AnyPanel, Transform

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Figure", "Reproduction", "Result", "reproduce"]


class Result(Protocol):
    """What a panel's run yields; an `Evaluation` is one."""

    @property
    def agents(self) -> list[str]: ...

    @property
    def settings(self) -> dict[str, Any]: ...

    def summary(self, level: float = ...) -> pd.DataFrame: ...


@dataclass(frozen=True)
class Figure:
    """A figure: its panels, what is drawn, and what the paper claims.

    Attributes:
        name: for the command line. source: paper and figure. transform: of the mean and interval drawn.
    """

    name: str
    source: str
    panels: Sequence[AnyPanel]
    claims: Sequence[AnyClaim]
    transform: Transform = lambda mean, K: mean


@dataclass(eq=False)
class Reproduction:
    """What came out: a result per panel, and the verdicts; `skipped`: panels whose data are not to be had, and why."""

    figure: Figure
    results: dict[str, Any]
    level: float = 0.95
    skipped: dict[str, str] = field(default_factory=dict)

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """One row per claim and point: panel, claim, x, estimate, low, high, p_value, verdict (NaN: does not apply)."""
        panels: dict[str, Any] = {panel.title: panel for panel in self.figure.panels}
        rows = [
            {"panel": claim.panel, "claim": claim.text, **row}
            for claim in self.figure.claims
            for row in claim.test(panels[claim.panel], self.results[claim.panel], self.level)
        ]
        columns = ["panel", "claim", "x", "estimate", "low", "high", "p_value", "verdict"]
        table: pd.DataFrame = pandas().DataFrame(rows, columns=columns)
        return table

    def scorecard(self) -> pd.DataFrame:
        """Per claim: at how many points it came out (yes), stays open, did not come out (no)."""
        table = self.verdicts.groupby(["panel", "claim"], sort=False)["verdict"]
        counts = table.value_counts().unstack(fill_value=0)
        card: pd.DataFrame = counts.reindex(columns=["yes", "open", "no"], fill_value=0).reset_index()
        return card

    def plot(self, path: str | Path | None = None) -> Any:
        """The figure, panel by panel; writes it to `path` (.png, .svg, .pdf)."""
        from ..evaluation.plots import plot_panels

        return plot_panels(self, path)

    def save(self, folder: str | Path) -> Path:
        """Write verdicts, scorecard, points (.csv), figure (.png, .svg) and settings.json into `folder`; returns it."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.verdicts.to_csv(folder / "verdicts.csv", index=False)
        self.scorecard().to_csv(folder / "scorecard.csv", index=False)
        parts = [result.summary().assign(panel=title) for title, result in self.results.items()]
        pandas().concat(parts, ignore_index=True).to_csv(folder / "points.csv", index=False)
        settings = {title: result.settings for title, result in self.results.items()}
        (folder / "settings.json").write_text(json.dumps(settings, indent=1, default=repr) + "\n")
        for suffix in ("png", "svg"):
            self.plot(folder / f"figure.{suffix}")
        return folder


def reproduce(
    figure: Figure | str,
    *,
    episodes: int | None = None,
    seed: int = 0,
    panels: Sequence[str] | None = None,
    progress: bool | None = None,
) -> Reproduction:
    """Run a figure of a paper.

    Args:
        figure: the figure, or its name. episodes: runs per point; None: as many as the paper's.
        seed: root seed. panels: titles of the panels to run; None: all.

    A panel whose data can neither be found nor downloaded is skipped, with the reason in `skipped`.

    Raises:
        ValueError: for an unknown figure or panel, with the known ones. OSError: if every panel lacks its data.
    """
    from bandit_envs import unknown

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
    done: dict[str, Any] = {}  # panels that show several metrics of the same runs share them
    results, skipped = {}, {}
    for panel in chosen:
        try:
            if panel.key not in done:
                done[panel.key] = panel.run(episodes, seed, progress)
            results[panel.title] = done[panel.key]
        except OSError as error:
            skipped[panel.title] = str(error)
    if not results:
        raise OSError("; ".join(f"{title}: {reason}" for title, reason in skipped.items()))
    shown = [panel for panel in chosen if panel.title in results]
    claims = [claim for claim in figure.claims if claim.panel in results]
    return Reproduction(replace(figure, panels=shown, claims=claims), results, skipped=skipped)
