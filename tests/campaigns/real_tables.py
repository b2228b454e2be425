"""Real tables: the best column within 2, 5 and 10 % of the cells, with a certificate, and the confidence budget.

    python tests/campaigns/real_tables.py --out DIR              all measurements; goes on where it was
    python tests/campaigns/real_tables.py --out DIR --write      and the tables of docs/real-tables
    python tests/campaigns/real_tables.py --out DIR --parts confidence --theirs FOLDER

It needs the files of shared/data in the folder that BANDIT_ENVS_DATA names, or a network. Columns are in a random order
in each episode, and so are rows; `20 columns` are drawn anew in each episode. All agents meet the same episodes of a
table, slow ones the first of them. Intervals are of 95 %: Clopper-Pearson's of rates, the bootstrap's of means, and for
differences in the same episodes that of Bonett & Price.

The confidence budget, of Lyu et al., ICML 2026 (github zifanlyu/llm-bandits-sysrs @ ed01a431, in the program
main_results/compute_bai_confidence_budget.py): the least share of a table such that with it, and with every larger one,
at least so many runs name the best column. There the shares are 1, 2, .. 100 % and the runs 1,000, and the repository
has no results. `--theirs` runs its SySRs, bai_algs.py in FOLDER, on two of the tables.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

import agents
from agents.evaluation import Evaluation
from agents.evaluation.statistics import bootstrap_mean, clopper_pearson, paired_difference
from bandit_envs.instances.lookup import find

PAGES = Path(__file__).parents[2] / "docs" / "real-tables"
TABLES = {
    "GSM8K": "models-gsm",
    "LegalBench": "models-legalbench",
    "MuSR": "models-musr",
    "WMT 2014": "models-wmt",
    "LiveCodeBench": "models-code",
    "MQM en-de": "translators-ende",
    "MQM zh-en": "translators-zhen",
    "maize": "maize",
}
FEW = 20  # columns that are drawn, of tables with more
SHARES = (2, 5, 10)  # in percent
GRID = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50, 75, 100)
LEVELS = (70, 80, 90, 95, 100)  # of the paper
BASE = "uniform"
AGENTS = (
    BASE,
    "sysrs",
    "ucb-e",
    "sequential-halving(reuse=True)",
    "paired-elimination",
    "evolved",
    "look-ahead",
    "ppo",
)
QUICK = (BASE, "sysrs", "ucb-e", "sequential-halving(reuse=True)", "paired-elimination")
CERTIFIED = ("paired-elimination", "uniform(stop='certificate')", "kl-lucb(stop='certificate')")
THEIRS, RUNS = ("GSM8K", "LegalBench"), 100  # tables and runs of the program of the paper's authors
MOST, LEAST = 500, 40  # episodes
CELLS = 1e8  # of all episodes of an agent together: each begins with a copy of the table
WORK = {  # columns times cells of all episodes of an agent: what it does in half a minute
    "paired-elimination": 2e10,
    "evolved": 1e10,
    "look-ahead": 6e8,
    "ppo": 7e7,
    "uniform(stop='certificate')": 5e9,
    "kl-lucb(stop='certificate')": 5e8,
}
TOO_SLOW = {"ppo": 4e6, "kl-lucb(stop='certificate')": 4e7}  # columns times cells from which on it is left out
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """A table, or so many of its columns, as an environment takes it."""

    name: str
    drawn: bool = False

    @functools.cached_property
    def instance(self) -> Any:
        """The argument `instance`."""
        name = TABLES[self.name]
        return {"pools": {"pools": [name], "arms": FEW, "rows": find(name).arms.items}} if self.drawn else name

    @functools.cached_property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        arms = find(TABLES[self.name]).arms
        return FEW if self.drawn else arms.K, arms.items or 0

    @functools.cached_property
    def width(self) -> float:
        """From the lowest to the highest possible score."""
        low, high = find(TABLES[self.name]).arms.support or (0.0, 1.0)
        return high - low

    @property
    def cells(self) -> int:
        """How many there are."""
        return math.prod(self.size)

    @property
    def label(self) -> str:
        """The first cells of a row: name, columns, rows."""
        return f"{self.name} | {self.size[0]} | {self.size[1]}"

    def spelled(self, agent: str) -> str:
        """An agent as `evaluate` takes it: the constant of UCB-E is for scores in [0, 1]."""
        return f"ucb-e(a={self.width**2:g})" if agent == "ucb-e" and self.width != 1 else agent

    def episodes(self, agent: str) -> int:
        """How many an agent plays; 0 where it is too slow."""
        work = self.size[0] * self.cells
        if work > TOO_SLOW.get(agent, math.inf):
            return 0
        return int(min(max(min(WORK.get(agent, math.inf) / work, CELLS / self.cells), LEAST), MOST))


def tables(drawn: bool) -> list[Table]:
    """All tables, or 20 columns of each that has more."""
    return [Table(name, drawn) for name in TABLES if not drawn or Table(name).size[0] > FEW]


# --- the confidence budget --------------------------------------------------------------------------------------------


def confidence_budget(shares: Sequence[int], accuracy: ArrayLike, level: float) -> float:
    """The least share from which on the accuracy is at least `level` at all shares; inf: not at the last.

    Args:
        shares: rising, (n,), in percent. accuracy: (n,) in [0, 1], at these. level: in [0, 1].
    """
    kept = np.asarray(accuracy) >= level
    first = len(kept) - int(np.argmin(kept[::-1])) if not kept.all() else 0
    return shares[first] if first < len(shares) else math.inf


def budget_between(shares: Sequence[int], right: ArrayLike, n: int, level: float) -> tuple[float, float, float]:
    """The confidence budget, and its limits: those of the upper and the lower 95 % limits of the accuracies.

    Args:
        right: (n,) right answers at these shares, of `n` episodes.
    """
    low, high = clopper_pearson(right, n)
    curves = (np.asarray(right) / n, high, low)
    here, least, most = (confidence_budget(shares, curve, level) for curve in curves)
    return here, least, most


# --- measurements -----------------------------------------------------------------------------------------------------


def play(out: Path, table: Table, agent: str, episodes: int, what: str, **kwargs: Any) -> Evaluation | None:
    """An evaluation that is kept in a folder; None where the budget is too small for the agent."""
    spelled = table.spelled(agent)
    folder = out / what / f"{TABLES[table.name]}{'-20' if table.drawn else ''}" / "".join(filter(str.isalnum, spelled))
    budgets = kwargs.pop("budgets", None)
    rules = {"instance": table.instance} | kwargs
    start = time.time()
    try:
        found = agents.evaluate(
            {agent: spelled},
            "BestArm",
            episodes=episodes,
            budgets=budgets,
            env_kwargs=rules,
            out=folder,
            progress=False,
        )
    except ValueError as error:
        if "budget" not in str(error):
            raise
        print(f"{table.name}, {agent}: {error}", file=sys.stderr)
        return None
    if (spent := time.time() - start) > 1:
        print(
            f"{what}: {table.name}{', 20 columns' * table.drawn}, {agent}: {spent:.0f} s", file=sys.stderr, flush=True
        )
    return found


def percent(low: float, mean: float, high: float) -> str:
    """A share and its interval, in percent."""
    return f"{100 * mean:.0f} ({100 * low:.0f} to {100 * high:.0f})"


@dataclass(frozen=True)
class Cell:
    """What one agent did on one table with one share of it."""

    right: NDArray[np.bool_]  # (episodes,)
    lost: Floats  # (episodes,) simple regret, as a share of the range

    def text(self, base: Cell) -> str:
        """Share of right answers, regret in thousandths, and the difference of the first to `uniform`."""
        n, lost = len(self.right), 1000 * self.lost
        low, high = clopper_pearson(int(self.right.sum()), n)
        few, many = bootstrap_mean(lost) if lost.any() else (0.0, 0.0)
        words = f"{percent(low, float(self.right.mean()), high)}; {lost.mean():.1f} ({few:.1f} to {many:.1f})"
        if self is base:
            return words
        found = self.less(base)
        return f"{words}; {100 * found[1]:+.0f} ({100 * found[0]:+.0f} to {100 * found[2]:+.0f})"

    def less(self, base: Cell) -> tuple[float, float, float]:
        """Right answers less those of `base` in the same episodes: lower limit, mean, upper limit."""
        found = paired_difference(self.right, base.right[: len(self.right)])
        return found.low, found.difference, found.high


def measured(out: Path, table: Table) -> dict[str, list[Cell | None]]:
    """What each agent did with each share; None where the share is too small for it."""
    results: dict[str, list[Cell | None]] = {}
    for agent in AGENTS:
        episodes = table.episodes(agent)
        for share in SHARES if episodes else ():
            budget = round(share / 100 * table.cells)
            found = play(out, table, agent, episodes, f"budget-{share}", budgets=[budget], criterion="exact")
            cell = None
            if found is not None:
                lost = found.column(agent, "aggregate_regret").astype(np.float64) / table.width
                cell = Cell(found.column(agent, "correct").astype(bool), lost)
            results.setdefault(agent, []).append(cell)
    return results


def of_budgets(out: Path) -> Iterator[tuple[str, str]]:
    """Names and texts of the tables on budgets: a summary, all columns, and 20 columns."""
    head = "".join(f" | {share} %" for share in SHARES)
    summary = [f"| agent{''.join(f' | {form}, {share} %' for form in ('all', '20') for share in SHARES)} |"]
    summary.append("|---" * (1 + 2 * len(SHARES)) + "|")
    sums: dict[str, list[str]] = {agent: [] for agent in AGENTS}
    for drawn in (False, True):
        lines = [f"| table | columns | rows | agent | episodes{head} |", "|---" * (5 + len(SHARES)) + "|"]
        cells = {table: measured(out, table) for table in tables(drawn)}
        for table, results in cells.items():
            for agent, row in results.items():
                texts = [one.text(base) if one and base else "–" for one, base in zip(row, results[BASE], strict=True)]
                lines.append(f"| {table.label} | `{agent}` | {table.episodes(agent)} | {' | '.join(texts)} |")
        yield "columns-20" if drawn else "columns-all", "\n".join(lines)
        for i in range(len(SHARES)):
            rows = [{agent: row[i] for agent, row in results.items()} for results in cells.values()]
            played = [row for row in rows if None not in row.values()]  # not where the budget is too small for some
            for agent in AGENTS:
                sums[agent].append(over_tables([row.get(agent) for row in played], [row[BASE] for row in played]))
    summary += [f"| `{agent}` | {' | '.join(texts)} |" for agent, texts in sums.items()]
    yield "summary", "\n".join(summary)


def over_tables(cells: Sequence[Cell | None], base: Sequence[Cell | None]) -> str:
    """The mean share of right answers over tables, its interval, and on how many it is above and below `uniform`."""
    pairs = list(zip(cells, base, strict=True))
    if not pairs or any(one is None for one, _ in pairs):
        return "–"
    rates = [(float(one.right.mean()), len(one.right)) for one in cells if one]
    mean = float(np.mean([rate for rate, _ in rates]))
    half = 1.96 * math.sqrt(sum(rate * (1 - rate) / n for rate, n in rates)) / len(rates)
    ends = [one.less(other) for one, other in pairs if one and other and one is not other]
    above, below = sum(low > 0 for low, _, _ in ends), sum(high < 0 for _, _, high in ends)
    return percent(mean - half, mean, mean + half) + (f"; {above} above, {below} below" if ends else "")


def of_certificates(out: Path) -> Iterator[tuple[str, str]]:
    """The table on certificates: share of cells and error rate."""
    lines = ["| table | columns | rows | agent | episodes | ε = 0 | ε = .02 |", "|---" * 7 + "|"]
    for table in tables(False):
        for agent in CERTIFIED:
            episodes, texts = table.episodes(agent), []
            for epsilon in (0.0, 0.02) if episodes else ():
                rules = {"delta": 0.1, "epsilon": epsilon * table.width}
                found = play(out, table, agent, episodes, f"certified-{epsilon}", **rules)
                assert found is not None
                share = found.column(agent, "total_pulls").astype(np.float64) / table.cells
                wrong = int((~found.column(agent, "correct").astype(bool)).sum())
                low, high = bootstrap_mean(share) if np.ptp(share) > 0 else (share[0], share[0])
                rate = percent(
                    clopper_pearson(wrong, episodes)[0], wrong / episodes, clopper_pearson(wrong, episodes)[1]
                )
                texts.append(f"{100 * share.mean():.1f} ({100 * low:.1f} to {100 * high:.1f}); {rate}")
            if texts:
                lines.append(f"| {table.label} | `{agent}` | {episodes} | {' | '.join(texts)} |")
    yield "certified", "\n".join(lines)


def shares_of(table: Table) -> list[int]:
    """Those of the grid that pay for as many cells as Sequential Halving needs."""
    K = table.size[0]
    return [share for share in GRID if round(share / 100 * table.cells) >= K * math.ceil(math.log2(K))]


def curve(out: Path, table: Table, agent: str) -> tuple[list[int], list[int], int]:
    """The shares, the numbers of right answers there, and the number of episodes."""
    shares = shares_of(table)
    budgets = [round(share / 100 * table.cells) for share in shares]
    episodes = int(min(max(CELLS / 8 / table.cells, 100), 1000))
    found = play(out, table, agent, episodes, "confidence", budgets=budgets, criterion="exact")
    assert found is not None
    right = [int(found.column(agent, "correct", budget=budget).astype(bool).sum()) for budget in budgets]
    return shares, right, episodes


def budget_texts(shares: Sequence[int], right: Sequence[int], n: int) -> list[str]:
    """The confidence budget at each level, and its interval; `more` where it is above all shares."""
    texts = []
    for level in LEVELS:
        here, low, high = (
            f"{one:g}" if one < math.inf else "more" for one in budget_between(shares, right, n, level / 100)
        )
        texts.append(f"{here} ({low} to {high})")
    return texts


def of_confidence(out: Path, theirs: Path | None) -> Iterator[tuple[str, str]]:
    """The table of the confidence budgets, with those by the program of the paper's authors where it is at hand."""
    lines = [f"| table | agent | episodes{''.join(f' | {level} %' for level in LEVELS)} |"]
    lines.append("|---" * (3 + len(LEVELS)) + "|")
    for table in tables(False):
        found = {f"`{agent}`": curve(out, table, agent) for agent in QUICK}
        if table.name in THEIRS and (known := of_theirs(out, table, theirs)):
            found["SySRs, the authors' program"] = known
        for agent, (shares, right, episodes) in found.items():
            texts = budget_texts(shares, right, episodes)
            lines.append(f"| {table.name} | {agent} | {episodes} | {' | '.join(texts)} |")
    yield "confidence", "\n".join(lines)


def of_theirs(out: Path, table: Table, folder: Path | None) -> tuple[list[int], list[int], int] | None:
    """As `curve`, by bai_algs.py in the folder; what was found before where there is none, or None."""
    shares, path = shares_of(table), out / f"theirs-{TABLES[table.name]}.json"
    if not path.exists() and folder:
        spec = importlib.util.spec_from_file_location("bai_algs", folder / "bai_algs.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        scores = find(table.instance).arms.parameters[:, :-1]
        vars(module)["model_accuracies"] = np.ascontiguousarray(scores)
        best, right = int(np.argmax(scores.mean(axis=1))), []
        for share in shares:
            budget = int(share / 100 * table.cells) // table.size[0] * table.size[0]  # as their experiments do
            answers = module.smart_successive_rejects_wo_replacement_no_budget_limit(budget, k=RUNS, verbose=False)
            right.append(int((np.asarray(answers) == best).sum()))
        path.write_text(json.dumps(right))
    return (shares, json.loads(path.read_text()), RUNS) if path.exists() else None


def main() -> None:
    """Measure what is missing, print the tables, and write them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where results are kept")
    parts = {"budget": of_budgets, "certified": of_certificates}
    parser.add_argument("--parts", nargs="*", choices=[*parts, "confidence"], default=[*parts, "confidence"])
    parser.add_argument("--theirs", type=Path, help="a folder with bai_algs.py of the paper's authors")
    parser.add_argument("--write", action="store_true", help="write docs/real-tables")
    parser.add_argument("--tables", nargs="*", choices=list(TABLES), default=list(TABLES), help="only these")
    given = parser.parse_args()
    for name in set(TABLES) - set(given.tables):
        del TABLES[name]
    for part in given.parts:
        for name, text in parts[part](given.out) if part in parts else of_confidence(given.out, given.theirs):
            print(f"\n{name}\n\n{text}", flush=True)
            if given.write:
                PAGES.mkdir(exist_ok=True)
                (PAGES / f"{name}.md").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
