"""`bandit-envs reproduce`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from tyro.conf import Positional, arg

from ..core.files import try_out
from ..evaluation.report import table
from .options import Command, Count, Place, Switch, note, refuse_to_overwrite

__all__ = ["Reproduce"]


@dataclass(frozen=True)
class Reproduce(Command):
    """Run a figure of a paper; print a verdict on everything that the paper claims of it.

    Examples:
      bandit-envs reproduce tao2019-figure-1 --episodes 500 --panels "Setup 1"
      bandit-envs reproduce tao2019-figure-1 --out results/tao2019-figure-1
    """

    figure: Positional[Annotated[str, arg(metavar="FIGURE")]]
    """Its name, as tao2019-figure-1."""
    episodes: Count = None
    """Runs per point; left out: as many as the paper's."""
    panels: Annotated[tuple[str, ...] | None, arg(metavar="TITLE [TITLE ...]", help_behavior_hint="")] = None
    """Panels to run; left out: all."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Root seed."""
    jobs: Annotated[int, arg(metavar="N")] = 1
    """Parts of the episodes that run at the same time, -1 for as many as there are cores."""
    out: Place = None
    """Folder for the figure (.png, .svg), verdicts.csv, scorecard.csv, points.csv and settings.json."""
    force: Switch = False
    """Overwrite what is in the folder."""
    progress: Switch = True
    """Nothing on how far the run is."""

    def run(self) -> None:
        """Run the panels, print the scorecard, write the results."""
        from .. import figures
        from ..evaluation.result import SETTINGS

        if self.out is not None:
            refuse_to_overwrite([self.out], self.force)
            try_out(self.out / SETTINGS)
        result = figures.reproduce(
            self.figure,
            episodes=self.episodes,
            seed=self.seed,
            panels=self.panels,
            progress=self.progress,
            jobs=self.jobs,
        )
        for title, reason in result.skipped.items():
            note(f"skipped {title}: {reason}")
        card = result.scorecard()
        print(f"{result.figure.source}: at how many points a claim came out, is open, did not come out")
        rows = [[str(value) for value in row] for row in card.itertuples(index=False)]
        print(table([str(name) for name in card.columns], rows))
        if self.out is not None:
            print(f"\nwrote {result.save(self.out)}")
