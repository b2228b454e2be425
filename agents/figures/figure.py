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

    Attributes:
        at: {title of a panel: the points that are shown}; no points: the panel has none (its agents are its rows).
        drawn: the numbers as they are drawn, after the transform of the figure.
    """

    at: Mapping[str, Sequence[float]]
    head: str  # what the numbers are, in the head of the first column
    form: str = ".3f"  # as of `format`
    agents: Sequence[str] = ()  # those that are shown; none: all
    drawn: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure: its panels, what is drawn, and what the paper claims.

    Attributes:
        claims: what is tested on the results: sentences of the paper with their claims, or claims alone.
        transform: applied to the means and limits before they are drawn, given the number of arms K.
        order: labels of agents; the style of an agent is that of its place here. Agents that are not named come behind.
    """

    name: str  # by which the command line knows it
    source: str  # the paper and the number of the figure
    panels: Sequence[AnyPanel[Any]]
    claims: Sequence[Quote | AnyClaim]
    transform: Transform = unchanged
    order: Sequence[str] = ()
    values: Sequence[Values] = ()  # tables of numbers for its page

    @property
    def quotes(self) -> list[Quote]:
        """What the paper says; a claim alone stands for itself, without words of the paper, under a number."""
        return [
            claim if isinstance(claim, Quote) else Quote(str(number), "", [claim])
            for number, claim in enumerate(self.claims, start=1)
        ]

    def shown(self, panels: Sequence[AnyPanel[Any]]) -> Figure:
        """The same figure with some of its panels alone, and the claims on them."""
        titles = {panel.title for panel in panels}
        quotes = [replace(one, claims=[claim for claim in one.claims if claim.panel in titles]) for one in self.quotes]
        values = [
            replace(one, at={title: points for title, points in one.at.items() if title in titles})
            for one in self.values
        ]
        claims, values = [quote for quote in quotes if quote.claims], [one for one in values if one.at]
        return replace(self, panels=panels, claims=claims, values=values)


def alike(figures: Sequence[Figure]) -> list[Figure]:
    """The figures of a paper, in all of which an agent has the same style, whichever of their panels are drawn."""
    labels = [label for figure in figures for panel in figure.panels for label in panel.agents]
    return [replace(figure, order=list(dict.fromkeys(labels))) for figure in figures]
