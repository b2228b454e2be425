"""Literal twins of the thresholding agents: the papers' pseudo-code, as plainly as possible, one generator each.

A twin yields the arm it pulls, is sent the sample, and returns its answer, a set of arms. `margin` is the signed
distance of a mean from the boundary: m - theta for a threshold. `TWINS` names them as `agents.make` does.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Generator
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import special
from twins_all_good import as_twin as as_twin
from twins_all_good import follow as follow
from twins_all_good import play as play

from bandit_envs.kernels import rng

Twin = Generator[int, Any, "set[int]"]
Margin = Callable[[Any], float]


def _pulling(K: int, budget: int, margin: Margin, choose: Callable[[int, list[int], list[Any]], int]) -> Twin:
    """Pulls what `choose` says of t, the numbers of pulls and the totals."""
    total: list[Any] = [0.0] * K
    T = [0] * K
    for t in range(budget):
        arm = choose(t, T, total)
        total[arm] = total[arm] + (yield arm)
        T[arm] += 1
    return {i for i in range(K) if T[i] > 0 and margin(total[i] / T[i]) >= 0}


def _least(K: int, budget: int, margin: Margin, index: Callable[[int, Any], float]) -> Twin:
    """Every arm once, then the one with the least index, a function of its pulls and its mean; the lowest of these."""

    def choose(t: int, T: list[int], total: list[Any]) -> int:
        return t if t < K else min(range(K), key=lambda i: index(T[i], total[i] / T[i]))

    return _pulling(K, budget, margin, choose)


def uniform(K: int, budget: int, margin: Margin) -> Twin:
    """Tao et al. 2019, section 5: pulls the arms 1 to K one after the other until the budget is spent."""
    return _pulling(K, budget, margin, lambda t, *_: t % K)


def random(K: int, budget: int, margin: Margin, public_seed: int, seed: int = 0) -> Twin:
    """An arm with probability 1/K each; the t-th draw is a function of the episode's word, the agent's seed, and t."""

    def choose(t: int, *_: Any) -> int:
        return math.floor(K * rng.agent_uniforms(np.array([public_seed]), np.array([t]), seed=seed)[0, 0])

    return _pulling(K, budget, margin, choose)


def lsa(K: int, budget: int, margin: Margin, alpha: float = 1.35) -> Twin:
    """Tao et al. 2019, Algorithm 1."""
    return _least(K, budget, margin, lambda n, mean: alpha * n * margin(mean) ** 2 + 0.5 * math.log(n))


def apt(K: int, budget: int, margin: Margin, tolerance: float = 0.0) -> Twin:
    """Locatelli et al. 2016, Algorithm 1."""
    return _least(K, budget, margin, lambda n, mean: math.sqrt(n) * (abs(margin(mean)) + tolerance))


def ucbe(K: int, budget: int, margin: Margin, a: float) -> Twin:
    """Tao et al. 2019, section 5: argmin gap_i - sqrt(a / T_i)."""
    return _least(K, budget, margin, lambda n, mean: abs(margin(mean)) - math.sqrt(a / n))


def opt_kg(
    K: int,
    budget: int,
    above: Callable[[Any, Any], Any],
    prior: tuple[Any, Any] = (1, 1),
    tie: Any = 0,
    least: float = 0,
) -> Twin:
    """Chen et al. 2015, Algorithm 1, with I(a, b) = `above`, the probability that Beta(a, b) is at least theta.

    Gains within a factor 1 - `tie` of the largest are ties. The twin gives up, and returns nothing, when the largest
    gain is below `least`.
    """

    def h(x: Any) -> Any:
        return max(x, 1 - x)

    a, b = [prior[0]] * K, [prior[1]] * K
    for _ in range(budget):
        now = [h(above(a[i], b[i])) for i in range(K)]
        R = [max(h(above(a[i] + 1, b[i])), h(above(a[i], b[i] + 1))) - now[i] for i in range(K)]
        if max(R) < least:
            return set()
        arm = next(i for i in range(K) if R[i] >= max(R) * (1 - tie))
        if (yield arm) == 1:
            a[arm] += 1
        else:
            b[arm] += 1
    return {i for i in range(K) if above(a[i], b[i]) >= 0.5}


def by_betaincc(threshold: float) -> Callable[[float, float], float]:
    """I(a, b) in floating point."""
    return functools.cache(lambda a, b: float(special.betaincc(a, b, threshold)))


def by_fractions(threshold: Fraction) -> Callable[[int, int], Fraction]:
    """I(a, b) exactly, for whole a and b: Beta(a, b) >= theta where at most a - 1 of a + b - 1 uniforms are < theta."""

    @functools.cache
    def above(a: int, b: int) -> Fraction:
        n, p = a + b - 1, threshold
        return sum((math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(a)), Fraction(0))

    return above


def dp_indices(above: Callable[[int, int], Fraction], horizon: int) -> dict[tuple[int, int], Fraction]:
    """The index of each posterior Beta(a, b) from a uniform prior after n < horizon pulls, exactly.

    The largest (L(a, b) - E L(at the end)) / E(pulls) over stopping rules that pull at least once and stop at the
    horizon: at the best ratio, the best rule against a price of that ratio saves nothing. Dinkelbach's iteration.
    """

    def loss(a: int, b: int) -> Fraction:
        return min(above(a, b), 1 - above(a, b))

    def best(a: int, b: int, price: Fraction, must: bool) -> tuple[Fraction, Fraction, Fraction]:
        """Least loss + price * pulls from here on, and the two apart."""
        stop = (loss(a, b), loss(a, b), Fraction(0))
        if a + b - 2 == horizon:
            return stop
        p = Fraction(a, a + b)
        hit, miss = best(a + 1, b, price, False), best(a, b + 1, price, False)
        on = tuple(p * x + (1 - p) * y + extra for x, y, extra in zip(hit, miss, (price, 0, 1), strict=True))
        return on if must or on[0] < stop[0] else stop  # type: ignore[return-value]

    indices = {}
    for n in range(horizon):
        for s in range(n + 1):
            a, b, price, last = s + 1, n - s + 1, Fraction(0), None
            while price != last:
                last = price
                _, end, pulls = best(a, b, price, True)
                price = max((loss(a, b) - end) / pulls, price)
            indices[a, b] = price
    return indices


def evolved(
    K: int, budget: int, margin: Margin, parameters: list[float], sigma: float, centre: float | None = None
) -> Twin:
    """The formula at the head of agents/evolved/index.py; centre: the threshold, where arms are Bernoulli."""
    alpha, beta, rho, kappa, gamma, delta, eta, mu, *hidden = parameters
    # exp and log as in the agent: another rounding would decide otherwise between arms that are mirror images.
    nu = abs(kappa) * math.exp(mu * (math.log(budget / K) - math.log(100)))

    def kl(m: float, b: float) -> float:
        return sum(p * math.log(p / q) for p, q in ((m, b), (1 - m, 1 - b)) if p > 0)

    def index(n: int, mean: float) -> float:
        d = margin(mean) * n / (n + nu)
        w = n * d * d / (2 * sigma**2)
        if centre is not None:
            r = min(max(rho, 0.0), 1.0)
            w += r * (n * kl(min(max(centre + d, 0.0), 1.0), centre) - w)
        value = (
            alpha * w
            + (beta + eta * math.log(budget / (100 * K))) * math.log(n)
            + gamma * (math.log(n * w + abs(delta) + 0.001) - math.log(n))
        )
        for c, p, q, r, s in (hidden[:5], hidden[5:]):
            x = p * math.log(1 + w) + q * math.log(n) + r * (math.log(n) - math.log(budget / K)) + s
            value += c * x / (1 + abs(x))
        return value

    return _least(K, budget, margin, index)


def by_index(K: int, budget: int, indices: Callable[[int, int], float]) -> Twin:
    """Pulls the arm whose posterior has the largest index, the lowest of those; uniform prior, threshold 1/2."""
    a, b = [1] * K, [1] * K
    for _ in range(budget):
        arm = max(range(K), key=lambda i: indices(a[i], b[i]))
        if (yield arm) == 1:
            a[arm] += 1
        else:
            b[arm] += 1
    return {i for i in range(K) if a[i] + b[i] > 2 and a[i] >= b[i]}


TWINS: dict[str, Callable[..., Twin]] = {
    "uniform": uniform,
    "random": random,
    "lsa": lsa,
    "apt": apt,
    "ucbe": ucbe,
    "opt-kg": opt_kg,
    "dp-index": by_index,
    "evolved": evolved,
}
