"""`bandit-envs reproduce`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from tyro.conf import Positional, arg

from .options import Command, Count, Place, Switch, note


@dataclass(frozen=True)
class Reproduce(Command):
    """Run a figure of a paper, or all of a paper's; print a verdict on everything that the paper claims of it.

    With --out each block of episodes is kept in the folder, and not run again: a run that was killed goes on where it
    was, and tables and pictures are made again from what is there.

    Examples:
      bandit-envs reproduce tao2019-figure-1 --episodes 500 --panels "Setup 1"
      bandit-envs reproduce tao2019-figure-1 --out results/tao2019-figure-1
      bandit-envs reproduce mason2020 --out results/mason2020
    """

    figure: Positional[Annotated[str, arg(metavar="FIGURE")]]
    """Its name, as tao2019-figure-1; or a paper's, as tao2019, for all of its figures."""
    episodes: Count = None
    """Runs per point; left out: as many as the paper's."""
    panels: Annotated[tuple[str, ...] | None, arg(metavar="TITLE [TITLE ...]", help_behavior_hint="")] = None
    """Panels to run; left out: all."""
    seed: Annotated[int, arg(metavar="N")] = 0
    """Root seed."""
    jobs: Annotated[int, arg(metavar="N")] = 1
    """Parts of the episodes that run at the same time, -1 for as many as there are cores."""
    out: Place = None
    """Folder for evaluations, tables (.csv, .md) and the figure (.png, .svg); of a paper, a folder for each figure in
    it. The same command goes on with what is there."""
    docs: Place = None
    """Folder of the documentation, whose pages of the figure are written again."""
    force: Switch = False
    """Write into a folder that holds something else."""
    progress: Switch = True
    """Nothing on how far the run is."""

    def run(self) -> None:
        """Run the panels, write the results, print the verdicts on all claims."""
        from .. import figures
        from ..figures.pages import check_docs, claims_for_terminal

        if self.docs is not None:
            check_docs(self.docs)
            if self.panels is not None:
                raise ValueError("--docs shows whole figures: leave out --panels")
        how: dict[str, Any] = {"episodes": self.episodes, "seed": self.seed, "progress": self.progress}
        how |= {"jobs": self.jobs, "out": self.out, "force": self.force}
        if self.figure in figures.PAPERS:
            if self.panels is not None:
                raise ValueError(f"{self.figure} has several figures: name one of them to choose its --panels")
            done = figures.reproduce_paper(self.figure, **how)
        else:
            done = [figures.reproduce(figures.named(self.figure), panels=self.panels, **how)]
        for result in done:
            for title, reason in result.skipped.items():
                note(f"skipped {title}: {reason}")
        print(claims_for_terminal([(result.figure, result.verdicts) for result in done]))
        if self.out is not None:
            print(f"\nwrote {self.out}")
        if self.docs is not None:
            for result in done:
                print(f"wrote {result.save_docs(self.docs)}")
