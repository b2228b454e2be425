"""`bandit-envs ab-test` and `ab-plan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from tyro.conf import Positional, arg

import agents
from bandit_envs.instances import number_in

from .options import Command, TableOptions, note, noted, prices_in
from .session_words import print_comparison, print_shipped


class ABTest(TableOptions, Command, of="ab_test", also="measurements", named={"guardrail": "guardrails"}):
    """Compare variants with a control by a table of counts; look as often as you like, and stop when you like.

    Examples:
      bandit-envs ab-test counts.csv --control A
      bandit-envs ab-test counts.csv --control A --lift 0.02 --expected 0.030 0.037 --rate fdr --pooled
      bandit-envs ab-test buttons.xlsx --control old --arm button --n users --successes purchases
      bandit-envs ab-test days.csv --control A --shares A=0.5 B=0.5 --metric signups --guardrail retention=0.01
    """

    table: Positional[Annotated[str, arg(metavar="TABLE")]]
    control: Annotated[str, arg(metavar="NAME")]
    rate: Literal["familywise", "fdr"] = "familywise"
    arm: str | None = None
    value: str | None = None
    strata: Sequence[str] | None = None
    pooled: bool = False
    """Compare all rows together; rates must not change from day to day then."""
    shares: Annotated[tuple[str, ...], arg(metavar="NAME=X [NAME=X ...] | COLUMN", help_behavior_hint="")] = ()
    guardrail: Annotated[tuple[str, ...], arg(metavar="NAME=X [NAME=X ...]", help_behavior_hint="")] = ()

    def run(self) -> None:
        column = len(self.shares) == 1 and "=" not in self.shares[0]
        shares = self.shares[0] if column else prices_in(self.shares)
        given = self.handed("ab_test", "measurements") | {"shares": shares}
        given["guardrails"] = dict(word.rpartition("=")[::2] for word in self.guardrail) or None
        if self.pooled and self.strata:
            raise ValueError(f"--pooled compares all rows together: leave out --strata, got {[*self.strata]}")
        given["strata"] = False if self.pooled else self.strata
        given["sigma"] = self.sigma if self.sigma in (None, "common") else number_in(self.sigma)
        with noted():
            found = agents.ab_test(**given)
        (print_comparison if self.guardrail == () else print_shipped)(found)
        if self.sigma is None and found.attrs["sigma"] is not None:
            doubt = ", and is not borne out yet: no verdict" if found.attrs["approximate"] else ""
            note(f"the spread {found.attrs['sigma']:.4g} is taken from the results{doubt}; or give --sigma")


class ABPlan(Command, of="ab_test_plan"):
    """How long an A/B test takes to find a variant, from rates: visitors of each arm, and days, in shares of tests.

    Examples:
      bandit-envs ab-plan 0.030 0.037 --visitors 3000
    """

    expected: Positional[Annotated[tuple[float, float], arg(metavar="CONTROL VARIANT")]]

    def run(self) -> None:
        print(agents.ab_test_plan(**self.handed("ab_test_plan")).to_string(index=False, float_format="{:,.10g}".format))
