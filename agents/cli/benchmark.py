"""`bandit-envs benchmark`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

import agents

from ..benchmarking.run import Cell
from ..benchmarking.scores import with_interval
from ..core.files import try_out
from ..evaluation.report import table
from .options import Command


class Benchmark(Command, of="benchmark"):
    """Play agents on the tasks of the benchmark, and score them: 0 is uniform sampling, 1 the best, or a proven bound.

    Examples:
      bandit-envs benchmark lsa top-two --set quick-v2
      bandit-envs benchmark "mine.agents:NearestFirst" --out results/benchmark --jobs -1
      bandit-envs benchmark plain_sb3.zip --trust --ranked --no-stop
    """

    agents: Positional[Annotated[tuple[str, ...], arg(metavar="AGENT")]]
    set: Literal["v2", "quick-v2", "v2-offline", "quick-v2-text"] = "v2"
    tasks: Sequence[str] | None = None
    """Only these tasks, by their names, in place of a set."""
    progress: bool = True

    def run(self) -> None:
        if self.out is not None:
            try_out(Path(self.out) / "benchmark.html", folder=True)
        chosen = {"agents": list(self.agents), "set": self.set if self.tasks is None else list(self.tasks)}
        result = agents.benchmark(**self.handed("benchmark") | chosen)
        place = None if self.out is None else result.save(self.out)
        summary = result.summary()
        rows = [[name, *(with_interval(row, name) for _, row in summary.iterrows())] for name in result.columns]
        rows.append(["errors", *(with_interval(row, "errors", "{:.1%}") for _, row in summary.iterrows())])
        for name in dict.fromkeys(name for own in result.cells.values() for cell in own for name in cell.counts):
            rows.append([name, *(f"{count:,.0f}" if count == count else "" for count in summary[name])])
        print(table([result.set, *summary["agent"]], [row for row in rows if any(row[1:])]))
        for proof, title in (("own", "stops by a proof of its own, as it says"), ("none", "stops without a proof")):
            if rows := result.stop_rows(proof):
                print("\n" + table([title, "agent", "pulls", "cut", "errors"], rows))
        noted: dict[str, list[Cell]] = {}
        for cell in (cell for own in result.cells.values() for cell in own if cell.note):
            noted.setdefault(cell.kind if math.isnan(cell.score) else f"{cell.agent} {cell.note}", []).append(cell)
        for cells in noted.values():
            print(f"\n{cells[0].agent} {cells[0].note} ({', '.join(cell.task.name for cell in cells)})")
        if place is not None:
            print(f"\nwrote {place}")
