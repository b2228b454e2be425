"""`bandit-envs list`."""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from bandit_envs import DISTRIBUTIONS, ENVIRONMENTS, INSTANCES, PROBLEMS

from ..evaluation.environment import importable
from ..evaluation.report import table
from ..registry import AGENTS, ALIASES, recipe_of
from .options import Command, note

Names = Literal["environments", "instances", "distributions", "agents", "promises"]
Shown = Annotated[Names | None, arg(help_behavior_hint="")]


class List(Command):
    """Show what there is: environments, instances, distributions, agents; installed packages come last.

    `promises` shows what each guarantee counts on, and what voids it.

    Examples:
      bandit-envs list
      bandit-envs list agents
    """

    what: Positional[Shown] = None
    """What to show; all if left out."""

    def run(self) -> None:
        if self.what == "promises":
            print((Path(__file__).parents[1] / "promises.md").read_text(encoding="utf-8"))
            return
        width = shutil.get_terminal_size((120, 24)).columns
        tables = {"environments": _environments, "instances": _instances, "distributions": _arms, "agents": _agents}
        shown = tables if self.what is None else (self.what,)
        print("\n\n".join(table(*tables[name](), width=width) for name in shown))


Table = tuple[list[str], list[list[str]]]  # heads and rows


def _environments() -> Table:
    known = importable(ENVIRONMENTS, note)
    rows = [[row.id, row.asks, ", ".join(PROBLEMS[problem].parameters), row.source] for problem, row in known]
    return ["environment (to train: -learn-v0)", "the answer", "parameters", "source"], rows


def _instances() -> Table:
    rows = [[name, row.problem or "any", row.source] for name, row in importable(INSTANCES, note)]
    return ["instance", "made for", "source"], rows


def _arms() -> Table:
    rows = [
        [name, ", ".join(inspect.signature(kind).parameters), (inspect.getdoc(kind) or "").partition("\n")[0]]
        for name, kind in importable(DISTRIBUTIONS, note)
    ]
    return ["distribution of arms", "parameters", "what it is"], rows


def _listed(solved: Collection[str]) -> str:
    """The names of the problems that an agent solves, or that they are all, or all but one of several."""
    known = [name for name, _ in importable(PROBLEMS)]
    found, left = [name for name in known if name in solved], [name for name in known if name not in solved]
    if len(left) == 1 and len(found) > 3:
        return f"all but {left[0]}"
    return "all" if not left else ", ".join(found) or "-"


def _agents() -> Table:
    rows = []
    for name, _ in importable(AGENTS, note):
        row, also = recipe_of(name), [alias for alias, real in ALIASES.items() if real == name]
        rows.append([", ".join([name, *also]), _listed(row.solves), ", ".join(row.needs) or "-", row.source])
    return ["agent", "problems", "needs", "source"], rows
