"""For evidence routines of one's own: alternatives that are pairs of arms, and how the nearest one is reported.

An alternative is a set of instances on which the answer is wrong: here those in which mu_i <= a mu_j + b, a > 0. Its
value is the logarithm of its GLR statistic beyond the threshold, by the distribution and the boundary that the numbers
name; docs/own-problem.md has a routine that is made of these.
"""

import math

from ..kernels.compiled import inlined, part, view
from .boundaries import BOUNDARY, COMMON, NONE, distribution_of, enough, weighed
from .contrasts import pair_evidence
from .distributions import Arm, Move
from .nearest import report_move


@view
def own_numbers(numbers):
    """The numbers that a problem has handed to `Certifier.of` itself, behind those of `common`."""
    return numbers[COMMON:]


@inlined
def arm_of(numbers, pulls, mean, variance, i):
    """Arm i, an `Arm`."""
    weight, penalty, scale = weighed(numbers, pulls, mean, variance, i)
    return Arm(mean[i], weight, scale, penalty)


@part
def pair_alternative(numbers, pulls, mean, variance, i, j, a, b):
    """The value of the alternative mu_i <= a mu_j + b, before alternatives are counted.

    With boundary="none" it is the evidence (GLR statistic) itself.

    Args:
        numbers: all that the routine is handed.
        pulls, mean, variance: (K,) of one episode.
        i, j: the arm that is lowered and the one that is raised.
        a, b: of the condition, a > 0.
    """
    lower, raised = arm_of(numbers, pulls, mean, variance, i), arm_of(numbers, pulls, mean, variance, j)
    return pair_evidence(numbers, lower, raised, Move(a, b, -math.inf))


@part
def report_pair(numbers, pulls, mean, variance, i, j, a, b, value, alternatives, out):
    """Report the nearest alternative, in the form that `nearest_alternative` promises: see there for `out`, (2 + 3 K,).

    The arm with fewer pulls comes first: it is the one that a certificate lacks, and that is pulled where an agent has
    stopped by its own rule too soon.

    Args:
        value: what `pair_alternative` has returned for i and j, the least of all. All others: as of `pair_alternative`.
        alternatives: how many there are for given true means; ln of it is the price of looking at all of them.
    """
    K, distribution = len(pulls), distribution_of(numbers)
    lower, raised = (i, arm_of(numbers, pulls, mean, variance, i)), (j, arm_of(numbers, pulls, mean, variance, j))
    out[0] = value if numbers[BOUNDARY] == NONE else enough(numbers, value, 2.0) - math.log(alternatives)
    report_move(out, K, distribution, lower, raised, Move(a, b, -math.inf), pulls[i] <= pulls[j])
