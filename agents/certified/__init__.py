"""Agents that sample by the evidence against the nearest wrong instance, and stop when their answer is certified.

`class Own(Algorithm, certified=True)` with a sampling rule of one's own is such an agent, see docs/own-agent.md.
"""

from typing import NoReturn

from ..core.former import refuse
from .policy import CertifiedAlgorithm, closest, held, lacking

__all__ = ["CertifiedAlgorithm", "closest", "held", "lacking"]


def __getattr__(name: str) -> NoReturn:
    refuse(__name__, name)
