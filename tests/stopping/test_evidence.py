"""Evidence and certificates against independent computations: SciPy, enumeration, the definition of a wrong answer."""

from __future__ import annotations

import itertools
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from refusals import refused
from scipy import optimize, special

from bandit_envs import AllGood, BestArm, Feasible, SetProblem, Task, Threshold, TopK
from bandit_envs.stopping import Arm, Arms, Move, common, game, pair_bounds, pair_value
from bandit_envs.stopping.asking import game_of

DISTRIBUTIONS = ("gaussian", "bernoulli", "student")
SIGMA = 0.7


def d(distribution: str, m: Any, v: Any, mu: Any) -> Any:
    """The divergence, written down a second time."""
    if distribution == "gaussian":
        return (m - mu) ** 2 / (2 * SIGMA**2)
    if distribution == "student":
        return np.log(1 + (m - mu) ** 2 / v) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((mu < 0) | (mu > 1), np.inf, special.rel_entr(m, mu) + special.rel_entr(1 - m, 1 - mu))


def lowest(f: Any, low: float, high: float) -> float:
    """The least value of a function of arrays on an interval, with several local minima: by finer and finer grids."""
    if not low < high:
        return float(f(np.array([low]))[0])
    x = np.linspace(low, high, 201)
    y = f(x)
    best = float(y.min())
    for i in np.argsort(y)[:3]:
        a, b = x[max(i - 1, 0)], x[min(i + 1, 200)]
        for _ in range(9):
            z = np.linspace(a, b, 41)
            value = f(z)
            j = int(value.argmin())
            best, a, b = min(best, float(value[j])), z[max(j - 1, 0)], z[min(j + 1, 40)]
    return best


def pair(distribution: str, T: Any, m: Any, v: Any, i: int, j: int, a: float, b: float, floor: float) -> float:
    """Arm i down to at most a mu_j + b, mu_j at least the floor and its mean."""
    low = max(m[j], floor)

    def f(y: Any) -> Any:
        return T[j] * d(distribution, m[j], v[j], y) + T[i] * d(distribution, m[i], v[i], np.minimum(m[i], a * y + b))

    return lowest(f, low, max(low, (m[i] - b) / a))


def half_space(distribution: str, T: Any, m: Any, inside: Any, outside: Any, gap: float) -> float:
    """The sum of the means outside is to exceed that inside by the gap: by Lagrange's multiplier."""
    arms, sign = [*inside, *outside], np.array([1.0] * len(inside) + [-1.0] * len(outside))
    t, x = T[arms], m[arms]
    if gap + sign @ x <= 0:
        return 0.0
    if distribution == "gaussian":
        return float((gap + sign @ x) ** 2 / (2 * SIGMA**2 * (1 / t).sum()))
    if gap >= len(inside):
        return math.inf

    def moved(l: float) -> Any:  # noqa: E741
        def slope(mu: float, i: int) -> float:
            return float(t[i] * (mu - x[i]) + l * sign[i] * mu * (1 - mu))

        return np.array([optimize.brentq(slope, 1e-13, 1 - 1e-13, (i,), xtol=1e-16) for i in range(len(arms))])

    l = optimize.brentq(lambda l: gap + sign @ moved(l), 0, 1e6, xtol=1e-13)  # noqa: E741
    return float((t * d(distribution, x, 1.0, moved(l))).sum())


def brute(problem: Any, distribution: str, T: Any, m: Any, v: Any, A: Any) -> float:
    """The evidence of one episode, by enumeration and SciPy."""
    K, found = len(T), [math.inf]
    if isinstance(problem, Threshold):
        for i in range(K):
            turn = problem.threshold + (-problem.tolerance if A[i] else problem.tolerance)
            wrong = m[i] <= turn if A[i] else m[i] >= turn
            found.append(0.0 if wrong else float(T[i] * d(distribution, m[i], v[i], turn)))
    elif isinstance(problem, TopK):
        k, e, I, O = problem.k, problem.epsilon, np.flatnonzero(A), np.flatnonzero(~A)  # noqa: E741
        for i, j in itertools.product(I, O):
            if problem.criterion == "exact":
                found.append(pair(distribution, T, m, v, i, j, 1, 0, -math.inf))
        for i in I if problem.criterion == "each" else []:
            for B in itertools.combinations([a for a in range(K) if a != i], k):
                b = list(B)

                def f(x: Any, i: int = i, b: list[int] = b) -> Any:
                    up = T[b] * d(distribution, m[b], v[b], np.maximum(m[b], x[:, None] + e))
                    return T[i] * d(distribution, m[i], v[i], np.minimum(x, m[i])) + up.sum(axis=1)

                found.append(lowest(f, min(m[b].min() - e, m[i]), m[i]))
        for s in range(1, min(k, K - k) + 1) if problem.criterion == "aggregate" else []:
            for inside, outside in itertools.product(itertools.combinations(I, s), itertools.combinations(O, s)):
                if distribution == "student":
                    found.append(pair(distribution, T, m, v, inside[0], outside[0], 1, -k * e, -math.inf))
                else:
                    found.append(half_space(distribution, T, m, inside, outside, k * e))
    elif isinstance(problem, AllGood):
        e, s = problem.epsilon, problem.slack
        mult = problem.multiplicative
        for i in range(K):
            others = [a for a in range(K) if a != i]
            if A[i]:
                a, b, floor = (1 - e - s, 0.0, 0.0) if mult else (1.0, -e - s, -math.inf)
                found += [pair(distribution, T, m, v, i, j, a, b, floor) for j in others]
            else:
                low = max(m[i], 0.0) if mult else m[i]

                def f(x: Any, i: int = i, others: list[int] = others) -> Any:
                    y = x / (1 - e) if mult else x + e
                    down = T[others] * d(distribution, m[others], v[others], np.minimum(m[others], y[:, None]))
                    return T[i] * d(distribution, m[i], v[i], x) + down.sum(axis=1)

                found.append(lowest(f, low, max(low, m.max() * (1 - e) if mult else m.max() - e)))
    return min(found)


FORMS: list[Any] = [
    Threshold(0.5), Threshold(0.45, 0.1), BestArm(), BestArm(0.15), BestArm(0.1, "each"), TopK(2, 0.1, "exact"),
    TopK(2, 0.0, "each"), TopK(2, 0.45, "each"), TopK(3, 0.1, "each"), TopK(2, 0.0), TopK(2, 0.1), TopK(3, 0.05),
    TopK(4, 0.02), AllGood(0.2), AllGood(0.1, slack=0.1), AllGood(0.2, True), AllGood(0.3, True, 0.15),
]  # fmt: skip


def statistics(generator: Any, K: int, E: int, spread: float = 1.0) -> tuple[Any, Any, Any]:
    T = np.round(np.exp(generator.uniform(0, 6, (E, K)))).astype(np.int64)
    m = np.clip(0.5 + spread * (generator.random((E, K)) - 0.5), 0.0, 1.0)
    return T, m, np.exp(generator.uniform(-5, 1, (E, K)))


def is_brute(problem: Any, distribution: str, T: Any, m: Any, v: Any, A: Any) -> None:
    found = problem.evidence(T, m, A, distribution=distribution, sigma=SIGMA, variance=v)
    for e in range(len(T)):
        wanted = brute(problem, distribution, T[e], m[e], v[e], A[e])
        assert found[e] == pytest.approx(wanted, rel=1e-8, abs=1e-13), e


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("problem", FORMS, ids=repr)
def test_evidence_is_the_least_cost_that_enumeration_and_scipy_find(problem: Any, distribution: str) -> None:
    sets = isinstance(problem, TopK) and problem.criterion == "aggregate" and problem.epsilon > 0
    if distribution == "student" and sets and 1 < problem.k < 4:
        pytest.skip("refused")
    T, m, v = statistics(np.random.default_rng(5), 5, 2)
    answers = problem.plug_in(m)
    other = answers.copy()
    if not isinstance(problem, TopK):
        other[::2, 0] ^= True
    for A in (answers, other):
        is_brute(problem, distribution, T, m, v, A)
    assert (problem.evidence(T, m, distribution=distribution, sigma=SIGMA, variance=v) > 0).any()


@pytest.mark.parametrize("k", [2, 3])
def test_evidence_for_each_holds_next_to_means_of_1(k: int) -> None:
    """Where to raise arms to 1 costs inf for all, those that are cheapest just below must be found."""
    problem, generator = TopK(k, 0.1, "each"), np.random.default_rng(3)
    T, m = generator.integers(1, 900, (12, 6)), generator.beta(6, 1, (12, 6)).round(3)
    is_brute(problem, "bernoulli", T, m, m, problem.plug_in(m))


def test_evidence_of_two_arms_of_unknown_variances_where_it_has_several_minima() -> None:
    """The cost of one mean for both has one minimum near each of them, if they are many deviations apart."""
    generator, several = np.random.default_rng(7), 0
    T = np.round(np.exp(generator.uniform(0, 5, (400, 2)))).astype(np.int64)
    m, v = generator.random((400, 2)), np.exp(generator.uniform(-9, 0, (400, 2)))
    found = BestArm().evidence(T, m, distribution="student", variance=v)
    for e in range(400):
        y = np.linspace(m[e].min(), m[e].max(), 20001)
        cost = sum(T[e, a] / 2 * np.log1p((y - m[e, a]) ** 2 / v[e, a]) for a in range(2))
        assert 0.999 * cost.min() - 1e-3 <= found[e] <= cost.min() * (1 + 1e-9)
        inner = (cost[1:-1] < cost[:-2]) & (cost[1:-1] < cost[2:])
        several += inner.sum() + (cost[0] < cost[1]) + (cost[-1] < cost[-2]) > 1
    assert several > 50


@pytest.mark.parametrize("tolerance", [0.0, 0.06])
@pytest.mark.parametrize("normalise", [True, False])
def test_evidence_of_feasible_arms_is_a_quadratic_program(tolerance: float, normalise: bool) -> None:
    A, b = np.array([[1.0, 0.2], [-2.0, 1.0], [0.1, -1.0]]), np.array([0.9, 0.1, 0.0])
    problem, generator = Feasible(A, b, tolerance, normalise), np.random.default_rng(2)
    T, m = generator.integers(1, 50, (8, 3)), generator.random((8, 3, 2))
    found, answers = problem.evidence(T, m, sigma=SIGMA), problem.plug_in(m)
    rows, ends, unit = problem.polyhedron.A, problem.polyhedron.b, np.linalg.norm(problem.polyhedron.A, axis=1)
    for e in range(8):
        costs = []
        for i in range(3):
            x = m[e, i]
            if answers[e, i]:  # out by the nearest face, and the tolerance further
                distance = float(((ends - rows @ x) / unit).min()) + tolerance
            else:
                inner = {"type": "ineq", "fun": lambda y: ends - tolerance - rows @ y}
                at = optimize.minimize(
                    lambda y, x=x: ((y - x) ** 2).sum(), x, constraints=inner, method="SLSQP", options={"ftol": 1e-16}
                )
                distance = math.sqrt(at.fun)
            costs.append(T[e, i] * distance**2 / (2 * SIGMA**2))
        assert found[e] == pytest.approx(min(costs), rel=1e-7, abs=1e-12)


@pytest.mark.parametrize("D", [1, 2, 3])
def test_evidence_of_bernoulli_arms_in_a_polyhedron_is_a_convex_program(D: int) -> None:
    generator = np.random.default_rng(D)
    A = np.array([[1.0, 0.2, 0.5], [-2.0, 1.0, 0.3], [0.1, -1.0, 1.0]])[: 3 if D > 1 else 1, :D]
    b = np.array([0.6, -0.1, 0.3])[: len(A)]
    problem = Feasible(A, b)
    rows, ends = problem.polyhedron.A, problem.polyhedron.b
    T, m = generator.integers(1, 50, (12, 3)), generator.uniform(0.02, 0.98, (12, 3, D))
    found, answers = problem.evidence(T, m, distribution="bernoulli"), problem.plug_in(m)
    assert answers.any()
    assert not answers.all()

    def least(x: Any, constraints: Any) -> float:
        """By a solver that starts from several points."""
        best = math.inf
        for start in [x, *generator.uniform(0.1, 0.9, (4, D))]:
            at = optimize.minimize(
                lambda y: float(d("bernoulli", x, 1.0, y).sum()),
                start,
                jac=lambda y: (y - x) / (y * (1 - y)),
                constraints=constraints,
                bounds=[(1e-9, 1 - 1e-9)] * D,
                method="SLSQP",
                options={"ftol": 1e-15, "maxiter": 500},
            )
            best = min(best, float(at.fun)) if at.success or at.status == 8 else best
        return best

    for e in range(len(T)):
        costs = []
        for i in range(3):
            x = m[e, i]
            if answers[e, i]:
                alternatives = [
                    {"type": "ineq", "fun": lambda y, j=j: rows[j] @ y - ends[j], "jac": lambda y, j=j: rows[j]}
                    for j in range(len(ends))
                    if np.maximum(rows[j], 0).sum() > ends[j]
                ]
                cost = min((least(x, alternative) for alternative in alternatives), default=math.inf)
            else:
                cost = least(x, {"type": "ineq", "fun": lambda y: ends - rows @ y, "jac": lambda y: -rows})
            costs.append(T[e, i] * cost)
        assert found[e] == pytest.approx(min(costs), rel=1e-8, abs=1e-10), e


def test_feasible_arms_of_unknown_variance() -> None:
    """One dimension: the closed form; more: certificates by bounds from below of what SciPy finds."""
    box, v = Feasible([[1.0]], [0.5]), np.array([0.3, 0.2])
    T, m = np.array([20, 30]), np.array([0.1, 0.9])
    costs = T * np.log1p((m - 0.5) ** 2 / v) / 2
    assert box.evidence(T, m, distribution="student", variance=v) == pytest.approx(costs.min(), rel=1e-12)
    assert box.certified_level(100 * T, m, distribution="student", variance=v) < 1e-6
    problem, generator = Feasible([[1.0, 0.2], [-2.0, 1.0]], [0.9, 0.1]), np.random.default_rng(0)
    rows, ends = problem.polyhedron.A, problem.polyhedron.b
    numbers = problem.certifier(1, 2, distribution="student", boundary="none")
    for _ in range(20):
        x, v = generator.random(2), generator.uniform(0.1, 1, 2)
        told = numbers.alternatives(np.array([[10]]), x[None, None], v[None, None], np.full((1, 1), -1, np.int8))[0, 0]
        grid = x + generator.normal(0, 1, (20_000, 2))
        inside, wrong = (rows @ x <= ends).all(), (grid @ rows.T <= ends).all(axis=1)
        wrong = ~wrong if inside else wrong
        assert 0 <= told <= (5 * np.log1p((grid[wrong] - x) ** 2 / v).sum(axis=1)).min()


@pytest.mark.parametrize("problem", FORMS, ids=repr)
def test_the_nearest_instance_costs_the_evidence_and_is_at_the_edge_of_wrong(problem: Any) -> None:
    """By the definition of a correct answer alone: random instances that are wrong all cost at least the evidence."""
    generator = np.random.default_rng(7)
    T, m, _ = statistics(generator, 5, 4)
    A = problem.plug_in(m)
    found = problem.evidence(T, m)
    alternatives = problem.certifier(5, boundary="none", search="exact").alternatives(T, m, m, A.astype(np.int8))
    for e in range(4):
        n = int(alternatives[e, 1])
        arms, rates, target = alternatives[e, 2 : 2 + n].astype(int), alternatives[e, 7 : 7 + n], m[e].copy()
        target[arms] = alternatives[e, 12 : 12 + n]
        assert (T[e, arms] * rates).sum() == pytest.approx(found[e], rel=1e-9)
        assert (T[e] * (target - m[e]) ** 2 / 2).sum() == pytest.approx(found[e], rel=1e-9)
        beyond = target[None] + generator.normal(0, 1e-6, (400, 5))
        assert not problem.is_correct(np.broadcast_to(A[e], (400, 5)), beyond).all()
        far = m[e] + (target - m[e]) * generator.uniform(0, 1.2, (3000, 1)) + generator.normal(0, 0.05, (3000, 5))
        far = far[far.max(axis=1) > 0]
        wrong = far[~problem.is_correct(np.broadcast_to(A[e], far.shape), far)]
        assert ((T[e] * (wrong - m[e]) ** 2 / 2).sum(axis=1) >= found[e] * (1 - 1e-9)).all()


def test_an_arm_that_matters_and_lacks_pulls_leaves_no_evidence() -> None:
    for problem in (Threshold(0.5), BestArm(), TopK(2, 0.1), TopK(2, 0.1, "each"), AllGood(0.2)):
        assert problem.evidence([9, 9, 9, 9, 0], [0.9, 0.8, 0.3, 0.1, 0.0]) == 0
        assert problem.certified_level([9, 9, 9, 9, 0], [0.9, 0.8, 0.3, 0.1, 0.0]) == 1
    assert Threshold(0.5).evidence([[4, 4]], [[1.0, 0.0]]).shape == (1,)


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("boundary", ["mixture", "none"])
def test_bounds_of_pairs_hold_and_are_close(distribution: str, boundary: str) -> None:
    """From below and above, of an arm that is lowered or raised; half are close, but for means of 0 and 1."""
    rng = np.random.default_rng(5)
    K, numbers = 60, common(distribution, boundary=boundary)
    mean = rng.normal(size=K) if distribution == "gaussian" else np.append(rng.uniform(0.25, 0.75, K - 2), [0.0, 1.0])
    weight, penalty, bound = np.floor(np.exp(rng.uniform(0, 12, K))), rng.uniform(0, 5, K), np.empty(K)
    if distribution == "gaussian" and boundary == "mixture":
        penalty[:] = 0.0
    arms = Arms(mean, weight, penalty)
    for a, b, floor in ((1.0, -0.2, -math.inf), (0.8, 0.1, 0.2)):
        for i, is_lowered, is_above in itertools.product((0, 7, K - 1), (True, False), (True, False)):
            pair_bounds(numbers, arms, i, is_lowered, Move(a, b, floor), 1.0, is_above, bound)
            apart = []
            for j in set(range(K)) - {i}:
                low, high = (i, j) if is_lowered else (j, i)
                sides = [Arm(mean[n], weight[n], 1.0, penalty[n]) for n in (low, high)]
                value = pair_value(numbers, *sides, Move(a, b, floor)) - 1.0
                assert (bound[j] >= value) if is_above else (bound[j] <= value)
                allowed = 0.1 if distribution == "gaussian" else 0.1 + 0.1 * abs(value)
                apart += [abs(bound[j] - value) / allowed] if math.isfinite(bound[j]) and math.isfinite(value) else []
            assert not apart or mean[i] == 1.0 or np.median(apart) < 1


def scipy_game(problem: Any, distribution: str, means: Any) -> tuple[float, float]:
    """Bounds of the value of the game, from below and above: cutting planes by SciPy's linear program."""
    K, cuts, lower, upper = len(means), list[Any](), 0.0, math.inf
    exact = problem.certifier(K, distribution=distribution, boundary="none", search="exact")
    answer, best = problem.plug_in(means).astype(np.int8)[None], np.full(K, 1 / K)
    w = best
    for _ in range(250):
        out = exact.alternatives(np.round(w * 1e15).astype(np.int64)[None] + 1, means[None], np.zeros((1, K)), answer)[
            0
        ]
        n, row = int(out[1]), np.zeros(K)
        row[out[2 : 2 + n].astype(int)] = out[2 + K : 2 + K + n]
        cuts.append(row)
        if out[0] / 1e15 > lower:
            lower, best = out[0] / 1e15, w
        rows = np.column_stack([-np.array(cuts) / lower, np.ones(len(cuts))])
        share, one = np.append(np.ones(K), 0)[None], [(0, 1)] * K + [(None, None)]
        at = optimize.linprog(np.append(np.zeros(K), -1), rows, np.zeros(len(cuts)), share, [1.0], bounds=one)
        upper, w = -at.fun * lower, 0.5 * best + 0.5 * at.x[:K]
        if upper - lower < 1e-6 * lower:
            break
    return lower, upper


SPREAD, TIED, ONE, TWO = [0.85, 0.7, 0.5, 0.35], [0.9, 0.5, 0.5, 0.1], [1.0, 0.0, 0.0], TopK(2, 0.1, "each")
PLAIN = [BestArm(0.05), TopK(2, 0.1), TopK(3, 0.05), TopK(2, 0.25, "each"), AllGood(0.3, True, 0.1)]
GAMES: list[Any] = [(problem, SPREAD, d, 1e-6, 1e-4) for problem in PLAIN for d in ("gaussian", "bernoulli")]
EDGES = [(BestArm(0.1), [1.0, 1.0, 0.5]), (TopK(2, 0.1), [0.2, 0.1, 0.0, 0.0]), (TWO, ONE), (TWO, TIED)]
EDGES += [(AllGood(0.15), ONE), (AllGood(0.15), TIED)]
GAMES += [(problem, means, "bernoulli", 1e-5, 1e-3) for problem, means in EDGES]


@pytest.mark.parametrize(("problem", "means", "distribution", "close", "apart"), GAMES, ids=repr)
def test_the_characteristic_time_is_that_of_an_independent_solver(
    problem: Any, means: list[float], distribution: str, close: float, apart: float
) -> None:
    """Also of ties, and of means of 0 and 1, where the solver is less precise."""
    m = np.array(means)
    found = problem.characteristic_time(m, distribution=distribution)
    w = problem.optimal_proportions(m, distribution=distribution)
    assert w.sum() == pytest.approx(1)
    assert (w > 0).all() or apart == 1e-3
    pulls = np.maximum(np.round(w * 1e13), 1).astype(np.int64)
    assert problem.evidence(pulls, m, distribution=distribution) / 1e13 == pytest.approx(1 / found, rel=2e-6)
    low, high = scipy_game(problem, distribution, m)
    assert low * (1 - close) <= 1 / found <= high * (1 + close)
    assert high - low < apart * high


@pytest.mark.parametrize("K", [50, 100])
def test_the_bounds_of_many_arms_meet_and_the_proportions_reach_them(K: int) -> None:
    """The evidence at the proportions, by the compiled search, is what the bound from above allows."""
    means = np.round(np.random.default_rng(K).random(K), 2)  # some are equal
    for problem in (BestArm(0.05), TopK(7, 0.1, "exact"), AllGood(0.213)):
        time, w = problem.characteristic_time(means), problem.optimal_proportions(means)
        pulls = np.round(w * 1e14).astype(np.int64)
        assert problem.evidence(pulls, means) / 1e14 == pytest.approx(1 / time, rel=1.1e-6)
        kinds = list(zip(means, problem.plug_in(means), strict=True))
        assert len(set(zip(kinds, w, strict=True))) == len(set(kinds)) < K


@pytest.mark.parametrize("K", [20, 50])
@pytest.mark.parametrize(
    ("problem", "distribution"), [(TopK(5, 0.1, "each"), "bernoulli"), (TopK(3, 0.02), "gaussian")]
)
def test_the_bounds_meet_where_sets_of_arms_are_many(problem: Any, distribution: str, K: int) -> None:
    means = np.random.default_rng(4).uniform(size=K)
    game = game_of(problem, means, distribution, 0.5)
    assert game.is_solved
    assert game.value * (1 - 1e-12) <= game.most <= game.value * (1 + 8e-7)
    pulls = np.round(game.proportions * 1e14).astype(np.int64)
    assert problem.evidence(pulls, means, distribution=distribution, sigma=0.5) / 1e14 == pytest.approx(
        game.value, rel=1e-6
    )


def test_a_characteristic_time_that_is_not_found_to_its_accuracy_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(game, "ROUNDS", 3)
    means = np.linspace(0.2, 0.8, 8)
    with pytest.warns(RuntimeWarning, match=r"characteristic time of TopK.* not found to its accuracy: it lies betw"):
        assert TopK(3, 0.1, "each").characteristic_time(means) > 0


def test_bounds_that_take_long_are_known_beforehand() -> None:
    assert all(one.quick_bound(K) for one, K in ((BestArm(0.1), 50), (TopK(3), 50), (Threshold(0.5), 10_000)))
    assert not any(one.quick_bound(K) for one, K in ((TopK(3, 0.1, "each"), 10), (AllGood(0.1), 200)))


def test_the_characteristic_time_is_the_closed_form_where_there_is_one() -> None:
    assert BestArm().characteristic_time([0.9, 0.4], sigma=2.0) == pytest.approx(8 * 4 / 0.25, rel=1e-6)
    gaps = np.array([0.4, 0.1, 0.3])
    time = Threshold(0.5, 0.05).characteristic_time(0.5 + gaps * [1, -1, 1], sigma=0.5)
    assert time == pytest.approx((2 * 0.25 / (gaps + 0.05) ** 2).sum(), rel=1e-9)
    kl = special.rel_entr([0.2, 0.9], 0.5) + special.rel_entr([0.8, 0.1], 0.5)
    assert Threshold(0.5).characteristic_time([0.2, 0.9], distribution="bernoulli") == pytest.approx((1 / kl).sum())
    # Two Bernoulli arms are both moved to the mean of their means (Garivier & Kaufmann 2016, section 2).
    a, b = 0.7, 0.4

    def value(w: float) -> float:
        x = w * a + (1 - w) * b
        return -float(w * d("bernoulli", a, 1.0, x) + (1 - w) * d("bernoulli", b, 1.0, x))

    best = optimize.minimize_scalar(value, bounds=(0.1, 0.9), method="bounded", options={"xatol": 1e-12})
    assert BestArm().characteristic_time([a, b], distribution="bernoulli") == pytest.approx(-1 / best.fun, rel=1e-6)
    assert BestArm().optimal_proportions([a, b], distribution="bernoulli")[0] == pytest.approx(best.x, abs=1e-3)
    assert BestArm().characteristic_time([0.5, 0.5]) == math.inf
    assert BestArm().lower_bound([0.9, 0.4], 0.1) == pytest.approx(32 * 0.8 * math.log(9), rel=1e-6)
    assert AllGood(0.2).paper_lower_bound([0.9, 0.4], 0.1) < 1e4
    assert math.isnan(AllGood(0.2, slack=0.5).lower_bound([0.9, 0.4], 0.1))


class Near(SetProblem):
    """A problem of a user's own: arms within 0.1 of 0.5."""

    name, local = "Near", True

    def margin(self, means: Any) -> Any:
        return 0.1 - np.abs(np.asarray(means) - 0.5)


class Bare(SetProblem):
    name = "Bare"

    def margin(self, means: Any) -> Any:
        return np.asarray(means) - np.asarray(means).mean(axis=-1, keepdims=True)


def test_a_problem_of_ones_own_has_evidence_by_its_margins_if_it_is_local() -> None:
    found = Near().evidence([10, 20], [0.55, 0.9])
    assert found == pytest.approx(min(10 * 0.05**2 / 2, 20 * 0.3**2 / 2))
    assert Near().certified_level([10**6, 10**6], [0.55, 0.9]) < 1e-6
    assert Near().evidence([[10, 0]], [[0.55, 0.0]]) == 0
    with refused("Bare", "evidence"):
        Bare().evidence([1, 1], [0.1, 0.2])
    with refused("Near", "distance_routine", "distribution='bernoulli'"):
        Near().evidence([1, 1], [0.1, 0.2], distribution="bernoulli")
    assert math.isnan(Bare().lower_bound([0.1, 0.2], 0.1))


class Disk(SetProblem):
    """A problem of a user's own: arms of two dimensions within 0.5 of 0."""

    name, local = "Disk", True

    def check(self, task: Any, source: Any = None) -> None:
        assert task.D == 2

    def margin(self, means: Any) -> Any:
        return 0.5 - np.hypot(*np.moveaxis(np.asarray(means), -1, 0))


def test_margins_of_arms_of_two_dimensions_pay_for_both() -> None:
    """The mixture's penalty is D/2 ln(1 + N / rho) for an arm, as a mean may be anywhere beside its margin.

    Of all rhos that of these pulls, 300, has .3 of the weight.
    """
    N, mean = np.array([4000, 3000]), np.array([[0.1, 0.0], [0.9, 0.3]])
    w, gap = N**2 / (N + 300), np.abs(Disk().margin(mean))
    value = (w * gap**2 / 2 - np.log1p(N / 300)).min() - math.log(2)
    assert Disk().certified_level(N, mean, rho=300.0) == pytest.approx(math.exp(-value), rel=1e-9)
    assert Disk().certified_level(N, mean) == pytest.approx(math.exp(-value) / 0.3, rel=1e-9)
    assert Disk().evidence(N, mean) == pytest.approx((N * gap**2 / 2).min())


@pytest.mark.parametrize(
    ("problem", "means"),
    [
        (BestArm(0.1), [1.0, 1.0]),
        (AllGood(0.2), [1.0, 0.95, 0.1]),
        (AllGood(0.2, True), [1.0, 0.95, 0.1]),
        (AllGood(0.2), [1.0, 1.0]),
    ],
)
def test_a_mean_of_one_cannot_rise_but_the_other_arm_falls(problem: Any, means: list[float]) -> None:
    """Evidence and characteristic time are continuous there: of two arms of 1, one falls to .9: 100 ln(1 / .9)."""
    near = [min(m, 1 - 1e-9) for m in means]
    at, before = (problem.evidence([100] * len(m), m, distribution="bernoulli") for m in (means, near))
    assert at == pytest.approx(before, rel=1e-6)
    if len(means) == 2 and problem == BestArm(0.1):
        assert at == pytest.approx(100 * math.log(1 / 0.9))
    at, before = (problem.characteristic_time(m, distribution="bernoulli") for m in (means, near))
    assert at == pytest.approx(before, rel=1e-5)


TIES: list[Any] = [(BestArm(), [0.9, 0.9, 0.3]), (BestArm(criterion="exact"), [1.0, 1.0, 0.5])]
TIES += [(BestArm(0.0, "each"), [0.0, 0.0]), (TopK(2), TIED), (TopK(2, 0.1, "exact"), ONE), (TopK(2), [1.0] * 4)]
TIES += [(AllGood(0.25), [1.0, 0.75, 0.2]), (AllGood(0.5, True), [1.0, 0.5]), (Threshold(0.5), [0.5, 0.9])]
NEVER_WRONG: list[Any] = [(BestArm(1.0), [0.9, 0.3]), (BestArm(2.0, "each"), [1.0, 0.0]), (TopK(2, 1.0), TIED)]
NEVER_WRONG += [(TopK(2, 1.0, "each"), [0.5] * 4), (AllGood(1.5), [0.2, 0.9]), (Threshold(0.5, 0.6), [0.2, 0.9])]
ENDLESS = [(*row, d, 0.0) for row in TIES for d in ("gaussian", "bernoulli")]
ENDLESS += [(*row, "bernoulli", math.inf) for row in NEVER_WRONG]


@pytest.mark.parametrize(("problem", "means", "distribution", "evidence"), ENDLESS)
def test_an_answer_that_is_tied_takes_for_ever_and_one_that_nothing_makes_wrong_no_pulls(
    problem: Any, means: list[float], distribution: str, evidence: float
) -> None:
    """There is no evidence at any proportions, so that no number of pulls is enough; or it is infinite at once."""
    K, options = len(means), {"distribution": distribution, "sigma": 0.5}
    time = 0.0 if evidence else math.inf
    pulls = np.random.default_rng(0).integers(1, 1000, K)
    assert problem.evidence(pulls, means, **options) == evidence
    assert problem.evidence(pulls, means, distribution="gaussian") < math.inf  # a tolerance as wide as a range
    assert problem.characteristic_time(means, **options) == problem.lower_bound(means, 0.1, **options) == time
    assert problem.optimal_proportions(means, **options) == pytest.approx(1 / K)


NIL = 1 / math.log(1 / 0.9)  # pulls per nat of an arm of mean 0 that is raised to .1, or of one of 1 lowered to .9


@pytest.mark.parametrize(
    ("problem", "means", "time", "shares"),
    [
        (BestArm(0.1), [0.0] * 2, NIL, [0, 1]),
        (BestArm(0.1, "each"), [0.0] * 3, 2 * NIL, [0, 0.5, 0.5]),
        (BestArm(0.1), [1.0] * 3, NIL, [1, 0, 0]),
        (TopK(2, 0.1, "each"), [1.0] * 4, 2 * NIL, [0.5, 0.5, 0, 0]),
        (TopK(2, 0.1), [0.0] * 4, NIL, [0, 0, 0.5, 0.5]),
        (TopK(2, 0.1), [1.0] * 4, NIL, [0.5, 0.5, 0, 0]),
        (AllGood(0.1), [0.0] * 3, 3 * NIL, [1 / 3] * 3),
        (AllGood(0.1), [1.0] * 3, 3 * NIL, [1 / 3] * 3),
        (Threshold(0.9), [1.0] * 3, 3 * NIL, [1 / 3] * 3),
    ],
)
def test_the_characteristic_time_of_means_of_0_and_1(
    problem: Any, means: list[float], time: float, shares: list[float]
) -> None:
    """One arm moves, as the other is at its end: w ln(1 / .9). Two by a sum of .2: each by .1, or at double cost."""
    assert problem.characteristic_time(means, distribution="bernoulli") == pytest.approx(time, rel=1e-6)
    assert problem.optimal_proportions(means, distribution="bernoulli") == pytest.approx(shares, abs=1e-4)


def test_the_smallest_deltas_have_finite_bounds() -> None:
    means, problem = [0.9, 0.4], BestArm()
    for delta in (1e-300, 1e-310, 5e-324):
        expected = -math.log(delta) * problem.characteristic_time(means)
        assert problem.lower_bound(means, delta) == pytest.approx(expected)
        assert math.isfinite(AllGood(0.2).paper_lower_bound(means, delta))
        assert math.isfinite(AllGood(0.2).fareast_bound(means, delta))


def test_statistics_of_another_shape_are_read() -> None:
    """Means (K, 1) are those of scalar arms, no episodes give no values."""
    assert BestArm().certified_level([5, 5], [[0.5], [0.5]]) == BestArm().certified_level([5, 5], [0.5, 0.5]) == 1
    assert Threshold(0.5).certified_level(np.zeros((0, 3)), np.zeros((0, 3))).shape == (0,)


# --- the arms of an environment --------------------------------------------------------------------------------------

BERNOULLI = {"distribution": "bernoulli", "mean": [0.9, 0.4, 0.6]}, "bernoulli", 0.5
GAUSSIAN = {"distribution": "gaussian", "mean": [1.0, 0.0, 0.2], "sd": 3.0}, "gaussian", 3.0


@pytest.mark.parametrize(
    ("problem", "told", "arms", "distribution", "sigma"),
    [("BestArm", {}, *BERNOULLI), ("AllGood", {"epsilon": 0.3}, *GAUSSIAN), ("Threshold", {}, *BERNOULLI)],
)
def test_evidence_and_bounds_of_an_environment_are_of_its_arms(
    problem: str, told: Any, arms: Any, distribution: str, sigma: float
) -> None:
    """Defect: they answered for Gaussian arms of scale 1, whatever the arms."""
    env: Any = gym.make(f"bandit_envs/{problem}-v0", instance=arms, delta=0.1, **told).unwrapped
    ours, alone, means = env.problem, type(env.problem)(**env.problem.settings), arms["mean"]
    given, pulls = {"distribution": distribution, "sigma": sigma}, [10, 20, 30]
    assert ours.lower_bound(means, 0.1) == alone.lower_bound(means, 0.1, **given)
    assert ours.characteristic_time(means) == alone.characteristic_time(means, **given)
    assert ours.optimal_proportions(means).tolist() == alone.optimal_proportions(means, **given).tolist()
    assert ours.evidence(pulls, means) == alone.evidence(pulls, means, **given)
    assert ours.certified_level(pulls, means) == alone.certified_level(pulls, means, **given)
    assert ours.certifier(3).numbers.tolist() == alone.certifier(3, **given).numbers.tolist()
    assert ours.lower_bound(means, 0.1) != alone.lower_bound(means, 0.1)
    for asked in ({"distribution": "bernoulli"}, {"distribution": "gaussian", "sigma": 1.0}):
        if distribution == "bernoulli" or asked["distribution"] == "gaussian":
            assert ours.lower_bound(means, 0.1, **asked) == alone.lower_bound(means, 0.1, **asked)


def test_arms_of_other_distributions_must_be_asked_for() -> None:
    uniform = {"distribution": "uniform", "mean": [0.6, 0.4], "width": 0.2}
    problem = gym.make("bandit_envs/BestArm-v0", instance=uniform).unwrapped.problem  # type: ignore[attr-defined]
    for ask in (problem.characteristic_time, problem.optimal_proportions):
        with refused("uniform", "distribution='gaussian'"):
            ask([0.6, 0.4])
    assert math.isnan(problem.lower_bound([0.6, 0.4], 0.1))
    assert problem.lower_bound([0.6, 0.4], 0.1, distribution="gaussian", sigma=0.5) > 0
    assert problem.certifier(2).numbers[1] == pytest.approx(0.1**2)  # half of the width, the scale


def test_dependent_coordinates_of_an_environment_count_as_such() -> None:
    task = Task(
        "Feasible", {"A": [[1.0, 0.0], [0.0, 1.0]], "b": [0.0, 0.0]}, 2, 2, support=None, distribution="own", sigma=0.5
    )
    problem = task.make_problem()
    given = {"distribution": "gaussian", "sigma": 0.5, "dependent": True}
    m = [[1.0, 1.0], [-1.0, -1.0]]
    alone = Feasible(**problem.settings).certified_level([30, 30], m, **given)
    assert problem.certified_level([30, 30], m) == alone


@pytest.mark.parametrize("problem", [TopK(2, 0.05, "each"), AllGood(0.3)], ids=str)
def test_the_arms_that_the_closest_alternative_moves_make_up_the_evidence(problem: Any) -> None:
    """Evidence is the sum over the arms that are reported of pulls times (mean - moved mean)^2 / 2, often of three."""
    generator, counts = np.random.default_rng(5), []
    certifier = problem.certifier(6, distribution="gaussian", sigma=1.0, boundary="none", search="exact")
    for _ in range(40):
        T, m = generator.integers(20, 24, 6), np.repeat([1.0, 0.65], 3) + 0.01 * generator.normal(size=6)
        told = certifier.alternatives(T[None], m[None], np.ones((1, 6)), np.full((1, 6), -1, np.int8))[0]
        n = int(told[1])
        arms, moved = told[2 : 2 + n].astype(int), told[14 : 14 + n]
        assert len(set(arms)) == n
        assert np.sum(T[arms] * (m[arms] - moved) ** 2 / 2) == pytest.approx(told[0])
        counts.append(n)
    assert max(counts) > 2
