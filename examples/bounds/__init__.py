"""What any policy can reach within a budget, for Bernoulli arms whose means are drawn from a Beta distribution.

`best` is exact, by dynamic programming over the states of all arms together, for few arms and pulls, and `reached` is
what an agent loses, by the same states. `relaxed` is a lower bound for any number of both, on Threshold.
"""

from .exact import best, reached
from .relaxation import relaxed

__all__ = ["best", "reached", "relaxed"]
