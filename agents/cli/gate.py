"""`bandit-envs gate`."""

from __future__ import annotations

from typing import Annotated

from tyro.conf import Positional, arg

import agents

from .options import Command, noted

EXITS = {"pass": 0, "fail": 1, "open": 3}


class Gate(Command, of="gate", also="measurements"):
    """Say whether one mean is at least, or at most, a number; look as often as you like, and stop when you like.

    The command exits with 0 for pass, 1 for fail, 3 for open, and 2 after an error.

    Examples:
      bandit-envs gate results.csv --at-least 0.9
      bandit-envs gate --n 1000 --successes 950 --at-least 0.9 --delta 0.01
      bandit-envs gate games.csv --at-least 0.5 --range 0 1 --value score --n games
    """

    results: Positional[Annotated[str | None, arg(metavar="TABLE", help_behavior_hint="")]] = None
    n: Annotated[str | None, arg(metavar="N|NAME", help_behavior_hint="")] = None
    range: Annotated[tuple[float, float] | None, arg(metavar="LOW HIGH", help_behavior_hint="")] = None
    sep: str | None = None
    decimal: str | None = None
    sheet: str | None = None

    def run(self) -> int:
        given = self.handed("gate", "measurements")
        if self.results is None and self.n is not None and self.n.isdecimal():
            given["n"] = int(self.n)
        with noted():
            found = agents.gate(**given)
        print(found)
        return EXITS[found.verdict]
