"""Episodes in compiled code: pulls, samples, and whole episodes of a kernel."""

from .arrays import AHEAD, BLOCK, ENDED, LIVE, Simulation
from .playing import Playing, Quiet, block_of_pulls, draw_ahead, open_block, player, pull, pull_once, quiet_until, spend
from .sampling import enter, join, statistics
from .simulator import MOST_TIMES

__all__ = [
    "AHEAD", "BLOCK", "ENDED", "LIVE", "MOST_TIMES", "Playing", "Quiet", "Simulation", "block_of_pulls", "draw_ahead",
    "enter", "join", "open_block", "player", "pull", "pull_once", "quiet_until", "spend", "statistics",
]  # fmt: skip
