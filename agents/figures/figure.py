"""A figure of a paper as a declaration: panels of agents on instances, the paper's claims, the plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .claims import AnyClaim, Quote
from .panels import AnyPanel, Transform, unchanged


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
