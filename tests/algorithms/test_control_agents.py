"""Agents against a control: critical values and first steps by hand, literal twins, errors, refusals, sessions."""

from __future__ import annotations

import functools
import math
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from plays import sampler
from scipy import special, stats
from twins_all_good import as_twin
from twins_control import PUBLISHED, design, index, jamieson_jain

import agents
from agents.control.fixed_designs import dunnett_level
from bandit_envs import Task

CONTROL, THRESHOLD = "bandit_envs/BetterThanControl-v0", "bandit_envs/Threshold-v0"
DESIGNS = ("bonferroni", "holm", "dunnett")
FIXED = [*DESIGNS, "jamieson-jain", "apt", "lsa"]
CERTIFIED = ["evidence", "top-two", "track-and-stop"]
GAUSSIAN: dict[str, Any] = {"distribution": "gaussian", "mean": [0.0, 0.6, 0.0, -0.4, 1.1], "sd": 1.0}


def env_of(env_id: str = CONTROL, **rules: Any) -> Any:
    return gym.make(env_id, actions="full", **rules).unwrapped


def test_dunnett_by_the_published_table() -> None:
    """Equal numbers of samples: the correlation is 1/2."""
    for k, d in PUBLISHED.items():
        assert -special.ndtri(dunnett_level(k, 0.5, 0.05)) == pytest.approx(d, abs=2e-3)
    for k, rho, delta in ((3, 0.2, 0.01), (7, 0.8, 0.1)):
        d = -special.ndtri(dunnett_level(k, rho, delta))
        cov = np.full((k, k), rho) + (1 - rho) * np.eye(k)
        assert 1 - stats.multivariate_normal.cdf([d] * k, cov=cov, abseps=1e-6) == pytest.approx(delta, rel=1e-3)
    assert dunnett_level(4, 1e-12, 0.05) == pytest.approx(1 - 0.95**0.25)  # independent: Sidak
    assert dunnett_level(1, 0.5, 0.05) == pytest.approx(0.05)


def test_first_pulls_by_hand() -> None:
    """Ratio 2 = sqrt(4): of (N + 1/2) / weight the control has .25, then .75, 1.25, 1.75; an arm .5, then 1.5."""
    env = env_of(instance=GAUSSIAN, budget=12, shuffle_arms=False)
    agent, state, (observation, _), arms = agents.make("dunnett", env), None, env.reset(seed=1), []
    for _ in range(12):
        action, state = agent.predict(observation, state)
        arms.append(action["arm"])
        observation, *_ = env.step(action)
    assert arms == [0, 1, 2, 3, 4, 0, 0, 1, 2, 3, 4, 0]


def test_levels_by_hand() -> None:
    task = Task("BetterThanControl", {}, K=5, budget=100, distribution="gaussian", support=None, sigma=1.0)
    assert agents.make("bonferroni", task, delta=0.04).levels[:4].tolist() == [0.01] * 4
    assert agents.make("holm", task, delta=0.04).levels[:4] == pytest.approx([0.01, 0.04 / 3, 0.02, 0.04])
    levels = agents.make("dunnett", task, delta=0.04).levels[:4]
    assert levels == pytest.approx([dunnett_level(4, 1 / 3, 0.04)] * 4)
    assert 0.01 < levels[0] < 0.04


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("correction", DESIGNS)
def test_designs_are_their_twins(distribution: str, correction: str) -> None:
    found = 0
    for K, c, budget in ((2, 0, 40), (4, 2, 60), (6, 0, 300)):
        env = env_of(instance=sampler(distribution, K), control=c, budget=budget)
        agent = agents.make(correction, env, delta=0.1)
        twin = functools.partial(design, K, c, budget, 0.1, correction, distribution == "bernoulli")
        for e in range(6):
            found += len(as_twin(env, agent, lambda _, twin=twin: twin(), 3, e)[1] or ())
    assert found >= 5


@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
@pytest.mark.parametrize(("name", "share"), [("apt", None), ("apt", 0.0), ("lsa", None), ("lsa", 0.6)])
def test_index_policies_are_their_twins(distribution: str, name: str, share: float | None) -> None:
    for K, c, least, lift in ((2, 0, None, None), (5, 3, 0.05, None), (5, 0, None, 0.2)):
        rules = {"control": c, "margin": least, "lift": lift, "tolerance": 0.03, "budget": 120}
        env = env_of(instance=sampler(distribution, K), **rules)
        agent = agents.make(name, env, **({} if share is None else {"control_share": share}))
        a, b = (1 + lift, 0.0) if lift else (1.0, least or 0.0)
        part, sigma = 1 / (1 + math.sqrt(K - 1)) if share is None else share, env.task.sigma
        rule = {
            "apt": lambda T, D: math.sqrt(T) * (abs(D) + 0.03),
            "lsa": lambda T, D, s=sigma: 1.35 * T * (D / (2 * s)) ** 2 + 0.5 * math.log(T),
        }[name]
        for e in range(6):
            as_twin(env, agent, lambda _, K=K, c=c, a=a, b=b, p=part, r=rule: index(K, c, a, b, 120, p, r), 4, e)


@pytest.mark.parametrize("rate", ["fdr", "familywise"])
@pytest.mark.parametrize("env_id", [CONTROL, THRESHOLD])
@pytest.mark.parametrize("episodes", [2, 5])
def test_jamieson_jain_is_its_twin(env_id: str, rate: str, episodes: int) -> None:
    ended = 0
    arms = {"distribution": "gaussian", "mean": [0.1, 1.2, 0.0, 1.4, -1.0], "sd": 0.8}
    for limits in ({"budget": 250}, {"delta": 0.1, "max_pulls": 3000}):
        rules: dict[str, Any] = {"lift": None, "control": 2} if env_id == CONTROL else {"threshold": 0.5}
        env = env_of(env_id, instance=arms, tolerance=0.3, **rules, **limits)
        agent = agents.make("jamieson-jain", env, rate=rate)
        where = (2, 1.0, 0.0) if env_id == CONTROL else (None, 0.0, 0.5)
        how = (0.8, limits.get("delta", 0.05), rate == "familywise", limits.get("budget"), 0.3)
        for e in range(episodes):
            found = as_twin(env, agent, lambda _, w=where, h=how: jamieson_jain(5, *w, *h), 5, e)[1]
            ended += found is not None and len(found) == 2
    assert ended >= episodes


def nearest(env: Any, observation: Any, boundary: str) -> tuple[float, dict[int, float]]:
    """The least statistic by the problem's certifier, of the plug-in answer; the divergence of each arm it moves."""
    certifier = env.task.make_problem().certifier(env.task.K, boundary=boundary, sigma=env.task.sigma)
    rows = [np.ascontiguousarray(observation[name])[None] for name in ("pulls", "mean", "variance")]
    out = certifier.alternatives(*rows, np.full((1, env.task.K), -1, np.int8))[0]
    return out[0], {int(out[2 + p]): out[2 + env.task.K + p] for p in range(2)}


def decisions(env: Any, agent: Any, seed: int) -> Any:
    """What has been seen, the arm, the number of pulls: at each decision of an episode that has more than one."""
    (observation, _), state = env.reset(seed=seed), None
    while True:
        action, state = agent.predict(observation, state)
        if action["arm"] == env.task.K or observation["remaining"][0] == 0:
            return
        yield observation, action["arm"]
        observation, *_ = env.step(action)


@pytest.mark.parametrize("name", ["evidence(force=0, hold=0)", "top-two(rule='eb-tc')"])
@pytest.mark.parametrize("distribution", ["gaussian", "bernoulli"])
def test_certified_agents_pull_the_nearest_pair(distribution: str, name: str) -> None:
    """`evidence`: its steeper arm. Without forced exploration and blocks, each pull is a decision."""
    boundary, seen = "mixture" if name[0] == "e" else "none", 0
    for rules in ({"margin": 0.02}, {"lift": 0.1, "control": 3}):
        env = env_of(instance=sampler(distribution, 5), tolerance=0.04, budget=80, **rules)
        agent = agents.make(name, env)
        for seed in range(4):
            for observation, arm in decisions(env, agent, seed):
                t = observation["pulls"].sum()
                if observation["pulls"].min() == 0 or (name[0] == "t" and t > 20):  # then in blocks of sqrt(N) / 2
                    continue
                value, steep = nearest(env, observation, boundary)
                if value <= (-math.log(4) if name[0] == "e" else 0.0):  # mixtures below 0, which certificates cut off
                    continue
                assert arm in steep
                one, other = sorted(steep.values())
                if name[0] == "e" and other > 1.0001 * one:
                    assert steep[arm] == other
                seen += 1
    assert seen >= 100


def test_track_and_stop_pulls_in_the_best_proportions() -> None:
    env = env_of(instance=GAUSSIAN, tolerance=0.2, budget=20_000, shuffle_arms=False)
    best = env.task.make_problem().optimal_proportions(GAUSSIAN["mean"])
    kwargs = {"instance": GAUSSIAN, "tolerance": 0.2, "budget": 20_000, "shuffle_arms": False}
    found = agents.evaluate("track-and-stop", CONTROL, episodes=8, env_kwargs=kwargs)
    shares = found.pulls["pulls"].to_numpy() / 20_000
    assert np.abs(shares - best).max() < 0.04  # means are known to .02: w* to about .02
    uniform = np.abs(0.2 - best).max()
    assert uniform > 0.1


def wrong(name: str, episodes: int, **rules: Any) -> int:
    """In how many episodes an arm is answered that is not better."""
    found = agents.evaluate(name, CONTROL, episodes=episodes, env_kwargs=rules)
    return int((found.episodes["precision"] < 1).sum())


NULL: dict[str, Any] = {"distribution": "gaussian", "mean": [0.0] * 6, "sd": 1.0}
sizes = pytest.mark.parametrize("episodes", [100, 1000])


def limit(episodes: int, rate: float = 0.05) -> int:
    """A family that errs at this rate exceeds it with probability 1e-6."""
    return int(stats.binom.isf(1e-6, episodes, rate))


@sizes
@pytest.mark.parametrize("name", DESIGNS)
def test_designs_hold_the_familywise_error(name: str, episodes: int) -> None:
    assert wrong(name, episodes, instance=NULL, budget=600, delta=0.05) <= limit(episodes)
    binary = {"distribution": "bernoulli", "mean": [0.3] * 6}
    assert wrong(name, episodes, instance=binary, budget=3000, delta=0.05) <= limit(episodes)


@sizes
def test_the_limit_of_designs_has_teeth(episodes: int) -> None:
    """At .05 for each of five arms the family errs at about .19; of 100 episodes, at .15 at more than .4."""
    delta = 0.25 if episodes == 1000 else 0.75
    assert wrong(f"bonferroni(delta={delta})", episodes, instance=NULL, budget=600, delta=0.05) > limit(episodes)


@sizes
@pytest.mark.parametrize("rate", ["fdr", "familywise"])
def test_jamieson_jain_errs_less_than_delta(rate: str, episodes: int) -> None:
    """All arms are equal: the false discovery rate is the probability of an answer. A scale too small breaks it."""
    rules = {"instance": NULL, "budget": 600, "delta": 0.05}
    assert wrong(f"jamieson-jain(rate={rate!r})", episodes, **rules) <= limit(episodes)
    assert wrong(f"jamieson-jain(rate={rate!r}, sigma=0.3)", episodes, **rules) > limit(episodes)


@pytest.mark.parametrize("episodes", [80, 200])
@pytest.mark.parametrize("name", CERTIFIED)
def test_certified_agents_err_less_than_delta(name: str, episodes: int) -> None:
    """An arm equals the control: to stop is nearly always an error."""
    arms = {"distribution": "gaussian", "mean": [0.0, 0.0, 0.9], "sd": 1.0}

    def errors(delta: float) -> int:
        rules = {"instance": arms, "delta": delta, "max_pulls": 3000}
        found = agents.evaluate(name, CONTROL, episodes=episodes, env_kwargs=rules).episodes
        return int((~found["correct"] & ~found["truncated"]).sum())

    assert errors(0.02) <= limit(episodes, 0.02) < errors(0.99)


def test_evidence_needs_fewer_pulls_than_uniform() -> None:
    rules = {"instance": GAUSSIAN, "tolerance": 0.15, "delta": 0.05, "max_pulls": 10**5}
    names = ["uniform(stop='certificate')", *CERTIFIED]
    pulls = agents.evaluate(names, CONTROL, episodes=30, env_kwargs=rules).episodes.groupby("agent")["total_pulls"]
    means = pulls.mean()
    for name in CERTIFIED:
        assert means[name] < 0.9 * means[names[0]], means


@pytest.mark.parametrize("name", [*FIXED, "evidence", "top-two(rule='ttts')"])
def test_units_do_not_matter(name: str) -> None:
    def played(unit: float) -> Any:
        arms = {"distribution": "gaussian", "mean": [x * unit for x in GAUSSIAN["mean"]], "sd": unit}
        rules = {"instance": arms, "tolerance": 0.1 * unit, "budget": 150}
        found = agents.evaluate(name, CONTROL, episodes=6, env_kwargs=rules)
        return found.pulls["pulls"].tolist(), found.episodes["score"].tolist()

    assert played(1e-6) == played(1.0) == played(1e6)


@pytest.mark.parametrize("name", [*FIXED, *CERTIFIED])
def test_the_control_may_stand_anywhere(name: str) -> None:
    """Arms that hardly vary: the same arms are answered, in any order."""
    mean = np.array([0.3, 0.8, 0.1, 0.7, 0.2])
    for order in ([0, 1, 2, 3, 4], [3, 1, 4, 0, 2], [4, 3, 2, 1, 0]):
        arms = {"distribution": "gaussian", "mean": mean[order].tolist(), "sd": 0.01}
        rules = {"instance": arms, "control": order.index(0), "budget": 60, "shuffle_arms": False}
        found = agents.evaluate(name, CONTROL, episodes=3, env_kwargs=rules)
        assert found.episodes["correct"].all()


@pytest.mark.parametrize("name", FIXED)
def test_copies_and_other_tasks(name: str) -> None:
    env = env_of(budget=200)
    agent = agents.make(name, env)
    twin, other = pickle.loads(pickle.dumps(agent)), agent.for_task(env_of(budget=100).task)
    assert (twin.name, other.name, other.task.budget) == (name, name, 100)
    (observation, _), state = env.reset(seed=3), None
    for _ in range(30):
        same, again = twin.predict(observation, pickle.loads(pickle.dumps(state)))
        action, state = agent.predict(observation, state)
        assert (again is None) == (state is None)
        assert same["arm"] == action["arm"]
        observation, *_rest = env.step(action)


REFUSED = [
    ("dunnett", {"delta": 0.1, "max_pulls": 99}, "dunnett needs a budget >= 10 for K = 10 arms, got None"),
    ("holm", {"budget": 9}, "holm needs a budget >= 10 for K = 10 arms, got 9"),
    ("bonferroni(ratio=0)", {"budget": 99}, "ratio must be"),
    ("apt(control_share=1)", {"budget": 99}, "control_share must be"),
    ("lsa(alpha=0)", {"budget": 99}, "alpha must be"),
    ("jamieson-jain(rate='fwer')", {"budget": 99}, "rate must be"),
    ("jamieson-jain(delta=1)", {"budget": 99}, "delta must be"),
]


@pytest.mark.parametrize(("name", "rules", "words"), REFUSED)
def test_refusals(name: str, rules: Any, words: str) -> None:
    env = env_of(**{"budget": None, **rules})
    with pytest.raises(ValueError, match=words):
        agents.make(name, env)


@pytest.mark.parametrize("name", [*FIXED, *CERTIFIED, "evolved", "ppo"])
def test_guardrails_are_refused_by_name(name: str) -> None:
    parameters = {"guardrails": [0.1]}
    task = Task("BetterThanControl", parameters, K=4, D=2, budget=50, distribution="gaussian", support=None, sigma=1.0)
    with pytest.raises(ValueError, match=f"{name} takes no guardrails"):
        agents.make(name, task)


def test_no_training_takes_guardrails() -> None:
    kwargs = {"instance": "sampler(arms=4, dimensions=2)", "guardrails": [0.1], "budget": 50}
    for algorithm, name in (("ppo", "train"), ("evolved", "evolved")):
        pytest.importorskip({"ppo": "stable_baselines3", "evolved": "cmaes"}[algorithm])
        with pytest.raises(ValueError, match=rf"{name} takes no guardrails, got \[0.1\]: the agent uniform does"):
            agents.train(algorithm, "BetterThanControl", steps=64, env_kwargs=kwargs)


def test_a_share_of_no_control_has_no_effect() -> None:
    with pytest.warns(UserWarning, match="control_share=0.2 has no effect, as Threshold has no control"):
        agents.make("apt(control_share=0.2)", env_of(THRESHOLD))


def test_a_session_finds_the_better_arms(tmp_path: Any) -> None:
    facts = {"problem": "BetterThanControl", "control": "old", "arms": ["old", "red", "blue"], "binary": True}
    session = agents.Session("evidence", facts | {"delta": 0.05, "tolerance": 0.1}, store=tmp_path / "s.jsonl")
    rates, generator = (0.2, 0.9, 0.05), np.random.default_rng(0)
    for _ in range(400):
        if session.done:
            break
        [arm] = session.ask()
        session.tell(arm, float(generator.random() < rates[arm]))
    assert session.done
    assert session.answer().tolist() == [False, True, False]
