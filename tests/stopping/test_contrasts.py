"""Evidence for pairs of arms: by hand, by SciPy, over all samplers and stopping times, and at its error rate.

False-alarm level of the statistical tests: at most 1e-6 each, by exact binomial limits.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

from bandit_envs import BestArm
from bandit_envs.stopping import contrasts

SIGMA = 0.7


def evidence(N: Any, m: Any, epsilon: float = 0.0, distribution: str = "bernoulli", boundary: str = "mixture") -> Any:
    """The evidence against mu_0 <= mu_1 - epsilon, (E,), of arms N, m (E, 2): two arms have one alternative."""
    N, m = np.ascontiguousarray(N, np.int64), np.ascontiguousarray(m, np.float64)
    certifier = BestArm(epsilon).certifier(2, distribution=distribution, sigma=SIGMA, boundary=boundary)
    inside = np.tile(np.array([1, 0], np.int8), (len(N), 1))
    return certifier.alternatives(N, m, np.ones(m.shape), inside)[:, 0]


def weights(usual: float = 0.25, spread: float = 1.1) -> tuple[Any, Any]:
    """The weights of the sums s + t, and of the ratios t / s = 2.2^-4 .. 2.2^7: written down a second time."""
    bell = [math.exp(-0.5 * (math.log(tilt / usual) / spread) ** 2) for tilt in contrasts.TILTS]
    peak = [math.exp(-abs(k * math.log(2.2) - 0.2) / 0.4) for k in range(-4, 8)]
    above = [0.12 * (k > 0) / 7 for k in range(-4, 8)]
    sums = [0.9 * x / sum(bell) + 0.1 / 11 for x in bell]
    return np.array(sums), np.array([0.88 * x / sum(peak) + y for x, y in zip(peak, above, strict=True)])


@pytest.mark.parametrize(("kind", "bell"), [(0, (0.135, 1.0)), (1, (0.25, 1.1))])
def test_all_terms_weigh_1_together(kind: int, bell: tuple[float, float]) -> None:
    sums, ratios = weights(*bell)
    assert sums.sum() == pytest.approx(1)
    assert ratios.sum() == pytest.approx(1)
    np.testing.assert_allclose(contrasts.WEIGHT[kind], np.log(sums)[:, None] + np.log(ratios))
    np.testing.assert_allclose(contrasts.S + contrasts.T, np.repeat(np.array(contrasts.TILTS)[:, None], 12, axis=1))
    np.testing.assert_allclose(contrasts.T, contrasts.S * 2.2 ** np.arange(-4.0, 8.0))


def test_a_pair_by_hand() -> None:
    """Three results each, all 1 and all 0: the four largest tilts, and the ratios 1 / 2.2, 1, 2.2 and 4.84.

    Each result multiplies a term by e^s / (1 - c + c e^s), of arm j by 1 / (1 - c + c e^-t).
    """
    (sums, ratios), c, total = weights(), np.linspace(0.1, 0.9, 80_001), 0.0
    for tilt, weight in ((0.4, sums[7]), (0.75, sums[8]), (1.5, sums[9]), (3.0, sums[10])):
        for ratio, share in ((1 / 2.2, ratios[3]), (1, ratios[4]), (2.2, ratios[5]), (4.84, ratios[6])):
            s, t = tilt / (1 + ratio), tilt * ratio / (1 + ratio)
            total = total + weight * share * (np.exp(s) / (1 - c + c * np.exp(s)) / (1 - c + c * np.exp(-t))) ** 3
    plain = evidence([[3, 3]], [[1, 0]], boundary="product")[0]  # .7 B(4, 1)^2 / (1/2)^6 = 2.8
    assert plain == pytest.approx(math.log(2.8))
    assert 1.3 < np.min(total) < 2.8  # few results, far apart: the product is sharper, and has 3 % of the weight
    assert evidence([[3, 3]], [[1, 0]])[0] == pytest.approx(math.log(0.97 * np.min(total)), abs=2e-4)


def twin(N: Any, m: Any, a: float, b: float, distribution: str) -> float:
    """C, as plainly as can be: the least over a grid that is refined, of the tilts that the package would take."""
    bernoulli, unit = distribution == "bernoulli", 1.0 if distribution == "bernoulli" else SIGMA
    pooled = (N[0] * a * (m[0] - b) + N[1] * m[1]) / (N[0] * a * a + N[1])
    if bernoulli:
        low, high = max(0.0, -b / a) + 1e-12, min(1.0, (1 - b) / a) - 1e-12
        pooled = min(max(pooled, low), high)
        x, y = ((n * p + 0.5) / (n + 1) for n, p in zip(N, m, strict=True))
        far = max(special.logit(x) - special.logit(a * pooled + b), 0) + max(
            special.logit(pooled) - special.logit(y), 0
        )
    else:
        low, high = m[1] - 9.0, (m[0] - b) / a + 9.0
        far = (m[0] - a * pooled - b + pooled - m[1]) / unit
    tilt = min(max(int((np.array(contrasts.TILTS) < far).sum()) - 2, 0), 7)
    ratio = min(max(math.floor(math.log(a * N[0] / N[1], 2.2)) + 3, 0), 8)
    terms, (sums, ratios) = [], weights() if bernoulli else weights(0.135, 1.0)
    for k, p in itertools.product(range(tilt, tilt + 4), range(ratio, ratio + 4)):
        s = contrasts.TILTS[k] / unit / (1 + 2.2 ** (p - 4))
        terms.append((s, contrasts.TILTS[k] / unit - s, math.log(sums[k] * ratios[p])))
    s, t, w = np.array(terms).T

    def psi(s: Any, mu: float) -> Any:
        return np.log(1 - mu + mu * np.exp(s)) if bernoulli else s * mu + s * s * SIGMA**2 / 2

    def at(c: float) -> float:
        each = w + N[0] * (s * m[0] - psi(s, a * c + b)) - N[1] * (t * m[1] + psi(-t, c))
        return float(special.logsumexp(each))

    found = optimize.minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": 1e-13})
    return min(float(found.fun), at(low), at(high))


@pytest.mark.parametrize("distribution", ["bernoulli", "gaussian"])
def test_a_contrast_is_its_twin(distribution: str) -> None:
    """300 pairs, of slopes too: never above the least sum, and 1e-4 nats below it at most, where that says something.

    Of Gaussian arms it may fall without end as c grows, where it says nothing.
    """
    random, unit = np.random.default_rng(0), 1.0 if distribution == "bernoulli" else SIGMA
    for n in range(300):
        N, a = random.integers(1, 10 ** random.integers(1, 6), 2), 1.0 if n % 3 else float(random.uniform(0.5, 2))
        mu = random.uniform(0.02, 0.98) * np.array([1, random.uniform(0.2, 1)])
        m = random.binomial(N, mu) / N if distribution == "bernoulli" else random.normal(mu, SIGMA / np.sqrt(N))
        b, (i, j) = -float(random.choice([0.0, 0.1])), (arm for arm in zip(N.astype(float), m / unit, strict=True))
        found = contrasts.contrast(distribution == "bernoulli", i, j, a, b / unit, -math.inf, math.inf)
        if m[0] > a * m[1] + b:
            wanted = twin(N, m, a, b, distribution)
            assert found <= wanted + 1e-6, (N, m, a, b)
            assert found >= wanted - 1.5e-4 or wanted < 0, (N, m, a, b)
            for needed in (wanted - 0.01, wanted + 0.01):
                quick = contrasts.contrast(distribution == "bernoulli", i, j, a, b / unit, needed, needed)
                assert (quick >= needed) == (found >= needed)
        else:
            assert found == -math.inf


def test_arms_in_units_of_sigma_anywhere() -> None:
    """Evidence of Gaussian arms is the contrast of their difference, wherever they lie; the rest is the product's."""
    for place in (0.0, 1e6):
        N, m = np.array([[500, 300]]), place + np.array([[0.4, 0.25]])
        whole = contrasts.contrast(False, (500.0, 0.15 / SIGMA), (300.0, 0.0), 1.0, -0.1 / SIGMA, -math.inf, math.inf)
        assert evidence(N, m, 0.1, "gaussian")[0] == pytest.approx(whole + math.log(0.97), abs=1e-4)


def best_of_all_samplers(mu: Any, epsilon: float, pulls: int, worth: Any, boundary: str = "mixture") -> float:
    """The largest mean of worth(E) that a sampler can reach that knows mu (2,) and stops when it likes.

    By dynamic programming over all numbers N (2,) of results and of ones among them; E is the evidence there.
    """
    states = [
        (N, M, s, t) for N in range(pulls + 1) for M in range(pulls - N + 1) for s in range(N + 1) for t in range(M + 1)
    ]
    seen = np.array(states)
    gains = np.zeros(len(seen))
    both = (seen[:, :2] > 0).all(axis=1)
    m = seen[both, 2:] / seen[both, :2]
    found = evidence(seen[both, :2], m, epsilon, boundary=boundary)
    gains[both] = worth(np.where(m[:, 0] > m[:, 1] - epsilon, found, -math.inf))
    gain, best = dict(zip(states, gains, strict=True)), dict[Any, float]()
    for N, M, s, t in sorted(states, key=lambda state: -state[0] - state[1]):
        best[N, M, s, t] = gain[N, M, s, t]
        if pulls > N + M:
            one = mu[0] * best[N + 1, M, s + 1, t] + (1 - mu[0]) * best[N + 1, M, s, t]
            other = mu[1] * best[N, M + 1, s, t + 1] + (1 - mu[1]) * best[N, M + 1, s, t]
            best[N, M, s, t] = max(best[N, M, s, t], one, other)
    return best[0, 0, 0, 0]


NULLS = [((p, p), 0.0) for p in (0.02, 0.3, 0.5, 0.9)] + [((0.4, 0.5), 0.1), ((0.0, 0.3), 0.3), ((0.7, 1.0), 0.3)]


@pytest.mark.parametrize("pulls", [9, 26])
@pytest.mark.parametrize(("mu", "epsilon"), NULLS)
def test_no_sampler_makes_an_e_value_above_1_on_average(mu: Any, epsilon: float, pulls: int) -> None:
    """Exactly: over all samplers that know the means, and all stopping times of up to so many pulls."""
    for level in (0.5, 0.1):
        assert best_of_all_samplers(mu, epsilon, pulls, lambda e, level=level: e >= math.log(1 / level)) <= level
    assert best_of_all_samplers(mu, epsilon, pulls, np.exp) <= 1


def test_the_likelihood_ratio_is_no_e_value() -> None:
    """What the search over samplers finds, were the evidence the cost of the nearest means."""
    assert best_of_all_samplers((0.5, 0.5), 0.0, 9, np.exp, "none") > 2


@pytest.mark.parametrize("E", [400, 10_000])
@pytest.mark.parametrize(("distribution", "mu", "epsilon", "chases"), [
    ("bernoulli", (0.5, 0.5), 0.0, True), ("bernoulli", (0.03, 0.03), 0.0, True), ("bernoulli", (0.4, 0.5), 0.1, False),
    ("gaussian", (0.0, 0.0), 0.0, True), ("gaussian", (0.0, 0.3), 0.3, False),
])  # fmt: skip
def test_errors_are_at_most_the_level(distribution: str, mu: Any, epsilon: float, chases: bool, E: int) -> None:
    """A tie just missed; a sampler that pulls the arm whose luck holds; E paths, 60 looks, up to 2,600 pulls."""
    random, level, rows = np.random.default_rng(7), 0.1, np.arange(E)
    N, S, worst = np.zeros((E, 2), np.int64), np.zeros((E, 2)), np.full(E, -math.inf)
    for step in range(60):
        seen = S / np.maximum(N, 1)
        lucky = np.where(seen[:, 0] > seen[:, 1] - epsilon, 1, 0)  # the other arm may spoil it
        arm = np.where(step % 4 == 3, 1 - lucky, lucky) if chases and step > 5 else np.full(E, step % 2)
        more = 8 + step
        N[rows, arm] += more
        p = np.array(mu)[arm]
        bernoulli = distribution == "bernoulli"
        S[rows, arm] += random.binomial(more, p) if bernoulli else random.normal(p * more, SIGMA * math.sqrt(more))
        m = S / np.maximum(N, 1)
        ahead = (N > 0).all(axis=1) & (m[:, 0] > m[:, 1] - epsilon)
        worst[ahead] = np.maximum(worst[ahead], evidence(N[ahead], m[ahead], epsilon, distribution))
    wrong = int((worst >= math.log(1 / level)).sum())
    assert wrong <= stats.binom.isf(1e-7, E, level)
    assert wrong > 0 or E < 10_000
    if E == 10_000:  # it can fail: the rate at 20 times the level is too large
        assert (worst >= math.log(1 / level) - math.log(20)).sum() > stats.binom.isf(1e-7, E, level)
