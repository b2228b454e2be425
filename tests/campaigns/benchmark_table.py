"""The table of version 2 of the benchmark: all agents of this package, agents/benchmarking/v2.csv, and its pages.

    python tests/campaigns/benchmark_table.py --out DIR --minutes 14  the table, in pieces: it goes on where it was
    python tests/campaigns/benchmark_table.py --out DIR --references  the same, with new references, once all is played
    python tests/campaigns/benchmark_table.py --out DIR --renew AGENT ...  the rows of these agents alone
    python tests/campaigns/benchmark_table.py --stale                 cells that the code plays otherwise: fails if any
    python tests/campaigns/benchmark_table.py --text                  the references of the set quick-v2-text
    python tests/campaigns/benchmark_table.py --check 60              so many cells, drawn at random, are played again

References are written once for each version of the tasks: never for tasks that have been released. Each reference and
each cell has a digest of behaviour, the pulls and the answers of three episodes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import agents
from agents.benchmarking import run
from agents.benchmarking.page import EXTREMES
from agents.benchmarking.run import Cell
from agents.benchmarking.scores import REPLICATES, with_interval
from agents.evaluation.identity import hashed
from agents.evaluation.plan import _bound_for_distribution
from agents.registry import recipes_of
from bandit_envs import Arms, BenchmarkTask, Bernoulli, Gaussian, PureExplorationVectorEnv, benchmark_tasks
from bandit_envs.envs import setting
from bandit_envs.envs.benchmark import _tasks
from bandit_envs.instances.instance import drawn
from bandit_envs.instances.lookup import find
from bandit_envs.kernels import rng

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "agents" / "benchmarking" / "v2.csv"
PAGES = ROOT / "docs" / "benchmark"
REFERENCES = ROOT / "bandit_envs" / "references-v2.csv"
TOO_SLOW = {"look-ahead": ("-delta",)}  # by parts of names of tasks: up to .4 ms a pull there
MORE = ("evidence(boundary='nominal')",)  # without a proof
EXACT = ("threshold-small", "best-small", "top-small")  # small enough for the best policy by dynamic programming
NAMED = 12  # agents of which the page says where they win and lose
REPLAYED = 3  # episodes of a digest
HOW: dict[str, Any] = {"jobs": 1, "trust": False, "trained": {}}


def behaviour(task: BenchmarkTask, agent: str) -> str:
    """A digest of what an agent does in the first three episodes of a task: pulls by arm, answers, rows."""
    seen, step, played, answers = [], PureExplorationVectorEnv.step, run._played, list[Any]()

    def noted(self: Any, action: Any) -> Any:
        found = step(self, action)
        answers.extend(found[-1]["answer"][found[-1]["_answer"]].tolist() if "answer" in found[-1] else [])
        return found

    def kept(*given: Any) -> Any:
        seen.append(played(*given))
        return seen[-1]

    [recipe] = recipes_of(agent).values()
    PureExplorationVectorEnv.step, run._played = noted, kept  # type: ignore[method-assign]
    try:
        cell = run._cell(replace(task, episodes=REPLAYED), agent, recipe, None, **HOW)
    finally:
        PureExplorationVectorEnv.step, run._played = step, played  # type: ignore[method-assign]
    if not seen:
        return f"none: {cell.note}"
    rows = [found.episodes.drop(columns="agent").to_csv(float_format="%.9g") for found in seen]
    pulls = [np.round(found.pulls["pulls"].to_numpy(np.float64) * REPLAYED).tolist() for found in seen]
    return hashed(repr((rows, pulls, answers)).encode())


def stale(rows: Sequence[tuple[str, str, str]]) -> list[str]:
    """Of rows (task, agent, digest) those that the code plays otherwise, in words."""
    tasks, found = {task.name: task for some in ("v2", "quick-v2-text") for task in benchmark_tasks(some)}, []
    for name, agent, digest in rows:
        now = behaviour(tasks[name], agent)
        if now.startswith("none: its data"):
            print(f"{name}, {agent}: not played, {now[6:]}")
        elif now != digest:
            found.append(f"{name}, {agent}: {now} in place of {digest}")
    return found


def printed(agent: str | None = None) -> list[tuple[str, str, str]]:
    """The rows of the table, and of the references, (task, agent, digest)."""
    rows = [pd.read_csv(TABLE), pd.read_csv(REFERENCES).assign(agent="uniform")]
    frame = pd.concat([one[["task", "agent", "digest"]] for one in rows])
    frame = frame if agent is None else frame[frame["agent"] == agent]
    return [*frame.itertuples(index=False, name=None)]


def references(result: agents.Benchmark) -> list[dict[str, object]]:
    """Of each task the value of uniform, and the reference: a proven bound, else the best that knows no truth."""
    rows = []
    for place, task in enumerate(result.tasks):
        cells = {agent: own[place] for agent, own in result.cells.items()}
        able = [
            cell for cell in cells.values() if cell.value == cell.value and not cell.oracle and "cut" not in cell.note
        ]
        best = (min if task.fixed_confidence else max)(able, key=lambda cell: cell.value)
        value, by, uniform = best.value, best.agent, cells["uniform"].value
        if task.name in EXACT:
            value, by = exact(task), "exact"
        bound = bound_of(task) if task.fixed_confidence else value if by == "exact" else 1.0
        if task.fixed_confidence and bound == bound:
            value, by = bound, "bound"
        if not (2 * value < uniform if task.fixed_confidence else value > uniform + 0.002):
            print(f"{task.name}: uniform has {uniform:.4g}, and the reference, {by}, is close: {value:.4g}")
        known, digest = f"{bound:.6g}" if bound == bound else "", behaviour(task, "uniform")
        row = {"task": task.name, "uniform": uniform, "best": value, "best_agent": by, "bound": known, "digest": digest}
        rows.append(row)
    return rows


def text_references(episodes: int = 2000) -> None:
    """Write the references of the text set: uniform's value on its few episodes, and the best one's.

    With a budget that is uniform's and the difference of the best agent on many episodes; with a delta the bound.
    """
    rows = [row for row in REFERENCES.read_text().splitlines() if not row.startswith("text-")]
    for task in benchmark_tasks("quick-v2-text"):
        names = [name for name in agents.names(task.problem) if name not in ("ppo", "uniform")]
        few = agents.benchmark("uniform", [task.name]).cells["uniform"][0].value
        value, by = bound_of(task) if task.fixed_confidence else np.nan, "bound"
        if not task.fixed_confidence:
            how: dict[str, Any] = {"episodes": episodes, "seed": task.root, "env_kwargs": task.kwargs}
            base, best = agents.evaluate("uniform", task.env_id, **how), {}
            for name in names:
                with contextlib.suppress(ValueError):
                    result = agents.evaluate(name, task.env_id, **how)
                    if not any(agents.registry.recipe_of(name).target.oracles):
                        best[name] = result.column(name, "score").mean()
            by = max(best, key=lambda name: best[name])
            value = few + best[by] - base.column("uniform", "score").mean()
            print(task.name, {name: round(x, 4) for name, x in sorted(best.items(), key=lambda one: -one[1])[:5]})
        bound = f"{value:.6g}" if task.fixed_confidence else "1"
        rows.append(f"{task.name},{few!r},{value:.6g},{by},{bound},{behaviour(task, 'uniform')}")
        print(rows[-1], flush=True)
    REFERENCES.write_text("\n".join([*rows, ""]))


def rescored(result: agents.Benchmark) -> agents.Benchmark:
    """The same with the references that have been written."""
    _tasks.cache_clear()
    tasks, cells = benchmark_tasks("v2"), dict[str, list[Cell]]()
    for agent, own in result.cells.items():
        notes = ["; ".join(x for x in cell.note.split("; ") if run.BEYOND not in x) for cell in own]
        told = [replace(cell, task=task, note=note) for cell, task, note in zip(own, tasks, notes, strict=True)]
        cells[agent] = [run._scored(*both) for both in zip(told, result.cells["uniform"], strict=True)]
    return agents.Benchmark(result.set, tasks, cells)


def exact(task: BenchmarkTask) -> float:
    """The expected score of the best policy."""
    sys.path.insert(0, str(ROOT))
    from examples.bounds import best

    return 1.0 - best(task.env())


def bound_of(task: BenchmarkTask) -> float:
    """The mean of the lower bounds of pulls over the instances of its episodes; NaN where none is proven."""
    env: Any = task.env().unwrapped
    source, n = find(task.kwargs["instance"]), task.episodes
    kinds: dict[str, Any] = {"bernoulli": Bernoulli, "gaussian": lambda mean: Gaussian(mean, source.arms.sigma)}
    if source.arms.distribution not in kinds or env.task.items or env.task.parameters.get("slack"):
        return float("nan")
    means, _ = drawn(source, np.repeat(rng.root_key(task.root)[:, None], n, axis=1), np.arange(n, dtype=np.uint64))
    arms: list[Arms] = [kinds[source.arms.distribution](mean) for mean in means]
    return float(np.mean([_bound_for_distribution(env.problem, one, task.kwargs["delta"]) for one in arms]))


def pages(result: agents.Benchmark) -> dict[str, str]:
    """The made parts of the page, in Markdown, by the names of their files; without agents that are told the truth."""
    told = {agent for agent, own in result.cells.items() if any(cell.oracle for cell in own)}
    summary = result.summary()
    summary = summary[~summary["agent"].isin(told)]
    problems = dict.fromkeys(task.problem for task in result.tasks)
    names = ("all", "budget", "delta", "real", "synthetic", "marks")
    tables = {"All problems": {name: name for name in names}}
    tables |= {name: {how: f"{name.lower()}_{how}" for how in ("budget", "delta")} for name in problems}
    lines = []
    for name, columns in tables.items():
        more = {"mean": "{:.2f}", "worst": "{:.2f}", "errors": "{:.2%}", "seconds_a_pull": "{:.1e}"}
        more = more if "all" in columns else {}
        lines += [f"**{name}**", "", *header("agent", *columns, *(one.replace("_", " ") for one in more))]
        columns = {how: column for how, column in columns.items() if column in summary}
        for _, row in summary.sort_values([*columns.values()], ascending=False).iterrows():
            scores = [with_interval(row, column) for column in columns.values()]
            if any(scores):
                others = [how.format(row[one]) if row[one] == row[one] else "" for one, how in more.items()]
                lines.append("| " + " | ".join([f"`{row['agent']}`", *scores, *others]) + " |")
        lines.append("")
    made = {"table.md": "\n".join(lines), "places.md": places(result, summary), "headroom.md": headroom(result)}
    return made | {"stops.md": stops(result)}


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
    """Of each task uniform, the best in the table and its score, the reference, and the bound."""
    lines = header("task", "episodes", "uniform", "best", "by", "its score", "reference", "of", "bound", "source")
    for place, task in enumerate(result.tasks):
        cells = [own[place] for own in result.cells.values() if own[place].value == own[place].value]
        able, value = [x for x in cells if not x.oracle], lambda x: float(f"{x.value:.8g}")
        best = (min if task.fixed_confidence else max)(able, key=value)
        bound = f"{task.bound:.4g}" if task.bound == task.bound else ""
        row = [task.name, str(task.episodes), f"{task.uniform:.4g}", f"{best.value:.4g}", f"`{best.agent}`"]
        row += [f"{best.score:.2f}" if task.scored else "not scored", f"{task.best:.4g}", f"`{task.best_agent}`"]
        lines.append("| " + " | ".join([*row, bound, task.source]) + " |")
    return "\n".join([*lines, ""])


def stops(result: agents.Benchmark) -> str:
    """Where agents stop by themselves: pulls beside those of uniform with the certificate, errors, the worst found."""
    worst = pd.read_csv(PAGES / "worst.csv").set_index("agent") if (PAGES / "worst.csv").is_file() else pd.DataFrame()
    uniform, lines = {cell.task.name: cell.value for cell in result.cells["uniform"]}, list[str]()
    for proof, title in (("own", "A proof of its own"), ("none", "No proof")):
        frame = result.stops(proof)
        lines += [
            f"**{title}**",
            "",
            *header("agent", "tasks", "pulls / uniform's", "errors", "on the worst found", "it is"),
        ]
        for agent, own in frame.groupby("agent", sort=False):
            ratio = np.exp(
                np.mean(
                    [
                        np.log(max(pulls, 1) / uniform[task])
                        for task, pulls in zip(own["task"], own["pulls"], strict=True)
                    ]
                )
            )
            n = sum(task.episodes for task in result.tasks if task.name in set(own["task"]))
            errors = sum(cell.own.errors for cell in result.cells[agent] if cell.own)
            text = with_interval(run._rate("errors", errors, n), "errors", "{:.2%}")
            found = worst.loc[agent] if agent in worst.index else None
            last = ["", ""] if found is None else [with_interval(found, "errors", "{:.1%}"), found["instance"]]
            lines.append("| " + " | ".join([f"`{agent}`", str(len(own)), f"{ratio:.2f}", text, *last]) + " |")
        lines.append("")
    return "\n".join(lines)


def printed_cells(agent: str, frame: pd.DataFrame, oracle: bool) -> list[Cell]:
    """The cells of an agent as the table has them; bootstrap samples are normal, by the interval of the score."""
    draw = np.random.default_rng(46).standard_normal((len(benchmark_tasks("v2")), REPLICATES))
    cells, own = list[Cell](), {row["task"]: row for _, row in frame[frame["agent"] == agent].iterrows()}
    for task, some in zip(benchmark_tasks("v2"), draw, strict=True):
        row = own.get(task.name, dict.fromkeys(frame.columns, np.nan))
        errors = None if pd.isna(row["errors"]) else round(row["errors"] * task.episodes)
        samples = row["score"] + some * (row["score_high"] - row["score_low"]) / 3.92
        pace = float(row["seconds_a_pull"])
        cells.append(Cell(agent, task, row["value"], row["score"], samples, oracle=oracle, errors=errors, pace=pace))
    return cells


def renewed(out: Path, names: Sequence[str], jobs: int, part: str) -> None:
    """Play the rows of some agents again, and put them into the table and into its pages; other rows stay as text.

    `part`: a pattern that the names of the tasks begin with.
    """
    frame, tasks = pd.read_csv(TABLE), benchmark_tasks("v2")
    some = [task.name for task in tasks if re.match(part, task.name)]
    result = played(out, jobs, 1e9, ("uniform", *names), some)
    assert result is not None
    fresh = {agent: [cell for cell in result.cells[agent] if cell.task.name in some] for agent in names}
    for agent in names:
        both = zip(result.cells[agent], printed_cells(agent, frame, False), strict=True)
        result.cells[agent] = [cell if cell.task.name in some else before for cell, before in both]
    cells = {agent: result.cells[agent] for agent in names}
    before = [(PAGES / name).read_text() for name in ("table.md", "headroom.md")]  # neither names an oracle
    known = set(re.findall(r"\| `([^`]+)` ", "".join(before)))
    for agent in dict.fromkeys(frame["agent"]):
        if agent not in names:
            cells[agent] = printed_cells(agent, frame, agent not in known)
    result = agents.Benchmark("v2", tasks, {agent: cells[agent] for agent in dict.fromkeys([*frame["agent"], *names])})
    rows = rows_of(agents.Benchmark("v2", tasks, fresh), out)
    rows = pd.concat([frame[~(frame["agent"].isin(names) & frame["task"].isin(some))], rows])
    order = {x: place for place, x in enumerate([*result.cells, *(task.name for task in tasks)])}
    rows = rows.sort_values(["agent", "task"], key=lambda x: x.map(order), kind="stable")
    rows.to_csv(TABLE, index=False, lineterminator="\n")
    for name, text in pages(result).items():
        if name != "stops.md":
            lines = (PAGES / name).read_text().splitlines() if name != "headroom.md" else []
            (PAGES / name).write_text(with_text_of(lines, text, names))
    result.plot(PAGES / "profiles.png")


def with_text_of(before: Sequence[str], text: str, names: Sequence[str]) -> str:
    """The text, where rows of other agents than these are as they were, by their table and the agent."""

    def keyed(lines: Sequence[str]) -> dict[tuple[str, str], str]:
        head, found = "", {}
        for line in lines:
            head = line if line.startswith("**") else head
            if line.startswith("| `"):
                found[head, line.split("`")[1]] = line
        return found

    old, head, made = keyed(before), "", []
    for line in text.splitlines():
        head = line if line.startswith("**") else head
        agent = line.split("`")[1] if line.startswith("| `") else ""
        made.append(line if agent in names else old.get((head, agent), line))
    return "\n".join([*made, ""])


def rows_of(result: agents.Benchmark, out: Path) -> pd.DataFrame:
    """The rows of the table, with digests and seconds, rounded."""
    seconds = json.loads((out / "seconds.json").read_text())
    table = result.table.dropna(subset=["value"]).drop(columns=["root", "real", "marks", "trained_on", "episodes"])
    tasks = {task.name: task for task in result.tasks}
    table["digest"] = [behaviour(tasks[row["task"]], row["agent"]) for _, row in table.iterrows()]
    table["seconds"] = [round(seconds[row["agent"]].get(row["task"], 0), 2) for _, row in table.iterrows()]
    for name in table.select_dtypes("float").columns.drop("seconds"):
        digits = ".8g" if name in ("value", "own_pulls") else ".3g" if name == "seconds_a_pull" else ".4f"
        table[name] = [float(format(x, digits)) for x in table[name]]
    return table


def played(
    out: Path, jobs: int, minutes: float, only: Sequence[str] = (), some: Sequence[str] = ()
) -> agents.Benchmark | None:
    """All agents, or some, on all tasks; those of `TOO_SLOW` on those they can play in time, the others are blank."""
    begun, whole, kept = time.monotonic(), None, out / "seconds.json"
    found: dict[str, Any] = {}  # instances, which are read once for all agents
    read = setting.find
    setting.find = lambda source: found.get(str(source)) or found.setdefault(str(source), read(source))
    seconds = json.loads(kept.read_text()) if kept.is_file() else {}
    for agent in only or ["uniform", *(name for name in agents.names() if name != "uniform"), *MORE]:
        if time.monotonic() - begun > 60 * minutes:
            print(f"as far as {agent} in {minutes:g} minutes: run it again")
            return None
        names = [x.name for x in benchmark_tasks("v2") if not any(part in x.name for part in TOO_SLOW.get(agent, ()))]
        names = [name for name in names if name in (some or names)]
        played = agents.benchmark(agent, names, out, jobs, progress=True)
        own = {cell.task.name: cell for cell in played.cells[agent]}
        seconds.setdefault(agent, {}).update({name: cell.seconds for name, cell in own.items() if cell.seconds})
        kept.write_text(json.dumps(seconds))
        cells = [
            own.get(task.name, Cell(agent, task, np.nan, np.nan, note="does not take it: too slow"))
            for task in benchmark_tasks("v2")
        ]
        whole = whole or agents.Benchmark("v2", benchmark_tasks("v2"), {})
        whole.cells[agent] = cells
    return whole


def check(cells: int, seed: int = 46) -> list[str]:
    """Play cells of the table that are drawn at random: those whose value, or score, is not what is printed."""
    frame, found = pd.read_csv(TABLE), []
    for _, row in frame.sample(cells, random_state=seed).iterrows():
        [cell] = agents.benchmark(row["agent"], [row["task"]]).cells[row["agent"]]
        same = np.isclose([cell.value, cell.score], [row["value"], row["score"]], rtol=1e-6, atol=1e-4, equal_nan=True)
        print(f"{row['task']}, {row['agent']}: {cell.value:.8g}, printed {row['value']:.8g}", flush=True)
        found += [] if same.all() else [f"{row['task']}, {row['agent']}: {cell.value} in place of {row['value']}"]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="folder of the episodes")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=1e9, help="begin with no agent after these")
    parser.add_argument("--references", action="store_true", help="write them")
    parser.add_argument("--stale", action="store_true", help="name the cells that the code plays otherwise")
    parser.add_argument("--renew", nargs="+", metavar="AGENT", help="play these rows of the table again")
    parser.add_argument("--tasks", default="", help="of --renew: a pattern that the names of tasks begin with")
    parser.add_argument("--agent", help="of --stale: of this agent alone")
    parser.add_argument("--text", action="store_true", help="write the references of the text set")
    parser.add_argument("--check", type=int, metavar="CELLS", help="play some cells of the table again")
    given = parser.parse_args(arguments)
    if given.text:
        text_references()
        return
    if given.check or given.stale:
        found = check(given.check) if given.check else stale(printed(given.agent))
        print("\n".join(found) or "the code gives what is printed")
        sys.exit(1 if found else 0)
    if given.renew:
        renewed(given.out, given.renew, given.jobs, given.tasks)
        return
    result = played(given.out, given.jobs, given.minutes)
    if result is None:
        return
    if given.references:
        pd.DataFrame(references(result)).to_csv(REFERENCES, index=False, lineterminator="\n")
        result = rescored(result)
    rows_of(result, given.out).to_csv(TABLE, index=False, lineterminator="\n")
    for name, text in pages(result).items():
        (PAGES / name).write_text(text)
    result.plot(PAGES / "profiles.png")
    print(f"wrote {TABLE}: {len(result.tasks)} tasks, {len(result.agents)} agents")


if __name__ == "__main__":
    main()
