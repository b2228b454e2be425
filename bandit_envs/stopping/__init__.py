"""Evidence against the nearest instance on which an answer is wrong, and certificates that come of it."""

from __future__ import annotations

from .authors import own_numbers, pair_alternative, report_pair
from .betting import adapted
from .boundaries import D_AT, DISTRIBUTION, LEVELS_SCRATCH, RHO, arm_penalty, enough
from .bounds import pair_bounds
from .certifier import Certifier, common, level_of, nearest_alternative
from .distributions import BERNOULLI, BOUNDED, GAUSSIAN, PAIRED, STUDENT, arm_cost, divergence, pair_cost
from .values import arm_value, bernoulli_value, pair_value

LEVELS_ROOM, nearest_way = LEVELS_SCRATCH, nearest_alternative  # their old names

__all__ = [
    "BERNOULLI", "BOUNDED", "D_AT", "GAUSSIAN", "DISTRIBUTION", "LEVELS_SCRATCH", "PAIRED", "RHO", "STUDENT",
    "Certifier",
    "adapted", "arm_cost", "arm_penalty", "arm_value", "bernoulli_value", "common", "divergence", "enough", "level_of",
    "nearest_alternative", "own_numbers", "pair_alternative", "pair_bounds", "pair_cost", "pair_value", "report_pair",
]  # fmt: skip
