"""`bandit-envs reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from .options import Command, note


class Reproduce(Command, of="reproduce"):
    """Run a figure of a paper, or all of a paper's; print a verdict on everything that the paper claims of it.

    With --out each block of episodes is kept in the folder, and not run again: a run that was killed goes on where it
    was, and tables and pictures are made again from what is there.

    Examples:
      bandit-envs reproduce tao2019-figure-1 --episodes 500 --panels "Setup 1"
      bandit-envs reproduce tao2019-figure-1 --out results/tao2019-figure-1
      bandit-envs reproduce mason2020 --out results/mason2020
    """

    figure: Positional[Annotated[str, arg(metavar="FIGURE")]]
    docs: str | Path | None = None
    """Folder of the documentation, whose pages of the figure are written again."""
    progress: bool = True

    def run(self) -> None:
        from .. import figures
        from ..figures.pages import check_docs, claims_for_terminal

        if self.docs is not None:
            check_docs(Path(self.docs))
            if self.panels is not None:
                raise ValueError("--docs shows whole figures: leave out --panels")
        how = {name: value for name, value in self.handed("reproduce").items() if name not in ("figure", "panels")}
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
                print(f"wrote {result.save_docs(Path(self.docs))}")
