"""Episodes in compiled code: pulls, samples, and whole episodes of a kernel."""

from __future__ import annotations

from .arrays import BLOCK, ENDED, LIVE, Simulation
from .playing import Playing, Quiet, block_of_pulls, open_block, player, pull, pull_once, quiet_until, spend
from .sampling import enter, join
from .simulator import MOST_TIMES

__all__ = [
    "BLOCK", "ENDED", "LIVE", "MOST_TIMES", "Playing", "Quiet", "Simulation", "block_of_pulls", "enter",
    "join", "open_block", "player", "pull", "pull_once", "quiet_until", "spend",
]  # fmt: skip
