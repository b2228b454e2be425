"""An index with a few parameters, tuned by an evolution strategy on random instances (`evolution.evolve`)."""

from .agent import Evolved

__all__ = ["Evolved"]
