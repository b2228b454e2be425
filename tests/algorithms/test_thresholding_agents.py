"""The thresholding agents and the baselines: by hand, against their literal twins, through every loop, on the paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.vector import SyncVectorEnv
from plays import episode_of, seen
from refusals import refused
from scipy import stats
from twins import TWINS, as_twin, by_betaincc, by_fractions, follow, opt_kg, play

import agents
from agents.core.index_policy import SCAN
from agents.evolved.formula import START
from agents.registry import AGENTS, ALIASES, LEARNED
from agents.thresholding.opt_kg import log_gain
from bandit_envs import Bernoulli, Categorical, Gaussian, Instance, Task

THRESHOLD = "bandit_envs/Threshold-v0"
FEASIBLE = "bandit_envs/Feasible-v0"
NAMES = sorted(TWINS)

Case = dict[str, Any]


def task(**changes: Any) -> Task:
    """A thresholding task at 1/2 with 3 Bernoulli arms and 10 pulls."""
    return Task("Threshold", {"threshold": 0.5, "tolerance": 0.0}, K=3, budget=10).replace(**changes)


def needs(name: str) -> dict[str, Any]:
    """Parameters without which an agent cannot be made from a task alone."""
    return {"H": 100.0} if name == "ucbe" else {}


def make(name: str, source: Any = None, **parameters: Any) -> Any:
    """The agent, by default for the plain task."""
    return agents.make(name, task() if source is None else source, **parameters)


# --- the catalogue ---------------------------------------------------------------------------------------------------


# Their twins are in test_feasible_agents, below, test_classics, test_certified_agents and test_paired.
APART = {
    "sar",
    "static",
    "offline",
    "hdoc",
    "jamieson-jain",
    "evidence",
    "track-and-stop",
    "top-two",
    "paired-elimination",
    "look-ahead",
}


def test_every_thresholding_agent_has_a_twin() -> None:
    rows = sorted(name for name, kind in AGENTS.items() if "Threshold" in kind.solves)
    assert [name for name in rows if name not in {*APART, *LEARNED}] == NAMES == sorted(COMPARED)
    assert all(kind.name == name and kind.source and kind.solves for name, kind in AGENTS.items())


# --- by hand ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "a"),
    [
        ({}, 1.0),  # (10 - 3) / 7
        ({"b": 4.0}, 256.0),
        ({"b": -1.0}, 0.25),
        ({"scale": 36.0}, 25.0),  # 36 * 25/36 * 7 / 7
        pytest.param({"scale": 36.0, "b": 4.0}, 25.0, marks=pytest.mark.filterwarnings("ignore:.*has no effect")),
    ],
)
def test_ucbe_constant(parameters: dict[str, float], a: float) -> None:
    assert make("ucbe", H=7.0, **parameters).a == pytest.approx(a, rel=1e-15)


def test_ucbe_hardness_of_the_paper() -> None:
    env = gym.make(THRESHOLD, instance="tao2019-1", budget=1000)
    # gaps .3 .25 .2 .15 .05, each twice: H = 2 (100/9 + 16 + 25 + 400/9 + 400) = 993.111; a = 990 / 993.111
    assert make("ucbe", env).a == pytest.approx(990 / (2 * (100 / 9 + 16 + 25 + 400 / 9 + 400)), rel=1e-12)
    assert make("ucbe", env, b=-1).a == pytest.approx(make("ucbe", env).a / 4, rel=1e-15)


def test_opt_kg_gain() -> None:
    def gain(a: float, b: float, threshold: float = 0.5) -> float:
        return float(np.exp(log_gain(np.array([a]), np.array([b]), threshold))[0])

    # Beta(1, 1): P = 1/2; a success leads to Beta(2, 1), P = 1 - 1/4: R = 3/4 - 1/2 = 1/4
    assert gain(1, 1) == pytest.approx(1 / 4, rel=1e-14)
    # Beta(2, 1): P = 3/4; a success leads to Beta(3, 1), P = 1 - 1/8: R = 1/8 (a failure to Beta(2, 2), h = 1/2)
    assert gain(2, 1) == gain(1, 2) == pytest.approx(1 / 8, rel=1e-14)
    # Beta(3, 2): P = 11/16; a success leads to Beta(4, 2), P = 13/16: R = 1/8
    assert gain(3, 2) == pytest.approx(1 / 8, rel=1e-14)
    # theta = 1/4, Beta(1, 2): P = (3/4)^2 = 9/16, a failure leads to Beta(1, 3), P = 27/64, h = 37/64: R = 1/64;
    # a success to Beta(2, 2), P = 1 - 3/16 + 2/64 = 54/64: R = 18/64
    assert gain(1, 2, 0.25) == pytest.approx(18 / 64, rel=1e-14)
    # theta = 3/4, Beta(2, 1): the mirror image
    assert gain(2, 1, 0.75) == pytest.approx(18 / 64, rel=1e-14)
    # A contradiction can gain more: theta = 3/10, Beta(1, 2): P = .49, a success leads to Beta(2, 2), P = .784: R =
    # .784 - .51 = .274; a failure to Beta(1, 3), P = .343, h = .657: R = .147
    assert gain(1, 2, 0.3) == pytest.approx(0.274, rel=1e-13)


@pytest.mark.parametrize("threshold", [Fraction(1, 2), Fraction(1, 4), Fraction(3, 10), Fraction(1, 3)])
def test_opt_kg_gain_is_that_of_the_definition(threshold: Fraction) -> None:
    """All posteriors with a, b < 24 in exact arithmetic: the gains, their order, and their ties."""
    above = by_fractions(threshold)
    h: Callable[[Fraction], Fraction] = lambda x: max(x, 1 - x)
    pairs = [(a, b) for a in range(1, 24) for b in range(1, 24)]
    exact = [max(h(above(a + 1, b)), h(above(a, b + 1))) - h(above(a, b)) for a, b in pairs]
    agent = make("opt-kg", task(parameters={"threshold": float(threshold), "tolerance": 0.0}))
    a, b = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    gain = log_gain(a, b, float(threshold))
    assert gain == pytest.approx([math.log(R) for R in exact], abs=1e-12)
    index = agent.value(a + b - 2, (a - 1) / np.maximum(a + b - 2, 1))
    order = sorted(range(len(pairs)), key=lambda i: exact[i])
    ties = 0
    for i, j in zip(order, order[1:], strict=False):
        tied = exact[i] == exact[j]
        ties += tied
        assert (index[i] == index[j]) if tied else (index[i] > index[j]), (pairs[i], pairs[j])
    assert ties >= (200 if threshold == Fraction(1, 2) else 0)


@pytest.mark.parametrize("name", ["uniform", "random", "lsa", "apt", "ucbe"])
def test_plug_in_answer(name: str) -> None:
    agent = make(name, **needs(name))
    assert agent.recommend(seen([2, 2, 0], [0.5, 0.49, 0])).tolist() == [True, False, False]  # never pulled: not in
    batch = {key: np.stack([value, value]) for key, value in seen([2, 2, 1], [0.5, 0.49, 1]).items()}
    assert agent.recommend(batch).tolist() == [[True, False, True]] * 2
    assert agent.recommend(batch, slots=np.array([1])).tolist() == [[True, False, True]]


def test_uniform_goes_round_without_a_budget() -> None:
    free = make("uniform", task(budget=None, max_pulls=9))
    assert [free.predict(seen([t, 1, 0], [0, 0, 0]))[0]["arm"] for t in range(4)] == [1, 2, 0, 1]


# --- against the twins -----------------------------------------------------------------------------------------------


def cases(seed: int, distribution: str | None = None, K: int | None = None) -> Iterator[Case]:
    """Random thresholding environments without end: some distributions, samplers, K 2 .. 60, budgets from 1 on."""
    g = np.random.default_rng(seed)
    while True:
        sizes = np.array([2, g.integers(3, 11), g.integers(11, SCAN + 1), g.integers(SCAN + 1, 61)])
        arms = K or int(g.choice(sizes))
        budget = int(g.choice(np.array([g.integers(1, arms + 1), arms, g.integers(arms + 1, 4 * arms + 40)])))
        threshold = float(g.choice([0.5, 0.5, 0.25, g.uniform(0.1, 0.9)]))
        means = g.choice([g.random(arms), g.integers(0, 11, arms) / 10])
        kind = g.choice(["bernoulli", "gaussian", "categorical", "sampler"]) if distribution is None else distribution
        instance: Any
        if kind == "bernoulli":
            instance = Instance(Bernoulli(means))
        elif kind == "gaussian":
            instance = Instance(Gaussian(means, g.uniform(0.1, 1, arms)))
        elif kind == "categorical":
            instance = Instance(Categorical([0.0, 0.25, 1.0], g.integers(1, 9, (arms, 3))))
        else:
            instance = {"sampler": {"distribution": str(g.choice(["bernoulli", "gaussian"])), "arms": arms}}
        tolerance = float(g.choice([0.0, 0.05]))
        yield {"instance": instance, "budget": budget, "threshold": threshold, "tolerance": tolerance}


def ucbe_parameters(env: Any, g: np.random.Generator) -> Case:
    """Of the twin: a = 4^b (T - K) / H, the truth known; on samplers H is given."""
    b, K, T, instance = int(g.choice([-1, 0, 4])), env.task.K, env.task.budget, env.instance
    if instance is None or T <= K or (gaps := np.abs(env.problem.margin(instance.arms.means))).min() == 0:
        return {"a": float(g.uniform(0.01, 10))}
    return {"a": 4.0**b * (T - K) / float((gaps**-2.0).sum()), "b": b}


COMPARED: dict[str, Callable[[Any, np.random.Generator], Case]] = {
    "uniform": lambda env, g: {},
    "random": lambda env, g: {"seed": int(g.integers(0, 9))},
    "lsa": lambda env, g: [{}, {"alpha": 0.5}][g.integers(2)],
    "apt": lambda env, g: [{}, {"tolerance": 0.0}, {"tolerance": 0.025}, {"tolerance": 0.1}][g.integers(4)],
    "ucbe": ucbe_parameters,
    "opt-kg": lambda env, g: {"prior": [(1.0, 1.0), (0.5, 0.5), (2.0, 1.0), (0.1, 0.7), (1.1, 2.3)][g.integers(5)]},
    "dp-index": lambda env, g: {},
    "evolved": lambda env, g: {"parameters": (np.array(START) + 0.2 * g.standard_normal(len(START))).tolist()},
}


def of_twin(name: str, env: Any, given: Case, word: int) -> Case:
    """Parameters of the twin, with what the agent reads from its task and its episode."""
    task = env.task
    if name == "lsa":  # alpha is of samples in [0, 1]
        return {"alpha": given.get("alpha", 1.35) / (2 * task.sigma) ** 2}
    if name == "apt":  # by default the problem's
        return {"tolerance": env.problem.tolerance, **given}
    if name == "evolved":
        return {"sigma": task.sigma, "centre": task.centre if task.distribution == "bernoulli" else None, **given}
    return {"a": given["a"]} if name == "ucbe" else given | ({"public_seed": word} if name == "random" else {})


def compare(name: str, env: Any, margin: Any, given: Case, seed: int, episode: int) -> None:
    """The same arms and the same answer as the twin."""
    agent = agents.make(name, env, **{key: x for key, x in given.items() if key != "a" or "b" not in given})
    K, budget = env.task.K, env.task.budget
    as_twin(env, agent, lambda word: TWINS[name](K, budget, margin, **of_twin(name, env, given, word)), seed, episode)


@pytest.mark.parametrize(
    ("name", "episodes", "K"),
    [
        *[(name, 25, None) for name in NAMES if name not in ("opt-kg", "dp-index")],
        *[(name, 2, K) for name in ("lsa", "apt", "ucbe") for K in (SCAN, SCAN + 1, 257)],  # trees of every depth
        *[(name, 300, None) for name in NAMES if name not in ("opt-kg", "dp-index")],
    ],
)
def test_agent_is_its_twin(name: str, episodes: int, K: int | None) -> None:
    g, scanned = np.random.default_rng(1), 0
    for episode, case in zip(range(episodes), cases(seed=K or 2, K=K), strict=False):
        env: Any = gym.make(THRESHOLD, actions="full", **case | ({} if K is None else {"budget": 3 * K})).unwrapped
        scanned += env.task.K <= SCAN
        compare(name, env, case["threshold"].__rsub__, COMPARED[name](env, g), 3, episode)
    assert K is not None or 0.4 * episodes < scanned < 0.95 * episodes  # both forms of the argmin


def test_opt_kg_is_its_twin() -> None:
    """The same arms and the same answer on 60 random instances, as far as floating point reaches.

    Below a gain of 1e-5 the differences of I(a, b) have lost so many digits that the twin cannot tell a tie from an
    order; it stops there. Exact arithmetic goes on, to gains far below what floating point can tell in 1 - I(a, b).
    """
    g, pulls, compared = np.random.default_rng(1), 0, 0
    env: Any
    for episode, case in zip(range(60), cases(seed=4, distribution="bernoulli"), strict=False):
        env = gym.make(THRESHOLD, actions="full", **case).unwrapped
        given = COMPARED["opt-kg"](env, g)
        agent = agents.make("opt-kg", env, **given)
        mine, answer = play(env, agent, env.reset(seed=5, options={"episode": episode})[0])
        env.reset(seed=5, options={"episode": episode})
        above = by_betaincc(case["threshold"])
        theirs, right = follow(env, opt_kg(env.task.K, case["budget"], above, **given, tie=1e-9, least=1e-5))
        assert mine[: len(theirs)] == theirs, (episode, case, given)
        assert len(theirs) < len(mine) or answer == right
        pulls, compared = pulls + len(mine), compared + len(theirs)
    assert compared > 0.9 * pulls
    for threshold in (Fraction(1, 2), Fraction(3, 10)):
        for episode, p in enumerate(([0.02, 0.97], [0.45, 0.55, 0.5], [0.05] * 3 + [0.95] * 3, [0.5] * 8)):
            rules = {"instance": Instance(Bernoulli(p)), "budget": 20 * len(p), "threshold": float(threshold)}
            env = gym.make(THRESHOLD, actions="full", **rules).unwrapped
            twin = opt_kg(len(p), 20 * len(p), by_fractions(threshold))
            as_twin(env, agents.make("opt-kg", env), lambda _, twin=twin: twin, 6, episode)


# --- feasible arms ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["uniform", "random", "lsa", "apt", "ucbe"])
def test_feasible_on_a_half_line_is_thresholding(name: str) -> None:
    """{x : -x <= -theta} in one dimension: the same pulls and answers on 15 random instances."""
    for episode, case in zip(range(15), cases(seed=8), strict=False):
        line = {key: value for key, value in case.items() if key != "threshold"}
        line |= {"A": [[-1.0]], "b": [-case["threshold"]]}
        results = []
        for env_id, kwargs in ((THRESHOLD, case), (FEASIBLE, line)):
            env: Any = gym.make(env_id, actions="full", **kwargs).unwrapped
            agent = agents.make(name, env, **({"a": 2.0} if name == "ucbe" else {}))
            results.append(play(env, agent, env.reset(seed=9, options={"episode": episode})[0]))
        assert results[0] == results[1], (episode, case)


def quadrant(x: Any) -> float:
    """Signed distance to the boundary of {x : x_1 >= .4, x_2 <= .5}."""
    inside = min(x[0] - 0.4, 0.5 - x[1])
    return float(inside if inside >= 0 else -math.hypot(max(0.4 - x[0], 0), max(x[1] - 0.5, 0)))


@pytest.mark.parametrize("name", ["uniform", "random", "lsa", "apt", "ucbe"])
@pytest.mark.parametrize("K", [3, 20, 60])
def test_feasible_agents_are_their_twins(name: str, K: int) -> None:
    """Two-dimensional Gaussian arms, whose indices have no ties."""
    g, rules = np.random.default_rng(K), {"A": [[-1.0, 0.0], [0.0, 1.0]], "b": [-0.4, 0.5], "actions": "full"}
    for episode in range(4):
        budget, instance = int(g.integers(1, 6 * K)), Instance(Gaussian(g.normal(0.45, 0.3, (K, 2)), 0.5))
        env: Any = gym.make(FEASIBLE, instance=instance, budget=budget, **rules).unwrapped
        compare(name, env, quadrant, {"a": 0.5} if name == "ucbe" else {}, 10, episode)


# --- make ------------------------------------------------------------------------------------------------------------


PAPER: dict[str, Any] = {"instance": {"distribution": "bernoulli", "mean": [0.2, 0.35, 0.45, 0.55, 0.8]}, "budget": 60}


def vector(actions: str = "full", **kwargs: Any) -> Any:
    return gym.make_vec(THRESHOLD, num_envs=4, actions=actions, **PAPER | kwargs)


@pytest.mark.parametrize("name", ["lsa", "ucbe"])
def test_make_from_every_source(name: str) -> None:
    env, envs = gym.make(THRESHOLD, **PAPER), vector("arm")
    wrapped = gym.wrappers.RecordEpisodeStatistics(env), gym.wrappers.vector.RecordEpisodeStatistics(envs)
    single = SyncVectorEnv([lambda: gym.make(THRESHOLD, **PAPER)] * 2)
    made = [agents.make(name, source) for source in (env, env.unwrapped, envs, *wrapped, single)]
    assert all(agent.task == made[0].task == made[1].task for agent in made)
    assert all(vars(agent).get("a") == vars(made[0]).get("a") for agent in made)
    assert type(agents.make(name, made[0].task, **needs(name))) is AGENTS[name]


def test_make_from_sb3() -> None:
    pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

    venv = DummyVecEnv([lambda: gym.make(THRESHOLD, **PAPER)])
    for source in (venv, VecMonitor(venv)):
        assert make("ucbe", source).a == make("ucbe", vector()).a


def test_aliases_and_parameters_in_the_name() -> None:
    for alias, name in ALIASES.items():
        assert type(make(alias, **needs(name))) is AGENTS[name]
    assert make("apt(tolerance=0.05)").tolerance == 0.05
    assert make("md-apt( tolerance = 0.05 )").tolerance == 0.05
    assert make("apt(tolerance=0.05)", tolerance=0.1).tolerance == 0.1
    assert make("opt-kg(prior=(0.5, 0.5))").prior == (0.5, 0.5)
    assert make("opt-kg", prior=[2, 1]).prior == (2.0, 1.0)
    assert make("random(seed=3)").seed == 3
    assert make("ucbe(a=0)").a == 0


def test_oracles() -> None:
    for source in (gym.make(THRESHOLD), vector(instance="sampler(arms=5)"), task()):
        with refused("ucbe", "H=", "a="):
            make("ucbe", source)
        assert make("ucbe", source, H=10.0, b=1).a > 0
    assert make("ucbe", vector(budget=3), a=1.0).a == 1.0
    assert make("ucbe", vector(shuffle_arms=True)).a == make("ucbe", vector()).a
    plane = {"distribution": "gaussian", "mean": [[0.0, 1.0], [2.0, 0.0]]}
    feasible = gym.make(FEASIBLE, instance=plane, A=[[1.0, 0.0]], b=[1.0], tolerance=0.5, budget=20)
    # margins 1 and -1, the tolerance added: H = 2 / 1.5^2 = 8/9; a = 18 / (8/9), MD form with 25/36
    assert make("md-ucbe", feasible, scale=1).a == pytest.approx(25 / 36 * 18 * 9 / 8)


# --- the paper -------------------------------------------------------------------------------------------------------

MANY = [1_000, 6_000]
# Tao et al. 2019, Figure 1: ln(regret / K) of LSA on set-up 1 at T = 1000 is about -6, taken here as -6 +- 1/4. Regret
# is the mean number of wrong arms of an episode; an episode with any wrong arm is no more likely than that, and hardly
# less (two wrong arms are rare). Number of such episodes, each tail with probability 1e-6.


@pytest.mark.parametrize("episodes", MANY)
def test_regret_of_lsa(episodes: int) -> None:
    """The paper's; more of the others', also on the same episodes (sign test; a false alarm has probability 1e-4)."""
    names, rules = ["lsa", "uniform", "ucbe(b=0)", "opt-kg(prior=(1, 1))"], {"instance": "tao2019-1", "budget": 1000}
    names = names if episodes == MANY[1] else names[:2]
    found = agents.evaluate(names, THRESHOLD, episodes=episodes, seed=0, env_kwargs=rules)
    wrong = {name: found.column(name, "misclassified") for name in names}
    highest = stats.binom.isf(1e-6, episodes, 10 * math.exp(-5.75))
    assert stats.binom.ppf(1e-6, episodes, 10 * math.exp(-6.25)) <= (wrong["lsa"] > 0).sum() <= highest
    for name in names[1:]:
        gap = wrong[name] - wrong["lsa"]
        better, worse = int((gap > 0).sum()), int((gap < 0).sum())
        assert stats.binom.sf(better - 1, better + worse, 0.5) < 1e-4, name
        assert name == "opt-kg(prior=(1, 1))" or (wrong[name] > 0).sum() > highest


# --- static allocation by the true margins ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "problem"), [("static", "Threshold"), ("static", "Feasible"), ("offline", "Threshold")]
)
def test_it_is_its_twin_and_keeps_the_proportions(name: str, problem: str) -> None:
    """The arm with the least index, the lowest of them, on 30 random instances.

    static: Katz-Samuels & Scott 2018, Proposition 1, at every time: T_i D_i^2; then T_i <= 1 + (t - 1) D_i^-2 / H.
    offline: Tao et al. 2019, section 3, for samples in [0, 1], sigma 1/2: T_i D_i^2 + ln(1 / D_i); then all indices
    are within a pull's step.
    """
    g = np.random.default_rng(5)
    for _ in range(30):
        K, D = int(g.integers(2, 12)), 1 if problem == "Threshold" else int(g.integers(1, 4))
        sd, rules = float(g.choice([0.2, 0.5, 2.0])), {"budget": int(g.integers(1, 150))}
        if name == "static":
            rules["tolerance"] = float(g.choice([0.0, 0.1]))
        if problem == "Threshold":
            rules["threshold"] = 0.1
        else:
            rules |= {"A": g.normal(size=(2, D)).tolist(), "b": [0.3, 0.6]}
        means = g.normal(0, 1, (K, D)) if D > 1 else g.normal(0, 1, K)
        env: Any = gym.make(f"bandit_envs/{problem}-v0", instance=Instance(Gaussian(means, sd)), **rules)
        gaps = np.abs(env.unwrapped.problem.margin(means)) + rules.get("tolerance", 0.0)
        start = 4 * sd**2 * np.log(1 / gaps) if name == "offline" else 0 * gaps
        wanted, counts = [], np.zeros(K)
        for _ in range(rules["budget"]):
            wanted.append(int((counts * gaps**2 + start).argmin()))
            counts[wanted[-1]] += 1
        pulls = episode_of(env, agents.make(name, env))[0]
        assert pulls == wanted
        if name == "static":
            share, before = gaps**-2.0, np.arange(len(pulls))[:, None]
            assert (np.cumsum(np.eye(K)[pulls], axis=0) <= 1 + before * share / share.sum() + 1e-9).all()
        else:
            index, pulled = counts * gaps**2 + start, counts > 0
            assert (index[pulled] - gaps[pulled] ** 2 <= index.min() + 1e-9).all()


@pytest.mark.parametrize("name", ["static", "offline"])
def test_it_needs_the_truth_of_each_place(name: str) -> None:
    arms = {"distribution": "bernoulli", "mean": [0.9, 0.2, 0.6]}
    for form in ({}, {"vectorization_mode": "sync"}):
        made = agents.make(name, gym.make_vec(THRESHOLD, 2, instance=arms, budget=30, **form))
        assert made.squares == pytest.approx(np.array([0.4, 0.3, 0.1]) ** 2)
        assert name == "static" or made.logs == pytest.approx(np.log([1 / 0.4, 1 / 0.3, 1 / 0.1]))
    for kwargs in ({"instance": arms, "shuffle_arms": True}, {"instance": "sampler(arms=3)"}):
        for envs in (
            gym.make(THRESHOLD, budget=30, **kwargs),
            gym.make_vec(THRESHOLD, 2, budget=30, **kwargs),
            gym.make_vec(THRESHOLD, 2, vectorization_mode="sync", budget=30, **kwargs),
        ):
            with refused(name, "margins="):
                agents.make(name, envs)
            assert agents.make(f"{name}(margins=[1, 2, 3])", envs).squares.tolist() == [1, 4, 9]
    with refused(name, "same order"):
        agents.evaluate(made, THRESHOLD, episodes=2, env_kwargs={"instance": arms, "shuffle_arms": True, "budget": 30})


def test_offline_errs_as_often_as_the_binomial_distribution_says() -> None:
    """Its pulls are no matter of chance, so that the errors of each arm follow from them exactly.

    4000 episodes on set-up 1 at T = 300; false-alarm rate 1e-6 (normal approximation). At the pulls of `static` the
    expected number of errors lies far outside.
    """
    means, episodes, T = np.array([20, 25, 30, 35, 45, 55, 65, 70, 75, 80]) / 100, 4000, 300

    def expected(name: str) -> tuple[float, float]:
        """Mean and variance of the number of errors, if the arms were pulled as this agent does."""
        env = gym.make(THRESHOLD, instance="tao2019-1", budget=T)
        n = np.bincount(episode_of(env, agents.make(name, env))[0], minlength=10)
        below = stats.binom.cdf(np.ceil(n / 2) - 1, n, means)  # the empirical mean is below 1/2
        error = np.where(n == 0, means >= 0.5, np.where(means >= 0.5, below, 1 - below))
        return float(error.sum()), float((error * (1 - error)).sum())

    found = agents.evaluate("offline", THRESHOLD, episodes=episodes, env_kwargs={"instance": "tao2019-1", "budget": T})
    errors = found.column("offline", "misclassified").mean()
    mean, variance = expected("offline")
    limit = stats.norm.isf(0.5e-6) * math.sqrt(variance / episodes)
    assert abs(errors - mean) < limit
    assert abs(errors - expected("static")[0]) > 3 * limit
