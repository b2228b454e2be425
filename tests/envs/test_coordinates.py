"""pull="coordinate": one coordinate of one arm per pull. The environments, the distributions, and the policies."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from coordinates import RULES, SHAPES, check_twins
from environments import agree, twins
from rollouts import FORMS, forgetful
from scipy import stats

import agents
from agents.core.coordinates import decide
from agents.core.index_policy import SCAN
from agents.registry import AGENTS
from bandit_envs import Bernoulli, Gaussian, Resampled, Task, Uniform
from bandit_envs.instances.polyhedra import cube
from bandit_envs.kernels.geometry import Polyhedron

FEASIBLE = "bandit_envs/Feasible-v0"
K, D = 3, 2
SQUARE = dict(zip(("A", "b"), cube(2), strict=True))
ARMS: dict[str, Any] = {
    "bernoulli": Bernoulli([[0.2, 0.7], [0.5, 0.1], [0.9, 0.4]]),
    "gaussian": Gaussian([[0.5, 0.2], [1.2, 0.3], [0.1, -0.4]], [[0.1, 1.0], [0.2, 2.0], [0.3, 3.0]]),
    "uniform": Uniform([[0.5, 0.2], [1.2, 0.3], [0.1, -0.4]], [[0.1, 1.0], [0.2, 2.0], [0.3, 3.0]]),
    "resampled": Resampled([[[0, 1], [2, 5]], [[4, 3], [1, 1], [0, 7]], [[9, 9]]]),
    "sampler": {"sampler": {"arms": 3, "dimensions": 2}},
}


def made(instance: Any = "bernoulli", **kwargs: Any) -> Any:
    kwargs = {"budget": 40, "pull": "coordinate"} | SQUARE | kwargs
    return gym.make(FEASIBLE, instance=ARMS[instance] if isinstance(instance, str) else instance, **kwargs).unwrapped


def vector(N: int, instance: Any = "bernoulli", **kwargs: Any) -> Any:
    kwargs = {"budget": 40, "pull": "coordinate"} | SQUARE | kwargs
    return gym.make_vec(
        FEASIBLE, num_envs=N, instance=ARMS[instance] if isinstance(instance, str) else instance, **kwargs
    )


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_actions_and_counts() -> None:
    """Action arm * D + coordinate; K * D stops; counts and means are kept for each coordinate."""
    env = made("resampled", budget=9)
    assert env.action_space == gym.spaces.Discrete(7)
    assert env.observation_space["pulls"].shape == env.observation_space["mean"].shape == (3, 2)
    env.reset(seed=0)
    for action, values in ((4, {9.0}), (5, {9.0}), (0, {0.0, 2.0}), (1, {1.0, 5.0}), (3, {3.0, 1.0, 7.0}), (4, {9.0})):
        observation, reward, over, _, info = env.step(action)
        assert type(info["sample"]) is float
        assert info["sample"] in values
        assert not over
        assert reward == 0
    assert observation["pulls"].tolist() == [[1, 1], [0, 1], [2, 1]]
    assert observation["mean"][2].tolist() == [9.0, 9.0]
    assert observation["total"][2].tolist() == [18.0, 9.0]
    assert observation["mean"][1, 0] == 0.0  # never pulled
    assert observation["remaining"].tolist() == [3]
    _, reward, over, cut, info = env.step(6)
    assert over
    assert not cut
    assert info["total_pulls"] == 6
    # (9, 9) is outside the square, arm 1 has a coordinate that was never pulled; arm 0 is in it where it drew (0, 1)
    assert info["answer"].tolist() == [observation["mean"][0].tolist() == [0.0, 1.0], False, False]


def test_task_is_told() -> None:
    task = made().task
    assert (task.pull, task.stop, task.shape, task.K, task.D) == ("coordinate", 6, (3, 2), 3, 2)
    assert Task.from_json(task.to_json()) == task
    whole = made(pull="arm").task
    assert (whole.pull, whole.stop, whole.shape) == ("arm", 3, (3,))


# --- the distributions
# ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", ["bernoulli", "gaussian", "resampled"])
def test_each_coordinate_has_its_distribution(distribution: str) -> None:
    """Mean and spread of 10,000 samples of every coordinate; false-alarm rate 1e-6 each, by normal approximation.

    A mean that is wrong by a tenth of the standard deviation is found out, and a variance that is wrong by a third.
    """
    arms, n = ARMS[distribution], 10_000
    envs = vector(n, distribution, autoreset_mode="Disabled", A=[[1.0, 0.0]], b=[1.0])
    envs.reset(seed=0, options={"episode": np.arange(n)})
    for a in range(6):
        x = envs.step(np.full(n, a))[4]["sample"]
        mean, variance = arms.means.reshape(-1)[a], arms.variances.reshape(-1)[a]
        assert abs(x.mean() - mean) <= 5 * np.sqrt(variance / n)
        assert abs(x.var() - variance) <= 5 * variance * np.sqrt(8 / n)
    full = vector(n, distribution, autoreset_mode="Disabled", A=[[1.0, 0.0]], b=[1.0], actions="full", budget=10**6)
    full.reset(seed=0, options={"episode": np.arange(n)})
    for a in range(6):
        action = {"arm": np.full(n, a), "times": np.full(n, 50), "answer": np.zeros((n, 3), np.int8)}
        x = full.step(action)[4]["sample"]
        mean, variance = arms.means.reshape(-1)[a], arms.variances.reshape(-1)[a] / 50
        assert abs(x.mean() - mean) <= 5 * np.sqrt(variance / n)
        assert abs(x.var() - variance) <= 5 * variance * np.sqrt(8 / n)


@pytest.mark.parametrize("distribution", ["gaussian", "resampled"])
def test_shuffled_arms_keep_their_coordinates(distribution: str) -> None:
    """The score goes by the arms as they are shown: an answer by long sampling is right."""
    shape = {"A": [[1.0, 0.0]], "b": [1.1 if distribution == "gaussian" else 2.5]}
    envs = vector(60, distribution, shuffle_arms=True, actions="full", budget=10**7, autoreset_mode="Disabled", **shape)
    observation, _ = envs.reset(seed=3)
    for a in range(6):
        action = {"arm": np.full(60, a), "times": np.full(60, 40_000), "answer": np.zeros((60, 3), np.int8)}
        observation, *_ = envs.step(action)
    answer = (observation["mean"][:, :, 0] <= shape["b"][0]).astype(np.int8)
    assert len(set(map(tuple, answer.tolist()))) == 3  # the odd arm is in each place
    _, reward, over, _, info = envs.step({"arm": np.full(60, 6), "times": np.ones(60, np.int64), "answer": answer})
    assert over.all()
    assert (reward == 1).all()
    assert info["correct"].all()


# --- the environments -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("instance", "actions", "observation"),
    [(("gaussian", "resampled", "sampler")[i % 3], *form) for i, form in enumerate(FORMS)],
)
def test_vector_is_the_single_environment(instance: str, actions: str, observation: str) -> None:
    """Slot i is bit for bit the single environment with root seed + i, whatever the number of slots."""
    form = {"actions": actions, "observation": observation, "budget": 12, "pull": "coordinate"} | SQUARE
    for N in (1, 3):
        assert agree(*twins("Feasible", N, instance=ARMS[instance], **form), 40)[0] > 0


def test_agents_for_whole_arms_refuse() -> None:
    refused = {name for name, kind in AGENTS.items() if "Feasible" in kind.solves and not kind.coordinates}
    assert refused == {"sar", "static", "evidence", "track-and-stop", "paired-elimination", "look-ahead", "ppo"}
    with pytest.raises(ValueError, match=r"sar pulls whole arms, not single coordinates"):
        agents.make("sar", made())
    with pytest.raises(ValueError, match=r"ucbe needs a budget > K \* D = 6, got 6"):
        agents.make("ucbe", made("gaussian", budget=6))
    with pytest.raises(ValueError, match=r"pulls must have the shape \(1, 3, 2\)"):
        agents.make("apt", made()).predict(made(pull="arm").reset(seed=0)[0])


# --- the policies -----------------------------------------------------------------------------------------------------


def test_judging_an_arm_by_hand() -> None:
    """On {x_1 <= 1, x_2 <= 1}, with the index sqrt(T) |D| of APT."""
    P = Polyhedron(np.eye(2), [1.0, 1.0])
    rule = lambda T, D: np.sqrt(T) * np.abs(D)
    x = np.array([[0.5, 0.8], [0.5, 0.8], [4.0, 5.0], [2.0, 0.0], [0.0, 0.0]])
    pulls = np.array([[4, 4], [4, 100], [2, 8], [9, 1], [0, 3]])
    index, turn = decide(rule, P, pulls, x, -np.inf)
    # inside, 4 pulls each: 2 * .5 and 2 * .2, the second coordinate; with 100 pulls of it 10 * .2 = 2 > 1, the first
    # outside by (3, 4): T = 25 / (9/2 + 16/8) = 50/13, index 5 sqrt(50/13); gains 9 / (2 * 3) against 16 / (8 * 9)
    # outside by (1, 0): T = 9, index 3, the first coordinate; never pulled: first
    assert index == pytest.approx([0.4, 1.0, 5 * np.sqrt(50 / 13), 3.0, -np.inf])
    assert turn.tolist() == [1, 0, 0, 0, 0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", RULES)
def test_policies_are_their_twins(name: str, shape: str) -> None:
    check_twins(name, shape, 6)


@pytest.mark.parametrize("name", ["apt", "lsa"])
@pytest.mark.parametrize("arms", [4, SCAN + 3])
def test_state_is_rebuilt_from_the_observation(name: str, arms: int) -> None:
    envs = vector(
        4, {"sampler": {"distribution": "gaussian", "arms": arms, "dimensions": 2}}, budget=6 * arms, actions="full"
    )
    forgetful(envs, agents.make(name, envs), 13 * arms)  # over two ends and fresh starts


# --- what it gains ----------------------------------------------------------------------------------------------------

EPISODES = 60
LIMIT = 8  # binom.isf(1e-6, 60, .015): APT on coordinates errs in fewer than 1.5 % of the episodes


def test_apt_on_coordinates_of_the_ordered_polyhedron() -> None:
    """10,000 numbers on katz-samuels2018-5: in 2000 pulls of whole arms APT errs in about 4 %, uniform in 30 %."""
    assert stats.binom.isf(1e-6, EPISODES, 0.015) == LIMIT
    kwargs = {"instance": "katz-samuels2018-5", "pull": "coordinate", "budget": 10_000}
    table = agents.evaluate(["apt", "uniform"], FEASIBLE, episodes=EPISODES, env_kwargs=kwargs).episodes
    wrong = {name: int((~part["correct"]).sum()) for name, part in table.groupby("agent", observed=True)}
    assert wrong["apt"] <= LIMIT
    assert wrong["uniform"] > LIMIT
