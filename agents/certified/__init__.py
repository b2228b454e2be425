"""Agents that sample by the evidence against the nearest wrong instance, and stop when their answer is certified.

`class Own(Algorithm, certified=True)` with a sampling rule of one's own is such an agent, see docs/own-agent.md.
"""

import importlib
from typing import Any

from .policy import CertifiedAlgorithm, closest, held, lacking

__all__ = ["CertifiedAlgorithm", "closest", "held", "lacking"]


def __getattr__(name: str) -> Any:
    """The names of the form of 0.2.0."""
    if name in ("CertifiedPolicy", "sampling_rule"):
        return getattr(importlib.import_module("agents.earlier"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
