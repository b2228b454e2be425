"""The numbers behind guarantees, derived again: from the text of docs/certificates-theory.md, by none of its code."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import optimize, special

RHOS, WEIGHTS = (3, 30, 300, 3000, 30000), (0.15, 0.2, 0.3, 0.2, 0.15)
MOST_PULLS = 40  # per rho
SIDED, BOTH = 0.9, 0.1  # weights of a pair's mixtures with sides and without
SOFT = 0.15
LIKELIHOOD = 0.7  # weight of the uniform mean among Bernoulli arms


def term(N: float, rho: float | None = None) -> tuple[float, float]:
    """rho and its weight, where the arm with the fewest pulls has N; a rho that is given has all of the weight."""
    if rho is not None:
        return rho, 1.0
    which = next((i for i, one in enumerate(RHOS) if MOST_PULLS * one >= N), len(RHOS) - 1)
    return RHOS[which], WEIGHTS[which]


def arm(N: Any, gap: Any, sigma: float, rho: float, D: int = 1) -> Any:
    """ln of the mixture of N(0, sigma^2 / rho) alternatives of an arm whose mean is off by a gap; D = 1: its side."""
    c = (N * np.asarray(gap) / sigma) ** 2 / (2 * (N + rho))
    return c + (np.log1p(special.erf(np.sqrt(c))) if D == 1 else 0.0) - D / 2 * np.log1p(N / rho)


def pair(N: float, M: float, gap: float, sigma: float = 1.0, rho: float | None = None, a: float = 1.0) -> float:
    """The value of a pair of N and M pulls whose means are to meet mu_i <= a mu_j + b, and miss that by a gap > 0."""
    rho, share = term(min(N, M), rho)
    one, other = (N + rho) / N**2, a * a * (M + rho) / M**2  # inverse weights
    cost = (gap / sigma) ** 2 / (2 * (one + other))
    c, d = cost * one / (one + other), cost * other / (one + other)
    sides = max(SIDED * 4 * c / (c + SOFT) * d / (d + SOFT), BOTH)
    return cost + math.log(share * sides) - 0.5 * (math.log1p(N / rho) + math.log1p(M / rho))


def swaps(N: Sequence[float], gap: float, sigma: float = 1.0, rho: float = 300.0) -> float:
    """The value of arms of N pulls each, the sum of whose means, with signs, is to change by a gap."""
    weights = [n * n / (n + rho) for n in N]
    return (gap / sigma) ** 2 / (2 * sum(1 / w for w in weights)) - sum(0.5 * math.log1p(n / rho) for n in N)


def kaufmann_gaussian(x: float, arms: int = 1) -> float:
    """|S| C^g(x / |S|) of Kaufmann & Koolen, JMLR 2021, Theorem 9: the least over lambda on a fine grid."""
    y = np.linspace(0.5, 1.0, 200_003)[1:-1]
    g = 2 * y - 2 * y * np.log(4 * y) + np.log(special.zeta(2 * y)) - 0.5 * np.log(1 - y)
    return float(arms * ((g + x / arms) / y).min())


def kaufmann_exponential(x: float, arms: int = 1) -> float:
    """|S| T(x / |S|) of Kaufmann & Koolen, JMLR 2021, (15) to (17): h(u) = u - ln u, and h~ its tangent, z = 3/2."""

    def inverse(y: float) -> float:
        return float(optimize.brentq(lambda u: u - math.log(u) - y, 1, 3 * y + 3, xtol=1e-14))

    x, z = x / arms, 1.5
    y = (inverse(1 + x) + math.log(2 * special.zeta(2))) / 2
    if y >= 1 / math.log(z) - math.log(1 / math.log(z)):
        return float(arms * 2 * math.exp(1 / inverse(y)) * inverse(y))
    return float(arms * 2 * z * (y - math.log(math.log(z))))


# --- alternatives -----------------------------------------------------------------------------------------------------


def means_of(K: int, top: int) -> list[tuple[int, ...]]:
    """All falling vectors of K integers from 0 to top."""
    return [m[::-1] for m in itertools.combinations_with_replacement(range(top + 1), K)]


def fewest_pairs(mu: Sequence[int], k: int, epsilon: int) -> int:
    """The fewest pairs of arms of which every wrong answer of k arms takes one and leaves out the other, better one.

    Better is: by epsilon at least, since that is what is excluded. An answer is wrong that is not the best, or if
    epsilon > 0, that holds an arm more than epsilon below the k-th best. By an integer program, a minimal hitting set.
    """
    K, ranked = len(mu), sorted(mu, reverse=True)
    wrong = []
    for answer in itertools.combinations(range(K), k):
        taken = [mu[i] for i in answer]
        if sum(taken) < sum(ranked[:k]) if epsilon == 0 else min(taken) < ranked[k - 1] - epsilon:
            wrong.append(set(answer))
    pairs = [(i, j) for i, j in itertools.permutations(range(K), 2) if mu[j] - mu[i] >= epsilon]
    if not wrong:
        return 0
    rows = np.array([[i in answer and j not in answer for i, j in pairs] for answer in wrong], float)
    found = optimize.milp(
        np.ones(len(pairs)),
        constraints=optimize.LinearConstraint(rows, 1),
        integrality=np.ones(len(pairs)),
        bounds=optimize.Bounds(0, 1),
    )
    return round(found.fun)


Claim = tuple[str, int, int]  # how it is made, the arm that is claimed to be better, and the other one


def false_claims(mu: Sequence[int], epsilon: int) -> set[Claim]:
    """The claims of AllGood that the truth names and refutes; s is the best arm.

    ("in", i, s): i is within epsilon + slack of s, of a bad i. ("one", j, i): j is clearly better, of a good i. ("all",
    s, i): the same of j = s alone. ("best", h, s): h is better than s; ("all", h, s): clearly so, to leave out s.
    """
    arms, s = range(len(mu)), max(range(len(mu)), key=lambda i: (mu[i], -i))
    good = [i for i in arms if mu[s] - mu[i] <= epsilon]
    return (
        {("in", i, s) for i in arms if i not in good}
        | {("one", j, i) for i in good for j in arms if j != i}
        | {("all", s, i) for i in good if i != s}
        | {(kind, h, s) for kind in ("all", "best") for h in arms if h != s}
    )


def can_be_wrong(mu: Sequence[int], epsilon: int, slack: int, refuted: set[Claim]) -> bool:
    """Whether a wrong answer of AllGood can be certified by claims that are not refuted, whatever arm looks best."""
    arms, top = range(len(mu)), max(mu)

    def made(*claim: Any) -> bool:
        return claim not in refuted

    for answer, h in itertools.product(itertools.product((False, True), repeat=len(mu)), arms):
        certified = all(
            all(made("in", i, j) for j in arms if j != i)
            if answer[i]
            else any(made("one", j, i) for j in arms if j != i)
            or i != h
            and all(made("all", j, i) or j != h and made("best", h, j) for j in arms if j != i)
            for i in arms
        )
        wrong = any(mu[i] < top - epsilon - slack if answer[i] else mu[i] >= top - epsilon for i in arms)
        if certified and wrong:
            return True
    return False


def spent(claims: set[Claim], numbers: Sequence[float]) -> float:
    """The part of delta that claims take, each kind 1 / number: of those on one pair in one direction, the largest.

    They rest on one and the same supermartingale, that of the true means.
    """
    shares = dict(zip(("in", "one", "all", "best"), (1 / n for n in (*numbers, numbers[-1])), strict=True))
    most: dict[tuple[int, int], float] = {}
    for kind, up, down in claims:
        most[up, down] = max(most.get((up, down), 0.0), shares[kind])
    return sum(most.values())
