"""Certificates of samples in a known range on hostile arms: how often each agent that stops errs, in 24 cells.

    python tests/campaigns/hostile_bounded.py                 20,000 episodes of each cell, about 10 minutes of one core
    python tests/campaigns/hostile_bounded.py --episodes 2000

Arms whose variance is misread as long as a rare sample has not come; tables of few rows; ties; means at the ends. Of
agents that are wrong with a probability of exactly delta in all cells, a run reports one with probability 1e-6.
The twin stops at ln((1 + ln t) / delta), weighed by the empirical variance: it must break delta.
"""

from __future__ import annotations

import argparse
import itertools
from typing import Any, NamedTuple

from scipy import stats

import agents

__all__ = ["CELLS", "PLACES", "Cell", "run"]

EPISODES, MOST, DELTAS, LEVEL = 20_000, 1500, (0.3, 0.1, 0.05), 1e-6
HAIR = 1e-9


def points(values: list[float], *weights: list[float]) -> dict[str, Any]:
    """Arms whose samples are some of these values."""
    return {"distribution": "categorical", "values": values, "probabilities": list(weights)}


def table(*rows: list[float]) -> dict[str, Any]:
    """Arms whose samples are rows of a table."""
    return {"distribution": "resampled", "rows": list(rows)}


RARE = points([0.0, 0.005, 1.0], [0, 1, 0], [99, 0, 1])  # .005 always; 1 with probability .01, which is twice as good
LOSS = points([0.0, 0.98, 1.0], [0, 1, 0], [3, 0, 97])  # .98 always; 0 with probability .03: .97
TIES = points([0.0, 0.5, 1.0], [1, 0, 1], [1, 0, 1 + HAIR], [0, 1, 0])  # the second one is best
ENDS = points([0.0, 1.0], [1, 0], [999, 1], [1000, 0])  # means 0, .001 and 0
FEW = table([0.2, 0.8, 0.5], [0.5, 0.5, 0.5 + HAIR], [0.0, 1.0])

PLACES: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {
    "Threshold": [
        (points([0.0, 1.0], [99, 1], [99, 1]), {"threshold": 0.01 - HAIR}),
        (LOSS, {"threshold": 0.97 + HAIR}),
        (FEW, {"threshold": 0.5 + HAIR}),
        (ENDS, {"threshold": 0.001 - HAIR}),
    ],
    "BestArm": [(RARE, {}), (TIES, {}), (FEW, {}), (ENDS, {}), (LOSS, {"epsilon": 0.01 - HAIR})],
    "TopK": [(TIES, {"k": 2}), (FEW, {"k": 2}), (ENDS, {"k": 2, "epsilon": 0.001 - HAIR, "criterion": "each"})],
    "AllGood": [
        (RARE, {"epsilon": 0.005 - HAIR}),
        (TIES, {"epsilon": HAIR / 10}),
        (LOSS, {"epsilon": 0.005, "slack": 0.005 - HAIR}),
        (points([0.0, 0.5, 1.0], [0, 1, 0], [4, 0, 6]), {"epsilon": 1 / 6 - HAIR, "multiplicative": True}),
    ],
    "Feasible": [
        (RARE, {"A": [[1.0]], "b": [0.01 - HAIR]}),
        (LOSS, {"A": [[-1.0], [1.0]], "b": [-0.97 - HAIR, 1.0]}),
        (FEW, {"A": [[1.0]], "b": [0.5]}),
    ],
}
STOPPING = ("evidence", "track-and-stop", "top-two", "uniform(stop='certificate')", "random(stop='certificate')")
MORE = {
    "Threshold": ("lsa(stop='certificate')",),
    "BestArm": ("lucb(stop='certificate')", "top-two(rule='ttts')"),
    "TopK": ("kl-lucb(stop='certificate')",),
    "AllGood": ("st2(stop='certificate')", "top-two(rule='ttts')"),
    "Feasible": ("md-apt(stop='certificate')",),
}


class Cell(NamedTuple):
    """An agent on hostile arms, at a delta."""

    agent: str
    problem: str
    place: int
    delta: float

    @property
    def key(self) -> str:
        return f"{self.agent} | {self.problem} {self.place} | {self.delta:g}"


def _cells() -> list[Cell]:
    """24 cells: agents and deltas in turn, each place at least once."""
    found, deltas = [], itertools.cycle(DELTAS)
    for problem, places in PLACES.items():
        names = [name for name in STOPPING if problem != "Feasible" or name != "top-two"] + list(MORE[problem])
        for n in range(4 if problem == "TopK" else 5):
            found.append(Cell(names[(n + len(PLACES[problem])) % len(names)], problem, n % len(places), next(deltas)))
    return found


CELLS = _cells()


def run(cell: Cell, episodes: int, agent: str | None = None) -> tuple[int, int]:
    """How many episodes ended with a wrong answer, and how many ended at all, before `MOST` pulls."""
    arms, rules = PLACES[cell.problem][cell.place]
    kwargs = {"instance": arms, "delta": cell.delta, "max_pulls": MOST, **rules}
    rows = agents.evaluate(
        agent or cell.agent, cell.problem, episodes=episodes, env_kwargs=kwargs, progress=False
    ).episodes
    stopped = ~rows["truncated"].to_numpy(bool)
    return int((stopped & ~rows["correct"].to_numpy(bool)).sum()), int(stopped.sum())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=EPISODES, help="of each cell (%(default)s)")
    given, above, broken = parser.parse_args(), 0, 0
    for cell in CELLS:
        wrong, stopped = run(cell, given.episodes)
        most = stats.binom.isf(LEVEL / len(CELLS), given.episodes, cell.delta)
        twin = "evidence(distribution='bounded', boundary='nominal')"
        by_twin, _ = run(cell, given.episodes // 4, twin)
        breaks = by_twin > int(stats.binom.isf(LEVEL / len(CELLS), given.episodes // 4, cell.delta))
        above, broken = above + (wrong > most), broken + breaks
        seen = " breaks it" if breaks else ""
        rate, other = wrong / given.episodes, 4 * by_twin / given.episodes
        print(f"{rate:7.4f} of {cell.delta:g}, {stopped:6} stopped; nominal {other:6.3f}{seen}: {cell.key}")
    print(f"{above} of {len(CELLS)} cells above delta; the nominal twin breaks it in {broken}")
    return int(above > 0 or broken == 0)


if __name__ == "__main__":
    raise SystemExit(main())
