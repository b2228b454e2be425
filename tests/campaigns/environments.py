"""Environments of every form: what holds at each step, copies that go on alike, vector environments of all sizes.

PYTHONPATH=tests/support python tests/campaigns/environments.py     every form, size and mode; in tests some of each
"""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.registration import EnvSpec
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from rollouts import FORMS, IDS, batch, rollout, same, some_action

from bandit_envs import PureExplorationEnv, PureExplorationVectorEnv, Shared
from bandit_envs.envs.catalogue import ENVIRONMENTS

END = {"answer", "correct", "is_success", "score", "total_pulls"}
METRICS = {
    "Threshold": {"misclassified", "precision", "recall", "f1"},
    "AllGood": {"misclassified", "precision", "recall", "f1"},
    "Feasible": {"misclassified", "precision", "recall", "f1"},
    "BetterThanControl": {"misclassified", "precision", "recall", "f1"},
    "TopK": {"aggregate_regret", "normalised_sum", "misidentified"},
    "BestArm": {"aggregate_regret", "normalised_sum", "misidentified"},
}


def lawful(env: Any, steps: int = 300, seed: int = 3) -> None:
    """Assert what holds at every step of every environment."""
    task, metrics = env.unwrapped.task, METRICS[env.unwrapped.task.problem]
    generator = np.random.default_rng(seed)
    seen, info = env.reset(seed=seed)
    assert info == {}
    spent = episodes = 0
    for _ in range(steps):
        assert env.observation_space.contains(seen)
        action = some_action(task, generator)
        assert env.action_space.contains(action)
        arm, times = (action, 1) if task.actions == "arm" else (action["arm"], int(action["times"]))
        stops = arm == task.K or (task.actions == "full" and spent == task.budget)
        spent += 0 if stops else min(times, *(x - spent for x in (task.budget, task.max_pulls) if x is not None))
        seen, reward, terminated, truncated, info = env.step(action)
        assert (type(reward), type(terminated), type(truncated)) == (float, bool, bool)
        assert terminated == (stops or (task.actions == "arm" and spent == task.budget))
        assert truncated == (not terminated and spent == task.max_pulls != task.budget)
        over = END | metrics if terminated or truncated else set()
        assert set(info) == over | (set() if stops else {"sample"})
        if task.observation != "features":
            assert seen["pulls" if task.observation == "statistics" else "times"].sum() == spent
            assert seen["remaining"][0] == (-1 if task.budget is None else task.budget - spent)
        else:
            assert np.abs(seen).max() <= 1
        if over:
            episodes += 1
            assert info["total_pulls"] == spent
            assert info["is_success"] == info["correct"]
            assert info["answer"].dtype == np.bool_
            assert info["answer"].shape == (task.K,)
            assert reward == (0.0 if truncated else info["score"])
            assert 0 <= info["score"] <= 1
            with pytest.raises(ResetNeeded):
                env.unwrapped.step(0)
            spent = 0
            seen, info = env.reset()
            assert info == {}
        else:
            assert reward == 0
    assert env.observation_space.contains(seen)
    assert episodes >= 3


RULES = [{"budget": 20}, {"max_pulls": 15}, {"budget": 15, "max_pulls": 15}, {"budget": 25, "max_pulls": 10}]


def check_same(env_id: str, actions: str, observation: str) -> None:
    """Two environments do the same, whatever went before."""
    settings = {"actions": actions, "observation": observation, "budget": 30, "shuffle_arms": True}
    one, other = gym.make(env_id, **settings), gym.make(env_id, **settings)
    assert not same(rollout(one, 20, seed=5), rollout(other, 20, seed=6))
    assert same(rollout(one, 60, seed=5), rollout(other, 60, seed=5))


def check_copies(env_id: str, actions: str, observation: str) -> None:
    """Specs make the same environments again, and copies go on alike in the middle of an episode."""
    env: Any = gym.make(env_id, actions=actions, observation=observation, budget=30, shuffle_arms=True)
    text = env.spec.to_json()
    for spec in (EnvSpec.from_json(json.dumps(json.loads(text))), pickle.loads(pickle.dumps(env.spec))):
        assert same(rollout(spec.make(), 10, seed=2), rollout(env, 10, seed=2))
    rollout(env, 47, seed=4, stop=0.0)
    for twin in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        original = copy.deepcopy(env)
        before = original.unwrapped._observe()
        assert same(rollout(twin, 40, seed=None, choices=1), rollout(original, 40, seed=None, choices=1))
        assert twin.unwrapped.task == env.unwrapped.task
        assert same(env.unwrapped._observe(), before)  # copies share nothing
    fresh: Any = pickle.loads(pickle.dumps(gym.make(env_id)))
    with pytest.raises(ResetNeeded):
        fresh.unwrapped.step(0)


def twins(
    problem: str, N: int, mode: AutoresetMode = AutoresetMode.NEXT_STEP, **settings: Any
) -> tuple[SyncVectorEnv, Any]:
    """A SyncVectorEnv of single environments, and the native form."""
    settings = ENVIRONMENTS[problem].defaults | settings if "instance" not in settings else settings
    sync = SyncVectorEnv([lambda: PureExplorationEnv(problem, **settings)] * N, autoreset_mode=mode)
    return sync, PureExplorationVectorEnv(N, problem=problem, autoreset_mode=mode, **settings)


def agree(sync: Any, native: Any, steps: int, seed: Any = 7, stop: float = 0.05) -> tuple[int, int]:
    """Assert that both return the same, bit for bit, at every step; how many episodes ended, and were truncated."""
    generator, ended, cut = np.random.default_rng(1), 0, 0
    assert same(sync.reset(seed=seed), native.reset(seed=seed))
    for _ in range(steps):
        action = batch([some_action(native.task, generator, stop) for _ in range(native.num_envs)])
        one, other = sync.step(action), native.step(action)
        assert same(one, other)
        over = one[2] | one[3]
        ended, cut = ended + int(over.sum()), cut + int(one[3].sum())
        if native.autoreset_mode == AutoresetMode.DISABLED and over.any():
            given = {"reset_mask": over}
            assert same(sync.reset(options={"reset_mask": over}), native.reset(options=given))
            assert given == {"reset_mask": over}
    return ended, cut


THREE = {"distribution": "gaussian", "mean": [0.0, 0.5, 1.0], "sd": 0.5}
DRAWN = {"instance": "sampler(distribution='gaussian', arms=5, mean={'normal': [0, 1]})", "delta": 0.1}
CUT = {"A": [[1, 1, 1], [0, 0, -1]], "b": [1.5, 0], "budget": 25, "max_pulls": 20}
CUT_AT = {"A": [[1, 1]], "b": [1]}
WEIGHTS = {"distribution": "categorical", "values": [1, 2, 3], "probabilities": [[1, 1, 1], [0, 1, 4]]}
PLANE = {"distribution": "bernoulli", "mean": [[0.1, 0.9], [0.5, 0.4]]}
ROWS = {"distribution": "resampled", "rows": [[0, 1, 5], [2, 3]]}
COLUMNS = np.random.default_rng(5).random((30, 4)).round(3)
VECTORS = "sampler(distribution='uniform', arms=4, dimensions=3)"
SETTINGS: dict[str, dict[str, Any]] = {
    "fixed instance": {"problem": "Threshold", "instance": "tao2019-1", "budget": 20},
    "shuffled instance": {"problem": "AllGood", "instance": THREE, "shuffle_arms": True, "max_pulls": 20},
    "shuffled sampler": {"problem": "BestArm", "instance": "sampler(arms=4)", "shuffle_arms": True, "budget": 20},
    "gaussian sampler": {"problem": "TopK", "max_pulls": 20, "reward": "correct", "pull_cost": 0.01, **DRAWN},
    "shuffled vectors": {"problem": "Feasible", "instance": VECTORS, "shuffle_arms": True, **CUT},
    "fixed vectors": {"problem": "Feasible", "instance": PLANE, "A": [[1, 0]], "b": [0.3], "budget": 20},
    "categorical": {"problem": "AllGood", "budget": 20, "multiplicative": True, "instance": WEIGHTS},
    "resampled": {"problem": "TopK", "budget": 20, "k": 1, "instance": ROWS},
    "coordinates": {"problem": "Feasible", "instance": PLANE, "pull": "coordinate", "budget": 20, **CUT_AT},
    "columns of a table": {"problem": "BestArm", "instance": Shared(COLUMNS), "shuffle_arms": True, "budget": 20},
}
SIZES = {1: ("arm", "statistics"), 3: ("full", "statistics"), 70: ("arm", "features"), 200: ("full", "history")}


def check_sizes(title: str, size: int) -> None:
    """Of kinds of arms and numbers of slots; beyond 64 slots there are several blocks of episodes."""
    settings, (actions, observation) = SETTINGS[title], SIZES[size]
    sync, native = twins(**settings, N=size, actions=actions, observation=observation)
    ended, cut = agree(sync, native, 25 if size >= 70 else 50, stop=0.02)
    assert ended >= size
    assert (cut > 0) == ("max_pulls" in settings)


def check_modes(problem: str, actions: str, observation: str, mode: AutoresetMode) -> None:
    """Three slots of a problem with its default arms."""
    sync, native = twins(problem, 3, mode, actions=actions, observation=observation, budget=15)
    ended, _ = agree(sync, native, 40)
    assert ended >= 3


def main() -> None:
    for env_id in IDS:
        for form in FORMS:
            check_same(env_id, *form)
            check_copies(env_id, *form)
            for rules in RULES:
                lawful(gym.make(env_id, actions=form[0], observation=form[1], **rules), 20_000)
    for problem in ENVIRONMENTS:
        for form in FORMS:
            for mode in AutoresetMode:
                check_modes(problem, *form, mode)
    for title in SETTINGS:
        for size in SIZES:
            check_sizes(title, size)


if __name__ == "__main__":
    main()
