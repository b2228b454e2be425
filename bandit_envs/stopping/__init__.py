"""Evidence against the nearest instance on which an answer is wrong, and certificates that come of it."""

from __future__ import annotations

from .asking import counted_arms
from .authors import own_numbers, pair_alternative, report_pair
from .betting import adapted
from .boundaries import (
    COMMON,
    D_AT,
    DISTRIBUTION,
    DOUBT,
    LEVELS_SCRATCH,
    PRIOR,
    RHO,
    VARIANCE,
    arm_penalty,
    enough,
)  # fmt: skip
from .bounds import Arms, pair_bounds
from .certifier import Certifier, common, level_of, nearest_alternative, with_moments
from .claims import certified_pairs
from .control import HOPED_AT, comparison_value
from .distributions import BERNOULLI, BOUNDED, GAUSSIAN, PAIRED, STUDENT, Arm, Move, arm_cost, divergence, pair_cost
from .intervals import arm_intervals, column_intervals
from .values import arm_value, bernoulli_value, pair_value
from .versions import the_distribution, the_kind, version

LEVELS_ROOM, nearest_way = LEVELS_SCRATCH, nearest_alternative  # their old names

__all__ = [
    "BERNOULLI", "BOUNDED", "COMMON", "DOUBT", "PRIOR", "VARIANCE",
    "D_AT", "GAUSSIAN", "DISTRIBUTION", "HOPED_AT", "LEVELS_SCRATCH", "PAIRED", "RHO", "STUDENT",
    "Arm", "Arms", "Certifier", "Move",
    "adapted", "arm_cost", "arm_penalty", "arm_value", "bernoulli_value", "certified_pairs", "common",
    "comparison_value", "counted_arms", "divergence",
    "enough", "arm_intervals", "column_intervals", "level_of",
    "nearest_alternative", "own_numbers", "pair_alternative", "pair_bounds",
    "pair_cost", "pair_value", "report_pair", "the_distribution", "the_kind", "version", "with_moments",
]  # fmt: skip
