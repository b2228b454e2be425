"""Certificates near their limit: cases whose error probability is close to delta, found without simulating for long.

PYTHONPATH=tests/support python tests/campaigns/delta_limits.py     all cases; the default tests have some

The probability that a certificate is ever wrong is an average, under the alternatives of its mixture, of the likelihood
ratio of the truth and the mixture when it is made (Siegmund, Annals of Statistics 1976). Under these it is made nearly
always, and the ratio is then close to delta / K, so that a few hundred courses tell the average to a per
cent. A constant too small by a factor of 1.5 is as good as a delta larger by as much: with that, the limit is broken.

Whoever pulls an arm until it is certified, one way or the other, and then turns to the next one, gives each alternative
its chance: with K arms next to the threshold, delta is all but spent.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from derivations import BOTH, RHOS, SIDED, WEIGHTS, arm
from scipy import special

from bandit_envs import BestArm, Feasible, Threshold

RUNS, LOOKS, TOGETHER = 240, 12_000, 40  # courses, times at which each is looked at, courses at a time
DELTA, RHO = 0.1, 3000.0
CLOSE = 1e-7  # how far an arm is from the threshold, in units of sigma
TOO_SMALL = 1.5


def log_mixture(pulls: Any, far: Any, rho: float, D: int) -> Any:
    """Its logarithm, also where an arm with a side does not mislead."""
    if D > 1:
        return arm(pulls, far, 1.0, rho, D)
    y = pulls * far / np.sqrt(pulls + rho)
    return y**2 / 2 + math.log(2) + special.log_ndtr(y) - 0.5 * np.log1p(pulls / rho)


def courses(generator: Any, rho: float | None, D: int) -> tuple[Any, Any, Any]:
    """Pulls (L,), means (R, L, D) of arms drawn from the alternatives, and ln of the ratio to the truth, (R, L).

    The truth is that the mean is 0; with a side, that it is `CLOSE` below it.
    """
    ends = (rho or RHOS[0]) / 30, (rho or RHOS[-1]) * 1e4
    pulls = np.unique(np.round(np.geomspace(*ends, LOOKS)) + 1)
    sizes, weights = (RHOS, WEIGHTS) if rho is None else ((rho,), (1.0,))
    effect = generator.standard_normal((TOGETHER, D)) / np.sqrt(generator.choice(sizes, (TOGETHER, 1), p=weights))
    effect = np.abs(effect) if D == 1 else effect
    steps = np.diff(pulls, prepend=0)[None, :, None]
    noise = generator.standard_normal((TOGETHER, len(pulls), D)) * np.sqrt(steps)
    mean = np.cumsum(noise + effect[:, None] * steps, axis=1) / pulls[:, None]
    far, shift = (mean[..., 0], CLOSE) if D == 1 else (np.linalg.norm(mean, axis=2), 0.0)
    each = [math.log(w) + log_mixture(pulls, far, r, D) for r, w in zip(sizes, weights, strict=True)]
    return pulls, mean, -shift * pulls * far - shift**2 * pulls / 2 - special.logsumexp(each, axis=0)


def wrong(problem: Any, K: int, delta: float, rho: float | None, d: int = 1, D: int = 1) -> tuple[float, float]:
    """The probability that one of K arms is ever certified wrongly, each pulled until it is certified; its error.

    With one number for each sample, d = 1, which is every coordinate of it, an arm is put into the answer, else left
    out.
    """
    generator, found = np.random.default_rng(7), []
    certifier, inside = problem.certifier(K, D, rho=rho, dependent=d < D), int(d == 1)
    for _ in range(RUNS // TOGETHER):
        pulls, mean, ratio = courses(generator, rho, d)
        rows = ratio.size
        T, m = np.full((rows, K), 10**12), np.full((rows, K, D), 5.0)  # of the other arms nothing is in doubt
        T[:, 0], m[:, 0] = np.tile(pulls, TOGETHER), mean.reshape(rows, d)
        m = m[..., 0].copy() if D == 1 else m
        value = certifier.alternatives(T, m, np.ones(m.shape), np.full((rows, K), inside, np.int8))[:, 0].reshape(
            ratio.shape
        )
        certified = (value >= math.log(1 / delta)) & ((mean[..., 0] > 0) | (d > 1))
        first = certified.argmax(axis=1)
        found.append(np.where(certified.any(axis=1), np.exp(ratio[np.arange(TOGETHER), first]), 0.0))
    one = np.concatenate(found)
    return 1 - (1 - float(one.mean())) ** K, K * float(one.std()) / math.sqrt(RUNS)


def two_arms() -> tuple[float, float, float]:
    """The same of two equal arms that are pulled in turn, at delta and at `TOO_SMALL` times it; the error of the first.

    Their value is the least over all means at which they could be equal.
    """
    generator, found = np.random.default_rng(1), np.empty((2, RUNS))
    pulls = np.unique(np.round(np.geomspace(RHO / 30, RHO * 1e4, LOOKS)) + 1)
    steps, certifier = np.diff(pulls, prepend=0)[None, :, None], BestArm().certifier(2, rho=RHO)
    T = np.repeat(np.tile(pulls, TOGETHER)[:, None], 2, axis=1).astype(np.int64)
    for done in range(0, RUNS, TOGETHER):
        effect = generator.standard_normal((TOGETHER, 2)) / math.sqrt(RHO)
        effect = np.where(generator.random((TOGETHER, 1)) < SIDED, np.abs(effect), effect) * [1, -1]
        noise = generator.standard_normal((TOGETHER, len(pulls), 2)) * np.sqrt(steps)
        mean = np.cumsum(noise + effect[:, None] * steps, axis=1) / pulls[:, None]
        sided = log_mixture(pulls[:, None], mean * [1, -1], RHO, 1).sum(axis=2)
        plain = log_mixture(pulls, np.linalg.norm(mean, axis=2), RHO, 2)
        ratio = -np.logaddexp(math.log(SIDED) + sided, math.log(BOTH) + plain)
        m, A = mean.reshape(-1, 2).copy(), np.tile(np.array([1, 0], np.int8), (len(T), 1))
        value = certifier.alternatives(T, m, np.ones(m.shape), A)[:, 0].reshape(ratio.shape)
        for which, delta in enumerate((DELTA, TOO_SMALL * DELTA)):
            certified = (value >= math.log(1 / delta)) & (mean[..., 0] > mean[..., 1])
            first = np.exp(ratio[np.arange(TOGETHER), certified.argmax(axis=1)])
            found[which, done : done + TOGETHER] = np.where(certified.any(axis=1), first, 0.0)
    rate, larger = found.mean(axis=1)
    return float(rate), float(larger), float(found[0].std()) / math.sqrt(RUNS)


CASES: dict[str, tuple[Any, int, int, int]] = {  # problem, arms, numbers for each sample, dimensions
    "1 arm": (Threshold(0.0), 1, 1, 1),
    "3 arms": (Threshold(0.0), 3, 1, 1),
    "dependent": (Feasible([[-0.6, 0.0, -0.8]], [0.0]), 2, 1, 3),  # coordinates that are one and the same
    "2 dimensions": (Feasible([[1, 0], [0, 1], [-1, 0], [0, -1]], [1e-12] * 4), 2, 2, 2),
    "3 dimensions": (Feasible([*np.eye(3), *-np.eye(3)], [1e-12] * 6), 2, 3, 3),
}


def check(case: str) -> tuple[float, float]:
    """Rates of .09 at delta = .1, standard errors below .0012: a limit at delta is broken by chance once in 10^15."""
    problem, K, d, D = CASES[case]
    p, error = wrong(problem, K, DELTA, RHO, d, D)
    larger, _ = wrong(problem, K, TOO_SMALL * DELTA, RHO, d, D)
    assert error < 0.0012, case
    assert 0.87 * DELTA < p <= DELTA < larger - 10 * error, case
    return p, larger


if __name__ == "__main__":
    for name in CASES:
        print(f"{name:<14} {check(name)[0]:.4f} at {DELTA}, {check(name)[1]:.4f} at {TOO_SMALL} times as much")
