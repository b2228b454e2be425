"""From two log files to a sentence: compare two models on the same questions, by the samples that lm-eval writes.

`lm_eval --log_samples --output_path logs ..` writes such a file for each model and task. Here two are written with the
results of 220 questions, of which 17 are answered by the new model alone and 5 by the old one alone.

    python examples/compare_logs.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import agents

OLD = [1] * 120 + [0] * 78 + [0] * 17 + [1] * 5
NEW = [1] * 120 + [0] * 78 + [1] * 17 + [0] * 5


def write(path: Path, scores: list[int]) -> Path:
    """The samples of a task, as lm-evaluation-harness writes them, but for prompts and answers."""
    lines = [
        {"doc_id": i, "filter": "strict-match", "metrics": ["exact_match"], "doc_hash": f"{i:x}", "exact_match": score}
        for i, score in enumerate(scores)
    ]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return path


def main() -> None:
    """Compare the logs."""
    with tempfile.TemporaryDirectory() as folder:
        logs = {name: write(Path(folder) / f"samples_{name}.jsonl", x) for name, x in (("old", OLD), ("new", NEW))}
        (row,) = agents.compare_logs(logs).to_dict("records")
        print(row["sentence"])
        table = agents.logs_table(logs)  # what `from_table(table, shared=True)` takes, for choosing among many models
        print(f"{len(table)} items, means {table.mean().round(3).to_dict()}")


if __name__ == "__main__":
    main()
