"""Figures as their papers' files declare them: PAPER.toml beside this module holds all that is text.

A file has the `figures` of a paper. Each has a name, a source, the name of its `transform`, `quotes`, and `values`, the
tables of numbers for its page. A quotation has the paper's words, and claims that test them; without words its claims
are ours, each by itself. With `own_styles` a figure shares no styles with the others, as there are too many agents.

A claim holds the arguments of its kind: with `better` it is a `Claim`, with `low` a `Growth`, with `name` it is
`printed`, with `test` what the function of this name in the paper's module makes, else a `Level`. A list stands for
several claims, one for each value; of several lists the first is the outer loop. "*name" stands for a list in `groups`.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .claims import AnyClaim, Claim, Growth, Level, Number, Quote, printed
from .figure import Figure, Values, alike
from .panels import AnyPanel, Transform, log_rates, unchanged

Groups = Mapping[str, list[str]]
Tests = Mapping[str, Callable[..., Number]]
KINDS: dict[str, Callable[..., AnyClaim]] = {"better": Claim, "low": Growth, "name": printed}  # by what they alone have
TRANSFORMS: dict[str, Transform] = {
    "unchanged": unchanged,
    "log_rates": log_rates,
    "log_per_arm": lambda mean, K: np.log(mean / K),
}


def declared(paper: str, panels: Mapping[str, Sequence[AnyPanel[Any]]], tests: Tests | None = None) -> list[Figure]:
    """The figures of a paper.

    Args:
        paper: the name of its file. panels: of each figure, by its name.
        tests: the functions that make claims of other kinds than the common ones, by name.
    """
    content = tomllib.loads(Path(__file__).with_name(f"{paper}.toml").read_text(encoding="utf-8"))
    groups, common, apart = content.get("groups", {}), [], []
    for one in content["figures"]:
        claims: list[Quote | AnyClaim] = []
        for quote in one.get("quotes", ()):
            tested = [claim for row in quote.pop("claims") for claim in _claims(row, groups, tests or {})]
            claims += [Quote(claims=tested, **quote)] if quote else tested
        figure = Figure(
            one["name"],
            one["source"],
            panels[one["name"]],
            claims,
            TRANSFORMS[one.get("transform", "unchanged")],
            values=[_values(row, groups) for row in one.get("values", ())],
        )
        (apart if one.get("own_styles") else common).append(figure)
    return [*alike(common), *(figure for one in apart for figure in alike([one]))]


def _claims(row: Mapping[str, Any], groups: Groups, tests: Tests) -> Iterator[AnyClaim]:
    """The claims that a row stands for."""
    for values in itertools.product(*(_several(value, groups) for value in row.values())):
        given = dict(zip(row, values, strict=True))
        test = given.pop("test", None)
        kind = tests[test] if test else next((kind for name, kind in KINDS.items() if name in given), Level)
        yield kind(**given)


def _values(row: Mapping[str, Any], groups: Groups) -> Values:
    """A table of numbers: `at` {panel: points}, or some `panels` with the same `points`."""
    rest = {name: row[name] for name in ("head", "form", "drawn") if name in row}
    at = row["at"] if "at" in row else dict.fromkeys(_several(row["panels"], groups), row["points"])
    return Values(at, agents=_several(row.get("agents", []), groups), **rest)


def _several(value: Any, groups: Groups) -> list[Any]:
    """What a value stands for: a group, the members of a list, or itself."""
    if isinstance(value, str) and value.startswith("*"):
        return groups[value[1:]]
    return value if isinstance(value, list) else [value]
