"""Evidence against the nearest instance on which an answer is wrong, and certificates that come of it."""

from .asking import counted_arms
from .authors import own_numbers, pair_alternative, report_pair
from .betting import BETS, SHARES, adapted
from .boundaries import (
    BOUNDARY,
    COMMON,
    D_AT,
    DISTRIBUTION,
    DOUBT,
    KAUFMANN,
    LEVELS_SCRATCH,
    MIXTURE,
    PAIRS_AT,
    PRIOR,
    RHO,
    VARIANCE,
    arm_penalty,
    enough,
)
from .bounds import Arms, pair_bound, pair_bounds
from .certifier import Certifier, common, level_of, nearest_alternative, with_moments
from .control import HOPED_AT, TOLERANCE_AT, comparison_value
from .distributions import (
    BERNOULLI,
    BOUNDED,
    CODES,
    GAUSSIAN,
    PAIRED,
    STUDENT,
    Arm,
    Move,
    arm_cost,
    divergence,
    pair_cost,
)
from .intervals import arm_intervals, certified_pairs, column_intervals
from .rates import RATES, SIDED, control_intervals, discoveries, sides
from .strata import Stratified, averages, mismatch
from .values import arm_value, bernoulli_value, pair_value
from .versions import the_distribution, the_kind, the_search, version

__all__ = [
    "Arm", "Arms", "BERNOULLI", "BETS", "BOUNDARY", "BOUNDED", "CODES", "COMMON", "Certifier", "DISTRIBUTION",
    "DOUBT", "D_AT", "GAUSSIAN", "HOPED_AT", "KAUFMANN", "LEVELS_SCRATCH", "MIXTURE", "Move", "PAIRED", "PAIRS_AT",
    "PRIOR", "RATES", "RHO", "SHARES", "SIDED", "STUDENT", "Stratified", "TOLERANCE_AT", "VARIANCE", "adapted",
    "arm_cost", "arm_intervals", "arm_penalty", "arm_value", "averages", "bernoulli_value", "certified_pairs",
    "column_intervals", "common", "comparison_value", "control_intervals", "counted_arms", "discoveries",
    "divergence", "enough", "level_of", "mismatch", "nearest_alternative", "own_numbers", "pair_alternative",
    "pair_bound", "pair_bounds", "pair_cost", "pair_value", "report_pair", "sides", "the_distribution", "the_kind",
    "the_search", "version", "with_moments",
]  # fmt: skip
