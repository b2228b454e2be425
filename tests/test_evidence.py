"""Evidence and certificates against independent computations: SciPy, enumeration, the definition of a wrong answer."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import integrate, optimize, special

from bandit_envs import PROBLEMS, AllGood, BestArm, Feasible, Polyhedron, Threshold, TopK
from bandit_envs.problems import Problem, SetProblem

LAWS = ("gaussian", "bernoulli", "student")
SIGMA = 0.7


def d(law: str, m: Any, v: Any, mu: Any) -> Any:
    """The divergence, written down a second time."""
    if law == "gaussian":
        return (m - mu) ** 2 / (2 * SIGMA**2)
    if law == "student":
        return np.log(1 + (m - mu) ** 2 / v) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((mu < 0) | (mu > 1), np.inf, special.rel_entr(m, mu) + special.rel_entr(1 - m, 1 - mu))


def lowest(f: Any, low: float, high: float) -> float:
    """The least value of a function on an interval, several local minima allowed."""
    if not low < high:
        return float(f(low))
    x = np.linspace(low, high, 201)
    y = np.array([float(f(one)) for one in x])
    best = float(y.min())
    for i in np.argsort(y)[:3]:
        a, b = x[max(i - 1, 0)], x[min(i + 1, 200)]
        found = optimize.minimize_scalar(f, bounds=(a, b), method="bounded", options={"xatol": 1e-12})
        best = min(best, float(found.fun))
    return best


def pair(law: str, T: Any, m: Any, v: Any, i: int, j: int, a: float, b: float, floor: float) -> float:
    """Arm i down to at most a mu_j + b, mu_j at least the floor and its mean."""
    low = max(m[j], floor)

    def f(y: float) -> float:
        return float(T[j] * d(law, m[j], v[j], y) + T[i] * d(law, m[i], v[i], min(m[i], a * y + b)))

    return lowest(f, low, max(low, (m[i] - b) / a))


def half_space(law: str, T: Any, m: Any, inside: Any, outside: Any, gap: float) -> float:
    """The sum of the means outside is to exceed that inside by the gap: by Lagrange's multiplier."""
    arms, sign = [*inside, *outside], np.array([1.0] * len(inside) + [-1.0] * len(outside))
    t, x = T[arms], m[arms]
    if gap + sign @ x <= 0:
        return 0.0
    if law == "gaussian":
        return float((gap + sign @ x) ** 2 / (2 * SIGMA**2 * (1 / t).sum()))
    if gap >= len(inside):
        return math.inf

    def moved(l: float) -> Any:  # noqa: E741
        def slope(mu: float, i: int) -> float:
            return float(t[i] * (mu - x[i]) + l * sign[i] * mu * (1 - mu))

        return np.array([optimize.brentq(slope, 1e-13, 1 - 1e-13, (i,), xtol=1e-16) for i in range(len(arms))])

    l = optimize.brentq(lambda l: gap + sign @ moved(l), 0, 1e6, xtol=1e-13)  # noqa: E741
    return float((t * d(law, x, 1.0, moved(l))).sum())


def brute(problem: Any, law: str, T: Any, m: Any, v: Any, A: Any) -> float:
    """The evidence of one episode, by enumeration and SciPy."""
    K, found = len(T), [math.inf]
    if isinstance(problem, Threshold):
        for i in range(K):
            turn = problem.threshold + (-problem.tolerance if A[i] else problem.tolerance)
            wrong = m[i] <= turn if A[i] else m[i] >= turn
            found.append(0.0 if wrong else float(T[i] * d(law, m[i], v[i], turn)))
    elif isinstance(problem, TopK):
        k, e, I, O = problem.k, problem.epsilon, np.flatnonzero(A), np.flatnonzero(~A)  # noqa: E741
        for i, j in itertools.product(I, O):
            if problem.criterion == "exact":
                found.append(pair(law, T, m, v, i, j, 1, 0, -math.inf))
        for i in I if problem.criterion == "each" else []:
            for B in itertools.combinations([a for a in range(K) if a != i], k):
                b = list(B)

                def f(x: float, i: int = i, b: list[int] = b) -> float:
                    up = T[b] * d(law, m[b], v[b], np.maximum(m[b], x + e))
                    return float(T[i] * d(law, m[i], v[i], min(x, m[i])) + up.sum())

                found.append(lowest(f, min(m[b].min() - e, m[i]), m[i]))
        for s in range(1, min(k, K - k) + 1) if problem.criterion == "aggregate" else []:
            for inside, outside in itertools.product(itertools.combinations(I, s), itertools.combinations(O, s)):
                if law == "student":
                    found.append(pair(law, T, m, v, inside[0], outside[0], 1, -k * e, -math.inf))
                else:
                    found.append(half_space(law, T, m, inside, outside, k * e))
    elif isinstance(problem, AllGood):
        e, s = problem.epsilon, problem.slack
        mult = problem.multiplicative
        for i in range(K):
            others = [a for a in range(K) if a != i]
            if A[i]:
                a, b, floor = (1 - e - s, 0.0, 0.0) if mult else (1.0, -e - s, -math.inf)
                found += [pair(law, T, m, v, i, j, a, b, floor) for j in others]
            else:
                low = max(m[i], 0.0) if mult else m[i]

                def f(x: float, i: int = i, others: list[int] = others) -> float:
                    y = x / (1 - e) if mult else x + e
                    down = T[others] * d(law, m[others], v[others], np.minimum(m[others], y))
                    return float(T[i] * d(law, m[i], v[i], x) + down.sum())

                found.append(lowest(f, low, max(low, m.max() * (1 - e) if mult else m.max() - e)))
    return min(found)


FORMS: list[Any] = [
    Threshold(0.5), Threshold(0.45, 0.1), BestArm(), BestArm(0.15), BestArm(0.1, "each"), TopK(2, 0.1, "exact"),
    TopK(2, 0.0, "each"), TopK(2, 0.2, "each"), TopK(3, 0.1, "each"), TopK(2, 0.0), TopK(2, 0.1), TopK(3, 0.05),
    TopK(4, 0.02), AllGood(0.2), AllGood(0.1, slack=0.1), AllGood(0.2, True), AllGood(0.3, True, 0.15),
]  # fmt: skip


def statistics(generator: Any, K: int, E: int, spread: float = 1.0) -> tuple[Any, Any, Any]:
    T = np.round(np.exp(generator.uniform(0, 6, (E, K)))).astype(np.int64)
    m = np.clip(0.5 + spread * (generator.random((E, K)) - 0.5), 0.0, 1.0)
    return T, m, np.exp(generator.uniform(-5, 1, (E, K)))


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("problem", FORMS, ids=repr)
def test_evidence_is_the_least_cost_that_enumeration_and_scipy_find(problem: Any, law: str) -> None:
    if law == "student" and isinstance(problem, TopK) and problem.criterion == "aggregate" and 1 < problem.k < 4:
        pytest.skip("refused")
    generator = np.random.default_rng(5)
    T, m, v = statistics(generator, 5, 3)
    answers = problem.plug_in(m)
    other = answers.copy()
    if not isinstance(problem, TopK):
        other[::2, 0] ^= True
    for A in (answers, other):
        found = problem.evidence(T, m, A, law=law, sigma=SIGMA, variance=v)
        for e in range(len(T)):
            assert found[e] == pytest.approx(brute(problem, law, T[e], m[e], v[e], A[e]), rel=1e-8, abs=1e-13), e
    assert (problem.evidence(T, m, law=law, sigma=SIGMA, variance=v) > 0).any()
