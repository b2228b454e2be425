"""Pictures that move, of one episode, and pages that are files: a race, a game, the report of an evaluation."""

from .play_page import game
from .race_page import race
from .report_page import report
from .watching import watch

__all__ = ["game", "race", "report", "watch"]
