"""`bandit-envs ab-test`."""

from __future__ import annotations

from typing import Annotated, Literal

from tyro.conf import Positional, arg

import agents

from .options import Command, TableOptions, note, noted
from .session_words import print_comparison


class ABTest(TableOptions, Command, of="ab_test", also="measurements"):
    """Compare variants with a control by a table of counts; look as often as you like, and stop when you like.

    Examples:
      bandit-envs ab-test counts.csv --control A
      bandit-envs ab-test counts.csv --control A --lift 0.02 --expected 0.030 0.037 --rate fdr
      bandit-envs ab-test buttons.xlsx --control old --arm button --n users --successes purchases
    """

    table: Positional[Annotated[str, arg(metavar="TABLE")]]
    control: Annotated[str, arg(metavar="NAME")]
    rate: Literal["familywise", "fdr"] = "familywise"
    arm: str | None = None
    value: str | None = None

    def run(self) -> None:
        with noted():
            found = agents.ab_test(**self.handed("ab_test", "measurements"))
        print_comparison(found)
        if self.sigma is None and found.attrs["sigma"] is not None:
            doubt = ", and is not borne out yet: no verdict" if found.attrs["approximate"] else ""
            note(f"the spread {found.attrs['sigma']:.4g} is taken from the results{doubt}; or give --sigma")
