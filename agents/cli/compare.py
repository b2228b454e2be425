"""`bandit-envs compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

import agents

from .options import Command, note


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
