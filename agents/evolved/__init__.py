"""An index with a few parameters, tuned by an evolution strategy on random instances."""

from .agent import Evolved
from .evolution import evolve

__all__ = ["Evolved", "evolve"]
