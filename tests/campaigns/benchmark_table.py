"""The table of version 2 of the benchmark: all agents of this package, agents/benchmarking/v2.csv, and its pages.

    python tests/campaigns/benchmark_table.py --out DIR               the table; goes on where it was
    python tests/campaigns/benchmark_table.py --out DIR --minutes 14  as much of the episodes as that allows
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
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import agents
from agents.benchmarking import run
from agents.benchmarking.page import EXTREMES
from agents.benchmarking.run import Cell
from agents.benchmarking.scores import unfolded, with_interval
from agents.evaluation.lower_bound import _bound_for_distribution
from agents.registry import recipes_of
from bandit_envs import Arms, BenchmarkTask, Bernoulli, Gaussian, benchmark_tasks
from bandit_envs.envs import setting
from bandit_envs.instances.instance import drawn
from bandit_envs.instances.lookup import find
from bandit_envs.kernels import rng

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "agents" / "benchmarking" / "v2.csv"
PAGES = ROOT / "docs" / "benchmark"
REFERENCES = ROOT / "bandit_envs" / "references-v2.csv"
SHARED = ("agents.core", "agents.evaluation", "agents.registry")  # of all agents alike
TOO_SLOW = {"look-ahead": ("-delta",)}  # by parts of names of tasks: up to .4 ms a pull there
EXACT = ("threshold-small", "best-small", "top-small")  # small enough for the best policy by dynamic programming
BOUNDS = 40  # instances over which a lower bound is averaged
NAMED = 12  # agents of which the page says where they win and lose


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
        value, by, uniform = best.value, best.agent, cells["uniform"].value
        if task.name in EXACT:
            value, by = exact(task), "exact"
        if not (value < 0.99 * uniform if task.fixed_confidence else value > uniform + 0.002):
            raise SystemExit(f"{task.name}: uniform has {uniform:.4g} and the best, {by}, {value:.4g}: leave it out")
        bound = bound_of(task) if task.fixed_confidence else value if by == "exact" else 1.0
        known = f"{bound:.6g}" if bound == bound else ""
        rows.append({"task": task.name, "uniform": uniform, "best": value, "best_agent": by, "bound": known})
    return rows


def exact(task: BenchmarkTask) -> float:
    """The expected score of the best policy."""
    sys.path.insert(0, str(ROOT))
    from examples.bounds import best

    return 1.0 - best(task.env())


def bound_of(task: BenchmarkTask) -> float:
    """The mean of the lower bounds of pulls over instances that the task draws; NaN where none is known."""
    env: Any = task.env().unwrapped
    source, keys = find(task.kwargs["instance"]), np.repeat(rng.root_key(task.root)[:, None], BOUNDS, axis=1)
    means, _ = drawn(source, keys, np.arange(BOUNDS, dtype=np.uint64))
    kinds: dict[str, Any] = {"bernoulli": Bernoulli, "gaussian": lambda mean: Gaussian(mean, source.arms.sigma)}
    if source.arms.distribution not in kinds:
        return float("nan")
    arms: list[Arms] = [kinds[source.arms.distribution](mean) for mean in means]
    return float(np.mean([_bound_for_distribution(env.problem, one, task.kwargs["delta"]) for one in arms]))


def pages(result: agents.Benchmark) -> dict[str, str]:
    """The made parts of the page, in Markdown, by the names of their files; without agents that are told the truth."""
    told = {agent for agent, own in result.cells.items() if any(cell.oracle for cell in own)}
    summary = result.summary()
    summary = summary[~summary["agent"].isin(told)]
    problems = dict.fromkeys(task.problem for task in result.tasks)
    tables = {"All problems": {name: name for name in ("budget", "delta", "all")}}
    tables |= {name: {how: f"{name.lower()}_{how}" for how in ("budget", "delta")} for name in problems}
    lines = []
    for name, columns in tables.items():
        lines += [f"**{name}**", "", *header("agent", *columns)]
        for _, row in summary.sort_values([*columns.values()], ascending=False).iterrows():
            scores = [with_interval(row, column) for column in columns.values()]
            if any(scores):
                lines.append("| " + " | ".join([f"`{row['agent']}`", *scores]) + " |")
        lines.append("")
    return {"table.md": "\n".join(lines), "places.md": places(result, summary), "headroom.md": headroom(result)}


def header(*names: str) -> list[str]:
    return ["| " + " | ".join(names) + " |", "|---" * len(names) + "|"]


def places(result: agents.Benchmark, summary: pd.DataFrame) -> str:
    """Where the first agents win and lose."""
    lines = header("agent", "best on", "worst on")
    for agent in summary["agent"][summary["agent"] != "uniform"][:NAMED]:
        scored = (cell for cell in result.cells[agent] if cell.score == cell.score)
        ordered = sorted(scored, key=lambda cell: cell.score)
        some = (ordered[::-1][: EXTREMES - 2], ordered[: EXTREMES - 2])
        ends = [", ".join(f"{x.task.name} ({x.score:.2f})" for x in part) for part in some]
        lines.append("| " + " | ".join([f"`{agent}`", *ends]) + " |")
    return "\n".join([*lines, ""])


def headroom(result: agents.Benchmark) -> str:
    """Of each task uniform, the best known and the bound, and the score, without an end, of what reaches the bound."""
    lines = header("task", "episodes", "uniform", "best known", "by", "bound", "score at the bound", "source")
    for task in result.tasks:
        at_bound = f"{float(unfolded(task, task.bound)):.2f}" if task.bound == task.bound else ""
        bound = f"{task.bound:.4g}" if task.bound == task.bound else ""
        row = [
            task.name,
            str(task.episodes),
            f"{task.uniform:.4g}",
            f"{task.best:.4g}",
            f"`{task.best_agent}`",
            bound,
            at_bound,
            task.source,
        ]
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join([*lines, ""])


def played(out: Path, jobs: int, minutes: float) -> agents.Benchmark | None:
    """All agents on all tasks; those of `TOO_SLOW` on the tasks that they can play in time, the others are blank."""
    begun, whole, kept = time.monotonic(), None, out / "seconds.json"
    found: dict[str, Any] = {}  # instances, which are read once for all agents
    read = setting.find
    setting.find = lambda source: found.get(str(source)) or found.setdefault(str(source), read(source))
    seconds = json.loads(kept.read_text()) if kept.is_file() else {}
    for agent in ["uniform", *(name for name in agents.names() if name != "uniform")]:
        if time.monotonic() - begun > 60 * minutes:
            print(f"as far as {agent} in {minutes:g} minutes: run it again")
            return None
        names = [x.name for x in benchmark_tasks("v2") if not any(part in x.name for part in TOO_SLOW.get(agent, ()))]
        played = agents.benchmark(agent, names, out, jobs, progress=True)
        own = {cell.task.name: cell for cell in played.cells[agent]}
        seconds.setdefault(agent, {}).update({name: cell.seconds for name, cell in own.items() if cell.seconds})
        kept.write_text(json.dumps(seconds))
        cells = [
            own.get(task.name, Cell(agent, task, np.nan, np.nan, np.zeros(0), "does not take it: too slow", ""))
            for task in benchmark_tasks("v2")
        ]
        whole = whole or agents.Benchmark("v2", benchmark_tasks("v2"), {})
        whole.cells[agent] = cells
    return whole


def check(cells: int) -> None:
    """Play cells of the table that are drawn at random: each has its value, to a thousandth."""
    frame = pd.read_csv(TABLE)
    tasks = benchmark_tasks("v2")
    quick = {task.name: task for task in benchmark_tasks("quick-v2")}
    played = frame[frame["task"].isin(quick) & ~frame["agent"].isin(["ppo", "look-ahead", "racing", "lil-ucb"])]
    for _, row in played.sample(cells, random_state=46).iterrows():
        [recipe] = recipes_of(row["agent"]).values()
        how: dict[str, Any] = {"tests": run.number_of_tests(tasks), "jobs": 1, "trust": False, "trained": {}}
        cell = run._cell(quick[row["task"]], row["agent"], recipe, None, **how)
        assert np.isclose(cell.value, row["value"], rtol=1e-3, atol=0), (row["task"], row["agent"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of the episodes")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin with no agent after these")
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
    result = played(given.out, given.jobs, given.minutes)
    if result is None:
        return
    if given.references:
        rows = references(result)
        with REFERENCES.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        print(f"wrote {REFERENCES}: run it again, without --references")
        return
    seconds = json.loads((given.out / "seconds.json").read_text())
    table = result.table.dropna(subset=["score"])
    table["code"] = table["agent"].map({agent: code_of(agent) for agent in result.agents})
    table["seconds"] = [round(seconds[row["agent"]].get(row["task"], 0), 2) for _, row in table.iterrows()]
    for name in ("score", "score_low", "score_high"):
        table[name] = table[name].round(4)
    table["value"] = table["value"].map(lambda x: float(f"{x:.8g}"))
    table.drop(columns="root").to_csv(TABLE, index=False, lineterminator="\n")
    for name, text in pages(result).items():
        (PAGES / name).write_text(text)
    result.plot(PAGES / "profiles.png")
    print(f"wrote {TABLE}: {len(result.tasks)} tasks, {len(result.agents)} agents")


if __name__ == "__main__":
    main()
