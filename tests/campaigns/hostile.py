"""Episodes on which stopping is nearly always an error, of every agent that promises delta: none errs more often.

An error is an episode that the agent has ended by itself, not `max_pulls`, with an answer that is not `correct`. The
cells are those of `hostile_cells`, where errors are counted, and of `hostile_tilted`, where small deltas are estimated
by importance sampling.

    python tests/campaigns/hostile.py --out rows.csv                   all cells, 10,000 episodes each; goes on
    python tests/campaigns/hostile.py --cells Feasible "rows equal"    only cells whose key holds all of these texts
    python tests/campaigns/hostile.py --list                           the keys of the cells
    python tests/campaigns/hostile.py --report rows.csv                what has been found

Where an agent stops in no episode nothing can fail: the cell has no power. `powered` finds another instance for it by
a few episodes, of a root of their own, so that the limits hold for the cells that it has chosen as for all others.

False-alarm level: an agent that errs with a probability of exactly delta in every single cell exceeds any of its limits
with probability 1e-6 at most, over all cells together.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from hostile_cells import CELLS, OUTSIDE, Cell, neighbours
from hostile_tilted import TILTED, TiltedCell, estimate
from scipy import stats

import agents
from agents.core import ALL_PROBLEMS, Agent
from agents.core.certified import Certified
from bandit_envs.instances.arms import from_dict

__all__ = ["ALL", "FALSE_ALARM", "Hostile", "Row", "chosen", "limit", "play", "powered", "run", "seed_of"]

EPISODES = 10_000
ALL: tuple[Cell | TiltedCell, ...] = (*CELLS, *TILTED)
FALSE_ALARM = 1e-6 / len(ALL)  # of each cell
HOSTILE = "hostile(stop='certificate')"
NO_POWER = "no power"
FEWEST, TRIES = 400, 12  # of `powered`: episodes, and instances beside the cell's own


class Hostile(Agent):
    """It knows the truth, and pulls so as to have a wrong answer certified.

    As long as the answer is right, it pulls the arm that is most easily misjudged. Once the answer is wrong, it leaves
    the luck of the arm that is misjudged as it is, as far as it can, and pulls what else a certificate lacks.
    """

    name, solves = "hostile", ALL_PROBLEMS

    def __init__(self, task: Any, means: Any) -> None:
        super().__init__(task)
        self.truth = np.array(means, np.float64)

    def choose(self, observation: Any, state: Any) -> Any:
        pulls, mean = observation["pulls"], observation["mean"]
        with np.errstate(invalid="ignore"):
            margin = np.minimum(np.abs(np.nan_to_num(self.problem.margin(mean))), 1e9)
        answer = self.problem.plug_in(mean)
        right = self.problem.is_correct(answer, np.broadcast_to(self.truth, mean.shape))
        easy = (pulls * margin**2 - 1e3 * (pulls == 0)).argmin(axis=1)
        misjudged = answer != self.problem.right_answer(self.truth)
        spared = np.where(misjudged & ~misjudged.all(axis=1, keepdims=True), 8 * pulls, pulls).argmin(axis=1)
        return np.where(right, easy, spared)


# --- one cell ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """What a cell has come to.

    Attributes:
        stopped: episodes that the agent has ended by itself. wrong: of these, how many wrongly; of a tilted cell, the
            estimate of their share. astray: wrong answers in all, also of episodes that were cut: how hostile it is.
        limit: of `wrong`; of a tilted cell, delta, which the upper confidence limit `high` must not exceed.
        verdict: "within" or "above" the limit; `NO_POWER` where none stopped, of which nothing is learned; "undecided"
            for a tilted cell whose confidence limits are on both sides of delta; `OUTSIDE` where nothing is promised.
        played: the key of the cell that stands for this one, which may be itself.
    """

    cell: str
    agent: str
    problem: str
    parameters: str
    promise: str
    delta: float
    most: int
    episodes: int
    stopped: int
    wrong: float
    astray: int
    limit: float
    high: float
    verdict: str
    seconds: float
    played: str


def seed_of(key: str) -> int:
    """The root of a cell's episodes: the same in every run, and another one in every cell."""
    return zlib.crc32(key.encode())


def limit(delta: float, episodes: int, level: float = FALSE_ALARM) -> int:
    """So many errors of an agent that errs with probability delta are exceeded with probability `level` at most."""
    return int(stats.binom.isf(level, episodes, delta))


def _named(cell: Cell) -> Any:
    """What `evaluate` takes for the agent of a cell: its name, but for `Hostile`."""
    if cell.agent != HOSTILE:
        return cell.agent
    means = from_dict(cell.instance.arms).means
    return {cell.agent: lambda task: Certified(task, Hostile(task, means))}


def play(cell: Cell, episodes: int, agent: Any = None, root: str = "") -> Any:
    """The rows of the episodes of a cell, a DataFrame.

    Args:
        agent: another one in place of the cell's, in a form that `evaluate` takes. root: of other episodes.
    """
    place = cell.instance
    kwargs = {"instance": place.arms, "delta": cell.delta, "max_pulls": cell.most, **place.rules}
    found = agents.evaluate(
        _named(cell) if agent is None else agent,
        place.problem,
        episodes=episodes,
        seed=seed_of(cell.key + root),
        env_kwargs=kwargs,
        progress=False,
    )
    return found.episodes


def powered(cell: Cell | TiltedCell, episodes: int = EPISODES, taken: Container[str] = ()) -> Cell | TiltedCell:
    """The first of a cell and of TRIES of its neighbours where the agent stops in any episode; itself if there is none.

    Args:
        episodes: of the cell; a tenth of them is played, or FEWEST where these are more.
        taken: keys of cells that stand for others already.
    """
    if isinstance(cell, TiltedCell) or cell.promise == OUTSIDE:
        return cell
    free = (other for other in neighbours(cell) if other.key not in taken)
    for one in (cell, *islice(free, TRIES)):
        if not play(one, max(FEWEST, episodes // 10), root=", power")["truncated"].all():
            return one
    return cell


def run(cell: Cell | TiltedCell, episodes: int, agent: Any = None, level: float = FALSE_ALARM) -> Row:
    """Play a cell, and judge it.

    Args:
        episodes: how many.
        agent: another one in place of the cell's.
        level: the false-alarm level of this cell.
    """
    begin = time.perf_counter()
    high = wrong = 0.0
    if isinstance(cell, TiltedCell):
        found = estimate(cell, episodes, seed_of(cell.key), level, agent)
        problem, rules, promise, most = cell.problem, cell.rules, cell.promise, cell.most
        stopped, wrong, astray, high, bound = found.stopped, found.wrong, found.astray, found.high, cell.delta
        verdict = "within" if high <= bound else "above" if found.low > bound else "undecided"
        verdict = verdict if stopped else NO_POWER
    else:
        rows = play(cell, episodes, agent)
        problem, rules, promise, most = cell.instance.problem, cell.instance.rules, cell.promise, cell.most
        ended = ~rows["truncated"].astype(bool)
        stopped, astray = int(ended.sum()), int((~rows["correct"]).sum())
        wrong, bound = float((ended & ~rows["correct"]).sum()), float(limit(cell.delta, episodes, level))
        verdict = "above" if wrong > bound else "within" if stopped else NO_POWER
        verdict = OUTSIDE if promise == OUTSIDE else verdict
    told = {name: value for name, value in rules.items() if name not in ("A", "b")}  # which the key names
    return Row(
        cell.key,
        cell.agent,
        problem,
        json.dumps(told),
        promise,
        cell.delta,
        most,
        episodes,
        stopped,
        wrong,
        astray,
        bound,
        high,
        verdict,
        round(time.perf_counter() - begin, 2),
        cell.key,
    )


# --- all cells --------------------------------------------------------------------------------------------------------


def chosen(texts: Iterable[str] = ()) -> list[Cell | TiltedCell]:
    """Cells whose keys hold all of these texts."""
    return [cell for cell in ALL if all(text in cell.key for text in texts)]


def read(path: Path) -> list[Row]:
    """The rows of a file; a line that was not finished is left out."""
    if not path.exists():
        return []
    kinds: dict[str, Callable[[str], Any]] = {"str": str, "int": int, "float": float}
    with path.open(newline="") as file:
        lines = [line for line in csv.DictReader(file) if None not in line.values() and None not in line]
    return [Row(**{part.name: kinds[str(part.type)](line[part.name]) for part in fields(Row)}) for line in lines]


def _mended(path: Path) -> None:
    """Drop what was being written when a run was cut off."""
    if path.exists() and not path.read_text().endswith("\n"):
        path.write_text(path.read_text().rpartition("\n")[0] + "\n")


def run_all(cells: Sequence[Cell | TiltedCell], episodes: int, out: Path | None) -> list[Row]:
    """Play cells that `out` does not have with so many episodes, or what stands for them, and append each row to it."""
    rows: list[Row] = []
    if out is not None:
        _mended(out)
        rows = [row for row in read(out) if row.episodes == episodes]
    done = {row.cell for row in rows}
    for i, cell in enumerate(cells):
        if cell.key in done:
            continue
        begin = time.perf_counter()
        row = run(powered(cell, episodes, {row.played for row in rows}), episodes)
        row = replace(row, cell=cell.key, seconds=round(time.perf_counter() - begin, 2))
        rows.append(row)
        if out is not None:
            fresh = not out.exists() or not out.stat().st_size
            with out.open("a", newline="") as file:
                writer = csv.DictWriter(file, [part.name for part in fields(Row)])
                if fresh:
                    writer.writeheader()
                writer.writerow(asdict(row))
        told = f"{row.wrong:g} of {row.stopped} stopped, limit {row.limit:g}"
        print(f"{i + 1}/{len(cells)} {row.seconds:6.1f} s  {row.verdict:9} {told}  {row.played}", flush=True)
    return rows


def report(rows: Sequence[Row]) -> int:
    """Print what stands out, where nothing is promised too. Returns how many cells are not within their limits."""
    verdicts = Counter(row.verdict for row in rows)
    told = ", ".join(f"{n} {name}" for name, n in verdicts.items())
    others = sum(row.played != row.cell for row in rows)
    print(f"{len(rows)} cells, {sum(row.seconds for row in rows):.0f} s: {told}; {others} on another instance")
    for row in sorted(rows, key=lambda row: row.verdict):
        rate = row.wrong if row.high else row.wrong / row.episodes
        if row.verdict in ("above", "undecided", NO_POWER) or row.verdict == OUTSIDE and rate > row.delta:
            print(f"{row.verdict}: wrong {rate:.3g}, of {row.stopped / row.episodes:.3g} stopped: {row.played}")
    return verdicts["above"] + verdicts["undecided"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", nargs="+", default=[], metavar="TEXT", help="only cells whose key holds these texts")
    parser.add_argument("--episodes", type=int, default=EPISODES, help="of each cell (%(default)s)")
    parser.add_argument("--out", type=Path, help="append a row for each cell to this CSV file, and skip those there")
    parser.add_argument("--list", action="store_true", help="print the keys of the cells")
    parser.add_argument("--report", type=Path, metavar="FILE", help="print what this CSV file says")
    given = parser.parse_args()
    if given.report:
        return int(report(read(given.report)) > 0)
    cells = chosen(given.cells)
    if given.list:
        print("\n".join(cell.key for cell in cells))
        return 0
    keys = {cell.key for cell in cells}
    return int(report([row for row in run_all(cells, given.episodes, given.out) if row.cell in keys]) > 0)


if __name__ == "__main__":
    sys.exit(main())
