"""Figures as their papers' files declare them: PAPER.toml beside this module holds all that is data.

A file has the `figures` of a paper. Each has a name, a source, the name of its `transform`, `panels` by their titles,
`quotes` by their names, and `values`, the tables of numbers for its page. A figure with `own_styles` shares no styles
with the others, as their agents are too many together.

A panel holds the arguments of its `kind`, without one those of `Panel`, beside the `defaults` of its figure and of the
file; or it is `made` by the paper's module. Its agents are tables of `agents`, one after another, or its own. What TOML
has no form for is written so: numbers at the same distance as {from, to, by}, and in `env_kwargs` None as "none". A
`sweep` has its values `at`; of the keyword arguments beside them a list holds one for each value, and "{}" in a text is
the value.

A figure, panel or table of numbers with `each` stands for several: one for each of its dicts {name: value}, where
"{name}" in texts is the value, and a text that is no more is the value itself.

A quotation holds the arguments of a `Quote`, or claims alone: then these are ours, each by itself. A claim holds the
arguments of its kind: with `better` it is a `Claim`, with `low` a `Growth`, with `name` it is `printed`, with `test`
what the function of this name in the paper's module makes, else a `Level`. A list stands for several claims, one for
each value; of several lists the first is the outer loop. "*name" stands for a list of `groups`, or the labels of
`agents`.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .claims import AnyClaim, Claim, Growth, Level, Number, Quote, printed
from .panels import Allocation, AnyPanel, Panel, Sweep, Transform, log_rates, unchanged


@dataclass(frozen=True)
class Values:
    """A table of numbers that the page of a figure shows, out of those of its panels.

    Several panels that are shown at the same several points stand below each other, else beside each other.
    """

    at: Mapping[str, Sequence[float]]  # {title: the points that are shown}; none: its agents are its rows
    head: str  # what the numbers are, in the head of the first column
    form: str = ".3f"  # as of `format`
    agents: Sequence[str] = ()  # those that are shown; none: all
    drawn: bool = False  # the numbers as they are drawn, after the transform of the figure


@dataclass(frozen=True)
class Figure:
    """A figure: its panels, what is drawn, and what the paper claims."""

    name: str  # by which the command line knows it
    source: str  # the paper and the number of the figure
    panels: Sequence[AnyPanel[Any]]
    claims: Sequence[Quote | AnyClaim]  # sentences of the paper with their claims, or claims alone
    transform: Transform = unchanged  # of the means and limits that are drawn, given the number of arms K
    order: Sequence[str] = ()  # labels of agents, whose styles are by their places; others come behind
    values: Sequence[Values] = ()  # tables of numbers for its page

    @property
    def quotes(self) -> list[Quote]:
        """What the paper says; a claim alone stands for itself, without words of the paper, under a number."""
        numbered = enumerate(self.claims, start=1)
        return [claim if isinstance(claim, Quote) else Quote(str(n), "", [claim]) for n, claim in numbered]

    def shown(self, panels: Sequence[AnyPanel[Any]]) -> Figure:
        """The same figure with some of its panels alone, and the claims on them."""
        titles = {panel.title for panel in panels}
        quotes = [replace(one, claims=[claim for claim in one.claims if claim.panel in titles]) for one in self.quotes]
        shown = [{title: points for title, points in one.at.items() if title in titles} for one in self.values]
        values = [replace(one, at=at) for one, at in zip(self.values, shown, strict=True) if at]
        return replace(self, panels=panels, claims=[quote for quote in quotes if quote.claims], values=values)


def alike(figures: Sequence[Figure]) -> list[Figure]:
    """The figures of a paper, in all of which an agent has the same style, whichever of their panels are drawn."""
    labels = [label for figure in figures for panel in figure.panels for label in panel.agents]
    return [replace(figure, order=list(dict.fromkeys(labels))) for figure in figures]


Agents = Mapping[str, Mapping[str, str]]  # tables of {label: name}, by their names
Groups = Mapping[str, list[str]]
Tests = Mapping[str, Callable[..., Number]]
PANELS: dict[str, type[Panel] | type[Sweep]] = {"Panel": Panel, "Sweep": Sweep, "Allocation": Allocation}
KINDS: dict[str, Callable[..., AnyClaim]] = {"better": Claim, "low": Growth, "name": printed}  # by what they alone have
TRANSFORMS: dict[str, Transform] = {
    "unchanged": unchanged,
    "log_rates": log_rates,
    "log_per_arm": lambda mean, K: np.log(mean / K),
}


def declared(paper: str, made: Mapping[str, AnyPanel[Any]] | None = None, tests: Tests | None = None) -> list[Figure]:
    """The figures of a paper.

    Args:
        paper: the name of its file. made: the panels that are no data, by name.
        tests: the functions that make claims of other kinds than the common ones, by name.
    """
    content = tomllib.loads(Path(__file__).with_name(f"{paper}.toml").read_text(encoding="utf-8"))
    agents, common, apart = content.get("agents", {}), list[Figure](), list[Figure]()
    groups = content.get("groups", {}) | {name: list(labels) for name, labels in agents.items()}
    for one in _each(content["figures"]):
        defaults = content.get("defaults", {}) | one.get("defaults", {})
        rows = _each({"title": title, **row} for title, row in one["panels"].items())
        panels = [_panel(defaults | row, agents, made or {}) for row in rows]
        claims: list[Quote | AnyClaim] = []
        for name, quote in one.get("quotes", {}).items():
            tested = [claim for row in quote.pop("claims") for claim in _claims(row, groups, tests or {})]
            claims += [Quote(name, claims=tested, **quote)] if quote else tested
        values = [_values(row, groups) for row in _each(one.get("values", ()))]
        transform = TRANSFORMS[one.get("transform", "unchanged")]
        figure = Figure(one["name"], one["source"], panels, claims, transform, values=values)
        (apart if one.get("own_styles") else common).append(figure)
    return [*alike(common), *(figure for one in apart for figure in alike([one]))]


def _each(rows: Iterable[dict[str, Any]]) -> list[Any]:
    """The rows, and in place of one with `each` those that it stands for."""
    return [_filled(row, given) for row in rows for given in row.pop("each", [{}])]


def _filled(value: Any, given: Mapping[str, Any]) -> Any:
    """A value with what is given in place of names in its texts."""
    if isinstance(value, dict):
        return {_filled(name, given): _filled(one, given) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, given) for one in value]
    if isinstance(value, str):
        for name, one in given.items():
            if value == f"{{{name}}}":
                return one
            value = value.replace(f"{{{name}}}", str(one))
    return value


def _panel(row: dict[str, Any], agents: Agents, made: Mapping[str, AnyPanel[Any]]) -> AnyPanel[Any]:
    """The panel that a row stands for."""
    if "made" in row:
        return made[row["title"]]
    if isinstance(row["agents"], list):
        row["agents"] = {label: name for table in row["agents"] for label, name in agents[table].items()}
    kind = PANELS[row.pop("kind", "Panel")]
    if kind is Sweep:
        at, budgets = row["sweep"].pop("at"), row.get("budgets")
        sides = {name: value if isinstance(value, list) else [value] * len(at) for name, value in row["sweep"].items()}
        rows = zip(at, *sides.values(), strict=True)
        row["sweep"] = {x: _arguments(dict(zip(sides, values, strict=True)), x) for x, *values in rows}
        several = budgets if isinstance(budgets, list) else [budgets] * len(at)
        row["budgets"] = budgets and {x: _budgets(given) for x, given in zip(at, several, strict=True)}
    else:
        row["env_kwargs"], row["budgets"] = _arguments(row["env_kwargs"]), _budgets(row["budgets"])
    return kind(**row)


def _arguments(given: Mapping[str, Any], x: float = 0) -> dict[str, Any]:
    """Keyword arguments of an environment, at a value of a sweep."""
    texts = {name: value.format(x) for name, value in given.items() if isinstance(value, str)}
    return {name: None if value == "none" else value for name, value in {**given, **texts}.items()}


def _budgets(given: Any) -> list[int]:
    """Numbers of pulls."""
    return list(range(given["from"], given["to"] + 1, given["by"])) if isinstance(given, dict) else given


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
