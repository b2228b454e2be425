"""The generator of random numbers and what is drawn with it, compared with what they should be.

    PYTHONPATH=tests/support python tests/campaigns/randomness.py     two million draws, in tests 40,000

Statistical tests fail a right generator with probability at most LEVEL in all (Bonferroni over the tests of each kind).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rollouts import simulator
from scipy import stats

from bandit_envs import Bernoulli, Gaussian
from bandit_envs.kernels import rng

LEVEL = 1e-6


WORD = 0xFFFFFFFF


STREAMS = (rng.SAMPLE, rng.BULK, rng.INSTANCE, rng.SHUFFLE, rng.PUBLIC, rng.AGENT)


def twin(counter: Any, key: Any, rounds: int = 10) -> Any:
    """Philox4x32 as printed in the paper, for Python integers or arrays of them."""
    (a, b, c, d), (k, m) = counter, key
    for _ in range(rounds):
        p, q = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (q >> 32) ^ b ^ k, q & WORD, (p >> 32) ^ d ^ m, p & WORD
        k, m = (k + 0x9E3779B9) & WORD, (m + 0xBB67AE85) & WORD
    return a, b, c, d


AXES = ("root", "episode", "arm", "index", "stream", "draw")


SHAPE = (8, 8, 8, 8, 6, 4)  # 98 304 numbers


def lattice(rounds: int | None = None) -> np.ndarray[Any, Any]:
    """Numbers at every point of a grid of coordinates; with `rounds`, those of a Philox of so few rounds."""
    u = np.empty(SHAPE)
    roots, episodes, arms, indices, streams, draws = SHAPE
    for r in range(roots):
        for i in range(indices):
            key = np.repeat(rng.root_key(r)[:, None], episodes, axis=1)
            where, index = np.arange(episodes, dtype=np.uint64), np.full(episodes, i, np.uint64)
            for s in range(streams):
                u[r, :, :, i, s] = rng.uniforms(key, where, arms, draws, stream=STREAMS[s], index=index)
    if rounds is not None:
        r, e, a, i, s, d = np.indices(SHAPE).astype(np.uint64)
        k = np.stack([rng.root_key(root) for root in range(roots)])
        words = twin((i, a, e, s | d // 2 << 4), (k[:, 0][r.astype(int)], k[:, 1][r.astype(int)]), rounds)
        high, low = np.where(d % 2, words[2], words[0]), np.where(d % 2, words[3], words[1])
        u = ((high >> 5) * 2.0**26 + (low >> 6)) / 2.0**53
    return u


def not_uniform(u: np.ndarray[Any, Any]) -> list[str]:
    """Coordinates with a value at which the numbers are not uniform: chi-square over 64 cells, n >= 12 288."""
    slices = [(axis, j) for axis in range(6) for j in range(SHAPE[axis])]
    found = []
    for axis, j in slices:
        part = u.take(j, axis).reshape(-1)
        counts = np.bincount((part * 64).astype(int), minlength=64)
        if stats.chisquare(counts).pvalue < LEVEL / len(slices):
            found.append(f"{AXES[axis]} {j}")
    return found


def not_independent(u: np.ndarray[Any, Any]) -> list[str]:
    """Axes along which neighbours, at distances 1 to 3, depend: chi-square of 8 x 8 cells and serial correlation."""
    pairs = [(axis, lag) for axis in range(6) for lag in (1, 2, 3)]
    found = []
    for axis, lag in pairs:
        n = SHAPE[axis] - lag
        x, y = (u.take(range(start, start + n), axis).reshape(-1) for start in (0, lag))
        cells = np.bincount((x * 8).astype(int) * 8 + (y * 8).astype(int), minlength=64)
        z = 12 * ((x - 0.5) * (y - 0.5)).mean() * np.sqrt(len(x))  # normal but for terms of order 1 / n, n >= 24 576
        if min(stats.chisquare(cells).pvalue, 2 * stats.norm.sf(abs(z))) < LEVEL / (2 * len(pairs)):
            found.append(f"{AXES[axis]} + {lag}")
    return found


N = 40_000  # draws per case


COUNTS = [  # (n, p) of a binomial: inversion, rejection, both flips, the border n p = 10, degenerate
    (2, 0.5),
    (7, 0.02),
    (30, 0.3),
    (40, 0.26),
    (25, 0.4),
    (20, 0.5),
    (1000, 0.009),
    (1000, 0.5),
    (100, 0.9),
    (19, 0.97),
    (10**6, 0.3),
    (2**31 - 1, 1e-9),
    (2**31 - 1, 0.75),
    (5, 0.0),
    (5, 1.0),
]


def bulk(arms: Any, times: int, size: int = N) -> tuple[Any, Any]:
    """Sums and variances of bulk pulls of arm 0 in as many episodes."""
    sim = simulator(arms, size, root=1)
    sim.advance(np.zeros(size, np.int64), np.full(size, times))
    return sim.total[:, 0], sim.variance[:, 0]


def binomial_fit(draws: np.ndarray[Any, Any], n: int, p: float) -> float:
    """p-value of draws as Binomial(n, p): chi-square over up to 60 cells that hold at least 20 expected draws each."""
    if p in (0.0, 1.0):
        return float((draws == n * p).all())
    distribution = stats.binom(n, p)
    edges = np.unique(distribution.ppf(np.linspace(0, 1, 61)[1:-1]))
    mass = np.diff(np.concatenate([[0.0], distribution.cdf(edges), [1.0]]))
    cells = np.bincount(np.searchsorted(edges, draws), minlength=len(mass))
    while len(mass) > 1 and mass.min() * len(draws) < 20:  # join the smallest cell to a neighbour
        i = int(mass.argmin())
        j = i - 1 if i else 1
        mass[j], cells[j] = mass[j] + mass[i], cells[j] + cells[i]
        mass, cells = np.delete(mass, i), np.delete(cells, i)
    return float(stats.chisquare(cells, mass * len(draws)).pvalue) if len(mass) > 1 else 1.0


TIMES = [2, 3, 4, 10, 1000, 2**31 - 1]  # chi-square of n - 1 degrees of freedom: gamma of shape 1/2, 1, 3/2, 9/2, ...


def gaussian_fits(total: Any, variance: Any, n: int) -> list[float]:
    """p-values of the sum, the spread, and the spread's rank correlation with the sum and with its size.

    The right distribution is that of n draws from N(0.7, 2^2), whose sum and spread are independent.
    """
    z, spread = (total - 0.7 * n) / (2 * np.sqrt(n)), variance * n / 4
    ranks = [stats.spearmanr(x, spread).statistic * np.sqrt(len(z) - 1) for x in (z, np.abs(z))]  # normal for many
    fits = [stats.kstest(z, stats.norm.cdf).pvalue, stats.kstest(spread, stats.chi2(n - 1).cdf).pvalue]
    return [*map(float, fits), *(float(2 * stats.norm.sf(abs(rank))) for rank in ranks)]


def main() -> None:
    for n, p in COUNTS:
        assert binomial_fit(bulk(Bernoulli([p, 0.5]), n, 50 * N)[0], n, p) >= LEVEL / len(COUNTS), (n, p)
    for n in TIMES:
        assert min(gaussian_fits(*bulk(Gaussian([0.7, 0.0], 2.0), n, 50 * N), n)) >= LEVEL / (4 * len(TIMES)), n


if __name__ == "__main__":
    main()
