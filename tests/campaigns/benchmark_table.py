"""The table of the benchmark: all agents of this package on all tasks, agents/benchmarking/v1.csv, and its page.

    python tests/campaigns/benchmark_table.py --out DIR               the table; goes on where it was
    python tests/campaigns/benchmark_table.py --out DIR --minutes 14  a piece of it
    python tests/campaigns/benchmark_table.py --out DIR --references  uniform and the best of each task, too

References are written once for each version of the tasks: never for tasks that have been released.
"""

from __future__ import annotations

import _thread
import argparse
import csv
import threading
from pathlib import Path

import agents
from bandit_envs import benchmark_tasks

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "agents" / "benchmarking" / "v1.csv"
PAGE = ROOT / "docs" / "benchmark" / "table.md"
REFERENCES = ROOT / "bandit_envs" / "references-v1.csv"


def references(result: agents.Benchmark) -> list[dict[str, object]]:
    """The value of uniform and the best of each task: of an agent that knows no truth, is valid and is never cut."""
    rows = []
    for place, task in enumerate(result.tasks):
        cells = {agent: own[place] for agent, own in result.cells.items()}
        able = [cell for cell in cells.values() if cell.value == cell.value and not cell.note]
        best = (min if task.fixed_confidence else max)(able, key=lambda cell: cell.value)
        row = {"task": task.name, "uniform": cells["uniform"].value, "best": best.value, "best_agent": best.agent}
        rows.append(row)
    return rows


def page(result: agents.Benchmark) -> str:
    """The summary in Markdown; without agents that are told the truth on some task."""
    told = {agent for agent, own in result.cells.items() if any(cell.oracle for cell in own)}
    summary = result.summary()
    names = [str(name) for name in summary if f"{name}_low" in summary]
    heads = ["agent", "all tasks", *(name.replace("_", ", ") for name in names[1:])]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for _, row in summary.iterrows():
        scores = [
            "" if row[name] != row[name] else f"{row[name]:.2f} [{row[f'{name}_low']:.2f}, {row[f'{name}_high']:.2f}]"
            for name in names
        ]
        if row["agent"] not in told and any(scores):
            lines.append("| " + " | ".join([f"`{row['agent']}`", *scores]) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder of the episodes")
    parser.add_argument("--minutes", type=float, default=60.0, help="after which it stops, to go on later")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--references", action="store_true", help="write them, too")
    given = parser.parse_args()
    threading.Timer(60 * given.minutes, _thread.interrupt_main).start()
    result = agents.benchmark(agents.names(), "v1", given.out, given.jobs, progress=True)
    if given.references:
        rows = references(result)
        with REFERENCES.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        print(f"wrote {REFERENCES}: run it again, without --references")
        return
    table = result.table.drop(columns="code")
    for name in ("score", "score_low", "score_high"):
        table[name] = table[name].round(4)
    table["value"] = table["value"].map(lambda x: float(f"{x:.8g}"))
    table["note"] = table["note"].where(~table["note"].str.startswith("does not take"), "")
    table.dropna(subset=["score"]).to_csv(TABLE, index=False)
    PAGE.write_text(page(result))
    print(f"wrote {TABLE}: {len(benchmark_tasks())} tasks, {len(result.agents)} agents")


if __name__ == "__main__":
    main()
    raise SystemExit(0)
