"""Pictures that move, of one episode, and pages that are files: a race of agents, the report of an evaluation."""

from .race_page import race
from .report_page import report
from .watching import watch

__all__ = ["race", "report", "watch"]
