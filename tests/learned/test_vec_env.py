"""The native VecEnv: slots, seeds, infos, what SB3 asks for."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

pytest.importorskip("stable_baselines3")

from learning import FOUR, THRESHOLD, played, same
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import VecMonitor, VecNormalize

import agents
from agents.learned import NativeVecEnv, make_vec_env
from bandit_envs import PureExplorationVectorEnv


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
        assert all(type(value) is type(info[name]) for name, value in told.items())


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
    ("env_id", "change", "message"),
    [
        (THRESHOLD, {"actions": "full"}, "actions='arm'"),
        (THRESHOLD, {"reward_scale": 0.0}, "reward_scale must be a number"),
        (THRESHOLD, {"pulls_per_action": 0}, "pulls_per_action must be an integer"),
        ("CartPole-v1", {}, "an environment of bandit_envs is needed"),
    ],
)
def test_refused(env_id, change, message):
    with pytest.raises(ValueError, match=message):
        make_vec_env(env_id, 2, **FOUR, **change)
    with pytest.raises(ValueError, match="DISABLED"):
        NativeVecEnv(gym.make_vec(THRESHOLD, num_envs=2))
