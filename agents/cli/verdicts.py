"""`bandit-envs ab-test`, `ab-plan`, `gate` and `compare`: look as often as you like, and stop when you like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

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


class Compare(Command, of="compare_logs logs_table"):
    """Compare logs of evaluation harnesses on the same items; look as often as you like, and stop when you like.

    Examples:
      bandit-envs compare old=a/samples_gsm8k.jsonl new=b/samples_gsm8k.jsonl --filter strict-match
      bandit-envs compare a.csv b.csv c.csv --item question --value right --control b
    """

    logs: Positional[Annotated[tuple[str, ...], arg(metavar="[NAME=]PATH [[NAME=]PATH ...]")]]
    range: tuple[float, float] = (0.0, 1.0)

    def run(self) -> None:
        names, paths = zip(*map(_named, self.logs), strict=True)
        if any(names) and (len({*names}) < len(names) or not all(names)):
            what = "all logs have names, or none has" if "" in names else "two logs have the same name"
            raise ValueError(f"{what}, in {' '.join(self.logs):.200}")
        logs: Any = dict(zip(names, paths, strict=True)) if any(names) else paths
        found = agents.compare_logs(**self.handed("compare_logs", "logs_table") | {"logs": logs})
        note(found.attrs["read"])
        print("\n".join(found["sentence"]) + "\n")
        print(found.iloc[:, :-1].dropna(axis="columns").to_string(index=False, float_format="{:.4g}".format))


def _named(text: str) -> tuple[str, str]:
    """The name, or none, and the path of a log; any "=" may be the one between them, and a path may have others."""
    cuts = [i for i, mark in enumerate(text) if i and mark == "="]
    read = [("", text), *((text[:i], text[i + 1 :]) for i in cuts)]
    there = [one for one in read if Path(one[1]).exists()]
    if len(there) > 1 and not text.startswith((".", "/")):
        raise ValueError(f"{text} may be each of {[path for _, path in there]}: say ./{text}, or NAME=./PATH")
    return (there or read[1:] or read)[0]
