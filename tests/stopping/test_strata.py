"""Evidence within strata: by hand, by SciPy, over all tables, samplers and stopping times, and at its error rates.

False-alarm level of the statistical tests: at most 1e-6 each, by exact binomial limits.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import pytest
import strata as campaign
from scipy import optimize, special, stats

from bandit_envs.stopping import lifts, strata
from bandit_envs.stopping.strata import Stratified, averages, mismatch


def limit(runs: int, level: float) -> int:
    """What a binomial count exceeds with probability 1e-6 at most."""
    return int(stats.binom.isf(1e-6, runs, level))


def mixed(values: Any, hoped: float = 0.0) -> float:
    """The logarithm of the mean over tilts of exp(values), their weights written down a second time."""
    bell = np.exp(-0.5 * (np.log(np.array(lifts.TILTS) / 0.12) / 0.9) ** 2)
    weights = 0.8 * bell / bell.sum() + 0.2 / 11
    weights = np.concatenate([0.4 * weights, [0.3, 0.3]]) if hoped else weights
    return float(special.logsumexp(values, b=weights))


def tilts(hoped: float = 0.0) -> list[float]:
    return [*lifts.TILTS, *([0.8 * hoped, 1.25 * hoped] if hoped else [])]


# --- odds -------------------------------------------------------------------------------------------------------------


def test_a_table_of_four_by_hand() -> None:
    """One result each, the arm's 1 and the control's 0: of one success, it is the arm's with chance 1/2.

    So the ratio of the tilt t is e^t / ((1 + e^t) / 2), and the other way round 2 / (1 + e^t).
    """
    found = Stratified.odds([[1, 1]], [[0, 1]], 0)
    up = mixed([math.log(2 * math.exp(t) / (1 + math.exp(t))) for t in tilts()])
    down = mixed([math.log(2 * math.exp(-t) / (1 + math.exp(-t))) for t in tilts()])
    np.testing.assert_allclose(found.evidence[0, 1], [up, down])
    assert found.evidence[0, 0].tolist() == [-math.inf, -math.inf]
    assert (found.effect[1], found.counts.tolist()) == (math.inf, [0, 1])
    np.testing.assert_array_equal(found.interval(0.05), [[np.nan, np.nan], [-np.inf, np.inf]])


@pytest.mark.parametrize("hoped", [0.0, 0.7])
def test_odds_are_those_of_scipys_noncentral_hypergeometric(hoped: float) -> None:
    random, n, control = np.random.default_rng(0), np.array([[30, 41, 0], [12, 3, 9], [0, 5, 6]]), 1
    x = random.binomial(n, 0.4)
    found = Stratified.odds(n, x, control, hoped)
    for i in (0, 2):
        for side, sign in enumerate((1, -1)):
            sums = np.zeros(len(tilts(hoped)))
            for s in range(3):
                if n[s, i] > 0:
                    law = stats.hypergeom(n[s, i] + n[s, control], n[s, i], x[s, i] + x[s, control])
                    k = np.arange(n[s, i] + 1)
                    sums += [
                        math.log(math.exp(sign * t * x[s, i]) / (law.pmf(k) @ np.exp(sign * t * k)))
                        for t in tilts(hoped)
                    ]
                assert found.evidence[s, i, side] == pytest.approx(mixed(sums, hoped), abs=1e-12)
        off = stats.nchypergeom_fisher
        rows = [s for s in range(3) if n[s, i] > 0]
        means = [off.mean(n[s, i] + n[s, 1], n[s, i], x[s, i] + x[s, 1], math.exp(found.effect[i])) for s in rows]
        assert sum(means) == pytest.approx(sum(x[s, i] for s in rows), rel=1e-6)
    alone = Stratified.odds([[41, 30]], [[15, 14]], 0).effect[1]
    assert alone == pytest.approx(math.log(stats.contingency.odds_ratio([[14, 16], [15, 26]]).statistic), abs=1e-4)


@pytest.mark.parametrize("strata", [2, 3])
def test_no_choice_of_tables_and_no_stop_makes_odds_above_1_on_average(strata: int) -> None:
    """All designs that look at all earlier strata, and rates of any, where the null is true at its edge."""
    random, before = np.random.default_rng(0), ((1, 2), (2, 1), (2, 2))
    rates = random.uniform(0.1, 0.9, strata)

    def value(rows: Any) -> float:
        n, x = np.array([row[:2] for row in rows]), np.array([row[2:] for row in rows])
        return math.exp(Stratified.odds(n, x, 0, 1.0).evidence[-1, 1, 0])

    def best(rows: tuple[Any, ...]) -> float:
        here = value(rows) if rows else 1.0
        if len(rows) == strata:
            return here
        p, most = rates[len(rows)], here
        for c, i in before:
            tables = itertools.product(range(c + 1), range(i + 1))
            more = sum(
                stats.binom.pmf(u, c, p) * stats.binom.pmf(v, i, p) * best((*rows, (c, i, u, v))) for u, v in tables
            )
            most = max(most, more)
        return most

    assert best(()) == pytest.approx(1.0, abs=1e-12)


def test_odds_at_the_ends_of_counts() -> None:
    with np.errstate(all="raise", under="ignore"):
        for x, effect in (([0, 0], np.nan), ([5, 5], np.nan), ([0, 5], np.inf), ([5, 0], -np.inf)):
            found = Stratified.odds([[5, 5]], [x], 0)
            np.testing.assert_array_equal(found.effect[1], effect)
            assert np.isfinite(found.evidence[0, 1]).all()
        low, high = Stratified.odds([[50, 50]] * 2, [[0, 50]] * 2, 0).interval(0.05)[1]
        assert (3 < low < 12, high) == (True, math.inf)
        many = Stratified.odds([[10**9, 10**9]], [[30_000_000, 30_060_000]], 0)
        odds = math.log(0.03006 / 0.96994 / (0.03 / 0.97))
        assert many.effect[1] == pytest.approx(odds, rel=1e-6)
        variance = 60_060_000 * (1 - 0.03003) / 4
        near = mixed([t * 30_000 - t * t * variance / 2 for t in tilts()])
        assert many.evidence[0, 1, 0] == pytest.approx(near, rel=1e-2)
        zero = Stratified.odds([[10**9, 10**9]], [[30_000_000, 30_000_000]], 0).evidence[0, 1]
        assert (zero < 0).all()
        assert zero[0] == pytest.approx(zero[1], abs=1e-4)


# --- means and a common spread ----------------------------------------------------------------------------------------


def test_means_by_hand() -> None:
    """Two strata, sigma 2: v = 4 (1 + 1/4) = 5 and 4 (1/2 + 1/2) = 4; d - margin = 3 and 1; S = .85, V = .45."""
    found = Stratified.means([[4, 1], [2, 2]], [[1, 5], [7, 9]], 0, 2.0, edges=(1.0, 1.0))
    up, down = (mixed([2 * t * sign * 0.85 - (2 * t) ** 2 * 0.45 / 2 for t in tilts()]) for sign in (1, -1))
    np.testing.assert_allclose(found.evidence[1, 1], [up, down])
    assert found.effect[1] == pytest.approx(1 + 0.85 / 0.45)
    off = (4 - found.effect[1]) ** 2 / 5 + (2 - found.effect[1]) ** 2 / 4
    assert found.same[1] == pytest.approx(min(2 * stats.chi2.sf(off, 1), 1))
    low, high = found.interval(0.05)[1]
    for edge, side in ((low, 0), (high, 1)):
        at = Stratified.means([[4, 1], [2, 2]], [[1, 5], [7, 9]], 0, 2.0, edges=(edge, edge))
        assert at.evidence[1, 1, side] == pytest.approx(math.log(2 / 0.05))


def by_integrals(d: Any, v: Any, squares: Any, free: Any, edge: float) -> float:
    """The evidence of a common spread by sums over a grid: the prior of sigma^2 is that of the first squares."""

    def likelihood(sigma: Any, effect: Any) -> Any:
        rest = [
            stats.chi2.logpdf(q / sigma**2, f) - 2 * np.log(sigma)
            for q, f in zip(squares[1:], free[1:], strict=True)
            if f
        ]
        return sum(rest) + sum(stats.norm.logpdf(x, effect, sigma * math.sqrt(w)) for x, w in zip(d, v, strict=True))

    x, w = np.polynomial.legendre.leggauss(300)
    z, w = 4.5 * (x + 1) ** 2, 9 * (x + 1) * w  # more points near 0; to 18 standard deviations
    log = np.linspace(-5, 5, 2001)[:, None]
    sigma, total = np.exp(log), 0.0
    prior = stats.invgamma.pdf(sigma**2, free[0] / 2, scale=squares[0] / 2) * 2 * sigma**2 * (log[1] - log[0])
    for tau, share in zip((0.5, 1, 2, 4, 32), (0.15, 0.3, 0.3, 0.23, 0.02), strict=True):
        each = np.exp(likelihood(sigma, edge + tau * sigma * z)) * stats.halfnorm.pdf(z) * w
        total += share * float((prior * each).sum())
    least = optimize.minimize(
        lambda at: -likelihood(math.exp(at[0]), edge - abs(at[1])),
        [0.0, 0.1],
        method="Nelder-Mead",
        options={"xatol": 1e-9, "fatol": 1e-12},
    )
    return math.log(total) + float(least.fun)


@pytest.mark.parametrize("shift", [1.5, -0.4])
def test_a_common_spread_is_that_of_sums_over_a_grid(shift: float) -> None:
    """Where the effect lies beyond the edge, and where it does not."""
    n, mean = [[3, 1], [2, 2], [1, 1]], [[0.1, shift], [0.4, 0.1 + shift], [-0.3, shift]]
    squares = [[1.3, 0.0], [0.2, 0.7], [0.0, 0.0]]
    found = Stratified.common(n, mean, squares, 0, edges=(0.2, 0.2)).evidence
    d, v = [row[1] - row[0] for row in mean], [4 / 3, 1, 2]
    for s in (1, 2, 3):
        twin = by_integrals(d[:s], v[:s], [1.3, 0.9, 0.0][:s], [2, 2, 0][:s], 0.2)
        if s > 1 or shift > 0:  # of one difference on the null's side the likelihood has no bound
            assert found[s - 1, 1, 0] == pytest.approx(twin, abs=2e-3)
        else:
            assert found[0, 1, 0] == -math.inf


def test_spreads_are_compared_by_bartletts_test() -> None:
    random = np.random.default_rng(0)
    for scale in np.linspace(1, 3, 9):
        groups = [random.normal(0, scale if g == 0 else 1, 9) for g in range(4)]
        squares, free = np.array([one.var() * 9 for one in groups]), np.full(4, 8.0)
        assert strata.unlike_spreads(squares, free) == (stats.bartlett(*groups).pvalue <= strata.UNLIKE)
    assert not strata.unlike_spreads(np.zeros(3), np.ones(3))
    assert not strata.unlike_spreads(np.ones(3), np.array([4.0, 0.0, 0.0]))


def test_a_common_spread_needs_repeats() -> None:
    with np.errstate(all="raise", under="ignore"):
        for n, squares in (([[1, 1]] * 3, [[0, 0]] * 3), ([[2, 2]] * 3, [[0, 0]] * 3)):  # alone, or all alike
            found = Stratified.common(n, [[0.0, 1.0]] * 3, squares, 0)
            np.testing.assert_allclose(found.evidence[:, 1], 0.0, atol=1e-12)
            assert math.isnan(found.spread)
            assert (found.same == 1).all()
            assert np.isnan(found.interval(0.05)).all()
        late = Stratified.common([[1, 1], [3, 2]], [[0, 1], [0, 1]], [[0, 0], [2, 1]], 0)
        assert late.counts.tolist() == [0, 1]
        assert np.isfinite(late.evidence[1, 1, 0])


def test_ends_of_a_common_spread_are_found_where_evidence_falls_again_far_away() -> None:
    """An effect of 1e4 spreads is more than the prior expects; ends are where the evidence first is enough."""
    n, mean, squares = (
        np.tile([8, 1], (4, 1)),
        np.array([[0, 2.0], [0, 2.3], [0, 1.8], [0, 2.1]]),
        np.tile([7.0, 0], (4, 1)),
    )
    found = Stratified.common(n, mean, squares, 0)
    low, high = found.interval(0.05)[1]
    assert (-2 < low < 0.5, 3.5 < high < 6) == (True, True)
    at = [Stratified.common(n, mean, squares, 0, edges=(2 - off, 2 - off)).evidence[-1, 1, 0] for off in (5, 100, 1e9)]
    assert at[1] > at[0] > math.log(40) > at[2]


# --- known shares -----------------------------------------------------------------------------------------------------


def test_averages_are_bets_visitor_by_visitor() -> None:
    n, x, planned, a, b = [[3, 2], [1, 4]], [[1, 2], [0, 1]], (2, 1), 1.2, -0.05
    found = averages(n, x, 0, planned, a, b)[:, 1]
    q, capitals, g, seen, ones = 1 / 3, np.ones((2, 16)), 0.0, 0, 0
    most = max(1 / q, a / (1 - q)) + abs(b) + abs(a - 1)
    for s in range(2):
        for arm in (0, 1):
            for k in range(n[s][arm]):
                y = float(k < x[s][arm])
                z = (y - g) * (1 / q if arm else -a / (1 - q)) - b - g * (a - 1)
                for side, sign in enumerate((1, -1)):
                    capitals[side] *= 1 + sign * 0.9 * 0.5 ** np.arange(16) / most * z
        seen, ones = seen + sum(n[s]), ones + sum(x[s])
        g = ones / seen
        np.testing.assert_allclose(found[s], np.log(capitals.mean(axis=1)))


def hostile(sizes: Any, rates: Any, q: float, a: float, b: float, closed: bool = False) -> float:
    """The largest mean value at any stopping time at which p_i <= a p_c + b in the mean over the visitors so far.

    sizes: visitors of each stratum. rates (S, 2) of the control and the arm. A stop is possible after each visitor.
    """
    order = np.repeat(np.arange(len(sizes)), sizes)
    effect = np.cumsum([rates[s][1] - a * rates[s][0] - b for s in order])

    @functools.cache
    def value(counts: Any) -> float:
        n = [[c[0] + c[1], c[2] + c[3]] for c in counts]
        return math.exp(averages(n, [[c[1], c[3]] for c in counts], 0, [1 - q, q], a, b)[-1, 1, 0])

    @functools.cache
    def best(t: int, counts: Any) -> float:
        here = value(counts) if t and effect[t - 1] <= 1e-12 else 0.0
        if t == len(order):
            return here
        s, mean = order[t], 0.0
        rows = [list(c) for c in counts] + [[0, 0, 0, 0]] * (s + 1 - len(counts))
        for arm in (0, 1):
            for y in (0, 1):
                more = [list(c) for c in rows]
                more[s][2 * arm + y] += 1
                p = rates[s][arm] if y else 1 - rates[s][arm]
                mean += (q if arm else 1 - q) * p * best(t + 1, tuple(map(tuple, more)))
        return max(here, mean)

    return best(0, ())


CASES = [
    ((2, 2, 2), [(0.9, 0.9)] * 3, 0.1, 1.0, 0.0),  # strata of which an arm is absent by chance
    ((2, 2, 2), [(1.0, 1.0), (0.0, 0.0), (1.0, 1.0)], 0.95, 1.0, 0.0),
    ((1, 1, 1, 1, 1), [(0.2, 0.6), (0.6, 0.2)] * 2 + [(0.1, 0.1)], 0.3, 1.0, 0.0),  # effects of either sign
    ((3, 3), [(0.5, 0.9), (0.9, 0.5)], 0.5, 1.0, 0.0),
    ((2, 3), [(0.5, 0.7), (0.4, 0.4)], 0.2, 1.3, 0.05),
    ((3, 2), [(0.5, 0.2), (0.4, 0.4)], 0.9, 0.8, -0.15),
]


@pytest.mark.parametrize("case", CASES)
def test_averages_are_at_most_1_at_any_stopping_time(case: Any) -> None:
    assert hostile(*case) <= 1 + 1e-12


@pytest.mark.parametrize("control_first", [True, False])
def test_an_arm_that_was_not_there_is_no_evidence(control_first: bool) -> None:
    n, x = np.array([[900, 0], [500, 510], [0, 800]]), np.array([[90, 0], [50, 61], [0, 400]])
    if not control_first:
        n, x = n[:, ::-1], x[:, ::-1]
    control = 0 if control_first else 1
    found, arm = averages(n, x, control, [1, 1]), 1 - control
    np.testing.assert_allclose(found[0, arm], 0.0, atol=1e-12)
    np.testing.assert_array_equal(found[1, arm], found[2, arm])
    few = averages([[5, 5], [0, 3]], [[1, 1], [0, 3]], 0, [1, 1])[:, 1, 0]
    assert few[0] == few[1]  # three of the arm by chance: they may count against it alone
    assert averages([[5, 5], [0, 3]], [[4, 4], [0, 0]], 0, [1, 1])[1, 1, 0] < few[0] + 1


def test_planned_shares_by_a_urn() -> None:
    """The mixture of Polya urns, visitor by visitor, of strata with the same arms together."""
    counts, planned = np.array([[40, 61, 0], [53, 40, 0], [30, 30, 30]]), np.array([0.4, 0.4, 0.2])
    total = np.zeros(3)
    for rows, shares in (([0, 1], [0.5, 0.5]), ([2], planned)):
        drawn = np.concatenate([np.repeat(np.arange(len(shares)), counts[s, : len(shares)]) for s in rows])
        for k, size in enumerate((30.0, 1000.0, 30000.0)):
            urn = size * np.array(shares)
            for arm in drawn:
                total[k] += math.log(urn[arm] / urn.sum() / shares[arm])
                urn[arm] += 1
    small = np.array([[2, 0, 0], [0, 0, 9]])  # one arm alone, perhaps by chance
    expected = min(1.0, 1 / np.exp(total).mean())
    assert mismatch(counts[[2, 0, 1]], planned) == pytest.approx(mismatch(np.vstack([small, counts]), planned))
    assert mismatch(counts, planned) == pytest.approx(expected, rel=1e-9)
    assert mismatch(small, planned) == 1.0


def test_planned_shares_are_refuted() -> None:
    assert mismatch([[50_500, 49_500]], [1, 1]) == pytest.approx(0.05, abs=0.04)
    assert mismatch([[505_000, 495_000]], [1, 1]) < 1e-15
    assert mismatch([[1000, 0], [500, 500]], [1, 1]) == 1.0


# --- invariances ------------------------------------------------------------------------------------------------------


def facts(found: Stratified) -> list[Any]:
    return [found.evidence[-1], found.effect, found.same, found.counts, found.interval(0.1)]


def close(one: Any, other: Any, arms: Any = slice(None)) -> None:
    for x, y in zip(one, other, strict=True):
        np.testing.assert_allclose(x, np.asarray(y)[arms], rtol=1e-7, atol=1e-7)


def test_order_and_names_of_strata_and_arms_change_nothing() -> None:
    random = np.random.default_rng(0)
    n = random.integers(0, 60, (5, 4))
    x, mean = random.binomial(n, random.uniform(0.1, 0.9, (5, 1))), random.normal(size=(5, 4))
    squares = np.where(n > 1, random.chisquare(np.maximum(n - 1, 1)), 0.0)
    rows, arms = random.permutation(5), np.array([2, 0, 3, 1])
    back = int(np.flatnonzero(arms == 1)[0])
    for made in (
        lambda r, k, c: Stratified.odds(n[r][:, k], x[r][:, k], c, 0.4),
        lambda r, k, c: Stratified.means(n[r][:, k], mean[r][:, k], c, 0.8, (0.1, 0.2)),
    ):
        first = facts(made(np.arange(5), np.arange(4), 1))
        close(facts(made(rows, np.arange(4), 1)), first)
        close(facts(made(np.arange(5), arms, back)), first, arms)
    first = facts(Stratified.common(n, mean, squares, 1))
    close(facts(Stratified.common(n[:, arms], mean[:, arms], squares[:, arms], back)), first, arms)
    twice = Stratified.common(n[:, [0, 1, 1]], mean[:, [0, 1, 1]], squares[:, [0, 1, 1]], 0)  # two equal arms
    np.testing.assert_array_equal(twice.evidence[:, 1], twice.evidence[:, 2])


def test_successes_and_failures_the_arm_and_the_control_change_places() -> None:
    random = np.random.default_rng(1)
    n = random.integers(1, 60, (4, 2))
    x = random.binomial(n, random.uniform(0.1, 0.9, (4, 1)))
    one, failures, other = (Stratified.odds(n, y, c) for y, c in ((x, 0), (n - x, 0), (x, 1)))
    np.testing.assert_allclose(one.evidence[:, 1], failures.evidence[:, 1, ::-1], atol=1e-9)
    np.testing.assert_allclose(one.evidence[:, 1], other.evidence[:, 0, ::-1], atol=1e-9)
    assert one.effect[1] == pytest.approx(-other.effect[0])
    np.testing.assert_allclose(one.interval(0.1)[1], -other.interval(0.1)[0, ::-1], atol=1e-7)


@pytest.mark.parametrize(("unit", "offset"), [(1000.0, 0.0), (1e-9, 0.0), (1.0, 1e9), (1.0, -1e6)])
def test_units_and_a_common_offset_change_nothing(unit: float, offset: float) -> None:
    """With an offset of 1e9 spreads, means are rounded at 1e-7 of one; squares are of data about their means."""
    random = np.random.default_rng(2)
    n = random.integers(1, 6, (5, 3))
    mean = random.normal(size=(5, 3)) + np.array([0, 1, 2])
    squares = np.where(n > 1, random.chisquare(np.maximum(n - 1, 1)), 0.0)
    near = 1e-6 if abs(offset) == 1e9 else 1e-8
    for one, other in (
        (
            Stratified.common(n, mean, squares, 0, (0.2, 0.4)),
            Stratified.common(n, mean * unit + offset, squares * unit**2, 0, (0.2 * unit, 0.4 * unit)),
        ),
        (
            Stratified.means(n, mean, 0, 1.3, (0.2, 0.4), 0.5),
            Stratified.means(n, mean * unit + offset, 0, 1.3 * unit, (0.2 * unit, 0.4 * unit), 0.5 * unit),
        ),
    ):
        np.testing.assert_allclose(one.evidence, other.evidence, atol=near, rtol=near)
        np.testing.assert_allclose(one.effect * unit, other.effect, atol=near * unit, rtol=near)
        np.testing.assert_allclose(one.interval(0.1) * unit, other.interval(0.1), atol=near * unit, rtol=near)
        assert other.spread == pytest.approx(one.spread * unit)


# --- error rates ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [200, 5000])
@pytest.mark.parametrize("design", campaign.DESIGNS)
def test_no_sampler_that_chases_the_spread_errs_more_often(design: str, runs: int) -> None:
    random, hits, chased = np.random.default_rng(0), np.zeros(2, int), campaign.chased
    for _ in range(runs):
        found = Stratified.common(*chased(random, design, 8), 0).evidence[:, 1]
        hits += (found >= math.log(5)).any(axis=0)
    assert (hits <= limit(runs, 0.2)).all()


@pytest.mark.parametrize("runs", [150, 2000])
def test_a_drift_of_rates_and_traffic_is_no_effect(runs: int) -> None:
    """A/A: traffic follows the rate from day to day, which the sums of all days take for an effect in most runs."""
    random, hits, pooled = np.random.default_rng(0), np.zeros(2, int), 0
    for _ in range(runs):
        level = random.uniform(0.7, 1.4, 30)
        n_i = random.binomial(600, level - 0.55)
        n = np.stack([600 - n_i, n_i], axis=1)
        x = random.binomial(n, 0.1 * level[:, None])
        hits += (Stratified.odds(n, x, 0).evidence[:, 1] >= math.log(5)).any(axis=0)
        (c, i), (y, z) = n.sum(axis=0), x.sum(axis=0)
        pooled += z / i - y / c > 1.65 * math.sqrt(y / c * (1 - y / c) * (1 / c + 1 / i))
    assert (hits <= limit(runs, 0.2)).all()
    assert pooled > 0.5 * runs


@pytest.mark.parametrize("runs", [30, 400])
def test_intervals_cover_one_effect_at_all_looks(runs: int) -> None:
    random, wrong = np.random.default_rng(0), np.zeros(3, int)
    for _ in range(runs):
        p = random.uniform(0.1, 0.5, 6)
        odds = p / (1 - p) * math.exp(0.5)
        n = random.integers(5, 40, (6, 2))
        x = random.binomial(n, np.stack([p, odds / (1 + odds)], axis=1))
        mean = np.array([0.0, 0.5]) + random.normal(size=(6, 1)) + random.normal(size=n.shape) / np.sqrt(n)
        few = 1 + n % 2
        rough = np.array([0.0, 0.5]) + random.normal(size=few.shape) / np.sqrt(few)
        squares = np.where(few > 1, random.chisquare(1, few.shape), 0.0)
        for s in (2, 6):
            found = (
                Stratified.odds(n[:s], x[:s], 0),
                Stratified.means(n[:s], mean[:s], 0, 1.0),
                Stratified.common(few[:s], rough[:s], squares[:s], 0),
            )
            wrong += [
                not (one.counts[1] == 0 or low <= 0.5 <= high) for one in found for low, high in one.interval(0.3)[1:]
            ]
    assert (wrong <= limit(runs, 0.3)).all()


@pytest.mark.parametrize("tables", [6, 60])
def test_one_effect_is_not_denied_where_it_is_true(tables: int) -> None:
    random, least = np.random.default_rng(0), []
    for _ in range(tables):
        n = np.full((10, 31), 130)
        n[:, 0] = 13_000
        x = random.binomial(n, 0.03)
        least.append(np.min([Stratified.odds(n[:s], x[:s], 0).same[1:] for s in range(2, 11)], axis=0))
    assert (np.concatenate(least) <= 0.05).sum() <= limit(30 * tables, 0.05)
    sparse = [[1000, 20]] * 2, [[20, 0], [20, 5]]  # a variance of .4: chi-squared is no approximation
    assert Stratified.odds(*sparse, 0).same[1] == 1
    n = np.full((10, 2), 2000)
    assert Stratified.odds(n, random.binomial(n, np.tile([[0.1, 0.1], [0.1, 0.2]], (5, 1))), 0).same[1] < 1e-6


# --- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: Stratified.odds([[2, 2]], [[3, 1]], 0), "from 0 to n"),
        (lambda: Stratified.odds([[2, 2]], [[-1, 1]], 0), "from 0 to n"),
        (lambda: Stratified.odds([[2, -2]], [[1, 1]], 0), "n must be at least 0"),
        (lambda: Stratified.odds([[2, np.nan]], [[1, 1]], 0), "n must be at least 0"),
        (lambda: Stratified.odds([2, 2], [1, 1], 0), r"tables must be \(S, K\)"),
        (lambda: Stratified.odds(np.zeros((0, 2)), np.zeros((0, 2)), 0), r"tables must be \(S, K\)"),
        (lambda: Stratified.means([[2, 2]], [[1.0]], 0, 1.0), r"tables must be \(S, K\)"),
        (lambda: Stratified.means([[2, 2]], [[1.0, 2.0]], 2, 1.0), "control one of K"),
        (lambda: Stratified.common([[2, 2]], [[1.0, 2.0]], [[1.0, 1.0]], -1), "control one of K"),
        (lambda: averages([[2, 2]], [[1, 3]], 0, [1, 1]), "from 0 to n"),
    ],
)
def test_what_is_no_table_is_refused(made: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        made()


def test_shares_by_stratum_are_those_of_all_where_they_are_equal_and_bets_that_might_lose_all_are_left() -> None:
    n, x = np.array([[100, 120.0], [300, 250]]), np.array([[10, 30.0], [20, 44]])
    np.testing.assert_allclose(averages(n, x, 0, [[0.5, 0.5], [1.0, 1.0]]), averages(n, x, 0, [0.5, 0.5]))
    late = averages(n, x, 0, [[0.5, 0.5], [0.99, 0.01]])  # most bets might lose all on the second day
    assert np.isfinite(late[:, 1]).all()
    assert mismatch([[500, 500], [900, 100]], [[1, 1], [9, 1]]) == 1.0
    assert mismatch([[500, 500], [500, 500]], [[1, 1], [9, 1]]) < 1e-50
    assert mismatch([[500, 500]], [[1, 0]]) == 0.0
