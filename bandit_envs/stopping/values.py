"""The statistic of an alternative: the logarithm of the evidence beyond the boundary, before alternatives are counted.

Most boundaries take a penalty off the cost for each arm of the alternative. Gaussian (sub-Gaussian) arms have one
mixture of likelihood ratios for the whole alternative (docs/certificates-theory.md has the proof): of the scales rho of
`RHOS`, with the weights `SHARES`, of which the pulls choose one; with it an arm weighs N^2 / (N + rho), and costs
1/2 ln(1 + N / rho). Its factors for sides are 1 + erf(sqrt(c)) of one arm, c the cost of the move, and of a pair
4 c / (c + q) d / (d + q), c and d its two shares of the cost, q = `SOFT`; `BOTH` of the weight has both sides.

Bernoulli arms are sub-Gaussian with sigma = 1/2 too: both mixtures share the weight, as `LIKELIHOOD` says.
"""

import math

from ..kernels.compiled import inlined, part
from .boundaries import BOUNDARY, MIXTURE, RHO_AT, distribution_of
from .distributions import BERNOULLI, GAUSSIAN, STUDENT, Arm, arm_cost, pair_cost
from .versions import version

RHOS = (3.0, 30.0, 300.0, 3000.0, 30000.0)
SHARES = (0.15, 0.2, 0.3, 0.2, 0.15)  # they sum to 1
EDGE = 40.0  # pulls per rho from which on the next rho is taken
SOFT, BOTH = 0.15, 0.1
LIKELIHOOD = 0.7  # of Bernoulli arms; the rest is for the sub-Gaussian mixture

gaussian_cost, gaussian_arm = (version(one, distribution=GAUSSIAN) for one in (pair_cost, arm_cost))


@inlined
def scale(rho, N):
    """The rho of an alternative whose arm with the fewest pulls has N, and its weight; rho itself where given, > 0."""
    if rho > 0.0:
        return rho, 1.0
    found, share = RHOS[0], SHARES[0]
    for r in range(1, len(RHOS)):
        found, share = (RHOS[r], SHARES[r]) if EDGE * RHOS[r - 1] < N else (found, share)
    return found, share


@part
def sub_gaussian_arm(numbers, N, v, gap, D):
    """The value of moving an arm of N > 0 pulls so far, D dimensions being free; more than one have no sides."""
    rho, share = scale(numbers[RHO_AT], N)
    cost = 0.5 * gap * gap * N * (N / (N + rho)) / v
    factor = 1.0 + math.erf(math.sqrt(cost)) if D == 1.0 else 1.0
    return cost + math.log(share * factor) - 0.5 * D * math.log1p(N / rho)


@inlined
def shared_cost(rho, lower, raised, move):
    """The cost of a pair, as arms weigh in the mixture of one rho, and its two shares; there is no floor."""
    x, w, a = lower.weight, raised.weight, move.a
    more, most = x + rho, w + rho
    s, t = lower.scale * more * w * w, a * a * raised.scale * most * x * x  # in proportion to the shares of the arms
    part, gap = 1.0 / (s + t), max(lower.mean - a * raised.mean - move.b, 0.0)
    cost = 0.5 * gap * gap * x * x * w * w * part
    return cost, cost * s * part, cost * t * part


@inlined
def mixed(rho, share, x, w, c, d):
    """Three numbers f, g, h: the mixture is worth ln(f / (g sqrt(h))) more than the cost; c and d: its shares."""
    soft = (c + SOFT) * (d + SOFT)
    factor = share * max(4.0 * (1.0 - BOTH) * c * d, BOTH * soft)
    return factor * rho, soft, (x + rho) * (w + rho)


@part
def sub_gaussian_pair(numbers, lower, raised, move):
    """The value of a `Move`, of arms of positive weights."""
    x, w, v = lower.weight, raised.weight, raised.scale
    rho, share = scale(numbers[RHO_AT], min(x, w))
    if raised.mean >= move.floor:
        cost, c, d = shared_cost(rho, lower, raised, move)
    else:
        less, fewer = Arm(lower.mean, x * x / (x + rho), lower.scale, 0.0), Arm(raised.mean, w * w / (w + rho), v, 0.0)
        cost, y = gaussian_cost(GAUSSIAN, less, fewer, move)
        d = gaussian_arm(GAUSSIAN, w * w / (w + rho), raised.mean, v, y)
        c = max(cost - d, 0.0)
    f, g, h = mixed(rho, share, x, w, c, d)
    return cost + math.log(f / (g * math.sqrt(h)))


@part
def arm_value(numbers, w, m, v, p, mu, D=1.0):
    """The value of moving an arm of weight w, mean m, scale v and penalty p to mu; m itself: it need not be moved.

    D: dimensions of the alternatives, of Gaussian arms.
    """
    distribution = distribution_of(numbers)
    if numbers[BOUNDARY] != MIXTURE or distribution == STUDENT or w <= 0.0:
        return arm_cost(distribution, w, m, v, mu) - p
    if distribution == GAUSSIAN:
        return sub_gaussian_arm(numbers, w, v, m - mu, D)
    exact = arm_cost(distribution, w, m, v, mu) - p + math.log(LIKELIHOOD)
    return max(exact, sub_gaussian_arm(numbers, w, 0.25, m - mu, 1.0) + math.log(1.0 - LIKELIHOOD))


@part
def bernoulli_value(numbers, value, lower, raised, move):
    """The value of a `Move` of two Bernoulli arms, from the cost less the penalties."""
    if numbers[BOUNDARY] != MIXTURE or lower.weight <= 0.0 or raised.weight <= 0.0:
        return value
    less, more = Arm(lower.mean, lower.weight, 0.25, 0.0), Arm(raised.mean, raised.weight, 0.25, 0.0)
    other = sub_gaussian_pair(numbers, less, more, move)
    return max(value + math.log(LIKELIHOOD), other + math.log(1.0 - LIKELIHOOD))


@part
def pair_value(numbers, lower, raised, move):
    """The value of the cheapest `Move` of two arms, see `pair_cost`; numbers: of the distribution and the boundary."""
    distribution = distribution_of(numbers)
    mixture = numbers[BOUNDARY] == MIXTURE
    if distribution == GAUSSIAN and mixture and lower.weight > 0.0 and raised.weight > 0.0:
        return sub_gaussian_pair(numbers, lower, raised, move)
    cost, _ = pair_cost(distribution, lower, raised, move)
    value = cost - (lower.penalty + raised.penalty)
    return bernoulli_value(numbers, value, lower, raised, move) if distribution == BERNOULLI else value
