"""The look-ahead agent: by hand, against a slow twin, on any way through the compiled code, and ahead of uniform."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from plays import seen
from scipy import stats
from twins_lookahead import Slow, ndtr

import agents
from bandit_envs import Task

GAUSSIAN = {"sampler": {"distribution": "gaussian", "arms": 4, "spread": 0.7}}
RANGE = {"sampler": {"distribution": "uniform", "arms": 4, "spread": 0.3}}
BERNOULLI = {"sampler": {"arms": 4}}
POLYHEDRA = {"polyhedra": {"distribution": "bernoulli", "arms": 4, "dimensions": 2}}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "threshold": ("Threshold", {"instance": BERNOULLI, "threshold": 0.4}),
    "threshold, range": ("Threshold", {"instance": RANGE, "tolerance": 0.05}),
    "threshold, gaussian": ("Threshold", {"instance": GAUSSIAN}),
    "top": ("TopK", {"instance": BERNOULLI, "k": 2}),
    "top, range": ("TopK", {"instance": RANGE, "k": 3}),
    "top, gaussian": ("TopK", {"instance": GAUSSIAN, "k": 2}),
    "best": ("BestArm", {"instance": BERNOULLI}),
    "best, gaussian": ("BestArm", {"instance": GAUSSIAN}),
    "good": ("AllGood", {"instance": BERNOULLI, "epsilon": 0.2}),
    "good, gaussian": ("AllGood", {"instance": GAUSSIAN, "epsilon": 0.3}),
    "control": ("BetterThanControl", {"instance": BERNOULLI, "control": 1, "lift": 0.1}),
    "control, gaussian": ("BetterThanControl", {"instance": GAUSSIAN, "margin": 0.1, "tolerance": 0.05}),
    "feasible": ("Feasible", {"instance": POLYHEDRA}),
    "feasible, gaussian": ("Feasible", {"instance": {"polyhedra": {"arms": 4, "dimensions": 3}}}),
}
EPISODES, BUDGET = 6, 14
RARE = {"AllGood": 1.6, "TopK": 0.0, "BestArm": 0.0, "BetterThanControl": 2.0}


def chosen(task: Task, pulls: list[int], total: list[float]) -> int:
    """The arm that the agent pulls in this state, without a state."""
    mean = np.array(total) / np.maximum(pulls, 1)
    left = (task.budget or -1) - sum(pulls)
    return int(agents.make("look-ahead", task).predict(seen(pulls, mean, mean * (1 - mean), left))[0])


def test_by_hand() -> None:
    threshold = Task("Threshold", {"threshold": 0.5}, K=2, budget=2, actions="arm")
    assert chosen(threshold, [0, 0], [0, 0]) == 0  # a tie
    # One pull left: z = 0 and r = 1/3 gain asin(sqrt(1/3)) / pi = .196 (the orthant), z = .707 and r = 1/4 less.
    assert chosen(threshold, [1, 0], [1, 0]) == 1
    assert chosen(threshold, [0, 1], [0, 1]) == 0
    # One pull left. Means .6, .5, .5, which that pull moves by .082, .1 and .167 (sd): the widest is most likely best.
    best = Task("BestArm", {}, K=3, budget=6, actions="arm")
    assert chosen(best, [3, 2, 0], [2, 1, 0]) == 2
    # Of 60 pulls 2 / 9 would show a 1, 1.3 of each of 10 arms: an arm with fewest pulls. Of 100, 2.2: the control.
    rare = Task("BetterThanControl", {}, K=10, budget=60, actions="arm")
    pulls, total = [1, 1, 0, 0, 1, 1, 1, 1, 0, 1], [0, 0, 0, 0, 1, 0, 0, 0, 0, 0]
    assert chosen(rare, pulls, total) == 2
    assert chosen(rare.replace(budget=100), pulls, total) == 0
    # Without a known range, every arm is pulled once first.
    gaussian = Task("BestArm", {}, K=3, budget=6, actions="arm", distribution="gaussian", support=None, sigma=0.01)
    assert chosen(gaussian, [5, 0, 0], [5.0, 0, 0]) == 1


@pytest.mark.parametrize("case", CASES)
def test_it_is_the_slow_twin(case: str) -> None:
    problem, kwargs = CASES[case]
    envs: Any = gym.make_vec(
        f"bandit_envs/{problem}-v0", EPISODES, autoreset_mode="Disabled", budget=BUDGET, actions="full", **kwargs
    )
    agent, state, task = agents.make("look-ahead", envs), None, envs.unwrapped.task
    observation, _ = envs.reset(seed=3)
    ties = 0
    for t in range(BUDGET):
        action, state = agent.predict(observation, state)
        for e in range(t % 2, EPISODES, 2):  # half of the states
            pulls, arm = observation["pulls"][e], action["arm"][e]
            if task.support is None and (pulls == 0).any():
                assert arm == np.flatnonzero(pulls == 0)[0]
                continue
            slow = Slow(task, pulls, observation["total"][e])
            slow.beta &= problem == "AllGood"  # else a pull is a larger share, as of Gaussian arms
            gains = np.array([slow.after(i, slow.next) for i in range(task.K)])
            if task.support is not None:
                low, width = task.support[0], task.support[1] - task.support[0]
                share = ((observation["total"][e].sum() - low * pulls.sum()) / width + 1) / (pulls.sum() + 2)
                few = problem != "Feasible" and BUDGET * min(share, 1 - share) < RARE.get(problem, 1.0) * task.K
                gains = -pulls.astype(float) if few else gains  # D7
                if problem in ("Threshold", "Feasible") and not few:  # D8
                    slack = (slow.potential.b - slow.m @ slow.potential.A.T) / np.sqrt(slow.v @ slow.potential.A.T**2)
                    gains[(pulls == 0) & (ndtr(slack).prod(axis=1) > 0.5 + 1e-9)] = np.inf
            if arm != gains.argmax():
                assert gains[arm] >= gains.max() - 1e-9, (e, gains)
                ties += 1
        observation, *_ = envs.step(action)
    assert ties < EPISODES * BUDGET / 4  # else nothing is compared


@pytest.mark.parametrize("case", ["threshold", "threshold, gaussian", "top", "good, gaussian", "control", "feasible"])
def test_alone_in_a_batch_and_compiled_it_pulls_the_same_arms(case: str) -> None:
    """Also without its state."""
    problem, own = CASES[case]
    rules, env_id = {**own, "budget": 40}, f"bandit_envs/{problem}-v0"
    played, pulls = agents.evaluate("look-ahead", env_id, episodes=3, env_kwargs=rules), np.zeros(4)
    for e in range(3):
        env = gym.make(env_id, **rules)
        agent = agents.make("look-ahead", env)
        observation, _ = env.reset(seed=0, options={"episode": e})
        done, anew = False, False
        while not done:
            arm, state = agent.predict(observation, None if anew else 1)
            anew = not anew
            observation, _, done, _, info = env.step(arm)
        pulls += observation["pulls"]
        row = played.episodes.iloc[e]
        assert (row["score"], row["total_pulls"], row["correct"]) == (info["score"], 40, info["correct"])
    np.testing.assert_allclose(played.pulls["pulls"].to_numpy() * 3, pulls, atol=1e-9)


def test_the_horizon() -> None:
    capped = Task("Threshold", {"threshold": 0.5}, K=3, delta=0.1, max_pulls=70)
    assert agents.make("look-ahead", capped).lookahead.horizon == 70
    assert all("look-ahead" in agents.names(problem) for problem in ("Threshold", "TopK", "AllGood", "Feasible"))


# Paired differences from uniform sampling, in standard errors: with no difference more than this has probability 1e-6.
LIMIT = float(stats.norm.isf(1e-6))
COMPARED: dict[str, dict[str, Any]] = {
    "Threshold": {},
    "TopK": {"k": 3},
    "AllGood": {"epsilon": 0.2},
    "AllGood, long": {"epsilon": 0.05, "budget": 400},
    "BetterThanControl": {},
}


def ahead(case: str, name: str) -> float:
    """How many standard errors the agent is ahead of `uniform` in 600 episodes."""
    env_id, rules = f"bandit_envs/{case.partition(',')[0]}-v0", {"budget": 100} | COMPARED[case]
    found = agents.evaluate([name, "uniform"], env_id, episodes=600, env_kwargs=rules).episodes
    scores = {one: rows["score"].to_numpy() for one, rows in found.groupby("agent")}
    difference = scores[name] - scores["uniform"]
    return float(difference.mean() / (difference.std() / np.sqrt(len(difference))))


@pytest.mark.parametrize("case", COMPARED)
def test_it_is_ahead_of_uniform_sampling(case: str) -> None:
    assert ahead(case, "look-ahead") > LIMIT
    assert ahead(case, "random") < LIMIT  # the limit can fail
