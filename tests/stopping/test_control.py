"""Certificates against a control: by brute force, by simulation at their limits, and at the error rates they promise.

False-alarm level of the statistical tests: at most 1e-6 each, by exact binomial limits.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

from bandit_envs import AllGood, BestArm, BetterThanControl, Threshold
from bandit_envs.stopping import control_intervals, discoveries, lifts
from bandit_envs.stopping.asking import game_of

SIGMA = 0.7


def terms(hoped: float, unit: float, a: float) -> Any:
    """Tilts of the arm and the control, and the logarithms of the weights: written down a second time."""
    rows = []
    bell = np.exp(-0.5 * (np.log(np.array(lifts.TILTS) / lifts.USUAL) / lifts.SPREAD) ** 2)
    weights = (1 - lifts.EVEN) * bell / bell.sum() + lifts.EVEN / len(lifts.TILTS)
    tilts = list(zip(lifts.TILTS, weights * ((1 - lifts.HOPED) if hoped > 0 else 1), strict=True))
    tilts += [(hoped * x, lifts.HOPED / len(lifts.NEAR_HOPED)) for x in lifts.NEAR_HOPED if hoped > 0]
    for tilt, weight in tilts:
        for ratio, share in zip(lifts.RATIOS, lifts.SHARES, strict=True):
            rows.append((tilt / (1 + a * ratio), tilt - tilt / (1 + a * ratio), weight * share * (1 - lifts.ALONE)))
        rows += [(tilt, 0.0, weight * lifts.ALONE / 2), (0.0, tilt, weight * lifts.ALONE / 2)]
    s, t, w = np.array(rows).T
    assert w.sum() == pytest.approx(1)
    return unit * s, unit * t, np.log(w)


def brute(distribution: str, N: Any, m: Any, a: float, b: float, hoped: float = 0.0) -> float:
    """The evidence against mu_0 <= a mu_1 + b, of arms (N, m), by SciPy: the least over the mean of arm 1."""
    if not m[0] > a * m[1] + b:
        return 0.0
    bernoulli = distribution == "bernoulli"
    s, t, w = terms(hoped, 1.0 if bernoulli else 1 / SIGMA, a)

    def psi(s: Any, mu: float) -> Any:
        return np.log(1 - mu + mu * np.exp(s)) if bernoulli else s * mu + s * s * SIGMA**2 / 2

    def at(c: float) -> float:
        edge = a * c + b
        each = w + N[0] * (s * m[0] - psi(s, edge)) - N[1] * (t * m[1] + psi(-t, c))
        return float(special.logsumexp(each))

    low, high = m[1] - 1.0, (m[0] - b) / a + 1.0
    if bernoulli:
        low, high = max(0.0, -b / a) + 1e-12, min(1.0, (1 - b) / a) - 1e-12
        if low >= high:
            return math.inf
    found = optimize.minimize_scalar(at, bounds=(low, high), method="bounded", options={"xatol": 1e-13})
    return min(float(found.fun), at(low), at(high))


def arms(random: Any, distribution: str, K: int = 3) -> tuple[Any, Any]:
    """Pulls and means of K arms."""
    N = random.integers(1, 400, K)
    means = random.uniform(0.05, 0.9, K)
    return N, random.binomial(N, means) / N if distribution == "bernoulli" else means + random.normal(0, 0.1, K)


@pytest.mark.parametrize("instances", [20, 100])
@pytest.mark.parametrize("distribution", ["bernoulli", "gaussian"])
def test_levels_are_those_of_a_search_by_scipy(distribution: str, instances: int) -> None:
    """Of small instances, for the plug-in answer and another one."""
    random = np.random.default_rng(0)
    for n in range(instances):
        N, m = arms(random, distribution)
        control, tolerance = int(random.integers(3)), float(random.choice([0.0, 0.07]))
        rules = {"lift": float(random.uniform(-0.3, 0.3))} if n % 2 else {"margin": float(random.uniform(-0.1, 0.1))}
        hopes = [0.2, 0.9] if n % 3 == 0 else None
        problem = BetterThanControl(control, tolerance=tolerance, expected=hopes, **rules)
        a, b = problem.spaces[0]
        hoped = 0.0
        if hopes is not None:
            edge = a * hopes[0] + b
            hoped = special.logit(0.9) - special.logit(edge) if distribution == "bernoulli" else (0.9 - edge) / SIGMA
        for answer in (problem.plug_in(m), np.arange(3) == (control + 1) % 3):
            least = math.inf
            for i in range(3):
                if i == control:
                    continue
                c = control
                if answer[i]:
                    value = brute(distribution, N[[i, c]], m[[i, c]], a, b - tolerance, hoped)
                else:
                    value = brute(distribution, N[[c, i]], m[[c, i]], 1 / a, -(b + tolerance) / a)
                least = min(least, value - math.log(2))
            level = problem.certified_level(N, m, answer, distribution=distribution, sigma=SIGMA)
            assert -math.log(level) == pytest.approx(max(least, 0.0), rel=1e-5, abs=1e-5)


def test_evidence_is_the_least_cost_of_moving_a_pair() -> None:
    random = np.random.default_rng(1)
    for n in range(60):
        m, N, D = random.uniform(0.1, 0.9, (4, 2)), random.integers(1, 90, 4), 1 + n % 2
        problem = BetterThanControl(1, 0.02, tolerance=0.05, guardrails=[0.1] * (D - 1))
        means = m[:, :D] if D > 1 else m[:, 0]
        answer = problem.plug_in(means)
        costs = []
        for i in (0, 2, 3):
            each = []
            for d, (a, b) in enumerate(problem.spaces):
                x, y = m[i, d], m[1, d]
                gap = x - a * y - b
                far = max(gap + 0.05, 0.0) if answer[i] else max(0.05 - gap, 0.0)
                each.append(far**2 / (2 * SIGMA**2 * (1 / N[i] + 1 / N[1])))
            costs.append(min(each) if answer[i] else sum(each))
        assert problem.evidence(N, means, sigma=SIGMA) == pytest.approx(min(costs))


@pytest.mark.parametrize("instances", [1, 6])
@pytest.mark.parametrize(("distribution", "lift"), list(itertools.product(["gaussian", "bernoulli"], [None, 0.1])))
def test_characteristic_time_is_that_of_another_solver(distribution: str, lift: float | None, instances: int) -> None:
    random, problem = np.random.default_rng(2), BetterThanControl(0, lift=lift, tolerance=0.01)
    for _ in range(instances):
        means = random.uniform(0.1, 0.8, 4)
        answer = problem.plug_in(means)

        a, b = problem.spaces[0]
        pairs = [((i, 0, a, b - 0.01) if answer[i] else (0, i, 1 / a, -(b + 0.01) / a)) for i in range(1, 4)]

        def slopes(w: Any, means: Any = means, pairs: Any = pairs) -> Any:
            """What a pull of each arm gains against arm i at most a times arm j plus b: (pairs, 4)."""
            found = np.zeros((len(pairs), 4))
            for row, (i, j, a, b) in zip(found, pairs, strict=True):
                if distribution == "gaussian":
                    y = (w[i] * (means[i] - b) * a + w[j] * means[j]) / (w[i] * a * a + w[j])
                    row[[i, j]] = (means[i] - a * y - b) ** 2 / 2, (means[j] - y) ** 2 / 2
                    continue

                def kl(y: float, at: Any = (i, j, a, b)) -> list[float]:
                    moved = (means[at[0]], at[2] * y + at[3]), (means[at[1]], y)
                    return [float(special.rel_entr(m, u) + special.rel_entr(1 - m, 1 - u)) for m, u in moved]

                ends = {"bounds": (means[j], min((means[i] - b) / a, 1.0)), "method": "bounded"}
                at = optimize.minimize_scalar(
                    lambda y, kl=kl, i=i, j=j: np.dot(w[[i, j]], kl(y)), **ends, options={"xatol": 1e-12}
                )
                row[[i, j]] = kl(at.x)
            return found

        # Kelley's cutting planes: costs are concave, and w times their slopes: slopes anywhere bound them everywhere.
        w, cuts, best, above = np.full(4, 0.25), np.empty((0, 4)), 0.0, math.inf
        unit = (slopes(w) @ w).min()
        while above > best * (1 + 1e-6):
            assert len(cuts) < 1000
            found = slopes(w)
            best = max(best, (found @ w).min())
            cuts = np.vstack([cuts, found])
            rows = np.column_stack([-cuts / unit, np.ones(len(cuts))])
            solved = optimize.linprog([0] * 4 + [-1], rows, np.zeros(len(rows)), [[1] * 4 + [0]], [1])
            w, above = solved.x[:4], solved.x[4] * unit
        time = problem.characteristic_time(means, distribution=distribution)
        assert 1 / best == pytest.approx(time, rel=5e-6)
        w = problem.optimal_proportions(means, distribution=distribution)
        assert (slopes(w) @ w).min() == pytest.approx(1 / time, rel=1e-5)
        assert game_of(problem, means, distribution, 1.0).is_solved


def test_arms_of_equal_means_change_no_time() -> None:
    """A control that has the mean of an arm left out is another arm."""
    problem = BetterThanControl(0, 0.1)
    assert problem.characteristic_time([0.5, 0.5, 0.9]) == pytest.approx(
        problem.characteristic_time([0.5, 0.5 + 1e-9, 0.9])
    )
    assert problem.characteristic_time([0.5, 0.6, 0.9]) == math.inf


def test_evidence_of_single_arms_makes_the_certificate() -> None:
    random = np.random.default_rng(3)
    for distribution in ("bernoulli", "gaussian", "student", "bounded"):
        for _ in range(20):
            N, m = arms(random, "bernoulli", 5)
            kw: dict[str, Any] = {"distribution": distribution, "sigma": SIGMA}
            if distribution in ("student", "bounded"):
                kw["variance"] = m * (1 - m)
            problem = BetterThanControl(2, lift=0.1, tolerance=0.02)
            both = problem.arm_evidence(N, m, **kw)
            chosen = np.where(problem.plug_in(m), both[:, 0], both[:, 1])
            level = problem.certified_level(N, m, **kw)
            assert -math.log(level) == pytest.approx(max(chosen.min() - math.log(4), 0.0), abs=1e-9)
            assert both[2].tolist() == [-math.inf, math.inf]
            plain = Threshold(0.4, 0.05)
            pairs = plain.arm_evidence(N, m, **kw)
            best = np.where(plain.plug_in(m), pairs[:, 0], pairs[:, 1]).min() - math.log(5)
            assert -math.log(plain.certified_level(N, m, **kw)) == pytest.approx(max(best, 0.0), abs=1e-9)
    with pytest.raises(ValueError, match="single arms have evidence in Threshold"):
        BestArm().arm_evidence([5, 5], [0.2, 0.8])


def test_all_good_arms_have_evidence_against_each_other_one() -> None:
    random = np.random.default_rng(4)
    problem, K = AllGood(0.1), 4
    for _ in range(20):
        N, m = random.integers(50, 900, K), random.uniform(0.4, 0.6, K)
        found = problem.arm_evidence(N, m, distribution="gaussian", sigma=0.1)
        level = problem.certified_level(N, m, np.ones(K, np.bool_), distribution="gaussian", sigma=0.1)
        assert -math.log(level) == pytest.approx(max(found[:, 0].min() - math.log(2 * (K - 1)), 0.0), abs=1e-9)


@pytest.mark.parametrize("E", [200, 2000])
def test_e_values_of_arms_that_are_left_out_wrongly_do_not_grow_with_their_number(E: int) -> None:
    """An arm that is good by a hair, and 60 others: the mean of E e-values that it is not, at 30 looks each."""
    random, K = np.random.default_rng(11), 61
    means = np.array([0.0, *[0.1] * (K - 1)])
    sums, problem = np.zeros((E, K)), AllGood(0.1)
    for look in range(1, 31):
        sums += random.normal(means * 10, math.sqrt(10), (E, K))
        if look % 10 == 0:
            evidence = problem.arm_evidence(np.full((E, K), 10 * look), sums / (10 * look), sigma=1.0)[:, 0, 1]
            e = np.where(evidence > 0, np.exp(evidence), 0)
            assert e.mean() <= 1 + 5.5 * e.std() / math.sqrt(E)


def test_intervals_with_guardrails_are_those_of_the_first_dimension() -> None:
    random, K = np.random.default_rng(12), 3
    N, m = random.integers(200, 3000, K), random.uniform(0.3, 0.6, (K, 2))
    both = BetterThanControl(2, guardrails=[0.5]).comparison(N, m, distribution="bernoulli")
    one = BetterThanControl(2).comparison(N, m[:, 0], distribution="bernoulli")
    for name in ("difference", "low", "high", "lift", "lift_low", "lift_high"):
        np.testing.assert_allclose(both[name], one[name])


@pytest.mark.parametrize(("N", "s"), [((5000, 5000), (10, 40)), ((300, 300), (9, 12)), ((100, 100), (5, 39))])
def test_lifts_of_rare_rates_end_where_the_evidence_begins(N: Any, s: Any) -> None:
    m = np.array(s) / N
    certifier = BetterThanControl().certifier(2, distribution="bernoulli")
    low, high = control_intervals(certifier, np.array(N), m, np.zeros(2), 0.05, True)[1]
    assert brute("bernoulli", np.array(N)[::-1], m[::-1], 1 + low, 0.0) == pytest.approx(math.log(40), rel=1e-4)
    assert brute("bernoulli", np.array(N), m, 1 / (1 + high), 0.0) == pytest.approx(math.log(40), rel=1e-4)


@pytest.mark.parametrize("lift", [-0.9999, -0.999, -0.5, 50.0, 5000.0])
def test_any_lift_has_evidence(lift: float) -> None:
    N, m = np.array([8500, 8510]), np.array([0.03, 0.04])
    found = BetterThanControl(lift=lift).arm_evidence(N, m, distribution="bernoulli")[1]
    assert (found >= 0).all()
    assert found.max() > 50


def test_guardrails_need_all_tests_and_their_noes_share_delta() -> None:
    random = np.random.default_rng(5)
    problem = BetterThanControl(0, guardrails=[0.05, 0.1])
    for _ in range(20):
        N, m = random.integers(100, 900, 4), random.uniform(0.2, 0.8, (4, 3))
        found = problem.arm_evidence(N, m, distribution="bernoulli")
        alone = [
            BetterThanControl(0, -g).arm_evidence(N, m[:, d], distribution="bernoulli")
            for d, g in enumerate([0.0, 0.05, 0.1])
        ]
        assert found[1:, 0] == pytest.approx(np.min([one[1:, 0] for one in alone], axis=0))
        most = np.max([one[1:, 1] for one in alone], axis=0) - math.log(3)
        assert found[1:, 1] == pytest.approx(np.maximum(most, 0.0))


def test_discoveries_are_those_of_the_definitions() -> None:
    random = np.random.default_rng(6)
    for _ in range(200):
        K, level = int(random.integers(1, 9)), float(random.uniform(0.01, 0.5))
        evidence = random.exponential(3.0, K).round(1)
        evidence[random.random(K) < 0.1] = -math.inf
        n = max(int(np.isfinite(evidence).sum()), 1)
        sizes = [k for k in range(1, K + 1) if (evidence >= math.log(n / (k * level))).sum() >= k]
        wanted = evidence >= math.log(n / (max(sizes) * level)) if sizes else np.zeros(K, np.bool_)
        assert discoveries(evidence, level, "fdr").tolist() == wanted.tolist()
        assert discoveries(evidence, level).tolist() == (evidence >= math.log(n / level)).tolist()
        together = discoveries(np.stack([evidence, evidence[::-1]]), level, "fdr")
        assert together.tolist() == [wanted.tolist(), wanted[::-1].tolist()]
    for bad, name in (((0.0, "fdr"), "level"), ((0.1, "bonferroni"), "rate")):
        with pytest.raises(ValueError, match=name):
            discoveries([1.0], *bad)


@pytest.mark.parametrize("distribution", ["bernoulli", "gaussian"])
def test_intervals_end_where_the_evidence_begins(distribution: str) -> None:
    random, K = np.random.default_rng(7), 4
    for lift in (True, False):
        N, m = random.integers(200, 3000, K), random.uniform(0.3, 0.6, K)
        certifier = BetterThanControl().certifier(K, distribution=distribution, sigma=SIGMA)
        ends = control_intervals(certifier, N, m, np.zeros(K), 0.1, lift)
        need = math.log(2 * (K - 1) / 0.1)
        for i in range(1, K):
            low, high = ends[i]
            a, b = (1 + low, 0.0) if lift else (1.0, low)
            assert brute(distribution, N[[i, 0]], m[[i, 0]], a, b) == pytest.approx(need, rel=1e-4)
            a, b = (1 + high, 0.0) if lift else (1.0, high)
            assert brute(distribution, N[[0, i]], m[[0, i]], 1 / a, -b / a) == pytest.approx(need, rel=1e-4)


@pytest.mark.parametrize("E", [150, 1500])
@pytest.mark.parametrize(("distribution", "mean", "shares"), [
    ("bernoulli", 0.5, (1, 1)), ("bernoulli", 0.03, (3, 1)), ("bernoulli", 0.97, (1, 2)), ("gaussian", 0.0, (1, 4)),
])  # fmt: skip
def test_a_pair_is_wrongly_told_apart_no_more_often_than_the_level(
    distribution: str, mean: float, shares: Any, E: int
) -> None:
    """A sampler that pulls the arm whose luck holds back; E episodes, a look at each of 60 steps, level .2."""
    random, level = np.random.default_rng(8), 0.2
    N, S, worst = np.zeros((E, 2), np.int64), np.zeros((E, 2)), np.zeros(E)
    problem, rows = BetterThanControl(1), np.arange(E)
    for step in range(60):
        size = 10 * (1 + step // 6)
        seen = S / np.maximum(N, 1)
        arm = np.where(seen[:, 0] - seen[:, 1] > 0, 0, 1) if step % 3 and step > 2 else np.full(E, step % 2)
        more = size * np.array(shares)[arm]
        N[rows, arm] += more
        draw = (
            random.binomial(more, mean)
            if distribution == "bernoulli"
            else random.normal(mean * more, SIGMA * np.sqrt(more))
        )
        S[rows, arm] += draw
        if N.min() > 0:
            found = problem.arm_evidence(N, S / N, distribution=distribution, sigma=SIGMA)[:, 0, 0]
            worst = np.maximum(worst, found)
    wrong = int((worst >= math.log(1 / level)).sum())
    assert wrong <= stats.binom.isf(1e-7, E, level)
    assert wrong > 0 or mean == 0.03 or E < 1500


@pytest.mark.parametrize("E", [500, 5000])
def test_e_values_are_at_most_1_on_average_at_a_stopping_time(E: int) -> None:
    """The sampler stops where the control has just been lucky, or after 40 steps: the mean of E e-values."""
    random = np.random.default_rng(9)
    N, S, done, value = np.zeros((E, 2), np.int64), np.zeros((E, 2)), np.zeros(E, np.bool_), np.zeros(E)
    problem = BetterThanControl(1)
    for step in range(40):
        going = ~done
        N[going] += [15, 5] if step % 2 else [5, 15]
        S[going] += random.binomial([15, 5] if step % 2 else [5, 15], 0.3, (going.sum(), 2))
        e = np.exp(problem.arm_evidence(N[going], S[going] / N[going], distribution="bernoulli")[:, 0, 0])
        value[going] = np.where(e > 1, e, 0)  # smaller ones are given as 1
        done[going] |= e > 3.0
    assert value.mean() <= 1 + 5.2 * value.std() / math.sqrt(E)  # 1e-7, normal approximation
    assert value.std() > 0.1


def test_hopes_are_cheap_where_they_are_wrong_and_pay_where_they_are_right() -> None:
    N, m = np.array([20_000, 20_000]), np.array([0.03, 0.0365])
    plain = BetterThanControl().arm_evidence(N, m, distribution="bernoulli")[1, 0]
    right = BetterThanControl(expected=[0.03, 0.037]).arm_evidence(N, m, distribution="bernoulli")[1, 0]
    wrong = BetterThanControl(expected=[0.03, 0.3]).arm_evidence(N, m, distribution="bernoulli")[1, 0]
    assert plain + 0.4 < right
    assert plain + math.log(1 - lifts.HOPED) - 1e-6 <= wrong < plain
