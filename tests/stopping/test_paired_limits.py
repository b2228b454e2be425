"""Certificates of Feasible on a table with several metrics: by hand, against plain Python, over all orders.

False-alarm level of the statistical tests: 1e-6 each. The expectations over all orders are exact.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import twins_paired as twins
from scipy import stats
from taken_in import take_in

import agents
from bandit_envs import Feasible, Shared, Task, Threshold
from bandit_envs.stopping import COMMON, Certifier, paired

ROUNDED = 1e-9


def certifier_of(problem: Any, x: Any, delta: float, support: Any = None) -> Certifier:
    """That of a table (N, K, D); scores in [0, 1] unless a support says otherwise."""
    arms = Shared(np.nan_to_num(x), [(0.0, 1.0)] * x.shape[2] if support is None else support)
    told: dict[str, Any] = {"distribution": "shared", "support": arms.support, "items": arms.items}
    D = arms.D
    return Task(problem.name, problem.settings, arms.K, D, delta=delta, ranges=arms.ranges, **told).certifier()


def kept(certifier: Certifier, tables: Any, pulls: Any = None) -> tuple[dict[str, Any], Any, Any]:
    """What the routine keeps of tables (E, N, K, D) after pulls (T, K), None: each row; its answers, and out[0]."""
    E, N, K, D = tables.shape
    pulls = np.repeat(np.arange(1, N + 1)[:, None], K, axis=1) if pulls is None else np.asarray(pulls, np.int64)
    T = len(pulls)
    shown = np.concatenate([np.zeros((E, 1, K, D)), np.nan_to_num(tables).cumsum(axis=1)], axis=1)
    mean = shown[:, pulls, np.arange(K)] / np.maximum(pulls, 1)[..., None]
    scratch, inside = np.zeros((E, T, certifier.scratch)), np.zeros((E, T, K), np.int8)
    out = np.zeros((E, T, 2 + 3 * K))
    flat = np.ascontiguousarray(tables.swapaxes(1, 2)).reshape(E, -1)
    take_in(certifier.address, certifier.numbers, flat, pulls, mean.reshape(E, T, -1), scratch, inside, out)
    at = paired.SIZE + paired.ARMS * K
    arms = scratch[:, :, paired.SIZE : at].reshape(E, T, paired.ARMS, K)
    M = (len(certifier.numbers) - COMMON - 5) // (paired.FIRST + D)
    limits = scratch[:, :, at : at + 4 * K * M].reshape(E, T, K, M, 4)
    found = {"verdict": arms[:, :, 0], "better": arms[:, :, 6], "far": arms[:, :, 7], "level": out[..., 0]}
    return found | {"is kept": limits[..., 2], "is not": limits[..., 3]}, inside, out


def test_two_limits_by_hand() -> None:
    """Accuracy 1 1 0 .. at least .5, and latency 2 2 8 .. ms of 0 to 10 at most 6, N = 4.

    Accuracy is as in the test of a threshold by hand. Latency: in units of the range .8 .8 .2 of at least .4 of 10 less
    latency. Row 1 is not bet on. Row 2: m = (1.6 - .8) / 3, v = 1.16 / 6, hope = (.8 - m) / 6.
    """
    x = np.array([[[1.0, 2], [0, 9]], [[1, 2], [0, 9]], [[0, 8], [1, 1]], [[0, 8], [1, 1]]])
    problem = Feasible([[-1.0, 0.0], [0.0, 1.0]], [-0.5, 6.0])
    found, inside, _ = kept(certifier_of(problem, x, 0.01, [(0, 1), (0, 10)]), x[None])
    right = (1 - 1 / 3) / 6, 1.25 / 6, 1 - 1 / 3
    m = (1.6 - 0.8) / 3
    quick = (0.8 - m) / 6, 1.16 / 6, 0.8 - m
    wanted = [1 + hope / (v + hope**2) * gain for hope, v, gain in (right, quick)]
    assert found["is kept"][0, 1, 0] == pytest.approx(wanted, rel=1e-12)
    assert found["better"][0, 1, 0] == pytest.approx(min(wanted), rel=1e-12)
    assert found["far"][0, 1, 0] == pytest.approx(found["is not"][0, 1, 0].mean(), rel=1e-15)
    assert found["level"][0, 1] == pytest.approx(math.log(min(min(wanted), found["far"][0, 1, 1]) / 2), rel=1e-12)
    assert found["verdict"][0, -1].tolist() == [1, 1]  # means .5 and 5: within both limits
    assert inside[0].tolist() == [[1, 0], [1, 0], [1, 0], [1, 1]]


def eighths(g: Any, *shape: int) -> Any:
    return g.integers(0, 9, shape) / 8


@pytest.mark.parametrize("near", [0.0, 0.125])
def test_threshold_is_the_case_of_one_limit(near: float) -> None:
    """To the bit, with failures, uneven pulls, and in another unit."""
    g = np.random.default_rng(0)
    for trial in range(20):
        N, delta = int(g.choice([1, 2, 5, 12, 40])), float(g.choice([0.9, 0.3, 0.05]))
        x = eighths(g, 1, N, 4, 1)
        x[g.random(x.shape) < 0.2 * (trial % 3)] = math.nan
        pulls = np.minimum(np.cumsum(g.integers(0, 3, (2 * N + 1, 4)), axis=0), N)
        ends = None if trial % 2 else (-2.0, 3.0)
        told = []
        for problem in (Threshold(0.5, near), Feasible([[-1.0]], [-0.5], near)):
            made = certifier_of(problem, x[0], delta, ends)
            found, inside, out = kept(made, x, pulls)
            told.append([*found.values(), inside, out])
        assert all(np.array_equal(one, other) for one, other in zip(*told, strict=True))


A = [[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, -0.25, 1.0]]
B = [-0.5, 0.6, 0.55]


@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_the_routine_is_a_threshold_for_each_limit() -> None:
    """By the twin of Threshold on each row of A, of scores that are scaled to the range of that row."""
    g, problem = np.random.default_rng(1), Feasible(A, B, normalise=False)
    for trial in range(12):
        N, delta = int(g.choice([3, 8, 30])), float(g.choice([0.9, 0.3, 0.05]))
        x, K = eighths(g, N, 4, 3), 4
        x[np.broadcast_to(g.random((N, 4, 1)) < 0.2 * (trial % 2), x.shape)] = math.nan
        found, inside, _ = kept(certifier_of(problem, x, delta), x[None])
        need, ends = K / delta, []
        for row, b in zip(-np.array(A), -np.array(B), strict=True):
            low, width = np.minimum(row, 0).sum(), np.abs(row).sum()
            y, theta = (x @ row - low) / width, (b - low) / width
            ends.append([twins.threshold(y, theta, theta, theta, 1e-250, np.full(K, n)) for n in range(1, N + 1)])
        better, far = (np.array([[getattr(t, name) for t in one] for one in ends]) for name in ("better", "far"))
        for k in range(K):
            sure = np.maximum.accumulate(np.where(better[..., k] >= need, better[..., k], 0.0), axis=1)
            into, out = np.where(sure > 0, np.inf, better[..., k]).min(axis=0), far[..., k].mean(axis=0)
            over = np.flatnonzero(np.maximum(into, out) >= need)
            first = min(over[0] if len(over) else N - 1, N - 1)
            assert found["better"][0, :first, k] == pytest.approx(into[:first], rel=1e-7)
            assert found["far"][0, :first, k] == pytest.approx(out[:first], rel=1e-7)
            open_rows = found["verdict"][0, :, k] == 0
            assert open_rows[:first].all()
            if first < N - 1:
                assert found["verdict"][0, first:, k] == pytest.approx(1 if into[first] >= need else -1)
        y = np.nanmean(x, axis=0)
        scored = ~np.isnan(x[..., 0]).all(axis=0)
        if delta < 0.1 and N < 30 and np.isfinite(y).all():
            clear = np.abs(y @ np.transpose(A) - B).min(axis=1) > 1e-9
            wanted = (y @ np.transpose(A) <= B).all(axis=1)
            assert (inside[0, -1] == wanted)[scored & clear].all()


# --- all orders of small tables ---------------------------------------------------------------------------------------

EXACT = [
    Feasible([[-1.0, 0.0], [0.0, 1.0]], [-0.5, 0.5]),
    Feasible([[-1.0, 0.0], [0.0, 1.0]], [-0.5, 0.5], 0.125),
    Feasible([[-1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [-0.25, 0.75, 0.75]),
    Feasible([[1.0, 1.0], [-1.0, 0.5]], [1.0, 0.0], normalise=False),
    Feasible([[3.0, 4.0], [-4.0, 3.0]], [3.5, 0.0], 0.0625),
    Feasible([[1.0, -1.0]], [0.0]),
]


def growth(capital: Any, N: int) -> float:
    """How much a capital (orders, N) grows on average at most: from the beginning, and from any beginning to the next.

    Orders that begin alike are neighbours.
    """
    most = float(capital.mean(axis=0).max())
    for n in range(1, N):
        alike = capital.reshape(-1, math.factorial(N - n), N)
        most = max(most, float((alike[:, :, n].mean(axis=1) / alike[:, 0, n - 1]).max()))
    return most


def distances(problem: Feasible, means: Any) -> Any:
    """Which limits arms break beyond doubt, (K, M), and which arms keep all with the tolerance to spare, (K,)."""
    R, ends, near = np.array(problem.polyhedron.A), problem.polyhedron.b, problem.tolerance
    norms = np.linalg.norm(R, axis=1)
    turned = np.abs((R / norms[:, None]) @ (R / norms[:, None]).T).round(9)
    orthogonal = np.isin(turned, (0, 1)).all()
    share = near / math.sqrt(np.linalg.matrix_rank(R)) if orthogonal else 0.0
    return means @ R.T >= ends + share * norms - 1e-12, (means @ R.T <= ends - near + 1e-12).all(axis=1)


def all_orders(problem: Any, x: Any, delta: float) -> tuple[dict[str, Any], Any]:
    orders = np.array(list(itertools.permutations(range(len(x)))))
    found, *_ = kept(certifier_of(problem, x, delta), x[orders])
    return found, distances(problem, np.nanmean(x, axis=0))


@pytest.mark.parametrize("problem", EXACT, ids=repr)
@pytest.mark.filterwarnings("ignore:Mean of empty slice")
def test_no_capital_grows_on_average_where_its_null_holds(problem: Any) -> None:
    """Over all orders of tables of 4 or 5 rows, exactly; a third of them with scores that could not be made."""
    g, seen = np.random.default_rng(2), {"in": 0, "out": 0}
    for trial in range(40):
        N = 4 + trial % 2
        x = eighths(g, N, 3, len(problem.A[0])) if trial % 4 else (g.random((N, 3, len(problem.A[0]))) < 0.5) * 1.0
        if trial % 3 == 0:
            x[g.random((N, 3)) < 0.2] = math.nan
        found, (broken, keeps) = all_orders(problem, x, (0.2, 0.9, 1e-9)[trial % 3])
        for k, c in np.argwhere(broken):
            assert growth(found["is kept"][:, :, k, c], N) <= 1 + ROUNDED, (k, c, x.tolist())
            seen["in"] += 1
        for k in np.flatnonzero(keeps):
            assert growth(found["far"][:, :, k], N) <= 1 + ROUNDED, (k, x.tolist())
            seen["out"] += 1
    assert min(seen.values()) >= 10


def test_the_largest_capital_of_all_limits_grows_where_their_mean_does_not() -> None:
    """Accuracy and latency of opposite rows, both at their limits: an arm that keeps all."""
    x = np.array([[[1.0, 1]], [[0, 0]], [[1, 1]], [[0, 0]], [[1, 1]], [[0, 0]]]).repeat(2, axis=1)
    found, (_, keeps) = all_orders(Feasible([[-1.0, 0.0], [0.0, 1.0]], [-0.5, 0.5]), x, 1e-9)
    assert keeps.all()
    assert growth(found["is not"].max(axis=-1)[:, :, 0], 6) > 1.05
    assert growth(found["far"][:, :, 0], 6) <= 1 + ROUNDED


# --- levels -----------------------------------------------------------------------------------------------------------

ROWS = np.arange(40)
HARD = {
    "one limit is broken by a row": np.stack([ROWS % 4 != 0, np.full(40, 0.2), ROWS % 40 < 17], axis=-1),
    "all limits are met": np.stack([ROWS % 2, ROWS % 2, ROWS % 2], axis=-1),
    "rare rows decide": np.stack([ROWS > 17, np.where(ROWS < 2, 1.0, 0.46), np.where(ROWS < 3, 1.0, 0.35)], axis=-1),
    "opposite": np.stack([ROWS % 2, 1 - ROWS % 2, 0.45 + 0.1 * (ROWS % 2)], axis=-1),
}


@pytest.mark.parametrize("E", [300, 3000])
@pytest.mark.parametrize("delta", [0.5, 0.05])
@pytest.mark.parametrize("b", [[-0.5, 0.5, 0.4], [-0.51, 0.49, 0.5]])
def test_a_wrong_answer_is_seldom_sure_at_any_time_and_level(b: Any, delta: float, E: int) -> None:
    """Of E orders, in a share of d at most a wrong answer of now has at some time a level of d or less."""
    x = np.stack(list(HARD.values()), axis=1) * 1.0
    problem = Feasible([[-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], b)
    order = np.argsort(np.random.default_rng(1).random((E, len(x))), axis=1)
    _, inside, out = kept(certifier_of(problem, x, delta), x[order])
    n = len(x) - 1
    truth = problem.margin(Shared(x).means) >= 0
    wrong = (inside[:, :n] != truth).any(axis=2)
    surest = np.where(wrong, np.maximum(out[:, :n, 0], 0.0), 0.0).max(axis=1)
    for d in (0.9, 0.5, 0.2, 0.1, 0.05, 0.01, 0.001):
        assert (surest >= math.log(1 / d) - 1e-12).sum() <= stats.binom.isf(1e-6 / 28, E, d), d


@pytest.mark.parametrize("agent", ["paired-elimination", "evidence", "uniform(stop='certificate')"])
def test_ties_at_the_limits_are_known_at_the_end(agent: str) -> None:
    """Means that are the limits, to rounding: 100 * .55 is more than 55. Nothing but all rows decides."""
    x = np.stack([(np.arange(100)[:, None] < [55, 55, 90]) * 1.0, np.full((100, 3), 250.0)], axis=2)
    x[::2, :, 1], x[1::2, 2, 1] = 350.0, 255.0  # means 300, 300, 302.5
    rules = {"instance": Shared(x), "A": [[-1, 0], [0, 1]], "b": [-0.55, 300.0], "delta": 1e-30}
    rows = agents.evaluate(agent, "Feasible", episodes=20, env_kwargs=rules, progress=False).episodes
    assert rows["correct"].all()
    assert rows["certified"].all()
    assert not rows["truncated"].any()
