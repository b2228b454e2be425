"""`bandit-envs benchmark`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

import agents

from ..benchmarking.run import Cell
from ..benchmarking.scores import with_interval
from ..core.files import try_out
from ..evaluation.report import table
from .options import Address, Command, Count, Flag, Switch, Words


@dataclass(frozen=True)
class Benchmark(Command):
    """Play agents on the tasks of the benchmark, and score them: 0 is uniform sampling, 1 the best that is known.

    Examples:
      bandit-envs benchmark lsa top-two --set quick-v2
      bandit-envs benchmark "mine.agents:NearestFirst" --out results/benchmark --jobs -1
      bandit-envs benchmark plain_sb3.zip --trust --ranked --no-stop
    """

    agents: Positional[Annotated[tuple[str, ...], arg(metavar="AGENT")]]
    """Names (see `bandit-envs list agents`), "module:Class(alpha=2)", and paths of saved models."""
    set: Literal["v2", "quick-v2", "v2-offline", "v1", "quick"] = "v2"
    """v2, v1: all tasks; quick-v2, quick: one of each group, in a minute; v2-offline: those that need no download."""
    tasks: Words = None
    """Only these tasks, by their names, in place of a set."""
    out: Address = None
    """Folder for episodes, tables, a figure and a page. The same command goes on where it was killed."""
    root: Count = None
    """Root of other episodes of the same tasks; draw a large one, as an agent can try small ones out."""
    jobs: Annotated[int, arg(metavar="N")] = 1
    """Blocks of episodes at the same time, -1 for as many as there are cores; the result does not depend on it."""
    trust: Switch = False
    """Load models (.zip) that others than this package have written, too: loading one runs the code of its maker."""
    ranked: Flag = None
    """Of models whose file does not say: they were trained on ranked arms."""
    stop: Flag = None
    """Of such models: they were trained with an action that stops."""
    progress: Switch = True
    """Nothing on how far the run is."""

    def run(self) -> None:
        """Play, print the scores and write the page."""
        if self.out is not None:
            try_out(Path(self.out) / "benchmark.html", folder=True)
        how: dict[str, Any] = {"progress": self.progress, "trust": self.trust, "ranked": self.ranked, "stop": self.stop}
        result = agents.benchmark(
            list(self.agents), list(self.tasks or ()) or self.set, self.out, self.jobs, root=self.root, **how
        )
        place = None if self.out is None else result.save(self.out)
        summary = result.summary()
        rows = [[name, *(with_interval(row, name) for _, row in summary.iterrows())] for name in result.columns]
        print(table([result.set, *summary["agent"]], [row for row in rows if any(row[1:])]))
        noted: dict[str, list[Cell]] = {}
        for cell in (cell for own in result.cells.values() for cell in own if cell.note):
            noted.setdefault(cell.kind if math.isnan(cell.score) else f"{cell.agent} {cell.note}", []).append(cell)
        for cells in noted.values():
            print(f"\n{cells[0].agent} {cells[0].note} ({', '.join(cell.task.name for cell in cells)})")
        if place is not None:
            print(f"\nwrote {place}")
