"""`bandit-envs compare`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from tyro.conf import Positional, arg

import agents

from .options import Command, Word


@dataclass(frozen=True, kw_only=True)
class Compare(Command):
    """Compare logs of evaluation harnesses on the same items; look as often as you like, and stop when you like.

    Examples:
      bandit-envs compare old=a/samples_gsm8k.jsonl new=b/samples_gsm8k.jsonl --filter strict-match
      bandit-envs compare a.csv b.csv c.csv --item question --value right --control b
    """

    logs: Positional[Annotated[tuple[str, ...], arg(metavar="[NAME=]PATH [[NAME=]PATH ...]")]]
    """Logs of Inspect, lm-evaluation-harness (samples_*.jsonl) or promptfoo, or tables with --item and --value."""
    control: Word = None
    """The log that the others are compared with; left out: of three or more the best."""
    delta: float = 0.05
    """1 less the level of the intervals, together."""
    item: Word = None
    """Of tables, the column of the items' names."""
    value: Word = None
    """Of tables, the column of the scores; else a metric, a scorer, or "score" of promptfoo."""
    filter: Word = None
    """Of lm-evaluation-harness, which filter counts."""
    range: tuple[float, float] = (0.0, 1.0)
    """The lowest and the highest score."""

    def run(self) -> None:
        """Print a sentence for each comparison, and a table of the counts."""
        named = all("=" in one for one in self.logs)
        logs: Any = dict(one.split("=", 1) for one in self.logs) if named else list(self.logs)
        if len(logs) < len(self.logs):
            raise ValueError(f"two logs have the same name, in {' '.join(self.logs):.200}")
        options = {name: x for name, x in vars(self).items() if name not in ("logs", "debug")}
        found = agents.compare_logs(logs, **options)
        print("\n".join(found["sentence"]) + "\n")
        print(found.iloc[:, :-1].dropna(axis="columns").to_string(index=False, float_format="{:.4g}".format))
