"""The constants of the algorithms' own bounds: where each stops, by its paper's formula; and that these keep delta.

An agent without a state is shown statistics whose decisive gap grows until it stops: that gap is the sum of the widths.
What the union of all bounds may miss is computed by the inequalities of their proofs: no more than delta, and more than
that with a constant too small by a factor of 1.5.
"""

from __future__ import annotations

import itertools
import math
from collections import namedtuple
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from derivations import pair
from plays import seen
from scipy import optimize, special

import agents
from agents.all_good.fareast import bad_filter_pulls
from agents.core.confidence import lil_width
from agents.top_k import adaptive_top_k, direct, halving, improved_top_k, median_elimination
from agents.top_k.kl_lucb import K1, A
from agents.top_k.racing import half_width
from bandit_envs import Task
from bandit_envs.stopping import contrasts

DELTA, SIGMA, K, EPSILON = 0.07, 0.8, 3, 0.11
PULLS = [40, 33, 26]
TOO_SMALL = 1.5


def task(problem: str = "BestArm", **more: Any) -> Task:
    plain: dict[str, Any] = {"delta": DELTA, "distribution": "gaussian", "support": None, "sigma": SIGMA}
    plain["parameters"] = {"epsilon": EPSILON} if problem == "BestArm" else {}
    return Task(problem, K=K, actions="arm", **plain | more)


def gap_at_the_stop(agent: Any, means: Callable[[float], list[float]], pulls: list[int] = PULLS) -> float:
    """The least gap at which an agent that is shown such means stops."""

    def stops(gap: float) -> bool:
        return int(agent.predict(seen(pulls, means(gap), 0.1))[0]) == agent.task.stop

    low, high = 0.0, 16.0
    assert stops(high)
    assert not stops(low)
    for _ in range(44):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if stops(middle) else (middle, high)
    return high


def of_two(gap: float) -> list[float]:
    """Two arms that are close to each other, and one that is far away."""
    return [gap, 0.0, -30.0]


def stops_at(agent: Any, width: Callable[[int], float], less: float = EPSILON) -> None:
    """Where the gap of two arms is the sum of their widths, functions of their pulls, less a tolerance."""
    assert gap_at_the_stop(agent, of_two) == pytest.approx(width(PULLS[0]) + width(PULLS[1]) - less, rel=1e-9)


def test_lucb() -> None:
    t = (sum(PULLS) - K) // 2 + 1
    stops_at(agents.make("lucb", task()), lambda N: 2 * SIGMA * math.sqrt(math.log(5 / 4 * K * t**4 / DELTA) / (2 * N)))
    lil = agents.make("lucb", task(), widths="lil", c=3.0)
    stops_at(lil, lambda N: SIGMA * math.sqrt(3.0 * math.log(math.log2(2 * N) * K / DELTA) / N))
    assert agents.make("lucb", task(), widths="lil").factor == pytest.approx(2.08 * SIGMA**2)


@pytest.mark.parametrize("threshold", ["2013", "lil"])
def test_kl_lucb(threshold: str) -> None:
    def betas(pulls: list[int]) -> list[float]:
        if threshold == "lil":
            return [math.log(2 * math.log2(2 * N) * d / DELTA) for N, d in zip(pulls, (K - 1, 1), strict=False)]
        x = math.log(405.5 * K * ((sum(pulls) - K) // 2 + 1) ** 1.1 / DELTA)
        return [x + math.log(x)] * 2

    widths = [SIGMA * math.sqrt(2 * b / N) for b, N in zip(betas(PULLS), PULLS, strict=False)]
    agent = agents.make("kl-lucb", task(), threshold=threshold)
    assert gap_at_the_stop(agent, of_two) == pytest.approx(sum(widths) - EPSILON, rel=1e-7)

    def kl(p: float, q: float) -> float:
        return float(special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q))

    pulls = [N * 20 for N in PULLS]
    beta = betas(pulls)
    upper = optimize.brentq(lambda q: pulls[1] * kl(0.3, q) - beta[1], 0.3, 1 - 1e-12)
    wanted = optimize.brentq(lambda p: pulls[0] * kl(p, upper - EPSILON) - beta[0], upper - EPSILON, 1 - 1e-12)
    binary = agents.make("kl-lucb", task(distribution="bernoulli", support=(0.0, 1.0), sigma=0.5), threshold=threshold)
    found = gap_at_the_stop(binary, lambda gap: [min(0.3 + gap, 1.0), 0.3, 0.0], pulls)
    assert 0.3 + found == pytest.approx(wanted, abs=1e-7)


def test_clucb() -> None:
    width = lambda N: SIGMA * math.sqrt(2 * math.log(4 * K * sum(PULLS) ** 3 / DELTA) / N)
    stops_at(agents.make("clucb", task()), width)
    for criterion, weight in (("aggregate", 2), ("each", 1), ("exact", 0)):
        given = task("TopK", parameters={"k": 2, "epsilon": EPSILON, "criterion": criterion})
        found = gap_at_the_stop(agents.make("clucb", given), lambda gap: [30.0, gap, 0.0], [PULLS[2], *PULLS[:2]])
        assert found == pytest.approx(width(PULLS[0]) + width(PULLS[1]) - weight * EPSILON, rel=1e-9)


def test_ugape() -> None:
    """By delta, t is the paper's t - 1; with a budget the width is sqrt((n - K) / (4 H N)), or sqrt(a b^2 / N)."""
    confidence = 0.5 * math.log(4 * K * sum(PULLS) ** 3 / DELTA)
    stops_at(agents.make("ugape", task()), lambda N: 2 * SIGMA * math.sqrt(confidence / N))
    by_budget = agents.make("ugape", task(budget=500, delta=None), H=20.0, scale=3.0)
    assert by_budget.factor == pytest.approx(3.0 * (500 - K) / (4 * 20.0))
    assert agents.make("ugape", task(budget=500, delta=None), a=5.0).factor == pytest.approx(5 * 4 * SIGMA**2)


@pytest.mark.parametrize("sampling", ["hdoc", "lucb-g", "apt-g"])
def test_hdoc(sampling: str) -> None:
    N, tolerance = PULLS[0], 0.05
    given = task("Threshold", parameters={"threshold": 0.4, "tolerance": tolerance})
    width = 2 * SIGMA * math.sqrt(math.log(4 * K * N**2 / DELTA) / (2 * N))
    agent = agents.make("hdoc", given, sampling=sampling)
    for side in (1, -1):
        found = gap_at_the_stop(agent, lambda gap, side=side: [0.4 + side * gap, 30.0, -30.0])
        assert found == pytest.approx(width - tolerance, rel=1e-9)


@pytest.mark.parametrize(("name", "share"), [("st2", 1), ("two-step", 2), ("east", 1), ("uniform-elimination", 1)])
def test_agents_for_all_good_arms(name: str, share: int) -> None:
    """An arm is bad where its upper bound lies below the lower bound of the best one, less epsilon."""
    pulls = [PULLS[0]] * 3 if name in ("east", "uniform-elimination") else PULLS
    widths = [SIGMA * math.sqrt(math.log(math.log2(2 * N) * share * K / DELTA) / N) for N in pulls[:2]]
    for given, c in (({}, 4.0), ({"c": 2.0}, 2.0)):
        agent = agents.make(name, task("AllGood", parameters={"epsilon": 8.0}), **given)
        found = gap_at_the_stop(agent, lambda gap: [0.0, -8.0 - gap, -40.0], pulls)
        assert found == pytest.approx(math.sqrt(c) * sum(widths), rel=1e-9)


def test_fareast() -> None:
    agent = agents.make("fareast", task("AllGood", parameters={"epsilon": 0.3}))
    assert (agent.kappa, agent.tau, agent.constant) == (1 / 16, 8.0, 8 * SIGMA**2)
    assert agent.level == pytest.approx(DELTA / (2 * K))
    assert agent.factor == pytest.approx(4 * SIGMA**2)
    for r in (1, 2, 5):
        wanted = 8 * 4**r * SIGMA**2 * math.log(8 * K / (DELTA / (2 * r**2)))
        assert bad_filter_pulls(r, K, DELTA, SIGMA) == math.ceil(wanted)
    # Of all rounds, the chance that a fresh mean of scale sigma is off by 2^-(r + 1) or more.
    missed = 0.0
    for r in range(1, 400):
        samples = 8 * 4.0**r * math.log(8 * K / (DELTA / (2 * r**2)))
        missed += K * 2 * math.exp(-samples * 0.25 * 4.0**-r / 2)
    assert missed == pytest.approx(DELTA / 2 * sum(r**-2.0 for r in range(1, 400)) / 4, rel=1e-9)
    assert missed <= DELTA / 2


def test_lil_ucb() -> None:
    for constants, e, b, lam in (("theory", 0.01, 1.0, 9.0), ("heuristic", 0.0, 0.5, 1 + 10 / K)):
        agent = agents.make("lil-ucb", task(), constants=constants)
        T, x = np.array([9.0, 500.0]), np.array([0.3, -0.2])
        inner = np.log(np.log((1 + e) * T + 2) / DELTA)
        wanted = x + (1 + b) * (1 + math.sqrt(e)) * np.sqrt(2 * SIGMA**2 * (1 + e) * inner / T)
        assert -agent.value(T, x) == pytest.approx(wanted, rel=1e-12)
        most = 1 + math.ceil(lam * 20)
        for first, stops in ((most, True), (most - 1, False)):
            arm = agent.predict(seen([first, 12, 8], [0.9, 0.1, 0.1]))[0]
            assert (arm == K) == stops


WIDTHS = {  # of RACING: after t samples of standard deviation s, where x is ln of nb / delta
    "hoeffding": lambda t, s, x: math.sqrt((math.log(2) + x) / (2 * t)),
    "bernstein": lambda t, s, x: s * math.sqrt(2 * (math.log(3) + x) / t) + 3 * (math.log(3) + x) / t,
    "tightest": lambda t, s, x: min(WIDTHS[name](t, s, x + math.log(2)) for name in ("hoeffding", "bernstein")),
}


@pytest.mark.parametrize("widths", list(WIDTHS))
def test_racing(widths: str) -> None:
    """Two arms of constant means and variances: nb is 2 R, as none is decided; the end is where both widths fit."""
    W, R, s, gap = 2.0, 900, math.sqrt(0.1), 0.9
    env: Any = gym.make(
        "bandit_envs/BestArm-v0", instance={"distribution": "bernoulli", "mean": [0.9, 0.1]}, delta=DELTA
    )
    agent = agents.make("racing", env.unwrapped.task.replace(actions="arm"), rounds=R, widths=widths, width=W)
    wanted = next(t for t in range(1, R) if 2 * W * WIDTHS[widths](t, s / W, math.log(2 * R / DELTA)) < gap)
    state: Any = None
    for t in range(R):
        for arm in range(2):
            pulls = [t + (arm > 0), t]
            mean = [0.95 if pulls[0] else 0.0, 0.05 if pulls[1] else 0.0]
            found, state = agent.predict(seen(pulls, mean, 0.1), state)
            if found == 2:
                break
        if found == 2:
            break
    assert t == wanted
    own = namedtuple("own", "kind W delta")(agent.kind, agent.W, agent.delta)
    assert half_width(7.0, s, 40.0, own) == pytest.approx(W * WIDTHS[widths](7, s / W, math.log(40 / DELTA)))


CERTIFIED = ["evidence", "top-two", "track-and-stop", "uniform(stop='certificate')", "lucb(stop='certificate')"]


@pytest.mark.parametrize(
    ("name", "boundary"),
    [*((name, "nominal") for name in CERTIFIED[:3]), *itertools.product(CERTIFIED, ("mixture", "product"))],
)
def test_agents_stop_where_the_certificate_or_a_nominal_threshold_says_so(name: str, boundary: str) -> None:
    wanted = math.sqrt(2 * SIGMA**2 * (2 / 33) * math.log((1 + math.log(99)) / DELTA))
    if boundary != "nominal":
        need = math.log((K - 1) / DELTA)
        wanted = optimize.brentq(lambda gap: pair(33, 33, gap, SIGMA) - need, 0.1, 5)
    if boundary == "mixture":  # `test_contrasts` has the twin of a contrast

        def lift(gap: float) -> float:
            arms = (33.0, gap / SIGMA), (33.0, 0.0)
            return contrasts.contrast(False, *arms, 1.0, 0.0, -math.inf, math.inf) + math.log(0.97) - need

        wanted = optimize.brentq(lift, 0.1, 5)
    agent = agents.make(name, task(parameters={"epsilon": 0.0}), boundary=boundary)
    rel = 1e-4 if boundary == "mixture" else 1e-9
    assert gap_at_the_stop(agent, of_two, [33, 33, 33]) == pytest.approx(wanted, rel=rel)


def test_median_elimination() -> None:
    """Its accuracies sum to epsilon and its failures to delta, and Hoeffding's inequality needs no more samples."""
    epsilon, delta = 0.4, DELTA
    e, d, accuracies, failures = epsilon / 4, delta / 2, 0.0, 0.0
    for l in range(30):  # noqa: E741
        wanted = 4 / e**2 * math.log(3 / d)
        assert median_elimination.pulls_per_arm(l, epsilon, delta, 4.0) == math.ceil(wanted)
        assert math.exp(-2 * wanted * (e / 2) ** 2) <= d / 3
        accuracies, failures = accuracies + e, failures + d
        e, d = 0.75 * e, d / 2
    assert accuracies == pytest.approx(epsilon, rel=1e-3)
    assert failures == pytest.approx(delta, rel=1e-8)
    first, second = (median_elimination.pulls_per_arm(l, epsilon, delta, 4.0) for l in range(2))  # noqa: E741
    assert median_elimination.elimination_pulls(3, epsilon, delta, 4.0) == 3 * first + 2 * second
    assert agents.make("median-elimination", task()).constant == pytest.approx(8 * SIGMA**2)
    coins = task(distribution="bernoulli", support=(0.0, 1.0), sigma=0.5)
    assert agents.make("median-elimination", coins).constant == 4


def test_halving_and_direct() -> None:
    n, m, epsilon, width = 12, 3, 0.3, 1.7
    rounds, size = [], n
    for l in range(2):  # noqa: E741
        e, d = epsilon / 4 * 0.75**l, DELTA / 2 ** (l + 1)
        rounds.append((size, math.ceil(2 * width**2 / e**2 * math.log(3 * m / d))))
        size = max((size + 1) // 2, m)
    assert halving.schedule(n, m, epsilon, DELTA, width) == rounds
    N = direct.pulls_per_arm(n, epsilon, DELTA, width)
    # A mean is off by epsilon / 2 on one side with probability delta / n at most; one sample less would be too few.
    for samples, enough in ((N, True), (N - 1, False), (N / TOO_SMALL, False)):
        assert (n * math.exp(-2 * samples * (epsilon / 2) ** 2 / width**2) <= DELTA) == enough


def test_adaptive_and_improved_top_k() -> None:
    n, k, epsilon = 9, 2, 0.2
    missed = 0.0
    for r in range(1, 30):
        samples = 4**r * math.log(2 * n * r**2 / DELTA)
        assert adaptive_top_k.pulls_per_arm(r, n, DELTA) == math.ceil(samples)
        missed += 2 * n * math.exp(-2 * samples * 4.0**-r)  # a mean in [0, 1] is off by 2^-r
    assert missed <= DELTA
    R = math.ceil(math.log2(16 / (7 * epsilon)))
    q = DELTA * epsilon * k / (16 * n * R)
    times = improved_top_k.schedule(n, k, epsilon, DELTA)
    assert times == [math.ceil(4**r / 2 * math.log(2 / q)) for r in range(1, R + 1)]
    for r, N in enumerate(times, 1):
        assert 2 * math.exp(-2 * N * 4.0**-r) <= q < 2 * math.exp(-2 * N / TOO_SMALL * 4.0**-r)
    # Markov: more than epsilon k / 16 arms are unlucky with probability delta at most; and the last choice is paid for.
    assert q * n * R / (epsilon * k / 16) == pytest.approx(DELTA)
    assert 2 * 2.0**-R * k + 2 * epsilon * k / 16 <= epsilon * k
    for name in ("adaptive-top-k", "improved-top-k"):
        agent = agents.make(name, task("TopK", parameters={"k": 2, "epsilon": epsilon}))
        assert agent.margin[1:4] == pytest.approx([2 * SIGMA * 2 * 2.0**-r for r in (1, 2, 3)])
        assert agent.tolerance == pytest.approx(epsilon * (7 / 8 if name == "improved-top-k" else 1))


ROUNDS = np.arange(1.0, 200_001.0)


def lucb_misses(k1: float) -> float:
    """Over delta: in each round t an arm is looked at on one side, after any of t numbers of pulls."""
    return float((ROUNDS * ROUNDS**-4 / k1).sum())


def both_sides_miss(constant: float) -> float:
    """Over delta: CLUCB, UGapEc and HDoC, whose logarithm holds the constant; over rounds, or pulls, of each arm."""
    return float((2 * ROUNDS**-2 / constant).sum())


def peeling_misses(c: float, level: float) -> float:
    """Over level: both sides of sqrt(c ln(log2(2 t) / level) / t), by maximal inequalities on [x^j, x^(j + 1))."""
    best = math.inf
    for x in np.linspace(1.02, 1.98, 97):
        power, j = c / (2 * x), np.arange(60_000.0)
        if power > 1:
            terms = (1 + j * math.log2(x)) ** -power
            tail = terms[-1] * (1 + j[-1] * math.log2(x)) / (math.log2(x) * (power - 1))
            best = min(best, 2 * level ** (power - 1) * (float(terms.sum()) + tail))
    return best


def test_the_union_of_bounds_is_delta_at_most() -> None:
    for misses, constant in ((lucb_misses, 5 / 4), (both_sides_miss, 4.0)):
        assert 1 / TOO_SMALL < misses(constant) <= 1 < misses(constant / TOO_SMALL)
    # KL-LUCB: Theorem 3 of Kaufmann & Kalyanakrishnan 2013 asks for k1 > 2 e + 1 + e / (a - 1) + (e + 1) / (a - 1)^2.
    least = 2 * math.e + 1 + math.e / (A - 1) + (math.e + 1) / (A - 1) ** 2
    assert (K1, A) == (405.5, 1.1)
    assert K1 / TOO_SMALL < least < K1
    # (ST)^2 and others: c = 4 is proven for delta / n of .01 and less, each arm's bounds holding for all times.
    for level in (0.01, 0.001):
        assert peeling_misses(4.0, level) <= 1 < peeling_misses(4.0 / TOO_SMALL, level)
    assert lil_width(8.0, 0.01, 4.0) == pytest.approx(math.sqrt(4 * math.log(4 / 0.01) / 8))
