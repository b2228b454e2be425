"""The table of the benchmark: all agents of this package on all tasks, agents/benchmarking/v1.csv, and its page.

    python tests/campaigns/benchmark_table.py --out DIR               the table; goes on where it was
    python tests/campaigns/benchmark_table.py --out DIR --references  uniform and the best of each task, before it
    python tests/campaigns/benchmark_table.py --stale                 agents whose code has changed since
    python tests/campaigns/benchmark_table.py --check 3               so many cells are played again

References are written once for each version of the tasks: never for tasks that have been released.
"""

from __future__ import annotations

import argparse
import ast
import csv
import hashlib
import importlib.util
from pathlib import Path

import numpy as np
import pandas as pd

import agents
from agents.benchmarking import run
from agents.benchmarking.run import Cell
from agents.benchmarking.scores import with_interval
from agents.registry import recipes_of
from bandit_envs import benchmark_tasks

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "agents" / "benchmarking" / "v1.csv"
PAGE = ROOT / "docs" / "benchmark" / "table.md"
REFERENCES = ROOT / "bandit_envs" / "references-v1.csv"
SHARED = ("agents.core", "agents.evaluation", "agents.registry")  # of all agents alike
TOO_SLOW = {"look-ahead": ("good-", "feasible-", "-delta")}  # by parts of names of tasks: up to .4 ms a pull there


def code_of(agent: str) -> str:
    """A digest of what decides for an agent: its modules and those that they import, and its stored models."""
    [recipe] = recipes_of(agent).values()
    kind = recipe.target if isinstance(recipe.target, type) else type(recipe.target)
    waiting, sources = [one.__module__ for one in kind.__mro__], {}
    while waiting:
        name = waiting.pop()
        if name in sources or not name.startswith("agents.") or name.startswith(SHARED):
            continue
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            continue
        tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
        package = name if spec.submodule_search_locations else name.rpartition(".")[0]
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if (
                isinstance(body, list)
                and body
                and isinstance(body[0], ast.Expr)
                and isinstance(body[0].value, ast.Constant)
            ):
                body[0].value.value = ""
            if isinstance(node, ast.ImportFrom):
                place = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                waiting += [place, *(f"{place}.{one.name}" for one in node.names if spec_of(f"{place}.{one.name}"))]
        sources[name] = ast.dump(tree)
    models = [path.read_bytes() for path in sorted((ROOT / "agents" / "models").glob(f"{agent}-*"))]
    return hashlib.sha256(repr((sorted(sources.items()), models)).encode()).hexdigest()[:16]


def spec_of(name: str) -> bool:
    """Whether this is a module."""
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def references(result: agents.Benchmark) -> list[dict[str, object]]:
    """The value of uniform and the best of each task: of an agent that knows no truth, is valid and is never cut."""
    rows = []
    for place, task in enumerate(result.tasks):
        cells = {agent: own[place] for agent, own in result.cells.items()}
        able = [cell for cell in cells.values() if cell.value == cell.value and not cell.note]
        if not able:
            raise SystemExit(f"{task.name}: no agent is valid and never cut")
        best = (min if task.fixed_confidence else max)(able, key=lambda cell: cell.value)
        row = {"task": task.name, "uniform": cells["uniform"].value, "best": best.value, "best_agent": best.agent}
        rows.append(row)
    return rows


def page(result: agents.Benchmark) -> str:
    """Scores in Markdown: over all tasks, then a table for each problem; without agents that are told the truth."""
    told = {agent for agent, own in result.cells.items() if any(cell.oracle for cell in own)}
    summary = result.summary()
    summary = summary[~summary["agent"].isin(told)]
    problems = dict.fromkeys(task.problem for task in result.tasks)
    tables = {"All problems": {"all tasks": "score"}}
    tables |= {name: {how: f"{name.lower()}_{how}" for how in ("budget", "delta")} for name in problems}
    lines = []
    for name, columns in tables.items():
        lines += [f"**{name}**", "", "| " + " | ".join(["agent", *columns]) + " |", "|---" * (1 + len(columns)) + "|"]
        for _, row in summary.sort_values([*columns.values()], ascending=False).iterrows():
            scores = [with_interval(row, column) for column in columns.values()]
            if any(scores):
                lines.append("| " + " | ".join([f"`{row['agent']}`", *scores]) + " |")
        lines.append("")
    return "\n".join(lines)


def played(out: Path, jobs: int) -> agents.Benchmark:
    """All agents on all tasks; those of `TOO_SLOW` on the tasks that they can play in time, the others are blank."""
    quick = [agent for agent in agents.names() if agent not in TOO_SLOW]
    whole = agents.benchmark(quick, "v1", out, jobs, progress=True)
    for agent, parts in TOO_SLOW.items():
        names = [task.name for task in whole.tasks if not any(part in task.name for part in parts)]
        [cells] = agents.benchmark(agent, names, out, jobs, progress=True).cells.values()
        own = {cell.task.name: cell for cell in cells}
        blank = {
            task.name: Cell(agent, task, np.nan, np.nan, np.zeros(0), "does not take it: too slow", "")
            for task in whole.tasks
        }
        whole.cells[agent] = [own.get(task.name, blank[task.name]) for task in whole.tasks]
    return whole


def check(cells: int) -> None:
    """Play cells of the table that are drawn at random: each has its value, to a thousandth."""
    frame = pd.read_csv(TABLE)
    quick = {task.name: task for task in benchmark_tasks("quick")}
    played = frame[frame["task"].isin(quick) & ~frame["agent"].isin(["ppo", "look-ahead", "racing", "lil-ucb"])]
    for _, row in played.sample(cells, random_state=46).iterrows():
        [recipe] = recipes_of(row["agent"]).values()
        cell = run._cell(quick[row["task"]], row["agent"], recipe, None, 1, False, {})
        assert np.isclose(cell.value, row["value"], rtol=1e-3, atol=0), (row["task"], row["agent"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of the episodes")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--references", action="store_true", help="write them")
    parser.add_argument("--stale", action="store_true", help="name the agents whose code has changed since")
    parser.add_argument("--check", type=int, metavar="CELLS", help="play some cells of the table again")
    given = parser.parse_args()
    if given.check:
        check(given.check)
        return
    if given.stale:
        with TABLE.open(newline="") as file:
            codes = {row["agent"]: row["code"] for row in csv.DictReader(file)}
        print("\n".join(agent for agent, code in codes.items() if code != code_of(agent)))
        return
    result = played(given.out, given.jobs)
    if given.references:
        rows = references(result)
        with REFERENCES.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(f"wrote {REFERENCES}: run it again, without --references")
        return
    table = result.table.dropna(subset=["score"])
    table["code"] = table["agent"].map({agent: code_of(agent) for agent in result.agents})
    for name in ("score", "score_low", "score_high"):
        table[name] = table[name].round(4)
    table["value"] = table["value"].map(lambda x: float(f"{x:.8g}"))
    table.to_csv(TABLE, index=False, lineterminator="\n")
    PAGE.write_text(page(result))
    print(f"wrote {TABLE}: {len(benchmark_tasks())} tasks, {len(result.agents)} agents")


if __name__ == "__main__":
    main()
