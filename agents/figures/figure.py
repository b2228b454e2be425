"""A figure of a paper as a declaration: panels of agents on instances, and what the paper claims of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .claims import AnyClaim
from .panels import AnyPanel, Transform

__all__ = ["Figure", "alike"]


@dataclass(frozen=True)
class Figure:
    """A figure: its panels, what is drawn, and what the paper claims.

    Attributes:
        name: the name by which the command line knows it.
        source: the paper and the number of the figure.
        panels: what is run and drawn.
        claims: what is tested on the results.
        transform: applied to the means and limits before they are drawn, given the number of arms K.
        order: labels of agents; the style of an agent is that of its place here. Agents that are not named come behind.
    """

    name: str
    source: str
    panels: Sequence[AnyPanel[Any]]
    claims: Sequence[AnyClaim]
    transform: Transform = lambda mean, K: mean
    order: Sequence[str] = ()


def alike(figures: Sequence[Figure]) -> list[Figure]:
    """The figures of a paper, in all of which an agent has the same style, whichever of their panels are drawn."""
    labels = [label for figure in figures for panel in figure.panels for label in panel.labels]
    return [replace(figure, order=list(dict.fromkeys(labels))) for figure in figures]
