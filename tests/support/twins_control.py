"""Literal twins of the agents that compare arms with a control, as plainly as possible, one generator each.

A twin yields the arm it pulls, is sent the sample, and returns its answer, a set of arms.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from scipy import stats
from twins_all_good import Twin

PUBLISHED = {1: 1.645, 2: 1.916, 3: 2.062, 4: 2.160, 5: 2.234, 6: 2.292}  # Dunnett: one-sided .05, known variances


class Seen:
    """What arms have shown: pulls, and all samples."""

    def __init__(self, K: int) -> None:
        self.K, self.x = K, [list[float]() for _ in range(K)]

    def pull(self, i: int) -> Any:
        self.x[i].append((yield i))

    def N(self, i: int) -> int:
        return len(self.x[i])

    def m(self, i: int) -> float:
        return sum(self.x[i]) / len(self.x[i])

    @property
    def t(self) -> int:
        return sum(map(len, self.x))


def index(K: int, c: int, a: float, b: float, budget: int, share: float, rule: Callable[[float, float], float]) -> Twin:
    """Each arm once; then the control, where it has less than its share, else the arm of least rule(T, D)."""
    seen = Seen(K)
    for i in range(K):
        yield from seen.pull(i)

    def value(i: int) -> float:
        T = 1 / (1 / seen.N(i) + a * a / seen.N(c))
        return rule(T, seen.m(i) - (a * seen.m(c) + b))

    while seen.t < budget:
        lacks = seen.N(c) < share * seen.t
        yield from seen.pull(c if lacks else min((i for i in range(K) if i != c), key=value))
    return {i for i in range(K) if i != c and seen.m(i) - (a * seen.m(c) + b) > 0}


@functools.cache
def dunnett(m: int, delta: float) -> float:
    """The level of each of m tests; arms share the control: their correlation is 1 / (1 + sqrt(m))."""
    rho, low, high = 1 / (1 + math.sqrt(m)), 0.0, 6.0
    cov = [[1.0 if i == j else rho for j in range(m)] for i in range(m)]
    for _ in range(20):
        d = (low + high) / 2
        inside = stats.multivariate_normal.cdf([d] * m, cov=cov, abseps=1e-6, maxpts=10**5)
        low, high = (d, high) if inside < 1 - delta else (low, d)
    return float(stats.norm.sf(low))


def design(K: int, c: int, budget: int, delta: float, correction: str, bernoulli: bool) -> Twin:
    """A fixed design with a = 1, b = 0: the ratio sqrt(K - 1), two-sample tests, one of three corrections."""
    seen, arms = Seen(K), [i for i in range(K) if i != c]
    for i in range(K):
        yield from seen.pull(i)
    weight = [math.sqrt(K - 1) if i == c else 1.0 for i in range(K)]
    while seen.t < budget:
        yield from seen.pull(min(range(K), key=lambda i: (seen.N(i) + 0.5) / weight[i]))

    def p_of(i: int) -> float:
        if bernoulli:
            N, M = seen.N(i), seen.N(c)
            p = (sum(seen.x[i]) + sum(seen.x[c])) / (N + M)
            if p in (0, 1):
                return 1.0
            return float(stats.norm.sf((seen.m(i) - seen.m(c)) / math.sqrt(p * (1 - p) * (1 / N + 1 / M))))
        return float(stats.ttest_ind(seen.x[i], seen.x[c], equal_var=False, alternative="greater").pvalue)

    p = {i: p_of(i) for i in arms}
    m, found = len(arms), set[int]()
    if correction == "bonferroni":
        return {i for i in arms if p[i] <= delta / m}
    if correction == "dunnett":
        return {i for i in arms if p[i] <= dunnett(m, delta)}
    while len(found) < m:  # Holm: the clearest of those that are left
        i = min((i for i in arms if i not in found), key=lambda i: p[i])
        if p[i] > delta / (m - len(found)):
            break
        found.add(i)
    return found


def jamieson_jain(
    K: int,
    c: int | None,
    a: float,
    b: float,
    sigma: float,
    delta: float,
    familywise: bool,
    budget: int | None,
    tolerance: float = 0.0,
) -> Twin:
    """Their Algorithm 1 with TPR; c None: the threshold is b."""
    seen, arms = Seen(K), [i for i in range(K) if i != c]
    n, delta = len(arms), delta if c is None else delta / 2
    strict, share = delta / (6.4 * math.log(36 / delta)), 1 / (1 + math.sqrt(K - 1))
    S, R = set[int](), set[int]()

    def phi(i: int, x: float) -> float:
        y, t = math.log(1 / min(x, 0.1)), seen.N(i)
        return sigma * math.sqrt((2 * y + 6 * math.log(y) + 3 * math.log(math.log(math.e * t / 2))) / t)

    def mu_0(sign: int) -> float:
        return b if c is None else a * (seen.m(c) + sign * phi(c, delta)) + b

    for i in range(K):
        yield from seen.pull(i)
    while True:
        size = len(S)
        for k in range(n, 0, -1):
            s_k = {i for i in arms if seen.m(i) - phi(i, strict * k / n) >= mu_0(1)}
            if len(s_k) >= k:
                S |= s_k
                break
        extra = 4 / 3 * (1 + 4 * strict) * math.log(5 * math.log2(n / strict) / strict)
        chi = min(n - (1 - 2 * strict * (1 + 4 * strict)) * size + extra, n)
        R |= {i for i in S if seen.m(i) - phi(i, delta / chi) >= mu_0(1)}
        answer = R if familywise else S
        if budget is None and all(i in answer or seen.m(i) + phi(i, delta / n) < mu_0(-1) + tolerance for i in arms):
            return answer
        plan = []
        if c is not None and seen.N(c) < share * seen.t:
            plan = [c]
        else:
            for some in (set(arms) - S, S - R if familywise else set[int]()):
                plan += [max(sorted(some), key=lambda i: seen.m(i) + phi(i, delta))] if some else []
        if not plan:
            return answer
        for i in plan:
            if seen.t == budget:
                return answer
            yield from seen.pull(i)
