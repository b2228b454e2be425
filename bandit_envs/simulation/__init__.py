"""Episodes in compiled code: pulls, samples, and whole episodes of a kernel."""

from __future__ import annotations

from .playing import BLOCK, Block, Playing, Quiet, block_of_pulls, player, pull, pull_once, spend
from .sampling import enter
from .simulator import ENDED, LIVE, MOST_TIMES, Simulation

__all__ = [
    "BLOCK", "Block", "ENDED", "LIVE", "MOST_TIMES", "Playing", "Quiet", "Simulation", "block_of_pulls", "enter",
    "player", "pull", "pull_once", "spend",
]  # fmt: skip
