"""`bandit-envs ab-test`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from tyro.conf import Positional, arg

import agents

from .options import TABLE, Command, Number, Numbers, TableOptions, Word, note, noted
from .session_words import print_comparison


@dataclass(frozen=True, kw_only=True)
class ABTest(TableOptions, Command):
    """Compare variants with a control by a table of counts; look as often as you like, and stop when you like.

    Examples:
      bandit-envs ab-test counts.csv --control A
      bandit-envs ab-test counts.csv --control A --lift 0.02 --expected 0.030 0.037 --rate fdr
      bandit-envs ab-test buttons.xlsx --control old --arm button --n users --successes purchases
    """

    table: Positional[Annotated[str, arg(metavar="TABLE")]]
    """A row for each variant, or for each of them and each day: its name, n, and successes, or mean and sd."""
    control: Annotated[str, arg(metavar="NAME")]
    """The name of the control."""
    delta: float = 0.05
    """The error rate, and that of the intervals together."""
    margin: Number = None
    """Variants must be better by more than this."""
    lift: Number = None
    """Variants must be better by more than this share of the control's mean."""
    expected: Numbers = None
    """The means of the control and of a better variant that you hope for: decisions are quickest there."""
    rate: Literal["familywise", "fdr"] = "familywise"
    """familywise: no variant is wrongly found; fdr: few of those that are found, on average."""
    arm: Word = None
    """The column of the variants' names, where it is not called variant, version, group, name or arm."""
    value: Word = None
    """Of single results, the column of their values, where it is not called value, or converted and the like."""
    sigma: Number = None
    """The standard deviation of results that are not 0 or 1, where it is known beforehand."""

    def run(self) -> None:
        asked = {name: getattr(self, name) for name in ("delta", "margin", "lift", "expected", "rate", "sigma")}
        columns = {name: value for name in ("arm", "value", *TABLE) if (value := getattr(self, name)) is not None}
        with noted():
            found = agents.ab_test(self.table, self.control, **asked, **columns)
        print_comparison(found)
        if self.sigma is None and found.attrs["sigma"] is not None:
            doubt = ", and is not borne out yet: no verdict" if found.attrs["approximate"] else ""
            note(f"the spread {found.attrs['sigma']:.4g} is taken from the results{doubt}; or give --sigma")
