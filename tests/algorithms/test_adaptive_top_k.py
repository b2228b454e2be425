"""pi1, pi2, pi3, ADAPT, OCBA-m, CLUCB, KL-LUCB, lil'UCB: bounds by hand, against twins, reductions, contract."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from plays import random_arms, seen
from twins_all_good import as_twin
from twins_top_k import Seen, adapt, clucb, drawer, kl_lucb, lil_ucb, lucb, ocba_m, pi1, pi2, running_bound

import agents
from agents.top_k.adapt import direct_pulls
from agents.top_k.kl_lucb import kl, kl_upper
from agents.top_k.selection import TopKAgent, draw, gather, rank
from bandit_envs import Bernoulli, Categorical, Instance, Task, TopK
from bandit_envs.problems.certificates import bernstein, cutoff, hoeffding

TOP_K, BEST_ARM = "bandit_envs/TopK-v0", "bandit_envs/BestArm-v0"
POLICIES = ["pi1", "pi2", "pi3", "adapt"]

Case = dict[str, Any]


class Now(NamedTuple):
    """What `rank` reads of an episode."""

    mean: Any
    now: Any
    arms: Any


class High(NamedTuple):
    """What it keeps."""

    k: int
    inside: Any
    work: Any


def task(k: int = 1, K: int = 3, **changes: Any) -> Task:
    """The best k of K Gaussian arms of scale 1/6, so that W = 1; epsilon 1/2, delta 1/10."""
    parameters = {"k": k, "epsilon": 0.5, "criterion": "each"}
    plain = Task("TopK", parameters, K=K, distribution="gaussian", support=None, sigma=1 / 6, delta=0.1, max_pulls=1000)
    return plain.replace(**changes)


# --- by hand ---------------------------------------------------------------------------------------------------------


def test_inverted_bounds() -> None:
    # sd 1, t 100, W sqrt(12), g .5: Hoeffding exp(-2 * 100 * .25 / 12) = exp(-4.1667) = .0155039
    assert math.exp(-hoeffding(0.5, 100.0, math.sqrt(12))) == pytest.approx(0.0155039, rel=1e-5)
    assert math.exp(-bernstein(0.5, 100.0, 1.0, math.sqrt(12))) == pytest.approx(0.220174, rel=1e-5)
    assert math.exp(-hoeffding(0.1, 500.0, 1.0)) == pytest.approx(4.53999e-5, rel=1e-5)
    assert math.exp(-bernstein(0.1, 500.0, 0.04, 1.0)) == pytest.approx(1.36200e-4, rel=1e-5)
    # there and back: at d = 1e-3 the bound is sd sqrt(2 ln(3000) / t) + 3 W ln(3000) / t wide
    g = 0.3 * math.sqrt(2 * math.log(3000) / 70) + 3 * 2 * math.log(3000) / 70
    assert math.exp(-bernstein(g, 70.0, 0.09, 2.0)) == pytest.approx(1e-3, rel=1e-12)
    assert cutoff(0.4, 0.7, 0.1, 0.2) == pytest.approx(0.5)  # nearer to Low, whose error is half that of High
    assert cutoff(0.4, 0.6, 0.0, 0.0) == pytest.approx(0.5)


def test_delta_c_by_hand() -> None:
    # m = 1, epsilon .1, W 1; means .9, .5, .3 of 50 samples each, variances .04, .01, .04. hi = 1, lo = .5;
    # se = sqrt(.04 / 49) : sqrt(.01 / 49) = 2 : 1, so that c = .5 + .5 / 3 = .66667; g = .33333, .16667, .36667.
    # Hoeffding: exp(-100 g^2) = 1.4945e-5, .062177, 1.4541e-6. Bernstein, arm 1: A = .02, B = .06,
    # y = .33333 / (.02 + sqrt(.0004 + .04)) = 1.50829, 3 exp(-y^2) = .308. Hoeffding is tighter for all three.
    problem = TopK(k=1, epsilon=0.1, criterion="each")
    d = [math.exp(-100 / 9), math.exp(-100 / 36), math.exp(-100 * (11 / 30) ** 2)]
    found = problem.certificate([50, 50, 50], [0.9, 0.5, 0.3], [0.04, 0.01, 0.04])["delta_c"]
    assert found == pytest.approx(1 - (1 - d[0]) * (1 - d[1]) * (1 - d[2]), rel=1e-12)
    assert found == pytest.approx(0.062192, abs=1e-6)
    # 5000 samples of hardly any spread, W = 10: Bernstein's bound is far tighter
    g, W = 0.25, 10.0
    found = problem.certificate([5000, 5000], [0.9, 0.5], [1e-6, 1e-6], width=W)["delta_c"]
    one = 3 * math.exp(-((2 * g / (math.sqrt(2e-6 / 5000) + math.sqrt(2e-6 / 5000 + 4 * 3 * W / 5000 * g))) ** 2))
    assert found == pytest.approx(one * (2 - one), rel=1e-9)
    assert one < 0.1 * math.exp(-2 * 5000 * g**2 / W**2)
    assert problem.certificate([50, 50, 0], [0.9, 0.5, 0.0], [0.0] * 3)["delta_c"] == 1.0
    assert problem.certificate(np.ones((4, 2, 3)), np.zeros((4, 2, 3)), np.zeros((4, 2, 3)))["delta_c"].shape == (4, 2)
    assert TopK(k=1, epsilon=0.0).certificate([9, 9], [0.5, 0.5], [0.0, 0.0])["delta_c"] == 1.0  # a tie


def test_readings_of_delta_c_by_hand() -> None:
    # m = 1, epsilon 0, W 10; means .9, .5 of 5000 samples each, variance 1: c = .7, g = .2.
    # Hoeffding: 2 * 5000 * .04 / 100 = 4: exp(-4) = .0183156. Bernstein with R = 10: A = .02, B = .006,
    # y = .4 / (.02 + sqrt(.0004 + .0048)) = 4.34259, y^2 = 18.8581, 3 exp(-y^2) = 1.9372e-8.
    # R = 1: B = .0006, y = .4 / (.02 + sqrt(.0004 + .00048)) = 8.05399, y^2 = 64.8668, 3 exp(-y^2) = 2.0225e-28.
    problem, rest = TopK(k=1, epsilon=0.0, criterion="each"), ([5000, 5000], [0.9, 0.5], [1.0, 1.0])

    def delta_c(**how: Any) -> float:
        return float(problem.certificate(*rest, width=10.0, **how)["delta_c"])

    H, B = math.exp(-4), 3 * math.exp(-((0.4 / (0.02 + math.sqrt(0.0052))) ** 2))
    assert pytest.approx(1.9372e-8, rel=1e-4) == B
    assert delta_c(bounds="hoeffding") == pytest.approx(1 - (1 - H) ** 2, rel=1e-12)
    assert delta_c() == pytest.approx(2 * B, rel=1e-6)
    assert delta_c(bernstein_range=10.0) == delta_c()
    assert delta_c(bernstein_range=1) == pytest.approx(2 * 2.0225e-28, rel=1e-3)
    assert delta_c(bernstein_range=1000.0) == delta_c(bounds="hoeffding")  # Bernstein's bound is the larger one


def test_best_cutoff_by_hand() -> None:
    # W 1, epsilon 0, means 1 and 0, N = 4 of the first and 16 of the second, no spread: c by standard errors is .5:
    # d = exp(-8 * .25) = .1353, exp(-32 * .25) = 3.35e-4. c* has 8 (1 - c) / (exp(8 (1 - c)^2) - 1) =
    # 32 c / (exp(32 c^2) - 1): at .363 2.045e-1 and 1.741e-1 by hand, so that c* is a little below.
    problem, rest = TopK(k=1, criterion="each"), ([4, 16], [1.0, 0.0], [0.0, 0.0])
    found = {name: float(problem.certificate(*rest, cutoff=name)["delta_c"]) for name in ("standard-error", "best")}
    c = np.linspace(0.001, 0.999, 99_801)
    curve = 1 - (1 - np.exp(-8 * (1 - c) ** 2)) * (1 - np.exp(-32 * c**2))
    assert found["standard-error"] == pytest.approx(0.135625, abs=1e-5)
    assert found["best"] == pytest.approx(curve.min(), rel=1e-6)
    assert c[curve.argmin()] == pytest.approx(0.359, abs=0.002)
    # alike on both sides: the middle, whatever the spreads, where standard errors pull c to the narrow arm
    even = problem.certificate([9, 9], [1.0, 0.0], [0.09, 0.0], cutoff="best")["delta_c"]
    assert even == pytest.approx(1 - (1 - math.exp(-4.5)) ** 2, rel=1e-12)
    # a tie leaves no gap, and means far apart none but underflow: exp(-2e6 * .25)
    assert problem.certificate([9, 9], [0.5, 0.5], [0.0, 0.0], cutoff="best")["delta_c"] == 1.0
    assert problem.certificate([10**6] * 2, [1.0, 0.0], [0.0, 0.0], cutoff="best")["delta_c"] == 0.0
    # pi3 draws by the d_i at c*: at N = 4 and 16 they are alike where the slopes are, not .1353 to 3.35e-4
    both = [agents.make("pi3", task(K=2), delta=1e-3, cutoff=cutoff) for cutoff in ("best", "standard-error")]
    observed = [seen([4, 16], [0.75, 0.25], public=p) for p in range(300)]
    counts = [sum(a.predict(o)[0]["arm"] == 1 for o in observed) for a in both]
    assert counts[0] > 10 * max(counts[1], 1)


@pytest.mark.parametrize("best", [False, True])
def test_certificate_is_its_twin(best: bool) -> None:
    g, different = np.random.default_rng(0), 0
    for _ in range(60):
        K = int(g.integers(2, 30))
        k, epsilon, W = int(g.integers(1, K)), float(g.choice([0.0, 0.2])), float(g.choice([1.0, 3.0]))
        what = Seen(K)
        for i in range(K):
            for x in g.choice([g.normal(0.5, 0.3, 40), g.integers(0, 2, 40)])[: int(g.integers(1, 40))]:
                what.add(i, float(x))
        statistics: Case = {"pulls": what.N, "mean": what.m, "variance": what.v, "width": W}
        statistics["cutoff"] = "best" if best else "standard-error"
        problem, close = TopK(k=k, epsilon=epsilon), 1e-6 if best else 1e-9
        found = [problem.certificate(**statistics, **how)["delta_c"] for how in HOW]
        wanted = [running_bound(what, k, epsilon, W, **how, best=best)[0] for how in TWINS_HOW]
        assert found == pytest.approx(wanted, rel=close, abs=1e-14)
        assert found[2] <= found[0] <= found[1]
        different += found[2] < found[0] - 1e-9
    assert different > 3


HOW: list[Case] = [{}, {"bounds": "hoeffding"}, {"bernstein_range": 0.05}]
TWINS_HOW: list[Case] = [{"tightest": True}, {"tightest": False}, {"tightest": True, "R": 0.05}]


def test_delta_c_is_a_column_for_every_policy() -> None:
    rules: Case = {"instance": {"distribution": "bernoulli", "mean": [0.9, 0.8, 0.3, 0.1]}, "k": 2, "epsilon": 0.1}
    names = ["uniform", "random", "ocba-m(n0=5)", "clucb"]
    done = agents.evaluate(names, TOP_K, episodes=10, at=[3, 40, 200], env_kwargs=rules | {"budget": 200})
    table = done.summary().set_index(["agent", "at"])["delta_c"]
    assert (done.episodes["delta_c"].between(0, 1)).all()
    assert table["uniform", 3] == 1.0  # an arm has not been pulled yet
    assert 1.0 > table["uniform", 40] > table["uniform", 200] > 0
    again = agents.evaluate("uniform", TOP_K, episodes=10, env_kwargs=rules | {"budget": 40}).summary()
    assert again["delta_c"][0] == table["uniform", 40]
    assert "delta_c" not in agents.evaluate("uniform", "bandit_envs/Threshold-v0", episodes=1).episodes.columns


def test_evaluations_take_a_policys_own_bounds() -> None:
    """At checkpoints and at the end; an algorithm that has none is judged by the tightest, at the default cutoff."""
    distribution = Categorical([0.0, 0.4, 0.5, 0.6, 1.0], [[0, 0, 5, 95, 0], [1, 0, 94, 5, 0], [0, 95, 5, 0, 0]])
    rules: Case = {"instance": Instance(distribution), "k": 1, "epsilon": 0.0, "budget": 900}
    names = ["pi3", "adapt", "adapt(bernstein_range=.3)", "adapt(bernstein_range=.3, cutoff='best')", "uniform"]
    done = agents.evaluate(names, TOP_K, episodes=3, at=[100, 900], env_kwargs=rules).episodes
    problem, hows = TopK(k=1), [{"bounds": "hoeffding"}, {}, {"bernstein_range": 0.3}, {}, {}]
    hows[3] = {"bernstein_range": 0.3, "cutoff": "best"}
    env: Any = gym.make(TOP_K, actions="full", **rules).unwrapped
    for name, how in zip(names, hows, strict=True):
        agent, (observation, _), state = agents.make(name, env), env.reset(seed=0, options={"episode": 1}), None
        for t in (100, 900):
            while observation["pulls"].sum() < t:
                action, state = agent.predict(observation, state)
                action["times"] = min(action["times"], t - observation["pulls"].sum())
                observation = env.step(action)[0]
            statistics = [observation[key] for key in ("pulls", "mean", "variance")]
            wanted = problem.certificate(*statistics, width=env.task.width, **how)["delta_c"]
            row = done[(done["agent"] == name) & (done["at"] == t) & (done["episode"] == 1)]
            assert row["delta_c"].item() == pytest.approx(float(wanted), rel=1e-12), (name, t)
    last = done[done["at"] == 900].groupby("agent")["delta_c"].mean()
    assert len(set(last)) == len(names)


def test_pulls_of_direct() -> None:
    # 2 * 12 / .01 * ln(50 / .15) = 2400 * 5.809143 = 13941.94
    assert direct_pulls(50, 0.1, 0.15, math.sqrt(12)) == 13942
    assert agents.make("pi1", task()).cap == math.ceil(8 * math.log(30))  # 27.2: W = 1, epsilon = 1/2
    assert agents.make("pi1", task()).predict(seen([28, 27, 28], [0.0, 1.0, 0.5]))[0]["arm"] == 1
    assert agents.make("pi1", task()).predict(seen([28, 28, 28], [0.0, 1.0, 0.5]))[0]["arm"] == 3


@pytest.mark.parametrize("levels", [3, 1000])
def test_high_is_the_k_largest_means(levels: int) -> None:
    """After the first passes, and after plans of one to three arms; with few levels nearly all means are ties."""
    g, now = np.random.default_rng(levels), np.zeros(1, TopKAgent.form.now)
    for _ in range(25):
        K = int(g.integers(2, 30))
        mean, arms, k = g.integers(0, levels, K) / levels, np.zeros(3, np.int64), int(g.integers(1, K))
        ep, own = Now(mean, now[0], arms), High(k, np.zeros(K, np.bool_), np.zeros(K))
        now["size"] = 0
        gather(ep, own)
        for _ in range(25):
            rank(ep, own)
            best = np.argsort(-mean, kind="stable")[:k]
            assert own.inside.nonzero()[0].tolist() == sorted(best)
            size = int(g.integers(1, 4))
            now["size"], arms[:size] = size, g.integers(0, K, size)
            mean[arms[:size]] = g.integers(0, levels, size) / levels


def test_draws_by_hand() -> None:
    # weights 1, 0, 2, 1: of four quarters the first is arm 0's, the second and third arm 2's, the last arm 3's
    weight = np.array([1.0, 0.0, 2.0, 1.0])
    assert [draw(weight, 4.0, u) for u in (0.0, 0.2499, 0.25, 0.7499, 0.75, 1 - 2**-53)] == [0, 0, 2, 2, 3, 3]
    assert [draw(weight > 0, 3.0, u) for u in (0.0, 0.33, 0.34, 0.66, 0.67, 1 - 2**-53)] == [0, 0, 2, 2, 3, 3]


def test_kl_by_hand() -> None:
    # kl(.5, .75) = .5 ln(.5 / .75) + .5 ln(.5 / .25) = .5 ln(4 / 3)
    assert kl(0.5, 0.75) == pytest.approx(0.5 * math.log(4 / 3))
    assert kl_upper(0.5, 0.5 * math.log(4 / 3)) == pytest.approx(0.75, abs=1e-12)
    assert kl_upper(0.3, 0.05) == pytest.approx(0.454597, abs=1e-6)
    assert kl_upper(0.0, 0.7) == pytest.approx(1 - math.exp(-0.7))
    assert kl_upper(1.0, 0.7) == 1.0
    g = np.random.default_rng(0)
    for p, b in zip(g.random(200) ** 5, 10 ** g.uniform(-5, 1, 200), strict=True):
        q = kl_upper(p, b)
        assert p < q <= 1
        assert kl(p, q - 1e-9) <= b
        assert q + 1e-9 > 1 or kl(p, q + 1e-9) >= b


# --- twins -----------------------------------------------------------------------------------------------------------


def arms_of(g: np.random.Generator, K: int, easy: bool) -> Instance:
    """Random arms, spread out where a few hundred pulls must separate them, and ties."""
    means = g.permutation(np.arange(K) / K) if easy else g.choice([g.random(K), g.integers(0, 4, K) / 3])
    return random_arms(g, means, [0.02, 0.1, 0.3])


def cases(seed: int, episodes: int, problem: str = TOP_K) -> Iterator[tuple[np.random.Generator, Any, int]]:
    """Random environments: K 2 .. 40, with delta or with a budget."""
    g = np.random.default_rng(seed)
    for episode in range(episodes):
        easy = bool(g.random() < 0.5)
        K = int(g.integers(2, 6)) if easy else int(g.integers(2, 41))
        rules: Case = {"instance": arms_of(g, K, easy), "epsilon": float(g.choice([0.0, 0.1, 0.3]))}
        if problem == TOP_K:
            rules |= {"k": int(g.integers(1, K)), "criterion": str(g.choice(["each", "aggregate", "exact"]))}
        pulls = int(K + g.integers(30, 60 + 3 * K))
        rules |= {"budget": pulls} if g.random() < 0.3 else {"max_pulls": 2 * pulls}
        env: Any = gym.make(problem, actions="full", delta=float(g.choice([0.3, 0.1, 0.01])), **rules).unwrapped
        yield g, env, episode


def compare(env: Any, agent: Any, twin_of: Any, seed: int, episode: int, spent: Any = None) -> tuple[bool, Seen]:
    """The agent does what its twin does, which is made of what it has seen and of a word; whether it stopped by itself.

    spent: the answer at the end of a budget, by what the twin has seen; None: the k largest means.
    """
    what = Seen(env.task.K)
    answer = lambda: spent(what) if spent else set(what.ranked()[: env.problem.k])
    mine = as_twin(env, agent, lambda word: twin_of(what, word), seed, episode, answer)
    return mine[1] is not None and env.task.budget is None, what


def policy(
    name: str,
    own: int,
    task: Task,
    k: int,
    epsilon: float,
    W: float,
    cap: float,
    R: Any,
    best: bool,
    what: Seen,
    word: int,
) -> Any:
    """The twin of a policy."""
    draw = drawer(word, own)
    if name == "pi1":
        return pi1(what, k, epsilon, task.delta, W, draw)
    if name == "pi2":
        return pi2(what, k, epsilon, task.delta, W, draw, cap)
    delta = task.delta if task.budget is None else -1.0
    return adapt(what, k, epsilon, delta, W, draw, name == "adapt", cap, R, best)


@pytest.mark.parametrize(
    ("name", "cutoff", "ranged"),
    [
        *((name, "standard-error", False) for name in POLICIES),
        *[("adapt", "standard-error", True), ("adapt", "best", True), ("pi3", "best", False)],
    ],
)
@pytest.mark.parametrize("episodes", [25, 400])
def test_policies_are_their_twins(name: str, cutoff: str, ranged: bool, episodes: int) -> None:
    """The same arms and the same answer on random instances, with other widths, ranges, cutoffs, caps and seeds."""
    ended = capped = 0
    for g, env, episode in cases(21, episodes):
        task, k = env.task, env.problem.k
        epsilon = 0.0 if env.problem.criterion == "exact" else env.problem.epsilon
        if name == "pi1" and epsilon == 0:
            continue  # it would never stop
        R, cap, own = None, math.inf, int(g.integers(3))
        W = task.width * float(g.choice([1.0, 0.5] if cutoff == "best" else [1.0, 0.25]))
        given: Case = {"width": W, "seed": own} | ({} if cutoff == "standard-error" else {"cutoff": cutoff})
        if name != "pi1" and cutoff != "best" and epsilon == 0.3:  # few pulls
            W = task.width / 4
            given |= {"cap": True, "width": W}
            cap = math.ceil(2 * W**2 * math.log(task.K / task.delta) / epsilon**2)
        if ranged:
            given["bernstein_range"] = R = W * float(g.choice([0.1, 0.3, 1.5]))
        twin = functools.partial(policy, name, own, task, k, epsilon, W, cap, R, cutoff == "best")
        stopped, what = compare(env, agents.make(name, env, **given), twin, 21, episode)
        ended, capped = ended + stopped, capped + (max(what.N) == cap)
    assert ended >= 2
    assert name == "pi1" or cutoff == "best" or capped >= 1


@pytest.mark.parametrize("Delta", [1, 7])
@pytest.mark.parametrize("episodes", [12, 40])
def test_ocba_m_is_its_twin(Delta: int, episodes: int) -> None:
    """The same arms on random instances for each form."""
    for g, env, episode in cases(22 + Delta, episodes):
        n0, own = int(g.integers(2, 5)), int(g.integers(3))
        twin = lambda what, word, k=env.problem.k, n0=n0, own=own: ocba_m(what, k, n0, Delta, drawer(word, own))
        compare(env, agents.make("ocba-m", env, n0=n0, Delta=Delta, seed=own), twin, 22 + Delta, episode)


def test_lucb_is_its_twin() -> None:
    """The same arms and the same answer on 60 random instances."""
    ended = 0
    for _, env, episode in cases(31, 60):
        task, p = env.task, env.problem
        epsilon = p.epsilon if p.criterion != "exact" else 0.0
        tolerance = epsilon if task.budget is None else -math.inf
        twin = lambda what, _, rule=(p.k, tolerance, task.delta, task.sigma): lucb(what, *rule)
        ended += compare(env, agents.make("lucb", env), twin, 31, episode)[0]
    assert ended >= 5


@pytest.mark.parametrize("episodes", [20, 80])
def test_clucb_is_its_twin(episodes: int) -> None:
    """The same arms and the same answer on random instances, and with many arms."""
    ended = early = 0
    for _, env, episode in cases(23, episodes):
        task, p = env.task, env.problem
        weight = {"aggregate": p.k, "each": 1, "exact": 0}[p.criterion]
        tolerance = weight * p.epsilon if task.budget is None else -math.inf
        twin = lambda what, _, rule=(p.k, tolerance, task.delta, task.sigma): clucb(what, *rule)
        stopped, what = compare(env, agents.make("clucb", env), twin, 23, episode)
        ended, early = ended + stopped, early + (task.budget is not None and what.t < task.budget)
    assert ended >= episodes // 8
    assert early >= episodes // 80
    many = Instance(Bernoulli(np.random.default_rng(1).random(333)))
    env = gym.make(TOP_K, actions="full", instance=many, k=111, budget=500, delta=0.1).unwrapped
    compare(env, agents.make("clucb", env), lambda what, _: clucb(what, 111, -math.inf, 0.1, 0.5), 1, 0)


@pytest.mark.parametrize("threshold", ["2013", "lil"])
@pytest.mark.parametrize("episodes", [16, 200])
def test_kl_lucb_is_its_twin(threshold: str, episodes: int) -> None:
    """The same arms and the same answer on random instances for each threshold."""
    ended, seed = 0, 24 + len(threshold)
    for _, env, episode in cases(seed, episodes):
        task, p = env.task, env.problem
        epsilon = -math.inf if task.budget is not None else 0.0 if p.criterion == "exact" else p.epsilon
        rule = p.k, epsilon, task.delta, task.support, task.sigma, threshold == "lil"
        twin = lambda what, _, rule=rule: kl_lucb(what, *rule)
        ended += compare(env, agents.make("kl-lucb", env, threshold=threshold), twin, seed, episode)[0]
    assert ended >= 2


@pytest.mark.parametrize("episodes", [20, 60])
def test_lil_ucb_is_its_twin(episodes: int) -> None:
    """The same arms and the same answer on random instances; the arm with most pulls where a budget ends."""
    ended = 0
    for g, env, episode in cases(25, episodes, BEST_ARM):
        task, constants = env.task, str(g.choice(["theory", "heuristic"]))
        e, b, lam = (0.01, 1, 9) if constants == "theory" else (0, 0.5, 1 + 10 / task.K)
        rule = task.delta, task.sigma, e, b, lam if task.budget is None else math.inf
        twin, most = lambda what, _, rule=rule: lil_ucb(what, *rule), lambda what: {what.N.index(max(what.N))}
        ended += compare(env, agents.make("lil-ucb", env, constants=constants), twin, 25, episode, most)[0]
    assert ended >= episodes // 8


def test_which_need_delta() -> None:
    """With a budget, what only stops by delta needs none, and the LUCBs take 0.01."""
    free = task(delta=None, budget=100)
    for name in ("pi3", "adapt", "ocba-m"):
        agents.make(name, free)
    for name in ("lucb", "clucb", "kl-lucb"):
        assert agents.make(name, free).level == agents.make(name, task(), delta=0.01).level
