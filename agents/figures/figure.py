"""A figure of a paper as a declaration: panels of agents on instances, and what the paper claims of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .claims import AnyClaim
from .panels import AnyPanel, Transform

__all__ = ["Figure"]


@dataclass(frozen=True)
class Figure:
    """A figure: its panels, what is drawn, and what the paper claims.

    Attributes:
        name: the name by which the command line knows it.
        source: the paper and the number of the figure.
        panels: what is run and drawn.
        claims: what is tested on the results.
        transform: applied to the means and limits before they are drawn, given the number of arms K.
    """

    name: str
    source: str
    panels: Sequence[AnyPanel[Any]]
    claims: Sequence[AnyClaim]
    transform: Transform = lambda mean, K: mean
