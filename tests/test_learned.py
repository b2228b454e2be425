"""Learned agents: the SB3 VecEnv, shaping, the equivariant policy, training, files."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

import torch
from gymnasium.vector import AutoresetMode
from stable_baselines3 import PPO
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

import agents
from agents.evaluation.expected_loss import losses
from agents.learned import EquivariantPolicy, NativeVecEnv, Trained, make_vec_env, training
from agents.learned.buffer import RelativeBuffer
from agents.learned.model import Repeated
from agents.learned.resuming import Saved
from agents.learned.training import ALGORITHMS, latest_of_the_best
from agents.learned.vec_env import JoinedVecEnv
from agents.learned.weights import store
from agents.models.cards import FOLDER, kind_of
from bandit_envs import PureExplorationVectorEnv
from bandit_envs.catalogue import ENVIRONMENTS
from bandit_envs.observations import FEATURES

THRESHOLD = "bandit_envs/Threshold-v0"
FOUR = {"instance": {"sampler": {"arms": 4}}, "budget": 12}
ERROR = FEATURES.index("error")


def part(observation: Any, i: int) -> Any:
    """The observation of one slot."""
    return {k: v[i] for k, v in observation.items()} if isinstance(observation, dict) else observation[i]


def same(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    return np.array_equal(one, other)


def played(envs: NativeVecEnv, rounds: int, seed: int = 0) -> list[list[dict[str, Any]]]:
    """The episodes that end within so many random actions per slot, each a list of its steps."""
    random, running, ended = np.random.default_rng(seed), [[] for _ in range(envs.num_envs)], []
    before = envs.reset()
    for _ in range(rounds):
        numbers, actions = envs.episodes, random.integers(0, envs.task.K, envs.num_envs)
        after, rewards, dones, infos = envs.step(actions)
        for i, info in enumerate(infos):
            step = {"number": numbers[i], "before": part(before, i), "action": int(actions[i]), "reward": rewards[i]}
            running[i].append(step | {"after": info.get("terminal_observation", part(after, i)), "info": info})
            assert dones[i] == bool(info)
            if dones[i]:
                ended.append(running[i])
                running[i] = []
        before = after
    return ended


# --- the VecEnv -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("observation", ["features", "statistics"])
def test_slots_show_what_a_single_environment_shows(observation):
    envs = make_vec_env(THRESHOLD, 5, observation=observation, pull_cost=0.001, **FOUR)
    envs.seed(7)
    episodes = played(envs, rounds=40)
    assert [episode[0]["number"] for episode in episodes] == list(range(15))  # 3 rounds of 12 pulls; none twice
    single = gym.make(THRESHOLD, observation=observation, pull_cost=0.001, **FOUR)
    for episode in episodes:
        seen, _ = single.reset(seed=7, options={"episode": int(episode[0]["number"])})
        rewards = []
        for step in episode:
            assert same(step["before"], seen)
            seen, reward, terminated, _, info = single.step(step["action"])
            rewards.append(reward)
            assert same(step["after"], seen)
            assert step["reward"] == np.float32(reward)
            assert terminated == bool(step["info"])
        told = dict(episode[-1]["info"])
        assert told.pop("episode").items() >= {"r": pytest.approx(sum(rewards)), "l": 12}.items()
        assert told.pop("TimeLimit.truncated") is False
        told.pop("terminal_observation")
        info.pop("sample")
        assert same(told, info)
        assert {name: type(value) for name, value in told.items()} == {
            name: type(value) for name, value in info.items()
        }


def test_a_slot_is_a_slot_of_the_plain_vector_environment_bit_for_bit():
    envs = make_vec_env(THRESHOLD, 64, observation="features", **FOUR)
    envs.seed(3)
    plain = gym.make_vec(THRESHOLD, num_envs=64, observation="features", **FOUR)
    here, (there, _) = envs.reset(), plain.reset(seed=3, options={"episode": np.arange(64)})
    random = np.random.default_rng(0)
    for _ in range(11):
        actions = random.integers(0, 4, 64)
        assert same(here, there)
        (here, rewards, _, _), (there, expected, *_) = envs.step(actions), plain.step(actions)
        assert same(rewards, expected.astype(np.float32))


def test_no_two_slots_and_no_two_seeds_share_an_episode():
    def words(seed: int) -> set[int]:
        envs = make_vec_env(THRESHOLD, 8, observation="statistics", **FOUR)
        assert envs.seed(seed) == [seed] * 8
        return {int(step["before"]["public_seed"][0]) for episode in played(envs, 60) for step in episode}

    zero, one = words(0), words(1)
    assert len(zero) == len(one) == 8 * 5
    assert not zero & one
    assert words(0) == zero


def test_an_unseeded_environment_is_fresh_and_a_second_reset_goes_on():
    first, second = (make_vec_env(THRESHOLD, 3, observation="statistics", **FOUR) for _ in range(2))
    assert not same(first.reset(), second.reset())
    first.reset()
    assert first.episodes.tolist() == [3, 4, 5]
    first.seed(1)
    first.step(np.zeros(3, np.int64))  # the running episodes keep their root until the next reset
    first.reset()
    assert first.episodes.tolist() == [0, 1, 2]


def test_infos_are_nobody_elses():
    envs = make_vec_env(THRESHOLD, 3, observation="features", **FOUR)
    envs.reset()
    for _ in range(30):
        _, _, _, infos = envs.step(np.zeros(3, np.int64))
        assert not any("mine" in info for info in infos)
        for info in infos:
            info["mine"] = True


def test_siblings_play_the_same_episode_with_the_same_samples():
    envs = make_vec_env(THRESHOLD, 12, observation="features", siblings=4, **FOUR)
    envs.seed(5)
    envs.reset()
    random, following = np.random.default_rng(0), 0
    for _ in range(3):
        assert envs.episodes.tolist() == np.repeat(np.arange(following, following + 3), 4).tolist()
        following += 3
        orders = [random.permutation(np.repeat(np.arange(4), 3)) for _ in range(12)]
        for t in range(12):
            _, _, dones, infos = envs.step(np.array([order[t] for order in orders]))
        assert dones.all()
        last = np.stack([info["terminal_observation"] for info in infos]).reshape(3, 4, -1)
        assert (last == last[:, :1]).all()  # each arm has had three pulls, in whatever order
        assert (last != last[:1]).any()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"siblings": 5}, "siblings must divide the number of slots, 12, got 5"),
        ({"siblings": 0}, "siblings"),
        ({"siblings": 4, "delta": 0.1}, "siblings end together: they need a budget"),
    ],
)
def test_refused_siblings(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_vec_env(THRESHOLD, 12, observation="features", **FOUR, **kwargs)


def test_siblings_that_come_apart_are_refused():
    envs = make_vec_env(THRESHOLD, 4, observation="features", siblings=2, **FOUR)
    envs.reset()
    with pytest.raises(ValueError, match="none may stop before"):
        envs.step(np.array([4, 0, 0, 0]))


def test_truncation_is_told():
    envs = make_vec_env(THRESHOLD, 2, observation="features", max_pulls=3, delta=0.1, instance=FOUR["instance"])
    envs.reset()
    for _ in range(3):
        _, rewards, dones, infos = envs.step(np.array([0, 1]))
    assert dones.all()
    assert all(info["TimeLimit.truncated"] and info["total_pulls"] == 3 for info in infos)
    _, _, dones, infos = envs.step(np.array([4, 0]))  # stop at once
    assert dones.tolist() == [True, False]
    assert not infos[0]["TimeLimit.truncated"]


def test_pulls_per_action_repeats_the_arm_and_never_runs_into_the_next_episode():
    envs = make_vec_env(THRESHOLD, 2, observation="statistics", pulls_per_action=5, pull_cost=0.01, **FOUR)
    envs.reset()
    lengths = []
    for _ in range(3):
        observation, rewards, dones, infos = envs.step(np.array([1, 2]))
        lengths.append(observation["pulls"].sum(1).tolist())
    assert lengths == [[5, 5], [10, 10], [0, 0]]
    last = infos[0]["terminal_observation"]
    assert last["pulls"].tolist() == [0, 12, 0, 0]
    assert rewards[0] == pytest.approx(infos[0]["score"] - 2 * 0.01)
    assert infos[0]["episode"]["l"] == 3
    assert infos[0]["episode"]["r"] == pytest.approx(infos[0]["score"] - 12 * 0.01)


def test_what_sb3_asks_of_a_vecenv():
    envs = make_vec_env(THRESHOLD, 3, observation="statistics", delta=0.1, **FOUR)
    assert envs.get_attr("render_mode") == [None] * 3
    assert envs.has_attr("action_masks")
    assert np.stack(envs.env_method("action_masks")).tolist() == [[True] * 5] * 3
    assert len(envs.env_method("action_masks", indices=[1])) == 1
    assert isinstance(envs.get_attr("unwrapped")[0], PureExplorationVectorEnv)
    for seen in (envs, VecNormalize(envs, norm_obs=False)):
        assert agents.make("lsa", seen).task == envs.task
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):  # true: the infos hold `episode`
        VecMonitor(envs)
    with pytest.raises(AttributeError, match="cannot be set"):
        envs.set_attr("copy", False)
    with pytest.raises(AttributeError, match="share one environment"):
        envs.env_method("reset")
    with pytest.raises(ValueError, match="no reset options"):
        envs.set_options({"episode": 3})
    envs.set_options()
    features = make_vec_env(THRESHOLD, 16, observation="features", **FOUR)
    wrapped = VecNormalize(features, norm_obs=False)
    model = PPO("MlpPolicy", wrapped, n_steps=24, batch_size=64, n_epochs=1, seed=0, device="cpu").learn(400)
    assert 0.0 < np.mean([info["r"] for info in model.ep_info_buffer]) <= 1.0
    assert len(model.ep_success_buffer) > 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"actions": "full"}, "actions='arm'"),
        ({"shaping": True}, "observation='features'"),
        ({"shaping": True, "observation": "features", "gamma": 0.0}, r"gamma must be a number in \(0, 1\]"),
        ({"pulls_per_action": 0}, "pulls_per_action must be an integer"),
    ],
)
def test_refused(change, message):
    with pytest.raises(ValueError, match=message):
        make_vec_env(THRESHOLD, 2, **FOUR, **change)


def test_refused_environments():
    with pytest.raises(ValueError, match="Threshold and Feasible, not for TopK"):
        make_vec_env("bandit_envs/TopK-v0", 2, shaping=True, observation="features", k=2)
    with pytest.raises(ValueError, match="an environment of bandit_envs is needed"):
        make_vec_env("CartPole-v1", 2)
    with pytest.raises(ValueError, match="DISABLED"):
        NativeVecEnv(gym.make_vec(THRESHOLD, num_envs=2))


# --- shaping ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("reward", ["score", "correct"])
def test_shaped_rewards_telescope(gamma, reward):
    envs = make_vec_env(THRESHOLD, 6, shaping=True, gamma=gamma, observation="features", reward=reward, **FOUR)
    for episode in played(envs, 40):
        shaped = sum(gamma**t * step["reward"] for t, step in enumerate(episode))
        prize = episode[-1]["info"]["episode"]["r"]
        assert prize == episode[-1]["info"][reward]
        start = envs.potential(episode[0]["before"][None])[0]
        assert start == pytest.approx(0.5 if reward == "score" else 0.5**4)
        assert shaped == pytest.approx(gamma ** (len(episode) - 1) * prize - start, abs=1e-6)


def test_a_truncated_episode_keeps_its_last_potential():
    envs = make_vec_env(
        THRESHOLD, 2, shaping=True, gamma=0.9, observation="features", max_pulls=5, delta=0.1, instance=FOUR["instance"]
    )
    for episode in played(envs, 20):
        first, last = (envs.potential(x[None])[0] for x in (episode[0]["before"], episode[-1]["after"]))
        shaped = sum(0.9**t * step["reward"] for t, step in enumerate(episode))
        assert shaped == pytest.approx(0.9**5 * last - first, abs=1e-6)


def surplus(problem: dict[str, Any]) -> float:
    """How far the mean of score - Phi at the end lies from 0, in standard errors, over 3000 random episodes."""
    envs = make_vec_env(THRESHOLD, 1000, observation="features", **FOUR, **problem)
    envs.seed(5)
    ends = [episode[-1] for episode in played(envs, 36)]
    gap = np.array([end["info"]["score"] for end in ends]) - envs.potential(np.stack([end["after"] for end in ends]))
    return abs(gap.mean()) / (gap.std() / math.sqrt(len(gap)))


def test_the_potential_is_the_expected_score():
    assert surplus({}) < 5.0  # a correct potential fails with probability 6e-7
    assert surplus({"threshold": 0.7}) < 5.0


def test_the_limit_on_the_potential_has_teeth(monkeypatch):
    envs_potential = NativeVecEnv.potential
    monkeypatch.setattr(NativeVecEnv, "potential", lambda self, x: 1 - 0.8 * (1 - envs_potential(self, x)))
    assert surplus({}) > 5.0


# --- the policy -------------------------------------------------------------------------------------------------------


def untrained(envs: NativeVecEnv, stop: bool = True, context: bool = True) -> PPO:
    return PPO(
        EquivariantPolicy,
        envs,
        n_steps=8,
        batch_size=32,
        seed=3,
        device="cpu",
        policy_kwargs={"hidden": 16, "stop": stop, "context": context},
    )


@pytest.fixture(scope="module")
def ten() -> PPO:
    """An untrained policy for 10 arms."""
    return untrained(make_vec_env(THRESHOLD, 4, observation="features"))


def observations(arms: int, count: int = 32) -> np.ndarray:
    """Features from the middle of random episodes."""
    envs = make_vec_env(THRESHOLD, count, observation="features", instance={"sampler": {"arms": arms}}, budget=200)
    envs.seed(11)
    observation, random = envs.reset(), np.random.default_rng(2)
    for _ in range(5 * arms):
        observation, *_ = envs.step(random.integers(0, arms, count))
    return observation


@pytest.mark.parametrize("arms", [10, 7, 100])
def test_permuting_the_arms_permutes_the_logits(ten, arms):
    x = torch.as_tensor(observations(arms)).reshape(32, arms, -1)
    order = torch.randperm(arms, generator=torch.Generator().manual_seed(0))
    network = ten.policy.mlp_extractor
    with torch.no_grad():
        (logits, value), (moved, again) = network(x.flatten(1)), network(x[:, order].flatten(1))
    assert logits.shape == (32, arms + 1)
    assert torch.allclose(logits[:, :-1][:, order], moved[:, :-1], atol=1e-5)
    assert torch.allclose(logits[:, -1], moved[:, -1], atol=1e-5)
    assert torch.allclose(value, again, atol=1e-5)
    assert logits[:, :-1].std() > 1e-3  # it does tell the arms apart


def test_decisions_follow_the_arms(ten):
    x = observations(10)
    arms, slots = x.reshape(32, 10, -1), np.arange(32)
    order = np.random.default_rng(0).permutation(10)
    model = untrained(make_vec_env(THRESHOLD, 4, observation="features"), stop=False)
    action, _ = model.predict(x, deterministic=True)
    moved, _ = model.predict(arms[:, order].reshape(32, -1), deterministic=True)
    assert len(set(action)) > 1
    assert np.array_equal(arms[slots, order[moved]], arms[slots, action])  # the same arm, or one that looks the same


def test_equal_arms_tie_and_the_lowest_wins():
    envs = make_vec_env(THRESHOLD, 4, observation="features")
    model, start = untrained(envs, stop=False), envs.reset()[:1]
    for count in (1, 3, 64, 1000):
        assert (model.predict(np.repeat(start, count, 0), deterministic=True)[0] == 0).all()


def test_stopping_is_out_of_the_question_where_nobody_wants_it():
    envs = make_vec_env(THRESHOLD, 4, observation="features")
    model = untrained(envs, stop=False)
    x = torch.as_tensor(np.repeat(envs.reset(), 500, 0))
    with torch.no_grad():
        actions, _, _ = model.policy(x)
        _, logarithm, entropy = model.policy.evaluate_actions(x, actions)
    assert (actions < 10).all()
    assert torch.isfinite(logarithm).all()
    assert entropy.max() <= math.log(10) + 1e-5
    wants = untrained(envs, stop=True)
    with torch.no_grad():
        assert (wants.policy(x)[0] == 10).any()


def indexed(K: int, stop: bool = False) -> Trained:
    """An untrained network without context for K arms."""
    return Trained(
        untrained(
            make_vec_env(THRESHOLD, 4, observation="features", instance=f"sampler(arms={K})"), stop=stop, context=False
        )
    )


def test_without_context_a_logit_depends_on_its_arm_alone():
    x = torch.as_tensor(observations(10)).reshape(32, 10, -1)
    changed = x.clone()
    changed[:, 1:] = x[:, :-1]
    own, other = indexed(10).model.policy.mlp_extractor, untrained(make_vec_env(THRESHOLD, 4, observation="features"))
    with torch.no_grad():
        assert torch.allclose(own.forward_actor(x)[:, 0], own.forward_actor(changed)[:, 0], atol=1e-4)
        network = other.policy.mlp_extractor
        assert (network.forward_actor(x)[:, 0] - network.forward_actor(changed)[:, 0]).abs().max() > 1e-4


def test_an_untrained_network_pulls_by_error_and_pulls():
    """Its logits are -4 (-ln(2 error) (n / (n + nu))^2 + ln(1 + n)), but for a network whose last layer is small.

    200 pulls for 10 arms, a fifth of 100 per arm: nu = (201 / 1000)^1.5.
    """
    x = observations(10)
    network = indexed(10).model.policy.mlp_extractor
    with torch.no_grad():
        network.arm_logit.weight.zero_()
        network.arm_logit.bias.zero_()
        logits = network.forward_actor(torch.as_tensor(x))[:, :-1].numpy()
    features = x.reshape(32, 10, -1).astype(np.float64)
    pulls = features[..., FEATURES.index("width")] ** -2 - 1
    shrunk = np.log(2 * features[..., ERROR]) * (pulls / (pulls + 0.201**1.5)) ** 2
    assert logits == pytest.approx(4 * shrunk - 4 * np.log1p(pulls), abs=1e-2)


def test_without_context_only_the_budget_per_arm_counts():
    """The same arms beside as many others, with twice the budget: the same logits, though not the same features."""
    few = torch.as_tensor(observations(10)).reshape(32, 10, -1)
    many = torch.cat([few, few], 1)
    many[..., FEATURES.index("pulls")] *= math.log(201) / math.log(402)  # 1 + 200 pulls for 10 arms, 1 + 401 for 20
    network = indexed(10).model.policy.mlp_extractor
    with torch.no_grad():
        network.slopes.weight.copy_(torch.tensor([[0.1, -0.2, 0.3]]))
        assert torch.allclose(network.forward_actor(many)[:, :10], network.forward_actor(few)[:, :10], atol=1e-3)
        assert not torch.allclose(network.forward_actor(few), network.forward_actor(few * 0.99), atol=1e-1)


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        (THRESHOLD, {"instance": {"sampler": {"arms": 7}}, "budget": 90}),
        ("bandit_envs/TopK-v0", {"instance": {"sampler": {"arms": 7}}, "k": 2, "budget": 90}),
        ("bandit_envs/Feasible-v0", {"instance": "dose-finding", "budget": 90}),
    ],
)
def test_arms_that_have_not_changed_need_not_be_looked_at_again(env_id, kwargs):
    """A network without context remembers logits; with `state=None` it computes all of them."""
    envs = make_vec_env(env_id, 16, observation="features", **kwargs)
    agent, random = indexed(envs.task.K), np.random.default_rng(0)
    envs.seed(1)
    observation, state, counts = envs.reset(), None, []
    for _ in range(250):  # episodes begin anew on the way
        actions, state = agent.predict(observation, state)
        assert np.array_equal(actions, agent.predict(observation)[0])
        assert np.array_equal(actions, agent.model.policy.predict(observation, deterministic=True)[0])
        counts.append(len(np.unique(actions)))
        if random.random() < 0.1:  # others may act in its place
            actions = random.integers(0, envs.task.K, 16)
        observation, *_ = envs.step(actions)
    assert max(counts) > 1


def test_a_mask_keeps_actions_away(ten):
    x = torch.as_tensor(observations(10))
    best = ten.policy._predict(x, deterministic=True)
    mask = np.ones((32, 11), bool)
    mask[np.arange(32), best] = False
    second = ten.policy._predict(x, deterministic=True, action_masks=mask)
    assert (second != best).all()


def test_an_update_reaches_every_weight():
    model = untrained(make_vec_env(THRESHOLD, 8, observation="features", shaping=True, delta=0.1, budget=20))
    before = {name: weight.clone() for name, weight in model.policy.named_parameters()}
    model.learn(64)
    unmoved = [name for name, weight in model.policy.named_parameters() if torch.equal(weight, before[name])]
    assert unmoved == []


def test_what_the_network_adds_to_its_start_fades_and_nothing_else():
    """One step of AdamW without any gradient: weights of the way to the logits lose lr * decay = 0.2 of themselves."""
    envs = make_vec_env(THRESHOLD, 4, observation="features", budget=20)
    for context, parts in ((False, {"own", "arm", "arm_logit"}), (True, {"arm", "surroundings", "arm_logit"})):
        kwargs = {"hidden": 8, "stop": False, "context": context, "decay": 2.0}
        policy = PPO(EquivariantPolicy, envs, learning_rate=0.1, seed=0, policy_kwargs=kwargs, device="cpu").policy
        before = {name: weight.clone() for name, weight in policy.named_parameters()}
        for weight in policy.parameters():
            weight.grad = torch.zeros_like(weight)
        policy.optimizer.step()
        for name, weight in policy.named_parameters():
            left = 0.8 if name.split(".")[1] in parts else 1.0
            assert torch.allclose(weight, left * before[name]), name


# --- files ------------------------------------------------------------------------------------------------------------


def test_sb3_saves_and_loads_the_policy(ten, tmp_path):
    x = observations(10)
    expected, _ = ten.predict(x, deterministic=True)
    ten.save(tmp_path / "model")
    ten.policy.save(tmp_path / "policy")
    for one in (
        PPO.load(tmp_path / "model", device="cpu"),
        EquivariantPolicy.load(tmp_path / "policy", device="cpu"),
        agents.load(tmp_path / "model"),
        agents.load(tmp_path / "model.zip"),
    ):
        assert np.array_equal(one.predict(x, deterministic=True)[0], expected)
    assert EquivariantPolicy.load(tmp_path / "policy", device="cpu").hidden == 16


def test_a_policy_of_ten_arms_runs_on_twenty(ten, tmp_path):
    kwargs = {"instance": {"sampler": {"arms": 20}}, "budget": 60}
    path = Trained(ten).save(tmp_path / "model")
    envs = make_vec_env(THRESHOLD, 4, observation="features", **kwargs)
    loaded = agents.load(path, envs)
    assert loaded.model.action_space.n == 21
    x = observations(20)
    expected, _ = loaded.predict(x)
    assert np.array_equal(agents.load(path).predict(x)[0], expected)  # it follows the observations, too
    assert np.array_equal(agents.load(path).predict(x[0])[0], expected[0])
    loaded.model.set_env(envs)
    loaded.model.learn(32)
    result = agents.evaluate([str(path), "uniform"], THRESHOLD, episodes=20, env_kwargs=kwargs)
    assert len(result.episodes) == 40
    with pytest.raises(ValueError, match="shape"):
        agents.load(path).predict(x[:, :-1])


def test_files_that_are_no_models(tmp_path, ten):
    with pytest.raises(FileNotFoundError, match=r"there is no saved model .*nothing\.zip"):
        agents.load(tmp_path / "nothing")
    (tmp_path / "text.zip").write_text("no archive")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("data", json.dumps({"hello": 1}))
    for name in ("text", "other"):
        with pytest.raises(ValueError, match=rf"{name}\.zip holds no model"):
            agents.load(tmp_path / f"{name}.zip")
    statistics = PPO("MultiInputPolicy", make_vec_env(THRESHOLD, 2, **FOUR), n_steps=8, batch_size=8, device="cpu")
    statistics.save(tmp_path / "statistics")
    with pytest.raises(ValueError, match="trained on other observations"):
        agents.load(tmp_path / "statistics")
    plain = PPO(
        "MlpPolicy", make_vec_env(THRESHOLD, 2, observation="features", **FOUR), n_steps=8, batch_size=8, device="cpu"
    )
    plain.save(tmp_path / "plain")
    with pytest.raises(ValueError, match="for 4 arms, which cannot run on 10"):
        agents.load(tmp_path / "plain", gym.make(THRESHOLD))
    assert agents.load(tmp_path / "plain", gym.make(THRESHOLD, **FOUR)).name == "ppo"


# --- training ---------------------------------------------------------------------------------------------------------

TINY = {"steps": 2048, "num_envs": 16, "env_kwargs": FOUR, "held_out": 40, "checkpoints": 2, "progress": False}


def weights(trained: Trained) -> dict[str, torch.Tensor]:
    return trained.model.policy.state_dict()


@pytest.fixture(scope="module")
def tiny() -> Trained:
    return agents.train(**TINY)


def test_one_seed_one_model(tiny):
    torch.rand(3)  # whatever the global generators have done before
    again, other = agents.train(**TINY), agents.train(**TINY, seed=1)
    assert all(torch.equal(weight, weights(again)[name]) for name, weight in weights(tiny).items())
    assert not all(torch.equal(weight, weights(other)[name]) for name, weight in weights(tiny).items())
    alike = ("call", "seed", "roots", "hyperparameters", "steps", "kept", "result")
    assert [again.card[name] for name in alike] == [tiny.card[name] for name in alike]
    assert len({*tiny.card["roots"].values(), *other.card["roots"].values()}) == 6


def test_the_call_in_the_card_makes_the_model_again(tiny):
    again = eval(tiny.card["call"])
    assert all(torch.equal(weight, weights(again)[name]) for name, weight in weights(tiny).items())


def test_the_card_tells_all(tiny, tmp_path):
    path = tiny.save(tmp_path / "deep" / "ppo.v1")
    assert sorted(file.name for file in path.parent.iterdir()) == ["ppo.v1.json", "ppo.v1.zip"]
    card = json.loads((path.parent / "ppo.v1.json").read_text())
    assert card == json.loads(json.dumps(tiny.card)) == agents.load(path).card
    assert card["algorithm"] == "ppo"
    assert card["env_id"] == THRESHOLD
    assert card["env_kwargs"] == FOUR
    assert card["features"] == list(FEATURES)
    assert card["steps"] == 2048
    assert card["kept"] in [look["steps"] for look in card["checkpoints"]]
    assert card["hyperparameters"]["gamma"] == ALGORITHMS["ppo"].defaults["gamma"]
    assert set(card["versions"]) == {"python", "numpy", "torch", "stable-baselines3", "gymnasium", "bandit-envs"}
    assert card["seconds"] > 0
    result = card["result"]
    assert result["episodes"] == 80
    assert set(result["agents"]) == {"ppo", "uniform", "lsa"}
    for row in result["agents"].values():
        assert row["misclassified"]["low"] <= row["misclassified"]["mean"] <= row["misclassified"]["high"]
    assert set(result["differences"]) == {"uniform", "lsa"}
    # The result is what evaluate says of the kept model.
    again = agents.evaluate({"ppo": str(path)}, THRESHOLD, episodes=80, seed=result["root"], env_kwargs=FOUR)
    assert again.episodes["misclassified"].mean() == result["agents"]["ppo"]["misclassified"]["mean"]
    assert path.stat().st_size < 300_000


def test_the_kept_weights_are_those_of_the_kept_checkpoint(tiny):
    root = tiny.card["roots"]["choosing"]
    envs: Any = gym.make_vec(
        THRESHOLD, num_envs=40, actions="arm", observation="features", autoreset_mode=AutoresetMode.DISABLED, **FOUR
    )
    lost = losses(envs, tiny, root, np.arange(40))
    assert len(np.unique(lost)) > 5  # expected, not counted
    [kept] = [look for look in tiny.card["checkpoints"] if look["steps"] == tiny.card["kept"]]
    assert 1 - lost.mean() == pytest.approx(kept["return"], abs=1e-12)


def test_a_checkpoint_is_the_mean_of_the_weights_since_the_one_before(monkeypatch):
    """Two checkpoints, at .7 and 1 of 10 rollouts: the means over .4 to .7 and over the rest."""
    seen: list[dict[str, torch.Tensor]] = []
    average = training._Run._average

    def recorded(run: Any) -> None:
        seen.append({name: weight.clone() for name, weight in run.model.policy.state_dict().items()})
        average(run)

    monkeypatch.setattr(training._Run, "_average", recorded)
    trained = agents.train(**TINY | {"steps": 5120}, n_steps=32)
    assert len(seen) == 7  # after 4, ..., 10 rollouts
    kept = seen[:4] if trained.card["kept"] < 5120 else seen[4:]
    for name, weight in weights(trained).items():
        assert torch.allclose(weight, torch.stack([one[name] for one in kept]).mean(0), atol=1e-6)
    assert not torch.allclose(weights(trained)["value_net.weight"], kept[-1]["value_net.weight"], atol=1e-6)


def test_the_latest_of_the_best_is_kept():
    best = np.array([1.0, 0.0, 1.0, 0.0])
    assert latest_of_the_best(np.stack([best, best - 0.1])) == 0  # worse in every episode
    assert latest_of_the_best(np.stack([best, best[::-1] - 0.1, best - 0.2])) == 1  # deficit 0.1, standard error 0.58
    assert latest_of_the_best(np.stack([best - 0.1, best, best])) == 2
    assert latest_of_the_best(np.stack([best])) == 0


def test_time_is_kept():
    trained = agents.train(seconds=4.0, num_envs=32, env_kwargs=FOUR, held_out=40, progress=False)
    assert trained.card["seconds"] < 30  # loose: the machine may be busy
    assert trained.card["steps"] > 0


def test_progress_is_told_on_standard_error(capsys):
    agents.train(**TINY | {"progress": True})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "2,048 steps" in lines[-1]
    assert "lsa" in lines[-1]


@pytest.mark.parametrize("algorithm", ["a2c", "dqn"])
def test_other_algorithms_run(algorithm, tmp_path):
    extra = {"learning_starts": 100} if algorithm == "dqn" else {}
    trained = agents.train(algorithm, **TINY, **extra, out=tmp_path / algorithm)
    loaded = agents.load(tmp_path / algorithm)
    assert loaded.name == trained.name == algorithm
    x = observations(4)
    assert np.array_equal(loaded.predict(x)[0], trained.predict(x)[0])


@pytest.mark.parametrize("row", ENVIRONMENTS.values(), ids=lambda row: row.problem)
def test_every_problem_can_be_trained_on(row):
    trained = agents.train(env_id=row.id, **TINY | {"env_kwargs": {"budget": 20}})
    assert trained.card["hyperparameters"]["shaping"] is (row.problem in ("Threshold", "Feasible"))
    assert "uniform" in trained.card["result"]["agents"]
    assert not trained.stops


def test_where_a_delta_is_asked_stopping_is_learned_with_and_without_shaping():
    for env_id, shaping in ((THRESHOLD, True), ("bandit_envs/AllGood-v0", False)):
        kwargs = {"instance": {"sampler": {"arms": 3}}, "delta": 0.1, "max_pulls": 40, "pull_cost": 0.02}
        trained = agents.train(env_id=env_id, **TINY | {"steps": 30_000, "num_envs": 64, "env_kwargs": kwargs})
        assert trained.stops
        assert trained.card["hyperparameters"]["shaping"] is shaping
        assert 0 < trained.card["result"]["agents"]["ppo"]["total_pulls"] < 20


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"algorithm": "pppo"}, "unknown algorithm 'pppo'; did you mean 'ppo'"),
        ({"learning_rat": 1.0}, "unknown hyperparameter of ppo 'learning_rat'; did you mean 'learning_rate'"),
        ({"learning_rate": -1.0}, "learning_rate must be a number"),
        ({"steps": 0}, "steps must be an integer"),
        ({"algorithm": "dqn", "steps": None, "seconds": 1.0}, "dqn needs steps"),
        ({"seconds": 0}, "seconds must be a number"),
        ({"seed": -1}, "a seed is an integer >= 0"),
        ({"num_envs": 0}, "num_envs must be an integer"),
        ({"held_out": 1}, "held_out must be an integer"),
        ({"env_kwargs": {"observation": "features"}}, "train chooses 'observation' itself"),
        ({"env_id": "CartPole-v1", "env_kwargs": None}, "an environment of bandit_envs is needed"),
        ({"env_id": "bandit_envs/TopK-v0", "shaping": True, "env_kwargs": {"k": 2}}, "shaping is defined for"),
    ],
)
def test_refused_trainings(change, message):
    with pytest.raises(ValueError, match=message):
        agents.train(**TINY | change)


def test_decisions_are_the_same_in_every_loop(tiny):
    """evaluate in batches of any size, SB3's evaluate_policy, and a plain Gymnasium loop."""
    result, small = (
        agents.evaluate({"ppo": tiny}, THRESHOLD, episodes=48, seed=9, env_kwargs=FOUR, batch=batch)
        for batch in (48, 5)
    )
    assert result.episodes.equals(small.episodes)
    assert result.pulls.equals(small.pulls)
    envs = make_vec_env(THRESHOLD, 12, observation="features", **FOUR)
    envs.seed(9)
    returns, lengths = evaluate_policy(tiny, envs, n_eval_episodes=48, return_episode_rewards=True)
    assert returns == result.episodes["score"].tolist()
    assert lengths == [12] * 48
    env = gym.make(THRESHOLD, observation="features", **FOUR)
    pulls, scores = np.zeros(4), []
    for e in range(48):
        observation, _ = env.reset(seed=9, options={"episode": e})
        state, over = None, False
        while not over:
            action, state = tiny.predict(observation, state)
            pulls[action] += 1
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        scores.append(info["score"])
    assert scores == result.episodes["score"].tolist()
    assert pulls / 48 == pytest.approx(result.pulls["pulls"].to_numpy())


def test_there_is_life():
    """In some seconds PPO learns to leave clear arms alone: 3 of 5 means are near the threshold, 2 far away."""
    means = {"choice": [0.02, 0.98, 0.4, 0.6, 0.6]}
    kwargs = {"instance": {"sampler": {"arms": 5, "mean": means}}, "budget": 60}
    trained = agents.train(steps=60_000, num_envs=128, env_kwargs=kwargs, held_out=1000, checkpoints=2, progress=False)
    against = trained.card["result"]["differences"]["uniform"]["misclassified"]
    assert against["high"] < 0  # 2000 held-out episodes, 95 % interval


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_minute_of_training_beats_uniform_and_comes_near_lsa(seed):
    trained = agents.train(seed=seed, progress=False)
    result = agents.evaluate({"ppo": trained, "uniform": "uniform", "lsa": "lsa"}, THRESHOLD, episodes=10_000, seed=123)
    means = result.summary().set_index("agent")["misclassified"]
    assert result.compare("ppo", "uniform", "misclassified").high < -0.25
    assert means["ppo"] < 1.05 * means["lsa"]


# --- mixes, resumption, baselines ------------------------------------------------------------------------------------

MIX = [{"budget": 12}, {"budget": 24, "pulls_per_action": 4, "slots": 3.0}]


def test_a_joined_environment_is_its_parts_side_by_side():
    def parts() -> list[NativeVecEnv]:
        return [
            make_vec_env(THRESHOLD, n, observation="features", shaping=True, **FOUR | {"budget": T})
            for n, T in ((3, 12), (5, 20))
        ]

    joined, (one, other) = JoinedVecEnv(parts()), parts()
    roots = joined.seed(4)
    assert len(set(roots)) == 2
    one.seed(roots[0])
    other.seed(roots[-1])
    assert same(joined.reset(), np.concatenate([one.reset(), other.reset()]))
    random = np.random.default_rng(0)
    for _ in range(30):
        actions = random.integers(0, 4, 8)
        together, apart = joined.step(actions), [one.step(actions[:3]), other.step(actions[3:])]
        for i in range(3):
            assert same(together[i], np.concatenate([part[i] for part in apart]))
        assert [bool(info) for info in together[3]] == together[2].tolist()
    assert joined.num_envs == 8
    assert len(joined.env_method("action_masks", indices=[0, 7])) == 2
    assert joined.get_attr("num_envs", indices=[1, 6]) == [3, 5]
    with pytest.raises(ValueError, match="same K, got 4 and 5"):
        JoinedVecEnv([one, make_vec_env(THRESHOLD, 2, observation="features", instance="sampler(arms=5)")])
    with pytest.raises(ValueError, match="at least one environment"):
        JoinedVecEnv([])


def test_expected_scores_have_the_mean_of_the_scores_and_less_noise():
    """3000 random episodes; |z| > 5 happens by chance with probability 6e-7."""
    rewards = {}
    for expected in (False, True):
        envs = make_vec_env(THRESHOLD, 500, observation="features", expected=expected, **FOUR)
        envs.seed(8)
        rewards[expected] = np.array([episode[-1]["reward"] for episode in played(envs, 72)])
    difference = rewards[True] - rewards[False]
    assert abs(difference.mean()) < 5 * difference.std() / math.sqrt(len(difference))
    assert rewards[True].std() < 0.8 * rewards[False].std()
    with pytest.raises(ValueError, match="expected scores are defined for Threshold"):
        make_vec_env("bandit_envs/TopK-v0", 1, observation="features", expected=True)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_relative_advantages_are_advantages_over_the_mean_error_left(power):
    """Of SB3's own buffer, in the mean unit of all slots at the time, for values that are the same in both."""
    envs = make_vec_env(THRESHOLD, 6, observation="features", shaping=True, **FOUR)
    shape = (10, envs.observation_space, envs.action_space, "cpu", 0.9, 0.8, 6)
    own, plain = (
        RelativeBuffer(*shape[:4], shape[5], shape[4], 6, power=power),
        RolloutBuffer(*shape[:4], shape[5], shape[4], 6),
    )
    envs.seed(2)
    observation, starts = envs.reset(), np.ones(6)
    random = np.random.default_rng(0)
    units = []
    for _ in range(10):
        unit = observation.reshape(6, 4, -1)[..., ERROR].mean(1, dtype=np.float64) ** power
        values, actions = random.random(6), random.integers(0, 4, 6)
        after, rewards, dones, _ = envs.step(actions)
        for buffer, scale in ((own, unit), (plain, np.ones(6))):
            buffer.add(observation, actions[:, None], rewards, starts, torch.as_tensor(values / scale), torch.zeros(6))
        units.append(unit)
        observation, starts = after, dones.astype(float)
    last = random.random(6)
    unit = units[-1]  # that of the state before, see `after`
    own.compute_returns_and_advantage(torch.as_tensor(last / unit), dones)
    plain.compute_returns_and_advantage(torch.as_tensor(last), dones)
    relative = plain.advantages / np.stack(units).mean(1, keepdims=True)
    assert own.advantages == pytest.approx(relative / relative.std(), abs=1e-4)


def test_advantages_are_compared_among_siblings():
    """Each less the mean of its siblings', by hand; the critic's targets are what they are without siblings."""
    envs = make_vec_env(THRESHOLD, 6, observation="features", siblings=3, **FOUR)
    shape = (4, envs.observation_space, envs.action_space, "cpu", 0.9, 0.8, 6)
    own, plain = (RelativeBuffer(*shape, power=0.0, siblings=n) for n in (3, 1))
    observation, random = envs.reset(), np.random.default_rng(0)
    for t in range(4):
        values, rewards = random.random(6), random.random(6)
        for buffer in (own, plain):
            buffer.add(
                observation, np.zeros((6, 1)), rewards, np.full(6, t == 0), torch.as_tensor(values), torch.zeros(6)
            )
    for buffer in (own, plain):
        buffer.compute_returns_and_advantage(torch.zeros(6), np.ones(6))
    assert np.array_equal(own.returns, plain.returns)
    own_mean = np.zeros((4, 6))
    for t in range(4):
        for i in range(6):
            others = [plain.advantages[t, j] for j in range(i // 3 * 3, i // 3 * 3 + 3) if j != i]
            own_mean[t, i] = plain.advantages[t, i] - np.mean(others)
    assert own.advantages == pytest.approx(own_mean / own_mean.std(), abs=1e-5)


def test_no_environment_of_a_mix_drowns_the_others():
    envs = make_vec_env(THRESHOLD, 6, observation="features", **FOUR)
    buffer = RelativeBuffer(4, envs.observation_space, envs.action_space, "cpu", 0.9, 0.8, 6, power=0.0)
    buffer.parts, observation, random = [2, 4], envs.reset(), np.random.default_rng(0)
    for t in range(4):
        rewards, starts = random.random(6) * [1, 1, 1e-3, 1e-3, 1e-3, 1e-3], np.full(6, t == 0)
        buffer.add(observation, np.zeros((6, 1)), rewards, starts, torch.zeros(6), torch.zeros(6))
    buffer.compute_returns_and_advantage(torch.zeros(6), np.ones(6))
    assert buffer.returns[:, :2].std() > 100 * buffer.returns[:, 2:].std()
    assert [buffer.advantages[:, :2].std(), buffer.advantages[:, 2:].std()] == pytest.approx([1, 1], abs=1e-3)


def test_siblings_in_training():
    trained = agents.train(**TINY | {"num_envs": 24}, mix=MIX, siblings=4)
    assert trained.card["hyperparameters"]["siblings"] == 4
    assert "siblings=4" in trained.card["call"]
    with pytest.raises(ValueError, match="siblings must divide num_envs = 30"):
        agents.train(**TINY | {"num_envs": 30}, siblings=4)
    with pytest.raises(ValueError, match="are for ppo, a2c, got 2 for maskable-ppo"):
        agents.train("maskable-ppo", **TINY | {"num_envs": 30}, siblings=2)


def test_one_policy_for_a_mix_of_budgets():
    trained = agents.train(**TINY, mix=MIX, curriculum=0.5)
    assert [len(look["return"]) for look in trained.card["checkpoints"]] == [2] * len(trained.card["checkpoints"])
    assert len(trained.card["result"]) == 2
    again = eval(trained.card["call"])
    assert all(torch.equal(weight, weights(again)[name]) for name, weight in weights(trained).items())
    with pytest.raises(ValueError, match="mix must be a list"):
        agents.train(**TINY, mix={"budget": 3})
    with pytest.raises(ValueError, match="num_envs must be at least 2"):
        agents.train(**TINY | {"num_envs": 1}, mix=MIX)


class Killed(Exception):
    """Stands for a kill."""


@pytest.mark.parametrize(
    ("algorithm", "extra"),
    [
        ("ppo", {}),
        ("ppo", {"mix": MIX, "curriculum": 0.5}),
        ("dqn", {"learning_starts": 100}),
    ],
)
def test_a_killed_training_resumes_to_the_same_model(algorithm, extra, tmp_path, monkeypatch):
    call = TINY | {"steps": 4096} | extra
    whole = agents.train(algorithm, **call)
    monkeypatch.setattr("agents.learned.training.SAVE_EVERY", 0.0)
    write, written = Saved.write, []

    def write_and_die(self: Saved, model: Any, run: Any) -> None:
        write(self, model, run)
        written.append(model.num_timesteps)
        if written[-1] >= 2500:
            raise Killed

    monkeypatch.setattr(Saved, "write", write_and_die)
    with pytest.raises(Killed):
        agents.train(algorithm, **call, out=tmp_path / "model")
    assert [file.name for file in tmp_path.iterdir()] == ["model.resume"]
    monkeypatch.setattr(Saved, "write", write)
    with pytest.raises(ValueError, match="belongs to another call"):
        agents.train(algorithm, **call | {"seed": 5}, out=tmp_path / "model", resume=True)
    torch.rand(5)
    resumed = agents.train(algorithm, **call, out=tmp_path / "model", resume=True)
    assert all(torch.equal(weight, weights(resumed)[name]) for name, weight in weights(whole).items())
    assert [look["return"] for look in resumed.card["checkpoints"]] == [
        look["return"] for look in whole.card["checkpoints"]
    ]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["model.json", "model.zip"]
    with pytest.raises(ValueError, match="resume needs out"):
        agents.train(**TINY, resume=True)


def test_curves_go_to_tensorboard(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    agents.train(**TINY | {"checkpoints": 4}, tensorboard_log=str(tmp_path))
    [run] = tmp_path.iterdir()
    curves = EventAccumulator(str(run)).Reload().Tags()["scalars"]
    assert {"held_out/return", "held_out/loss_over_lsa", "rollout/ep_rew_mean"} <= set(curves)


@pytest.mark.parametrize("algorithm", ["maskable-ppo", "recurrent-ppo"])
def test_baselines_of_sb3_contrib(algorithm, tmp_path):
    pytest.importorskip("sb3_contrib")
    trained = agents.train(algorithm, **TINY, out=tmp_path / algorithm)
    loaded = agents.load(tmp_path / algorithm)
    assert type(loaded.model).__name__.lower() == algorithm.replace("-", "")
    x = observations(4)
    assert np.array_equal(loaded.predict(x)[0], trained.predict(x)[0])
    if algorithm == "maskable-ppo":  # equivariant, so it runs on other numbers of arms
        wide = agents.load(tmp_path / algorithm, gym.make(THRESHOLD, instance="sampler(arms=7)"))
        assert wide.predict(observations(7))[0].shape == (32,)


def test_actions_are_repeated_as_in_training(tiny):
    result = agents.evaluate({"once": tiny, "thrice": Repeated(tiny, 3)}, THRESHOLD, episodes=20, env_kwargs=FOUR)
    env = gym.make(THRESHOLD, observation="features", **FOUR)
    scores = []
    for e in range(20):
        observation, _ = env.reset(seed=0, options={"episode": e})
        for t in range(12):
            if t % 3 == 0:
                action, _ = tiny.predict(observation)
            observation, _, _, _, info = env.step(action)
        scores.append(info["score"])
    assert scores == result.episodes.query("agent == 'thrice'")["score"].tolist()


# --- what comes with the package -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(FOLDER.glob("ppo-*.json")), ids=lambda path: path.stem)
def test_stored_networks_run(path):
    card = json.loads(path.read_text())
    assert path.with_suffix(".npz").stat().st_size < 300_000
    assert card["call"].startswith("agents.train('ppo'")
    assert card["cpu_seconds"] <= 600
    kwargs = {**card["env_kwargs"], **((card["hyperparameters"]["mix"] or [{}])[0])}
    kwargs = {name: value for name, value in kwargs.items() if name not in ("pulls_per_action", "slots")}
    env = gym.make(card["env_id"], **kwargs)
    agent = agents.make("ppo", env)
    assert agent.name == "ppo"
    assert path.stem == f"ppo-{kind_of(env.unwrapped.task)}"
    result = agents.evaluate(["ppo", "uniform"], card["env_id"], episodes=20, env_kwargs=kwargs | {"max_pulls": 50})
    assert len(result.episodes) == 40


def test_storing_keeps_every_decision(tmp_path, tiny, monkeypatch):
    store(tiny, tmp_path / "ppo-threshold-budget")
    monkeypatch.setattr("agents.models.cards.FOLDER", tmp_path)
    env = gym.make(THRESHOLD, **FOUR)
    again = agents.make("ppo", env)
    x = observations(4)
    assert np.array_equal(again.predict(x)[0], tiny.predict(x)[0])
    assert again.card["call"] == tiny.card["call"]
    assert agents.make("ppo", gym.make(THRESHOLD)).predict(observations(10))[0].shape == (32,)
    with pytest.raises(ValueError, match="ppo has no parameter 'alpha'"):
        agents.make("ppo(alpha=1)", env)


# --- the extra --------------------------------------------------------------------------------------------------------


def test_importing_agents_imports_no_torch():
    code = "import sys, agents; assert not {'torch', 'stable_baselines3'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("missing", ["torch", "stable_baselines3"])
def test_a_missing_extra_is_named(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; import agents; agents.train()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'pip install "bandit-envs[training]"' in done.stderr.splitlines()[-1]
    assert done.stderr.splitlines()[-1].startswith("ImportError")


def test_unknown_names_of_the_package_are_unknown():
    with pytest.raises(AttributeError, match="has no attribute 'trian'"):
        _ = agents.trian  # type: ignore[attr-defined]


def test_paths_of_models(tmp_path, tiny):
    for out in (tmp_path / "a", Path(tmp_path / "b.zip"), str(tmp_path / "c")):
        assert tiny.save(out).suffix == ".zip"
    assert sorted(file.name for file in tmp_path.iterdir()) == [f"{x}.{y}" for x in "abc" for y in ("json", "zip")]
