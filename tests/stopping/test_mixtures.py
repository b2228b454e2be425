"""The mixtures behind certificates: their averages under the truth, and values that never exceed them.

A certificate is valid because exp(value), at the true means, is no more than a mixture of likelihood ratios, whose
average is 1 at most at any number of pulls. Averages are numerical integrals and exact sums: nothing is drawn.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from derivations import BOTH, LIKELIHOOD, MOST_PULLS, RHOS, SIDED, SOFT, WEIGHTS, arm, pair, term
from scipy import integrate, special, stats

from bandit_envs import BestArm, Feasible, Threshold, TopK
from bandit_envs.stopping import boundaries, swaps, values

PULLS = [1, 17, 120, 121, 1200, 12_001, 120_001, 3 * 10**7]
SIGMA = 0.7


def values_of(problem: Any, pulls: Any, mean: Any, inside: Any, variance: Any = None, **options: Any) -> Any:
    """-ln of the levels of answers, (E,); pulls and answers are those of all episodes, means (E, K) or (E, K, D)."""
    m = np.ascontiguousarray(mean, np.float64)
    E, K = m.shape[:2]
    T = np.ascontiguousarray(np.broadcast_to(np.asarray(pulls, np.int64), (E, K)))
    A = np.ascontiguousarray(np.broadcast_to(np.asarray(inside, np.int8), (E, K)))
    v = np.ones(m.shape) if variance is None else np.ascontiguousarray(variance, np.float64)
    options = {"boundary": "product"} | options  # contrasts: see test_contrasts
    return problem.certifier(K, m.shape[2] if m.ndim == 3 else 1, **options).alternatives(T, m, v, A)[:, 0]


def test_the_weights_of_a_mixture_sum_to_one() -> None:
    assert (values.RHOS, values.SHARES, values.EDGE) == (RHOS, WEIGHTS, MOST_PULLS)
    assert math.fsum(values.SHARES) <= 1 + 1e-15
    assert (1 - values.BOTH, values.BOTH, values.SOFT) == (SIDED, BOTH, SOFT)
    assert math.fsum((SIDED, BOTH)) == 1
    assert values.LIKELIHOOD == LIKELIHOOD
    assert swaps.RHO_OF_SETS == 300
    assert (boundaries.KAPPA, boundaries.SHAPE, boundaries.HOME) == (0.01, 0.5, 0.9)


@pytest.mark.parametrize(("N", "rho"), [*((N, None) for N in PULLS), (17, 7.0), (12_001, 7.0)])
def test_the_value_of_an_arm_is_its_mixture(N: int, rho: float | None) -> None:
    """Against an integral over alternatives, half of a normal distribution on the side to which the arm misleads."""
    chosen, share = term(N, rho)
    spread, noise = SIGMA / math.sqrt(chosen), SIGMA / math.sqrt(N)
    for z in (0.1, 1.0, 3.0):
        gap = z * noise * math.sqrt((N + chosen) / N)
        centre, width = gap * N / (N + chosen), 1 / math.sqrt((N + chosen) / SIGMA**2)  # where the integrand is large

        def ratio(x: float, gap: float = gap) -> float:
            return 2 * stats.norm.pdf(x, scale=spread) * math.exp(N * (x * gap - x * x / 2) / SIGMA**2)

        ends = max(centre - 12 * width, 0.0), centre + 12 * width
        mixture = integrate.quad(ratio, *ends, points=[max(centre, 1e-12)], epsabs=0, epsrel=1e-10, limit=200)[0]
        wanted = math.log(share * mixture)
        assert wanted == pytest.approx(math.log(share) + arm(N, gap, SIGMA, chosen), rel=1e-8, abs=1e-8)
        found = values_of(Threshold(0.4), N, [[0.4 + gap], [0.4 - gap]], [[1], [0]], sigma=SIGMA, rho=rho)
        assert found == pytest.approx(wanted, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize(("N", "rho"), [*((N, None) for N in PULLS), (17, 7.0), (12_001, 7.0)])
def test_an_arm_at_the_threshold_averages_to_its_weight(N: int, rho: float | None) -> None:
    """Where it misleads, to the chance that it does under the alternatives: 1/2 + arctan sqrt(N / rho) / pi.

    That is the density of the mixture, integrated; what is missing to the weight lies where the arm does not mislead.
    """
    chosen, share = term(N, rho)
    # The mixture has the tail of a normal distribution of the variance (N + rho) / rho, in units of the standard error.
    z = np.linspace(0, 12 * math.sqrt(1 + N / chosen), 20_001)
    found = values_of(Threshold(0.4), N, 0.4 + z[:, None] * SIGMA / math.sqrt(N), 1, sigma=SIGMA, rho=rho)
    average = integrate.simpson(np.exp(found - z * z / 2) / math.sqrt(2 * math.pi), x=z)
    assert average == pytest.approx(share * (0.5 + math.atan(math.sqrt(N / chosen)) / math.pi), rel=1e-6)


def test_all_terms_together_average_to_one_at_most() -> None:
    """What is taken is one term of a sum, whatever the pulls: below the sum at every number of pulls and every gap."""
    for N in PULLS:
        gaps = np.linspace(0.01, 40, 200) / math.sqrt(N)
        found = values_of(Threshold(0.0), N, gaps[:, None], 1)
        whole = special.logsumexp(
            [math.log(w) + arm(N, gaps, 1.0, rho) for rho, w in zip(RHOS, WEIGHTS, strict=True)], axis=0
        )
        assert (found <= whole + 1e-12).all()


@pytest.mark.parametrize(("N", "D"), [(1, 2), (121, 3), (20_000, 5)])
def test_an_arm_of_several_dimensions_averages_to_its_weight(N: int, D: int) -> None:
    """An arm is left out though it lies in the only point of a polyhedron: exp(value) integrates to the weight."""
    point = Feasible(np.vstack([np.eye(D), -np.eye(D)]), np.full(2 * D, 1e-12))
    chosen, share = term(N)
    r = np.linspace(1e-9, (8 + 3 * math.sqrt(D)) * math.sqrt(1 + N / chosen), 10_001)  # in units of the standard error
    mean = np.zeros((len(r), 1, D))
    mean[:, 0, 0] = r * SIGMA / math.sqrt(N)
    found = values_of(point, N, mean, 0, sigma=SIGMA)
    assert integrate.simpson(np.exp(found + stats.chi.logpdf(r, D)), x=r) == pytest.approx(share, rel=1e-5)


def test_an_arm_in_the_answer_has_one_dimension_and_a_side() -> None:
    N, depth = 400, 0.05
    found = values_of(Feasible([[3.0, 4.0]], [5.0]), N, [[[0.6 * (1 - depth), 0.8 * (1 - depth)]]], 1, sigma=SIGMA)
    chosen, share = term(N)
    assert found == pytest.approx(math.log(share) + arm(N, depth, SIGMA, chosen), rel=1e-9)


@pytest.mark.parametrize(("rows", "inside"), [(1, 0), (1, 1), (4, 0)])
def test_dependent_coordinates_average_to_one_at_most(rows: int, inside: int) -> None:
    """All coordinates are one and the same number, which is as dependent as can be; the truth is at the boundary."""
    N, D, sigma = 300, 3, SIGMA
    a = np.array([0.6, 0.0, 0.8]), np.array([1.0, 2.0, 2.0]) / 3, np.array([1.0, 0.0, 0.0]), np.ones(3) / math.sqrt(3)
    problem = Feasible(np.array(a[:rows]), np.zeros(rows))
    chosen, share = term(N)
    z = np.linspace(1e-9, 12 * math.sqrt(1 + N / chosen), 20_001)
    side = -1 if inside else 1
    mean = side * np.repeat(z[:, None, None] * sigma / math.sqrt(N), D, axis=2)
    found = values_of(problem, N, mean, inside, sigma=sigma, dependent=True)
    average = integrate.simpson(np.exp(found - z * z / 2) / math.sqrt(2 * math.pi), x=z)
    # Each row is as many scales away as the one number is standard errors, so that nothing is lost.
    assert average == pytest.approx(share * (0.5 + math.atan(math.sqrt(N / chosen)) / math.pi), rel=1e-6)
    if rows == 1:  # as if coordinates were independent, it would be too much by far
        found = values_of(problem, N, mean, inside, sigma=sigma)
        assert integrate.simpson(np.exp(found - z * z / 2) / math.sqrt(2 * math.pi), x=z) > 2


def log_mixture(y: Any) -> Any:
    """ln of the mixture of two arms that mislead by y (.., 2), in its units, but for 1/2 ln(1 + N / rho) of each."""
    return np.logaddexp(
        math.log(SIDED) + (y**2 / 2 + math.log(2) + stats.norm.logcdf(y)).sum(axis=-1),
        math.log(BOTH) + (y**2 / 2).sum(axis=-1),
    )


@pytest.mark.parametrize(
    ("N", "M", "a"), [(1, 1, 1.0), (60, 60, 0.7), (121, 5000, 1.0), (40_000, 130_000, 0.7), (10**6, 3, 1.0)]
)
def test_the_value_of_a_pair_is_below_its_mixture_wherever_the_means_meet(N: int, M: int, a: float) -> None:
    """And by how much is as docs/certificates-theory.md says, to the last digit."""
    rho, share = term(min(N, M))
    spread = math.sqrt((N + rho) / N**2 + a * a * (M + rho) / M**2)
    for z in (0.3, 1.0, 2.0, 3.5, 6.0):
        gap = z * spread
        value = pair(N, M, gap, a=a)

        down = np.linspace(-3 * gap, 4 * gap, 40_001)  # the one mean is lowered, the other raised by what is left
        y = np.stack([down * N / math.sqrt(N + rho), (gap - down) / a * M / math.sqrt(M + rho)], axis=-1)
        slack = float(log_mixture(y).min()) - 0.5 * math.log((1 + N / rho) * (1 + M / rho)) + math.log(share) - value
        assert 0 <= slack < 2.6
    # The same value from the certificate of TopK, and with a slope from that of AllGood (see test_constants).
    found = values_of(BestArm(0.2), [N, M], [[gap - 0.2 + 0.1, 0.1]], [[1, 0]])
    assert found == pytest.approx(pair(N, M, gap), rel=1e-9) or a != 1.0


@pytest.mark.parametrize(("N", "M"), [(30, 30), (100, 3000)])
def test_pairs_average_to_less_than_one(N: int, M: int) -> None:
    """Two equal arms: the average of exp(value) over the side on which they mislead, by a double integral."""
    z = np.linspace(-14 * math.sqrt(1 + M / 30), 14 * math.sqrt(1 + M / 30), 601)
    one, other = np.meshgrid(z, z)
    means = np.stack([one / math.sqrt(N), other / math.sqrt(M)], axis=-1).reshape(-1, 2)
    found = values_of(BestArm(), [N, M], means, [1, 0]).reshape(one.shape)
    misleads = (means[:, 0] > means[:, 1]).reshape(one.shape)
    density = np.where(misleads, np.exp(found - (one**2 + other**2) / 2), 0.0) / (2 * math.pi)
    average = integrate.simpson(integrate.simpson(density, x=z), x=z)
    assert 0 < average <= term(N)[1]


def bernoulli_arm(N: int, hits: Any, mu: float) -> tuple[Any, Any]:
    """The two mixtures of an arm that is claimed to be on the other side of mu, each with its weight: logarithms."""
    exact = special.betaln(hits + 1, N - hits + 1) - special.xlogy(hits, mu) - special.xlogy(N - hits, 1 - mu)
    rho, share = term(N)
    other = math.log(share) + arm(N, np.abs(hits / N - mu), 0.5, rho)
    return math.log(LIKELIHOOD) + exact, math.log(1 - LIKELIHOOD) + other


@pytest.mark.parametrize(("N", "mu"), [(1, 0.1), (2, 0.83), (9, 0.5), (60, 0.1), (500, 0.83)])
def test_a_bernoulli_arm_averages_to_one_at_most(N: int, mu: float) -> None:
    """By a sum over all outcomes; the likelihood under a uniform mean averages to its weight exactly."""
    hits = np.arange(N + 1.0)
    exact, other = bernoulli_arm(N, hits, mu)
    chance, above = stats.binom.logpmf(hits, N, mu), hits / N > mu
    assert np.exp(chance + exact).sum() == pytest.approx(LIKELIHOOD, rel=1e-9)
    for misleading, inside in ((above, 1), (hits / N < mu, 0)):
        found = values_of(Threshold(mu), N, hits[:, None] / N, inside, distribution="bernoulli")
        assert found[misleading] == pytest.approx(np.maximum(exact, other)[misleading], rel=1e-9, abs=1e-9)
        assert np.exp(chance + found)[misleading].sum() <= 1
        assert np.exp(chance + other)[misleading].sum() <= 1 - LIKELIHOOD
    # Samples in [0, 1] that are not 0 or 1, here means of two such, leave the likelihood ratio no larger on average.
    halves = np.arange(2 * N + 1)
    average = np.exp(stats.binom.logpmf(halves, 2 * N, mu) + bernoulli_arm(N, halves / 2, mu)[0]).sum()
    assert average <= LIKELIHOOD


@pytest.mark.parametrize(("N", "M", "mu"), [(12, 12, 0.5), (60, 25, 0.15)])
def test_two_equal_bernoulli_arms(N: int, M: int, mu: float) -> None:
    """The value is the larger of two, each with its weight; its average is a double sum over all outcomes."""
    one, other = (x.ravel() for x in np.meshgrid(np.arange(N + 1.0), np.arange(M + 1.0), indexing="ij"))
    means = np.stack([one / N, other / M], axis=-1)
    found = values_of(BestArm(), [N, M], means, [1, 0], distribution="bernoulli")
    chance, misleads = stats.binom.pmf(one, N, mu) * stats.binom.pmf(other, M, mu), means[:, 0] > means[:, 1]
    assert (chance * np.exp(found))[misleads].sum() <= 1
    for i in np.flatnonzero(misleads)[::97]:
        h, k = one[i], other[i]
        both = (h + k) / (N + M)  # where they meet at the least cost
        likely = special.xlogy(h + k, both) + special.xlogy(N + M - h - k, 1 - both)
        exact = special.betaln(h + 1, N - h + 1) + special.betaln(k + 1, M - k + 1) - likely
        sides = pair(N, M, h / N - k / M, sigma=0.5)
        wanted = max(math.log(LIKELIHOOD) + exact, math.log(1 - LIKELIHOOD) + sides)
        assert found[i] == pytest.approx(wanted, rel=1e-8)


@pytest.mark.parametrize(("N", "mu", "scale"), [(2, 0.0, 1.0), (10, 1.5, 0.4), (200, 0.0, 1.0)])
def test_the_mixture_of_a_student_arm_averages_to_one_at_most(N: int, mu: float, scale: float) -> None:
    """Times the largest likelihood over that of the truth, exp(value) is a part of the mixture: its double integral.

    It is 1 at most, and not less than the weight of the prior as it is, .9 * .9. Over the mean mu + t scale, and the
    variance, both on logarithmic scales, as the tails are those of a Cauchy distribution.
    """
    u, w = np.linspace(-16, 16, 801), np.linspace(-30, 30, 601)
    t, v = np.sinh(u)[:, None], np.exp(w)[None]
    mean, variance = np.broadcast_arrays(mu + t * scale, v * scale**2)
    options = {"distribution": "student", "sigma": 1.0, "centre": 0.3}
    values = np.empty(mean.shape)
    for inside, side in ((1, u >= 0), (0, u < 0)):
        m, x = mean[side].reshape(-1, 1), variance[side].reshape(-1, 1)
        values[side] = values_of(Threshold(mu), N, m, inside, x, **options).reshape(-1, len(w))
    square = v + t * t  # over scale^2: the mean square of the samples' distances from mu
    largest = -0.5 * N * (np.log(square) + 1) + 0.5 * N * square
    chance = stats.norm.logpdf(t, scale=1 / math.sqrt(N)) + math.log(N) + stats.chi2.logpdf(N * v, N - 1)
    steps = np.log(np.cosh(u))[:, None] + w  # of the two scales
    whole = integrate.simpson(integrate.simpson(np.exp(values + largest + chance + steps), x=w), x=u)
    assert 0.81 - 1e-4 <= whole <= 1
    assert integrate.simpson(integrate.simpson(np.exp(values + chance + steps), x=w), x=u) <= 1


@pytest.mark.parametrize(
    ("sigma", "centre", "i", "j", "weight"),
    [
        (0.8, -0.1, 0, 0, 0.9 * 0.9),
        (0.8, -99.1, 0, 4, 0.9 * 0.1 / 20),  # 4^4 is nearest to .01 * 100^2 / .5
        (100.0, 0.4, -7, 0, 0.05 / 56 * 0.9),  # 4^-7 is nearest to .5 / 100^2
        (0.01, 1e3, 0, 7, 0.9 * 0.1 / 56),  # wider would cost more than it spares
    ],
)
def test_the_distribution_that_variances_are_drawn_from(
    sigma: float, centre: float, i: int, j: int, weight: float
) -> None:
    """Normal-inverse-gamma: a centre worth KAPPA 4^-j pulls, shape SHAPE, rate SHAPE sigma^2 4^i; an integral."""
    N, m, v, mu = 6, 0.9, 0.5, 0.2

    def likely(mean: Any, variance: Any) -> Any:
        return np.exp(-N * (v + (m - mean) ** 2) / (2 * variance)) / variance ** (N / 2)

    w, u = np.linspace(-12, 14, 801), np.linspace(-9, 9, 801)
    variance = np.exp(w)[:, None]
    mean = m + np.sinh(u) * 3
    prior = stats.invgamma.pdf(variance, 0.5, scale=0.5 * sigma**2 * 4.0**i) * stats.norm.pdf(
        mean, centre, np.sqrt(variance / 0.01 * 4.0**j)
    )
    inner = integrate.simpson(prior * likely(mean, variance) * variance * 3 * np.cosh(u), x=u)
    wanted = math.log(weight * integrate.simpson(inner, x=w) / likely(mu, v + (m - mu) ** 2))
    options = {"distribution": "student", "sigma": sigma, "centre": centre}
    assert values_of(Threshold(mu), N, [[m]], 1, [[v]], **options) == pytest.approx(wanted, rel=1e-5)
    assert TopK(1).certifier(2, **options).numbers[5] == sigma**2
