"""Certificates of samples in a known range: bets, by hand and by brute force, moments, errors at the limit.

False-alarm level of the statistical tests: 1e-6 each.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import table
from scipy import stats
from scipy.optimize import linprog, minimize_scalar

import agents
from bandit_envs import AllGood, BestArm, Feasible, Task, Threshold, TopK
from bandit_envs.kernels import jit
from bandit_envs.stopping import betting, common, nearest_alternative
from bandit_envs.stopping.certifier import with_moments

NUMBERS = common("bounded", support=(0.0, 1.0))


def seen(x: Any) -> betting.Bounded:
    """What samples (N,) in [0, 1] have shown."""
    x = np.asarray(x, np.float64)
    moments = (float(((x - x.mean()) ** k).mean()) for k in (2, 3, 4))
    return betting.Bounded(float(len(x)), float(x.mean()), *moments, len(x) * 2.0**-53)


@jit
def arm_value(numbers, arm, mu, work):
    return betting.bet_arm(numbers, arm, mu, work)


@jit
def pair_value(numbers, lower, raised, a, b, floor, needed, work):
    return betting.bet_pair(numbers, lower, raised, a, b, floor, needed, work)


@jit
def decide(address, pulls, mean, variance, inside, numbers, scratch, out):
    nearest_alternative(address, pulls, mean, variance, inside, numbers, scratch, out)


def alone(x: Any, mu: float) -> float:
    return float(arm_value(NUMBERS, seen(x), mu, np.empty(betting.BETS_SCRATCH)))


def pair(x: Any, y: Any, a: float = 1.0, b: float = 0.0, floor: float = -math.inf, needed: float = -math.inf) -> float:
    return float(pair_value(NUMBERS, seen(x), seen(y), a, b, floor, needed, np.empty(betting.BETS_SCRATCH)))


def capitals(x: Any, c: float) -> Any:
    """ln of the capital of each bet that samples are larger than c, by the samples themselves."""
    return np.array([np.log1p(f * (np.asarray(x) / c - 1.0)).sum() for f in betting.BETS])


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_the_weights_of_bets_and_of_pairs_of_bets_sum_to_1() -> None:
    """Weights that sum to more would make every certificate wrong too often."""
    assert sum(betting.SHARES) == pytest.approx(1.0, abs=1e-12)
    n = range(len(betting.BETS))
    both = sum(betting.SIZES[k] * betting.SIZES[m] * betting.NEARNESS[abs(k - m)] for k in n for m in n)
    assert both + betting.ONE + betting.NONE_AT == pytest.approx(1.0, abs=1e-12)
    assert max(betting.BETS) < 1
    assert min(betting.BETS) > 0


def test_three_ones_against_a_mean_of_one_half() -> None:
    """Each bet f wins 1 + f three times; six bets count, with .15 each."""
    by_hand = math.log(0.15 * sum((1 + f) ** 3 for f in (0.93, 0.6, 0.33, 0.18, 0.1, 0.05)))
    assert alone([1.0, 1.0, 1.0], 0.5) == pytest.approx(by_hand, rel=1e-12)
    assert alone([0.0, 0.0, 0.0], 0.5) == pytest.approx(by_hand, rel=1e-12)  # in the mirror


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_samples_that_are_0_or_1_are_bet_on_exactly(share: float) -> None:
    x = np.arange(40) < 40 * share
    found = alone(x, share + 0.05)
    by_hand = capitals(1 - x, 0.95 - share)
    assert found <= np.logaddexp.reduce(by_hand + np.log(betting.SHARES)) + 1e-9
    reached = sorted(math.log(w) + v for w, v in zip(betting.SHARES, by_hand, strict=True))
    assert found >= reached[-1] - 1e-9  # the best bet is among those that count


# --- the worst samples of four moments --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_no_samples_of_these_moments_win_less(seed: int) -> None:
    """A linear program over distributions on a fine grid, for each bet: none with the same moments has less."""
    g = np.random.default_rng(seed)
    x = g.beta(*g.uniform(0.5, 6, 2), 30)
    one, c = seen(x), float(g.uniform(0.2, 0.8))
    grid = np.union1d(np.linspace(0, 1, 401), x)
    moments = np.array([grid**p for p in range(5)])
    told = np.array([(x**p).mean() for p in range(5)])
    n = _nodes_of(*one[:5])
    nodes = [(n.a, n.p), (n.b, n.q), (0.0, 1.0 - n.p - n.q)]
    for f in (0.9, 0.4, 0.1):
        gain = np.log1p(f * (grid / c - 1))
        worst = linprog(gain, A_eq=moments, b_eq=told, method="highs").fun
        by_nodes = sum(p * math.log1p(f * (a / c - 1)) for a, p in nodes)
        assert by_nodes <= worst + 1e-6
        assert by_nodes >= worst - 1e-3  # and no worse than need be


@jit
def _nodes_of(N, m, v, third, fourth):
    return betting.nodes_of(N, m, v, third, fourth)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.01, 0.99))
def test_moments_never_win_more_than_the_samples(x: list[float], c: float) -> None:
    """The capital by moments is at most the mixture over all bets, sample by sample."""
    truly = np.logaddexp.reduce(capitals(x, c) + np.log(betting.SHARES))
    mirrored = np.logaddexp.reduce(capitals(1 - np.asarray(x), 1 - c) + np.log(betting.SHARES))
    assert alone(x, c) <= (truly if c < np.mean(x) else mirrored) + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_unknown_moments_count_as_the_worst(seed: int) -> None:
    x = np.random.default_rng(seed).beta(5, 4, 50)
    one, work = seen(x), np.empty(betting.BETS_SCRATCH)
    blind = one._replace(third=math.nan, fourth=math.nan)
    assert arm_value(NUMBERS, blind, 0.4, work) < arm_value(NUMBERS, one, 0.4, work)


# --- pairs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("a", "b"), [(1.0, 0.0), (1.0, -0.05), (0.8, 0.0), (1.25, 0.0)])
@pytest.mark.parametrize("far", [False, True])
def test_a_pair_is_the_least_product(seed: int, a: float, b: float, far: bool) -> None:
    """Against scipy's search over the means; the mixture of both arms by its definition.

    Far: arms whose scales differ, and the closest means often lie at an end of the range.
    """
    g = np.random.default_rng(seed)
    x, y = g.beta(4, 3, int(g.integers(5, 200))), g.beta(3, 4, int(g.integers(5, 200)))
    if far:
        x, y = g.beta(400, 2, int(g.integers(200, 2000))), g.beta(1, 2, int(g.integers(5, 30)))

    up, down = _nodes_of(*seen(x)[:5]), _nodes_of(*seen(1 - y)[:5])

    def value(mu: float) -> float:
        c, d = a * mu + b, 1.0 - mu
        if not (0 < c < 1 and 0 < d < 1):
            return math.inf
        L = [_by(up, k, c) for k in range(up.first, up.first + betting.WINDOW)]
        M = [_by(down, k, d) for k in range(down.first, down.first + betting.WINDOW)]
        both = []
        for (i, one), (j, other) in itertools.product(enumerate(L, up.first), enumerate(M, down.first)):
            weight = betting.SIZES[i] * betting.SIZES[j] * betting.NEARNESS[abs(i - j)]
            both.append(math.log(weight) + one + other)
        ones = [math.log(betting.ONE / 2 * betting.SHARES[up.first + i]) + one for i, one in enumerate(L)]
        ones += [math.log(betting.ONE / 2 * betting.SHARES[down.first + j]) + one for j, one in enumerate(M)]
        return float(np.logaddexp.reduce([math.log(betting.NONE_AT), *ones, *both]))

    grid = np.linspace(max(0.0, -b / a) + 1e-9, min(1.0, (1 - b) / a) - 1e-9, 201)
    values = np.array([value(mu) for mu in grid])
    at = int(np.argmin(values))
    inner = values[np.isfinite(values)]
    assert (np.diff(inner, 2) >= -1e-6 * (1 + np.abs(inner[1:-1]))).all()  # convex, as tangents need it
    ends = grid[max(at - 1, 0)], grid[min(at + 1, 200)]
    near = minimize_scalar(value, bounds=ends, method="bounded", options={"xatol": 1e-9})
    least = min(float(values.min()), float(near.fun))
    found, slip = pair(x, y, a, b), 1e-5 * (1 + abs(least))
    assert found == pytest.approx(least, rel=5e-6, abs=5e-6)
    assert found <= least + 1e-9 * (1 + abs(least))
    assert pair(x, y, a, b, needed=least + slip) < least + slip
    assert pair(x, y, a, b, needed=least - slip) >= least - slip


def _by(nodes: Any, k: int, c: float) -> float:
    f, rest = betting.BETS[k], 1.0 - nodes.p - nodes.q
    up, down = math.log1p(f * (nodes.a / c - 1)), math.log1p(f * (nodes.b / c - 1))
    return float(nodes.N * (rest * math.log1p(-f) + nodes.p * up + nodes.q * down))


def test_a_pair_that_no_means_make_wrong_is_excluded_and_one_without_pulls_is_not() -> None:
    x = np.full(5, 0.5)
    assert pair(x, x, b=-1.5) == math.inf
    assert pair(x, x, floor=1.5) == math.inf
    none = betting.Bounded(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    assert pair_value(NUMBERS, none, seen(x), 1.0, 0.0, -math.inf, -math.inf, np.empty(betting.BETS_SCRATCH)) == 0


@pytest.mark.parametrize("M", [1, 2, 3])
def test_an_arm_left_out_may_violate_any_row(M: int) -> None:
    """The mixture is over all M rows, also where one alone is violated: then it is 1 / M of Threshold's."""
    shown = {"distribution": "bounded", "variance": [0.02, 0.02], "moments": [[0.001, 0.001]] * 2}
    alone = Threshold(0.3).certified_level([60, 60], [0.6, 0.7], [True, True], **shown)
    rows = Feasible([[1.0], [-1.0], [-1.0]][:M], [0.3, 0.0, -0.1][:M])
    assert rows.certified_level([60, 60], [0.6, 0.7], [False, False], **shown) == pytest.approx(M * alone, rel=1e-9)


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli", "bounded", "student"])
@pytest.mark.parametrize("problem", [AllGood(0.2, slack=0.2), AllGood(0.2, True, slack=0.2), Threshold(0.6, 0.1)])
def test_a_certificate_is_of_the_plug_in_answer(problem: Any, distribution: str) -> None:
    mean, shown = np.array([[0.9, 0.64, 0.55, 0.66]]), np.full((1, 4), 0.1)
    inside = np.full((1, 4), -1, np.int8)
    problem.certifier(4, distribution=distribution).alternatives(np.full((1, 4), 50), mean, shown, inside)
    assert (inside == problem.plug_in(mean)).all()


@pytest.mark.parametrize("problem", [Threshold(0.5, 0.02), BestArm(), TopK(2, 0.05), AllGood(0.1), AllGood(0.2, True)])
def test_a_decision_is_what_the_level_says(problem: Any) -> None:
    """The search that stops early decides as the whole one, in any range."""
    g = np.random.default_rng(0)
    for low, high in ((0.0, 1.0), (1.0, 10.0)):
        arms = {"distribution": "tabulated", "support": (low, high), "sigma": (high - low) / 2}
        certifier = Task(problem.name, _in(problem, low, high), 5, **arms, delta=0.1).certifier()
        decider, decided = certifier.decider(0.1), 0
        for _ in range(60):
            means = g.uniform(0.1, 0.9, 5)
            x = [low + (high - low) * g.beta(8 * m, 8 * (1 - m), int(g.integers(20, 500))) for m in means]
            T, m = np.array([[len(one) for one in x]]), np.array([[one.mean() for one in x]])
            v, *h = (np.array([[((one - one.mean()) ** k).mean() for one in x]]) for k in (2, 3, 4))
            inside, higher = np.full((1, 5), -1, np.int8), np.stack(h, axis=-1)
            level = certifier.levels(T, m, v, inside.copy(), higher)[0]
            out, scratch = np.zeros(2 + 3 * 5), np.zeros(decider.scratch)
            decide(decider.address, T[0], m[0], with_moments(v, higher)[0], inside[0], decider.numbers, scratch, out)
            if not 0.0999 < level < 0.1001:  # searches end within 1e-6 of the least
                assert (out[0] > 0) == (level <= 0.1)
            decided += level <= 0.1
        assert 0 < decided < 60


def _in(problem: Any, low: float, high: float) -> dict[str, Any]:
    """Settings of a problem on [0, 1], on another range."""
    found = dict(problem.settings)
    if not found.get("multiplicative"):
        found |= {name: found[name] * (high - low) for name in ("epsilon", "tolerance", "slack") if name in found}
        found |= {"threshold": low + (high - low) * found["threshold"]} if "threshold" in found else {}
    return found


# --- moments ----------------------------------------------------------------------------------------------------------

ARMS: dict[str, dict[str, Any]] = {
    "categorical": {"values": [0, 0.2, 0.7, 1], "probabilities": [[3, 1, 4, 2], [1, 1, 1, 1]]},
    "tabulated": {"quantiles": [[0, 0.1, 0.9], [0.2, 0.3, 1.0]]},
    "resampled": {"rows": [[0.1, 0.5, 0.6, 0.9], [0.0, 0.0, 1.0]]},
}


@pytest.mark.parametrize("name", ARMS)
def test_moments_are_those_of_the_samples(name: str) -> None:
    """Single pulls, in the environment; the history of the same episode has the samples."""
    kwargs: dict[str, Any] = {"instance": {"distribution": name, **ARMS[name]}, "delta": 0.1, "max_pulls": 200}
    env, past = (
        gym.make("bandit_envs/BestArm-v0", actions="full", observation=form, **kwargs)
        for form in ("statistics", "history")
    )
    env.reset(seed=3)
    past.reset(seed=3)
    for t in range(60):
        action = {"arm": t % 3 % 2, "times": 1, "answer": np.zeros(2, np.int8)}
        shown, samples = env.step(action)[0], past.step(action)[0]
    for arm in range(2):
        x = samples["samples"][:60][samples["arms"][:60] == arm]
        d = x - x.mean()
        assert shown["moments"][arm] == pytest.approx([(d**3).mean(), (d**4).mean()], rel=1e-9, abs=1e-15)
    assert env.observation_space.contains(shown)


@pytest.mark.parametrize("name", ARMS)
def test_bulk_pulls_have_the_moments_of_their_samples(name: str) -> None:
    """A bulk pull of 200,000 has the arm's own moments, nearly; bulk pulls on top of pulls add up."""
    arms = {"distribution": name, **ARMS[name]}
    env = gym.make("bandit_envs/BestArm-v0", instance=arms, delta=0.1, max_pulls=10**7, actions="full")
    env.reset(seed=0)
    for times in (1, 7, 200_000, 3, 1000):
        shown, *_ = env.step({"arm": 0, "times": times, "answer": np.zeros(2, np.int8)})
    found = shown["mean"][0], shown["variance"][0], *shown["moments"][0]
    values = arms.get("values") or arms.get("rows", [None])[0]
    if values is None:
        values = np.interp((np.arange(10**5) + 0.5) / 10**5, [0, 0.5, 1], arms["quantiles"][0])
    p = np.array(arms["probabilities"][0] if "values" in arms else np.ones(len(values)), float)
    mean = float(np.average(values, weights=p))
    wanted = mean, *(float(np.average((np.array(values) - mean) ** k, weights=p)) for k in (2, 3, 4))
    assert found == pytest.approx(wanted, abs=2e-3)


def test_only_tasks_whose_certificate_is_by_bets_keep_moments() -> None:
    for distribution, support, delta, kept in (
        ("categorical", (1.0, 3.0), 0.1, True),
        ("bernoulli", (0.0, 1.0), 0.1, False),
        ("gaussian", None, 0.1, False),
        ("categorical", (1.0, 3.0), None, False),
    ):
        task = Task("BestArm", {}, 3, distribution=distribution, support=support, sigma=1.0, delta=delta, budget=50)
        assert task.keeps_moments is kept
        assert (task.certified_distribution() == "bounded") == (support == (1.0, 3.0))


# --- errors -----------------------------------------------------------------------------------------------------------

HOSTILE = {
    "rare": {"distribution": "categorical", "values": [0, 0.1, 1], "probabilities": [[0, 1, 0], [90.1, 0, 9.9]]},
    "narrow": {"distribution": "tabulated", "quantiles": [[0.5, 0.5 + 1e-7], [0.499999, 0.5 + 1e-6]]},
}


def errors(agent: str, arms: Any, delta: float, episodes: int) -> int:
    kwargs = {"instance": arms, "delta": delta, "max_pulls": 2000}
    rows = agents.evaluate(agent, "BestArm", episodes=episodes, env_kwargs=kwargs).episodes
    return int((~rows["truncated"] & ~rows["correct"]).sum())


@pytest.mark.parametrize("episodes", [200, 2000])
@pytest.mark.parametrize("agent", ["evidence", "uniform(stop='certificate')"])
@pytest.mark.parametrize("name", HOSTILE)
def test_errors_are_at_most_delta(agent: str, name: str, episodes: int) -> None:
    assert errors(agent, HOSTILE[name], 0.3, episodes) <= stats.binom.isf(1e-6, episodes, 0.3)


def test_a_plug_in_variance_is_seen_to_err() -> None:
    """It weighs by the empirical variance: it breaks delta where the rare sample decides."""
    rare = {"distribution": "categorical", "values": [0, 0.005, 1], "probabilities": [[0, 1, 0], [99, 0, 1]]}
    agent = "evidence(distribution='bounded', boundary='nominal')"
    assert errors(agent, rare, 0.1, 1000) > stats.binom.isf(1e-6, 1000, 0.1)


SHOWN: dict[str, Any] = {"variance": [0.1, 0.1], "distribution": "bounded"}
test_bad_calls = table(
    {
        "support": (lambda: BestArm().certifier(3, distribution="bounded", support=(2.0, 1.0)), "support"),
        "boundary": (
            lambda: BestArm().certifier(3, distribution="bounded", boundary="kaufmann-koolen"),
            *("boundary='kaufmann-koolen'", "distribution='bounded'"),
        ),
        "moments": (lambda: level(BestArm(), [5, 5], [0.5, 0.4], moments=[0.0, 0.0]), "moments", "shape"),
        "evidence": (lambda: BestArm().evidence([5, 5], [0.5, 0.4], **SHOWN), "distribution"),
        "rows": (
            lambda: Feasible([[1.0, 1.0]], [1.0]).certifier(3, 2, distribution="bounded"),
            "single",
            "coordinates",
        ),
        "a mean": (lambda: level(BestArm(), [5, 5], [0.05, 0.5], support=(0.0, 0.1)), "support", "[0, 0.1]", 0.5),
        "negative": (
            lambda: level(BestArm(), [5, 5], [0.05, 0.5], moments=[[0.0, -1.0], [0.0, 0.0]]),
            *("moments", "finite", -1),
        ),
        "no variance": (lambda: BestArm().certified_level([5, 5], [0.5, 0.4], distribution="bounded"), "variance="),
    }
)


def test_moments_of_another_shape_are_refused() -> None:
    task = Task("BestArm", {}, 2, distribution="categorical", support=(0.0, 1.0), delta=0.1)
    agent, one, none = agents.make("evidence", task), np.full((1, 2), 0.5), np.zeros((1, 1), np.int64)
    shown = {"pulls": np.full((1, 2), 5), "total": 5 * one, "mean": one, "variance": one / 10}
    shown |= {"remaining": none - 1, "public_seed": none}
    with pytest.raises(ValueError, match=r"moments must have the shape \(1, 2, 2\), got \(1, 2\)"):
        agent.predict({**shown, "moments": one})
    assert agent.predict(shown)[0]["arm"].shape == (1,)  # without any, less is certified


# --- at the ends of the range -----------------------------------------------------------------------------------------


def level(problem: Any, pulls: Any, mean: Any, answer: Any = None, **options: Any) -> float:
    """The level of statistics of samples that do not vary."""
    none = np.zeros((*np.shape(mean), 2))
    told = {"variance": none[..., 0], "moments": none, "distribution": "bounded", **options}
    return float(problem.certified_level(pulls, mean, answer, **told))


def test_a_mean_at_the_end_of_the_range_is_not_certain() -> None:
    """An arm of mean .9 shows 1 with probability .9: a threshold of 1 is not met for that."""
    assert level(Threshold(1.0), [1, 1], [1.0, 1.0]) == 1
    assert level(Threshold(0.5), [100, 100], [1.0, 1.0], [False, True]) == 1
    assert level(Feasible([[-1.0]], [-1.0]), [1, 1], [1.0, 1.0]) == 1
    assert level(Threshold(5e-13), [1, 1], [8e-13, 8e-13]) == 1
    assert level(Threshold(0.1), [10, 10], [np.nextafter(0.1, 0)] * 2, support=(0.0, 0.1)) == 1


def test_pairs_that_any_means_make_wrong_are_never_excluded() -> None:
    """Where epsilon is wider than the range, an arm that is left out is surely good."""
    assert level(AllGood(1.5), [1, 0], [1.0, 0.0]) == 1
    assert level(AllGood(1.5), [1, 1], [1.0, 0.9], [True, False]) == 1
    assert level(AllGood(0.95, True), [1, 0], [9.0, 0.0], support=(1.0, 10.0)) == 1
    assert level(AllGood(0.95, True), [1, 1], [9.0, 8.0], [True, False], support=(1.0, 10.0)) == 1


@pytest.mark.parametrize("N", [10**7, 10**8, 10**9])
def test_very_many_pulls_give_no_certificate_by_underflow(N: int) -> None:
    m = np.array([[0.01, 0.5], [0.01, 0.5]])
    moments = np.stack([m * (1 - m) * (1 - 2 * m), m * (1 - m) * (1 - 3 * m * (1 - m))], axis=-1)
    problem = Feasible([[1.0, 0.0], [0.0, 1.0]], [0.01 - 1e-12, 0.5 - 1e-7])
    told = {"variance": m * (1 - m), "moments": moments, "distribution": "bounded"}
    assert problem.certified_level([N, N], m, **told) > 0.9


def test_the_rounding_of_a_sum_is_no_evidence() -> None:
    """A mean that is off by what 10^9 additions may round, of samples that do not vary."""
    N, off = 10**9, 2e-8
    assert level(Threshold(0.97), [N, N], [0.97 * (1 + off)] * 2) == 1


def test_a_nominal_rule_is_that_of_its_paper_on_samples_in_a_range() -> None:
    """The empirical variance of one sample is 0, and would end every episode after a pull of each arm."""
    task = Task("BestArm", {}, 3, distribution="categorical", support=(0.0, 1.0), delta=0.1)
    assert agents.make("evidence(boundary='nominal')", task).distribution == "bernoulli"
    assert agents.make("evidence", task).distribution == "bounded"
