"""Running a figure of a paper: every claim gets an interval and a verdict at every point."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bandit_envs import EPISODES_LIMIT, flag, integer, unknown

from ..core.files import write_together
from ..core.optional import pandas
from ..evaluation.progress import now_at, told_in_lines
from ..evaluation.result import SETTINGS
from .catalogue import FIGURES
from .drawing import plot_panels
from .figure import Figure
from .panels import Result

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Reproduction", "reproduce"]


@dataclass(eq=False)
class Reproduction:
    """The results of a figure's panels, and the verdicts on its claims.

    Attributes:
        figure: the panels that were run, and the claims about them.
        results: the result of each panel, by the panel's title.
        level: confidence level of the intervals.
        skipped: panels whose data could not be had, with the reason.
    """

    figure: Figure
    results: dict[str, Result]
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
        """Per claim: at how many points the data confirm it (yes), leave it open, or refute it (no)."""
        table = self.verdicts.groupby(["panel", "claim"], sort=False)["verdict"]
        counts = table.value_counts().unstack(fill_value=0)
        card: pd.DataFrame = counts.reindex(columns=["yes", "open", "no"], fill_value=0).reset_index()
        return card

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw all panels.

        Args:
            path: also write the figure there; the suffix names the format (.png, .svg, .pdf).

        Returns:
            A Matplotlib figure.

        Raises:
            ValueError: for an unknown suffix.
        """
        figure = self.figure
        how: dict[str, Any] = {"level": self.level, "transform": figure.transform, "order": figure.order}
        return plot_panels(figure.panels, self.results, **how, path=path)

    def save(self, folder: str | Path) -> Path:
        """Write verdicts, scorecard, points (.csv), figure (.png, .svg) and settings.json into `folder`; returns it."""
        folder, tables = Path(folder), {"verdicts.csv": self.verdicts, "scorecard.csv": self.scorecard()}
        parts = [result.summary().assign(panel=title) for title, result in self.results.items()]
        tables["points.csv"] = pandas().concat(parts, ignore_index=True)
        files: dict[str, Callable[[Path], Any]] = {
            name: functools.partial(table.to_csv, index=False) for name, table in tables.items()
        }
        files |= {f"figure.{suffix}": self.plot for suffix in ("png", "svg")}
        settings = {title: result.settings for title, result in self.results.items()}
        write_together(folder / SETTINGS, settings, files)
        return folder


def reproduce(
    figure: Figure | str,
    *,
    episodes: int | None = None,
    seed: int = 0,
    panels: Sequence[str] | None = None,
    progress: bool | None = None,
    jobs: int = 1,
) -> Reproduction:
    """Run a figure of a paper.

    A panel whose data can neither be found nor downloaded is skipped, with the reason in `skipped`.

    Args:
        figure: the figure, or its name.
        episodes: runs per point; None: as many as the paper's.
        seed: root seed.
        panels: titles of the panels to run; None: all.
        progress: whether to tell how far the run is, as for `evaluate`; None: if standard error is a terminal.
        jobs: parts of the episodes that run at the same time, as for `evaluate`.

    Returns:
        The results and the verdicts.

    Raises:
        ValueError: for an unknown figure or panel, with the known ones; for a number of episodes below 1.
        OSError: if every panel lacks its data.
    """
    if isinstance(figure, str):
        if figure not in FIGURES:
            raise unknown("figure", figure, FIGURES)
        figure = FIGURES[figure]
    episodes = None if episodes is None else integer("episodes", episodes, 1, EPISODES_LIMIT)
    progress = None if progress is None else flag("progress", progress)
    titles = [panel.title for panel in figure.panels]
    for title in panels or []:
        if title not in titles:
            raise unknown("panel", title, titles)
    chosen = [panel for panel in figure.panels if panels is None or panel.title in panels]
    done: dict[str, Result] = {}  # panels that show several metrics of the same runs share them
    results: dict[str, Result] = {}
    skipped: dict[str, str] = {}
    with told_in_lines(progress):
        for i, panel in enumerate(chosen):
            now_at(f"panel {i + 1} of {len(chosen)}, {panel.title}")
            try:
                if panel.key not in done:
                    done[panel.key] = panel.run(episodes, seed, progress, jobs)
                results[panel.title] = done[panel.key]
            except OSError as error:
                skipped[panel.title] = str(error)
    if not results:
        raise OSError("; ".join(f"{title}: {reason}" for title, reason in skipped.items()))
    shown = [panel for panel in chosen if panel.title in results]
    claims = [claim for claim in figure.claims if claim.panel in results]
    return Reproduction(replace(figure, panels=shown, claims=claims), results, skipped=skipped)
